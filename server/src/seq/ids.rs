//! Numbers for everything that is no row: users, groups, invitations. The door to the number issuer, as the module above is the
//! one to the number lines.
//!
//! Owns the issuer, whose segments are durable in a file beside the database. Called by `app` when something is made.

use std::path::Path;
use std::sync::Arc;

use seqsvr::issuer::repository::{MemoryRepository, Repository, SqliteRepository};
use seqsvr::issuer::scramble::{BASE_58, Codec, CodecOptions, Key};
use seqsvr::issuer::{Counter, Issuer, Range, SegmentOptions, Tag};

use super::NumberError;
use crate::domain::{GroupId, Uid};

const USERS: &str = "user";
const GROUPS: &str = "group";
const INVITES: &str = "invite";

/// Codes of invitations are drawn from so many, so that one is not found by trying: 58^10 and more.
const INVITE_CODES: u64 = 1 << 60;

/// What is stored already: nothing at or below is issued again, also when the issuer's file was lost.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stored {
    /// The largest user id.
    pub uid: u32,
    /// The largest number of a group.
    pub gid: u64,
}

/// The numbers cannot be issued; the text says why.
#[derive(Debug, thiserror::Error)]
#[error("the numbers of users and groups cannot be issued: {0}")]
pub struct OpenError(String);

/// See the module. Cheap to clone.
#[derive(Clone)]
pub struct Ids(Arc<Inner>);

struct Inner {
    issuer: Issuer,
    users: Counter,
    groups: Counter,
    invites: Counter,
    codes: Codec,
}

impl Ids {
    /// Numbers whose segments are kept in `file`. `secret`, of 16 characters and more, turns numbers of invitations into codes:
    /// another one makes the codes that are about worthless.
    pub async fn open(file: &Path, stored: Stored, secret: &str) -> Result<Ids, OpenError> {
        Ids::over(Arc::new(SqliteRepository::new(file)), stored, secret).await
    }

    /// Numbers that are forgotten with the process: for tests of what stands above.
    pub async fn in_memory(secret: &str) -> Result<Ids, OpenError> {
        Ids::over(Arc::new(MemoryRepository::new()), Stored::default(), secret).await
    }

    async fn over(repository: Arc<dyn Repository>, stored: Stored, secret: &str) -> Result<Ids, OpenError> {
        let few = SegmentOptions { step: 100, step_min: 20, step_max: 10_000, ..SegmentOptions::default() };
        let users = SegmentOptions {
            start: Some(u64::from(Uid::FIRST.0)),
            above: u64::from(stored.uid),
            limit: u64::from(u32::MAX),
            ..few.clone()
        };
        let groups = SegmentOptions { above: stored.gid, ..few.clone() };
        let invites = SegmentOptions { limit: INVITE_CODES, ..few };
        let issuer = Issuer::builder()
            .repository(repository)
            .segment(USERS, users)
            .and_then(|builder| builder.segment(GROUPS, groups))
            .and_then(|builder| builder.segment(INVITES, invites))
            .map_err(why)?
            .open()
            .await
            .map_err(why)?;
        let codes = CodecOptions {
            range: Range { first: 1, last: INVITE_CODES },
            alphabet: BASE_58.to_owned(),
            check_symbol: true,
            keys: vec![Key { version: 1, secret: secret.to_owned() }],
        };
        let codes = Codec::new(&Tag::new(INVITES).map_err(why)?, &codes).map_err(why)?;
        let counter = |tag| issuer.counter(tag).map_err(why);
        let (users, groups, invites) = (counter(USERS)?, counter(GROUPS)?, counter(INVITES)?);
        Ok(Ids(Arc::new(Inner { issuer, users, groups, invites, codes })))
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
        let code = self.0.codes.encode(number).map_err(|_| NumberError::Exhausted)?;
        Ok((number, code.to_string()))
    }

    /// The number behind the code of an invitation, if it is one.
    pub fn invite_of(&self, code: &str) -> Option<u64> {
        self.0.codes.decode(code).ok()
    }

    /// Ends the background work and closes the file.
    pub async fn shutdown(&self) {
        self.0.issuer.shutdown().await;
    }
}

async fn one(counter: &Counter) -> Result<u64, NumberError> {
    if let Ok(number) = counter.try_next() {
        return Ok(number);
    }
    let issued = counter.next(1).await.map_err(|error| NumberError::Unavailable(error.to_string()))?;
    Ok(issued.first())
}

fn why(error: impl std::fmt::Display) -> OpenError {
    OpenError(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "a secret of the tests";

    #[tokio::test]
    async fn numbers_go_on_above_what_is_stored() {
        let place = tempfile::tempdir().expect("a directory");
        let file = place.path().join("ids.db");
        let ids = Ids::open(&file, Stored::default(), SECRET).await.expect("opened");
        assert_eq!(ids.uid().await.expect("issued"), Uid::FIRST);
        assert_eq!(ids.gid().await.expect("issued"), GroupId(1));
        ids.shutdown().await;

        std::fs::remove_file(&file).expect("lost");
        let ids = Ids::open(&file, Stored { uid: 12_000, gid: 7 }, SECRET).await.expect("opened");
        assert!(ids.uid().await.expect("issued") > Uid(12_000));
        assert!(ids.gid().await.expect("issued") > GroupId(7));
        ids.shutdown().await;
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
