//! Passwords: argon2id on threads of its own, a bounded number at a time, the same work for every answer.
//!
//! The threads are few and stay: each hash takes megabytes, and an allocator keeps them for every thread that ever
//! hashed. Called by `accounts` alone; owns the threads, which end with it.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use argon2::password_hash::phc::PasswordHash;
use argon2::{Algorithm, Argon2, Params, PasswordHasher as _, PasswordVerifier as _, Version};
use tokio::sync::oneshot;

/// What a hash costs and how many there may be.
#[derive(Clone, Copy, Debug)]
pub struct PasswordOptions {
    /// Memory of one hash, in KiB; at least 8.
    pub memory_kib: u32,
    /// Passes over that memory; at least 1.
    pub passes: u32,
    /// Hashes at the same time.
    pub threads: usize,
    /// Hashes waiting for their turn; beyond it `Busy`.
    pub waiting: usize,
}

/// Too many passwords are being checked; try again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many people are logging in at once; try again in a second")]
pub struct Busy;

type Work = Box<dyn FnOnce() + Send>;

/// Hashes and checks passwords.
#[derive(Debug)]
pub(super) struct Passwords {
    argon2: Argon2<'static>,
    /// The line in which work waits for a thread.
    line: SyncSender<Work>,
    /// Checked in place of the hash that an unknown name does not have.
    decoy: Arc<str>,
}

impl Passwords {
    /// A hasher. The work of one hash is done here, once.
    ///
    /// # Panics
    /// When `options` are outside argon2's own limits, which the configuration has checked, or the system has no thread
    /// to give at the start.
    pub(super) fn new(options: PasswordOptions) -> Passwords {
        let params =
            Params::new(options.memory_kib, options.passes, 1, None).expect("checked by the configuration");
        let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
        let decoy = hash(&argon2, "nobody has this password").into();
        let (line, waiting) = sync_channel(options.waiting);
        let waiting = Arc::new(Mutex::new(waiting));
        for _ in 0..options.threads {
            let waiting = Arc::clone(&waiting);
            let spawned = thread::Builder::new().name("passwords".into()).spawn(move || work_off(&waiting));
            spawned.expect("the system has a thread to give at the start");
        }
        Passwords { argon2, line, decoy }
    }

    /// The hash of `password` under a new salt, in PHC form.
    pub(super) async fn hash(&self, password: String) -> Result<String, Busy> {
        let argon2 = self.argon2.clone();
        self.run(move || hash(&argon2, &password)).await
    }

    /// Whether `password` is the one behind `stored`. Without a stored hash the answer is no, after the same work.
    pub(super) async fn matches(&self, password: String, stored: Option<String>) -> Result<bool, Busy> {
        let argon2 = self.argon2.clone();
        let decoy = Arc::clone(&self.decoy);
        self.run(move || {
            let known = stored.is_some();
            let stored = stored.as_deref().unwrap_or(&decoy);
            let right = PasswordHash::new(stored)
                .is_ok_and(|stored| argon2.verify_password(password.as_bytes(), &stored).is_ok());
            known && right
        })
        .await
    }

    async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, Busy> {
        let (done, result) = oneshot::channel();
        let work = Box::new(move || drop(done.send(work())));
        self.line.try_send(work).map_err(|_| Busy)?;
        result.await.map_err(|_| Busy)
    }
}

/// Does what waits until nobody can ask any more.
fn work_off(waiting: &Mutex<Receiver<Work>>) {
    loop {
        let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).recv();
        match next {
            Ok(work) => work(),
            Err(_) => return,
        }
    }
}

fn hash(argon2: &Argon2<'static>, password: &str) -> String {
    let hash: PasswordHash = argon2
        .hash_password(password.as_bytes())
        .expect("the length was checked, and the system has randomness");
    hash.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passwords(threads: usize, waiting: usize) -> Passwords {
        Passwords::new(PasswordOptions { memory_kib: 8, passes: 1, threads, waiting })
    }

    #[tokio::test]
    async fn the_right_password_matches_and_nothing_else_does() {
        let passwords = passwords(1, 4);
        let stored = passwords.hash("correct horse".into()).await.expect("room");
        assert!(stored.starts_with("$argon2id$v=19$m=8,t=1,p=1$"), "{stored}");
        let matches = |text: &str, stored: Option<String>| passwords.matches(text.into(), stored);
        assert_eq!(matches("correct horse", Some(stored.clone())).await, Ok(true));
        assert_eq!(matches("correct horsf", Some(stored)).await, Ok(false));
        assert_eq!(matches("nobody has this password", None).await, Ok(false));
        assert_eq!(matches("anything", Some("no hash".into())).await, Ok(false));
    }

    #[tokio::test]
    async fn beyond_the_waiting_places_callers_are_refused_at_once() {
        let passwords = passwords(1, 1);
        let (started, running) = oneshot::channel();
        let (release, released) = std::sync::mpsc::channel::<()>();
        let busy = passwords.run(move || {
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
