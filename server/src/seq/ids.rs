//! Numbers for everything that is no row: users, groups, invitations. The adapter of the number issuer.
//!
//! Owns the issuer, whose segments are durable in a file beside the database, or in PostgreSQL. Called by `app` when something is made.

use std::path::Path;
use std::sync::Arc;

use hmac::{Hmac, KeyInit as _, Mac as _};
use seqsvr_issuer::repository::{
    MemoryRepository, PgPool, PostgresRepository, Repository, SqliteRepository, Values,
};
use seqsvr_issuer::scramble::{BASE_58, CodeKey, Codec, CodecOptions};
use seqsvr_issuer::{Counter, Issuer, Range, SegmentOptions, Tag};
use sha2::Sha256;

use super::NumberError;
use crate::domain::{ClientId, GroupId, Uid};

const USERS: &str = "user";
const GROUPS: &str = "group";
const INVITES: &str = "invite";

/// Codes of invitations are drawn from this many, so that one is not found by trying: 58^10 and more.
const INVITE_CODES: u64 = 1 << 60;

/// The prefix of the signed text behind a sign-up code, so that a signature of something else is not valid for one.
const SIGN_UP_PURPOSE: &str = "tidemark sign-up invitation 1";

/// How often numbers are skipped again where another server of the database did so in between.
const SKIP_TRIES: u32 = 100;

/// The largest stored numbers: nothing at or below them is issued again, also when the issuer's file was lost.
#[derive(Clone, Copy, Debug, Default)]
pub struct StoredNumbers {
    /// The largest user id.
    pub uid: u32,
    /// The largest number of a group.
    pub gid: u64,
    /// The largest number of an invitation.
    pub invite: u64,
}

/// The numbers cannot be issued; the text says why.
#[derive(Debug, thiserror::Error)]
#[error("the numbers of users and groups cannot be issued: {0}")]
pub struct IdsError(String);

/// See the module. Cheap to clone.
#[derive(Clone)]
pub struct Ids(Arc<IdCounters>);

struct IdCounters {
    issuer: Issuer,
    users: Counter,
    groups: Counter,
    invites: Counter,
    codes: Codec,
    secret: String,
}

impl Ids {
    /// Numbers whose segments are kept in `file`. `secret`, of 16 characters and more, turns numbers of invitations into codes:
    /// another one makes the codes that are about worthless.
    pub async fn open(file: &Path, stored: StoredNumbers, secret: &str) -> Result<Ids, IdsError> {
        Ids::over(Arc::new(SqliteRepository::new(file)), stored, secret).await
    }

    /// Numbers whose segments are kept in tables of this PostgreSQL database, for all servers that use it.
    pub async fn shared(pool: PgPool, stored: StoredNumbers, secret: &str) -> Result<Ids, IdsError> {
        let repository = PostgresRepository::over(pool).await.map_err(why)?;
        Ids::over(Arc::new(repository), stored, secret).await
    }

    /// Makes the tables for [`shared`](Self::shared), if they are not there.
    pub async fn make_tables(pool: PgPool) -> Result<(), IdsError> {
        PostgresRepository::over(pool).await.map(drop).map_err(why)
    }

    /// Numbers that are forgotten with the process: for tests of what stands above.
    pub async fn in_memory(secret: &str) -> Result<Ids, IdsError> {
        Ids::over(Arc::new(MemoryRepository::new()), StoredNumbers::default(), secret).await
    }

    async fn over(
        repository: Arc<dyn Repository>,
        stored: StoredNumbers,
        secret: &str,
    ) -> Result<Ids, IdsError> {
        let mut builder = Issuer::builder().repository(repository);
        for (tag, options) in lines(stored) {
            builder = builder.segment(tag, options).map_err(why)?;
        }
        let issuer = builder.open().await.map_err(why)?;
        let codes = CodecOptions {
            range: Range { first: 1, last: INVITE_CODES },
            alphabet: BASE_58.to_owned(),
            check_symbol: true,
            keys: vec![CodeKey { version: 1, secret: secret.to_owned() }],
        };
        let codes = Codec::new(&Tag::new(INVITES).map_err(why)?, &codes).map_err(why)?;
        let counter = |tag| issuer.counter(tag).map_err(why);
        let (users, groups, invites) = (counter(USERS)?, counter(GROUPS)?, counter(INVITES)?);
        let secret = secret.to_owned();
        Ok(Ids(Arc::new(IdCounters { issuer, users, groups, invites, codes, secret })))
    }

    /// Lets every number go on `ahead` (1 and up) beyond what `file` and `stored` say was given: for data that were restored from a
    /// copy, which does not say what was given since it was made. While nobody else uses `file`.
    ///
    /// # Errors
    /// When `file` cannot be used, or so many numbers are not left; those of earlier tags are then raised already.
    pub async fn skip(file: &Path, stored: StoredNumbers, ahead: u64) -> Result<(), IdsError> {
        Ids::skip_in(&SqliteRepository::new(file), stored, ahead).await
    }

    /// The same for the tables of this PostgreSQL database.
    pub async fn skip_shared(pool: PgPool, stored: StoredNumbers, ahead: u64) -> Result<(), IdsError> {
        let repository = PostgresRepository::over(pool).await.map_err(why)?;
        Ids::skip_in(&repository, stored, ahead).await
    }

    async fn skip_in(repository: &dyn Repository, stored: StoredNumbers, ahead: u64) -> Result<(), IdsError> {
        for (tag, options) in lines(stored) {
            let start = options.start.unwrap_or(1);
            let name = Tag::new(tag).map_err(why)?;
            let fresh = Values { start, max: start - 1, step: options.step };
            repository.create(&name, fresh).await.map_err(why)?;
            let mut left = SKIP_TRIES;
            loop {
                let row = repository.get(&name).await.map_err(why)?;
                let values = row.map_or(fresh, |row| row.values);
                let from = values.max.max(options.above);
                let max = from.checked_add(ahead).filter(|max| *max < options.limit);
                let max = max.ok_or_else(|| {
                    IdsError(format!("{ahead} numbers above {from} are not left for {tag}s; choose fewer"))
                })?;
                if repository.take(&name, values.max, Values { max, ..values }).await.map_err(why)? {
                    break;
                }
                left -= 1;
                if left == 0 {
                    return Err(IdsError(format!("other processes issue {tag}s; stop them")));
                }
            }
        }
        Ok(())
    }

    /// A user id that nobody has or had.
    pub async fn uid(&self) -> Result<Uid, NumberError> {
        let number = one(&self.0.users).await?;
        u32::try_from(number).map(Uid).map_err(|_| NumberError::Exhausted)
    }

    /// A number for a new group; never given twice.
    pub async fn gid(&self) -> Result<GroupId, NumberError> {
        one(&self.0.groups).await.map(GroupId)
    }

    /// A number for a new invitation, and its code.
    pub async fn invite(&self) -> Result<(u64, String), NumberError> {
        let number = one(&self.0.invites).await?;
        Ok((number, self.code_of(number)?))
    }

    /// The code of an invitation of this number.
    pub fn code_of(&self, number: u64) -> Result<String, NumberError> {
        let code = self.0.codes.encode(number).map_err(|_| NumberError::Exhausted)?;
        Ok(code.to_string())
    }

    /// The number behind the code of an invitation, if it is one.
    pub fn invite_of(&self, code: &str) -> Option<u64> {
        self.0.codes.decode(code).ok()
    }

    /// The bytes of the code of an invitation to sign up that `by` makes under `key`: always the same, and only a server with the secret
    /// can compute them. So the code need not be stored for a repetition.
    pub fn sign_up_code(&self, by: Uid, key: ClientId) -> [u8; 32] {
        let mut mac = Hmac::<Sha256>::new_from_slice(self.0.secret.as_bytes()).expect("any length is a key");
        mac.update(format!("{SIGN_UP_PURPOSE}\n{by}\n{key}").as_bytes());
        mac.finalize().into_bytes().into()
    }

    /// Ends the background work and closes the file.
    pub async fn shutdown(&self) {
        self.0.issuer.shutdown().await;
    }
}

/// The lines of numbers and their options: nothing at or below `stored` is issued.
fn lines(stored: StoredNumbers) -> [(&'static str, SegmentOptions); 3] {
    let few = SegmentOptions { step: 100, step_min: 20, step_max: 10_000, ..SegmentOptions::default() };
    let users = SegmentOptions {
        start: Some(u64::from(Uid::FIRST.0)),
        above: u64::from(stored.uid),
        limit: u64::from(u32::MAX),
        ..few.clone()
    };
    let groups = SegmentOptions { above: stored.gid, ..few.clone() };
    let invites = SegmentOptions { above: stored.invite, limit: INVITE_CODES, ..few };
    [(USERS, users), (GROUPS, groups), (INVITES, invites)]
}

async fn one(counter: &Counter) -> Result<u64, NumberError> {
    if let Ok(number) = counter.try_next() {
        return Ok(number);
    }
    let issued = counter.next(1).await.map_err(|error| NumberError::Unavailable(error.to_string()))?;
    Ok(issued.first())
}

fn why(error: impl std::fmt::Display) -> IdsError {
    IdsError(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "a secret of the tests";

    #[tokio::test]
    async fn numbers_go_on_above_what_is_stored() {
        let place = tempfile::tempdir().expect("a directory");
        let file = place.path().join("ids.db");
        let ids = Ids::open(&file, StoredNumbers::default(), SECRET).await.expect("opened");
        assert_eq!(ids.uid().await.expect("issued"), Uid::FIRST);
        assert_eq!(ids.gid().await.expect("issued"), GroupId(1));
        ids.shutdown().await;

        std::fs::remove_file(&file).expect("lost");
        let stored = StoredNumbers { uid: 12_000, gid: 7, invite: 30 };
        let ids = Ids::open(&file, stored, SECRET).await.expect("opened");
        assert!(ids.uid().await.expect("issued") > Uid(12_000));
        assert!(ids.gid().await.expect("issued") > GroupId(7));
        assert!(ids.invite().await.expect("issued").0 > 30);
        ids.shutdown().await;
    }

    #[tokio::test]
    async fn skipped_numbers_are_never_issued() {
        let place = tempfile::tempdir().expect("a directory");
        let file = place.path().join("ids.db");
        // A file that is there, one that is not, and one that is behind what is stored.
        let opened = Ids::open(&file, StoredNumbers::default(), SECRET).await.expect("opened");
        let (uid, gid) = (opened.uid().await.expect("issued"), opened.gid().await.expect("issued"));
        opened.shutdown().await;
        Ids::skip(&file, StoredNumbers::default(), 1_000).await.expect("skipped");
        let stored = StoredNumbers { uid: 12_000, gid: 7, invite: 30 };
        let lost = place.path().join("lost.db");
        Ids::skip(&lost, stored, 1_000).await.expect("skipped");
        Ids::skip(&lost, stored, 1_000).await.expect("again");
        for (file, least) in [
            (&file, StoredNumbers { uid: uid.0 + 1_000, gid: gid.0 + 1_000, invite: 1_000 }),
            (&lost, StoredNumbers { uid: 14_000, gid: 2_007, invite: 2_030 }),
        ] {
            let ids = Ids::open(file, StoredNumbers::default(), SECRET).await.expect("opened");
            assert!(ids.uid().await.expect("issued").0 > least.uid);
            assert!(ids.gid().await.expect("issued").0 > least.gid);
            assert!(ids.invite().await.expect("issued").0 > least.invite);
            ids.shutdown().await;
        }
    }

    #[tokio::test]
    async fn more_than_is_left_is_not_skipped() {
        let place = tempfile::tempdir().expect("a directory");
        let file = place.path().join("ids.db");
        let refused =
            Ids::skip(&file, StoredNumbers::default(), u64::from(u32::MAX)).await.expect_err("too many");
        assert!(refused.to_string().contains("are not left for users; choose fewer"), "{refused}");
    }

    #[tokio::test]
    async fn a_code_leads_back_to_its_number_and_others_to_none() {
        let ids = Ids::in_memory(SECRET).await.expect("opened");
        let (number, code) = ids.invite().await.expect("issued");
        let (next, other) = ids.invite().await.expect("issued");
        assert!(next > number && code != other);
        assert_eq!(ids.invite_of(&code), Some(number));
        for wrong in ["", "1", "not a code", &code[1..]] {
            assert_eq!(ids.invite_of(wrong), None, "{wrong}");
        }
        let elsewhere = Ids::in_memory("another secret than that").await.expect("opened");
        assert_ne!(elsewhere.invite_of(&code), Some(number));
    }
}
