//! Passwords: argon2id on threads of its own, a bounded number at a time, the same work for every answer.
//!
//! The threads are few and stay, and each keeps the megabytes that a hash needs from one to the next: an allocator
//! would keep them anyway, several times over. They run behind all other work, so that a flood of log-ins does not slow
//! down messages. Called by `accounts` alone; owns the threads, which end with it.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use argon2::password_hash::phc::{Output, ParamsString, PasswordHash, Salt};
use argon2::{Algorithm, Argon2, Block, Params, Version};
use rand::Rng as _;
use tokio::sync::oneshot;

use crate::domain::normal_password;

/// Passes over the memory of a hash.
const PASSES: u32 = 2;

/// Hashes at the same time.
const THREADS: usize = 1;

/// Log-ins, sign-ups and changes of a password that are carried out at a time: enough that the threads which hash have work while others
/// look up and store.
pub const PASSWORD_TURNS: usize = THREADS + 8;

/// Too many passwords are being checked; try again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many people are logging in at once; try again in a second")]
pub struct Busy;

const CHECKED: &str = "the configuration and the length of the password were checked";

/// The memory of one thread, used for one hash after the other.
type HashMemory = Vec<Block>;

type HashWork = Box<dyn FnOnce(&mut HashMemory) + Send>;

/// Hashes and checks passwords.
#[derive(Debug)]
pub(super) struct Passwords {
    argon2: Argon2<'static>,
    /// The line in which work waits for a thread.
    line: SyncSender<HashWork>,
    /// Checked in place of the hash that an unknown name does not have.
    decoy: Arc<str>,
}

impl Passwords {
    /// A hasher with so much memory for one hash. When more than `waiting` hashes wait for their turn, further ones are refused.
    ///
    /// # Panics
    /// When `memory_kib` is outside argon2's own limits, which the configuration has checked, or the system has no thread
    /// to give at the start.
    pub(super) fn new(memory_kib: u32, waiting: usize) -> Passwords {
        let params = Params::new(memory_kib, PASSES, 1, None).expect("checked by the configuration");
        let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
        let decoy = decoy(&argon2).into();
        let (line, waiting) = sync_channel(waiting);
        let waiting = Arc::new(Mutex::new(waiting));
        for _ in 0..THREADS {
            let waiting = Arc::clone(&waiting);
            let spawned = thread::Builder::new().name("passwords".into()).spawn(move || work_off(&waiting));
            spawned.expect("the system has a thread to give at the start");
        }
        Passwords { argon2, line, decoy }
    }

    /// The hash of `password` under a new salt, in PHC form.
    pub(super) async fn hash(&self, password: String) -> Result<String, Busy> {
        let (argon2, password) = (self.argon2.clone(), normal_password(&password));
        self.run(move |memory| hash(&argon2, &password, memory)).await
    }

    /// Whether `password` is the one behind `stored`, in its normal form or, of an older hash, as it was typed. Without a stored hash the
    /// answer is no, after the same work.
    pub(super) async fn matches(&self, password: String, stored: Option<String>) -> Result<bool, Busy> {
        let decoy = Arc::clone(&self.decoy);
        self.run(move |memory| {
            let known = stored.is_some();
            let stored = stored.as_deref().unwrap_or(&decoy);
            let normal = normal_password(&password);
            let mut is_right = |form: &str| verify(stored, form, memory).unwrap_or(false);
            let right = is_right(&normal) || (normal != password && is_right(&password));
            known && right
        })
        .await
    }

    /// Another hash of the password behind `stored`, at the configured cost and under the same salt.
    pub(super) async fn hash_anew(&self, password: String, stored: &str) -> Result<String, Busy> {
        let (argon2, salt) = (self.argon2.clone(), PasswordHash::new(stored).ok().and_then(|hash| hash.salt));
        let password = normal_password(&password);
        self.run(move |memory| match salt {
            Some(salt) => hash_with(&argon2, &password, &salt, memory),
            None => hash(&argon2, &password, memory),
        })
        .await
    }

    /// Whether `stored` costs what the configuration says.
    pub(super) fn is_current(&self, stored: &str) -> bool {
        // `$argon2id$v=19$m=…,t=…,p=…$SALT$HASH`
        let cost = |hash: &str| hash.rsplitn(3, '$').nth(2).map(str::to_owned);
        cost(stored) == cost(&self.decoy)
    }

    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut HashMemory) -> T + Send + 'static,
    ) -> Result<T, Busy> {
        let (done, result) = oneshot::channel();
        let work = Box::new(move |memory: &mut HashMemory| {
            // A caller who has given up costs no hash.
            if !done.is_closed() {
                drop(done.send(work(memory)));
            }
        });
        self.line.try_send(work).map_err(|_| Busy)?;
        result.await.map_err(|_| Busy)
    }
}

/// Runs the waiting work until the [`Passwords`] are dropped.
fn work_off(waiting: &Mutex<Receiver<HashWork>>) {
    tidemark_process::yield_to_other_threads();
    let mut memory = HashMemory::new();
    loop {
        let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).recv();
        match next {
            Ok(work) => work(&mut memory),
            Err(_) => return,
        }
    }
}

/// The hash of `password` under a new salt, in PHC form.
fn hash(argon2: &Argon2<'static>, password: &str, memory: &mut HashMemory) -> String {
    let salt: [u8; Salt::RECOMMENDED_LENGTH] = drawn();
    hash_with(argon2, password, &salt, memory)
}

fn hash_with(argon2: &Argon2<'static>, password: &str, salt: &[u8], memory: &mut HashMemory) -> String {
    let mut out = [0; Params::DEFAULT_OUTPUT_LEN];
    compute(argon2, password, salt, &mut out, memory).expect(CHECKED);
    in_phc_form(argon2, salt, &out)
}

/// A hash that no known password has. To check a password against it is the same work as against a computed one; it is drawn,
/// because a start would wait for the computation.
fn decoy(argon2: &Argon2<'static>) -> String {
    let salt: [u8; Salt::RECOMMENDED_LENGTH] = drawn();
    let out: [u8; Params::DEFAULT_OUTPUT_LEN] = drawn();
    in_phc_form(argon2, &salt, &out)
}

fn drawn<const LENGTH: usize>() -> [u8; LENGTH] {
    let mut bytes = [0; LENGTH];
    rand::rng().fill_bytes(&mut bytes);
    bytes
}

fn in_phc_form(argon2: &Argon2<'static>, salt: &[u8], out: &[u8]) -> String {
    let hash = PasswordHash {
        algorithm: Algorithm::Argon2id.ident(),
        version: Some(Version::V0x13.into()),
        params: ParamsString::try_from(argon2.params()).expect(CHECKED),
        salt: Some(Salt::new(salt).expect(CHECKED)),
        hash: Some(Output::new(out).expect(CHECKED)),
    };
    hash.to_string()
}

/// Whether `password` is the one behind `stored`, which says how it was hashed; `None` when `stored` is no hash.
fn verify(stored: &str, password: &str, memory: &mut HashMemory) -> Option<bool> {
    let stored = PasswordHash::new(stored).ok()?;
    let (salt, expected) = (stored.salt?, stored.hash?);
    let version = stored.version.map_or(Ok(Version::V0x13), Version::try_from).ok()?;
    let algorithm = Algorithm::try_from(stored.algorithm.as_str()).ok()?;
    let argon2 = Argon2::new(algorithm, version, Params::try_from(&stored).ok()?);
    let mut out = [0; Output::MAX_LENGTH];
    let out = out.get_mut(..expected.len())?;
    compute(&argon2, password, &salt, out, memory).ok()?;
    // Compared in constant time.
    Some(Output::new(out).ok()? == expected)
}

fn compute(
    argon2: &Argon2<'_>,
    password: &str,
    salt: &[u8],
    out: &mut [u8],
    memory: &mut HashMemory,
) -> argon2::Result<()> {
    memory.resize(argon2.params().block_count(), Block::new());
    argon2.hash_password_into_with_memory(password.as_bytes(), salt, out, memory.as_mut_slice())
}

#[cfg(test)]
mod tests {
    use argon2::PasswordHasher as _;

    use super::*;

    #[tokio::test]
    async fn the_right_password_matches_and_nothing_else_does() {
        let passwords = Passwords::new(8, 4);
        let stored = passwords.hash("correct horse".into()).await.expect("room");
        assert!(stored.starts_with("$argon2id$v=19$m=8,t=2,p=1$"), "{stored}");
        let matches = |text: &str, stored: Option<String>| passwords.matches(text.into(), stored);
        assert_eq!(matches("correct horse", Some(stored.clone())).await, Ok(true));
        assert_eq!(matches("correct horsf", Some(stored)).await, Ok(false));
        assert_eq!(matches("nobody has this password", None).await, Ok(false));
        assert_eq!(matches("anything", Some("no hash".into())).await, Ok(false));
    }

    #[tokio::test]
    async fn a_password_matches_in_every_normal_form_and_an_older_hash_as_it_was_typed() {
        let passwords = Passwords::new(8, 4);
        let stored = passwords.hash("cafe\u{301}\u{a0}au lait".into()).await.expect("room");
        let matches = |text: &str, stored: &str| passwords.matches(text.into(), Some(stored.to_owned()));
        for typed in ["caf\u{e9} au lait", "cafe\u{301} au lait", "caf\u{e9}\u{3000}au\u{a0}lait"] {
            assert_eq!(matches(typed, &stored).await, Ok(true), "{typed:?}");
        }
        assert_eq!(matches("cafe au lait", &stored).await, Ok(false));
        let older = hash(&passwords.argon2, "cafe\u{301}\u{a0}au lait", &mut HashMemory::new());
        assert_eq!(matches("cafe\u{301}\u{a0}au lait", &older).await, Ok(true));
        assert_eq!(matches("caf\u{e9} au lait", &older).await, Ok(false));
    }

    #[test]
    fn a_decoy_is_checked_with_the_work_of_a_computed_hash_and_matches_nothing() {
        let params = Params::new(64, 2, 1, None).expect("in range");
        let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
        let mut memory = HashMemory::new();
        let (decoy, computed) = (decoy(&argon2), hash(&argon2, "correct horse", &mut memory));
        let cost = |stored: &str| {
            let stored = PasswordHash::new(stored).expect("a hash");
            let lengths = (stored.salt.map(|salt| salt.len()), stored.hash.map(|hash| hash.len()));
            (stored.algorithm, stored.version, stored.params.clone(), lengths)
        };
        assert_eq!(cost(&decoy), cost(&computed));
        // `None` would be an answer without the work.
        assert_eq!(verify(&decoy, "correct horse", &mut memory), Some(false));
    }

    #[test]
    fn hashes_of_any_cost_share_memory_and_do_not_change_each_other() {
        let mut memory = HashMemory::new();
        let costs = [(64, 1), (8, 3), (32, 2)];
        let with = |(kib, passes)| Params::new(kib, passes, 1, None).expect("in range");
        let argon2 = |cost| Argon2::new(Algorithm::Argon2id, Version::V0x13, with(cost));
        let stored = costs.map(|cost| hash(&argon2(cost), "correct horse", &mut memory));
        for stored in stored.iter().chain(stored.iter().rev()) {
            assert_eq!(verify(stored, "correct horse", &mut memory), Some(true));
            assert_eq!(verify(stored, "correct horsf", &mut memory), Some(false));
        }
        let by_the_crate: PasswordHash = argon2((16, 2)).hash_password(b"correct horse").expect("in range");
        assert_eq!(verify(&by_the_crate.to_string(), "correct horse", &mut memory), Some(true));
    }

    #[tokio::test]
    async fn one_who_has_given_up_costs_no_hash() {
        let passwords = Passwords::new(8, 2);
        let (release, released) = std::sync::mpsc::channel::<()>();
        let busy = passwords.run(move |_| released.recv().is_ok());
        let mut busy = std::pin::pin!(busy);
        assert!(futures_util::poll!(busy.as_mut()).is_pending());
        let (touched, mut was_touched) = oneshot::channel::<()>();
        {
            let given_up = passwords.run(move |_| touched.send(()));
            let mut given_up = std::pin::pin!(given_up);
            assert!(futures_util::poll!(given_up.as_mut()).is_pending());
        }
        drop(release);
        assert_eq!(busy.await, Ok(false));
        passwords.hash("after it".into()).await.expect("room");
        assert!(was_touched.try_recv().is_err());
    }

    #[tokio::test]
    async fn beyond_the_waiting_places_callers_are_refused_at_once() {
        let passwords = Passwords::new(8, 1);
        let (started, running) = oneshot::channel();
        let (release, released) = std::sync::mpsc::channel::<()>();
        let busy = passwords.run(move |_| {
            let _ = started.send(());
            let _ = released.recv();
        });
        let mut busy = std::pin::pin!(busy);
        assert!(futures_util::poll!(busy.as_mut()).is_pending());
        running.await.expect("the one thread is busy");
        let waiting = passwords.hash("first in line".into());
        let mut waiting = std::pin::pin!(waiting);
        assert!(futures_util::poll!(waiting.as_mut()).is_pending());
        assert_eq!(passwords.hash("no place left".into()).await, Err(Busy));
        drop(release);
        assert!(waiting.await.is_ok());
    }
}
