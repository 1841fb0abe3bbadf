//! The main database's record of the files beside it: which there are, and since which start they belong together.
//!
//! A start notes itself here as the *next* one, stamps the other files, and then makes it the *current* one. A crash in
//! between leaves some files with the stamp of the current start and some with that of the next, and both are good. The
//! start after that takes over the next one: with another one, files that have the first would fit no longer.

use uuid::Uuid;

use super::db::Db;
use super::meta;
use super::stamp::Start;
use crate::domain::HistoryId;
use crate::store::StoreError;

pub(super) const INSTALLATION: &str = "installation";
const CURRENT: &str = "start";
const NEXT: &str = "start_next";
/// The roles of the files beside the database, with commas between them.
pub(super) const FILES: &str = "files";
pub(super) const KEY: &str = "invites_key";
/// There while files that were restored are made good: before that is done, numbers may come a second time.
pub(super) const RESTORING: &str = "restoring";

/// The stored record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// The installation; `None`: no start began yet.
    pub installation: Option<Uuid>,
    /// The last start.
    pub current: Option<Start>,
    /// A start that did not come to its end.
    pub next: Option<Start>,
    /// The roles of the files that belong to it.
    pub files: Vec<String>,
    /// The fingerprint of the key of invitations.
    pub key: Option<String>,
    /// Files were restored, and what has to be done then did not come to its end.
    pub restoring: bool,
}

impl Identity {
    /// Reads it.
    pub async fn read(db: &Db) -> Result<Identity, StoreError> {
        let mut facts = meta::all(db.readers()).await?;
        let mut text = |key| facts.remove(key);
        let installation = text(INSTALLATION).map(|text| parsed(text.parse(), INSTALLATION)).transpose()?;
        let files = text(FILES).unwrap_or_default();
        Ok(Identity {
            installation,
            current: start(text(CURRENT))?,
            next: start(text(NEXT))?,
            files: files.split(',').filter(|role| !role.is_empty()).map(str::to_owned).collect(),
            key: text(KEY),
            restoring: text(RESTORING).is_some(),
        })
    }

    /// A start begins: files may have its stamp from now on. `restoring`: they come from a backup, and until the history is renamed no
    /// other start may follow.
    pub async fn begin(db: &Db, installation: Uuid, next: Start, restoring: bool) -> Result<(), StoreError> {
        let mut tx = db.write().await?;
        if restoring {
            meta::put(&mut tx, RESTORING, 1).await?;
        }
        meta::put(&mut tx, INSTALLATION, installation).await?;
        meta::put(&mut tx, NEXT, written(next)).await?;
        tx.commit().await
    }

    /// All files of these roles have its stamp, and the key of invitations this fingerprint.
    pub async fn finish(db: &Db, current: Start, files: &[&str], key: &str) -> Result<(), StoreError> {
        let mut tx = db.write().await?;
        meta::put(&mut tx, CURRENT, written(current)).await?;
        meta::put(&mut tx, FILES, files.join(",")).await?;
        meta::put(&mut tx, KEY, key).await?;
        meta::remove(&mut tx, NEXT).await?;
        tx.commit().await
    }

    /// The key of invitations is about to be replaced: whichever is found is good.
    pub async fn forget_key(db: &Db) -> Result<(), StoreError> {
        let mut tx = db.write().await?;
        meta::remove(&mut tx, KEY).await?;
        tx.commit().await
    }

    /// The key of invitations has another fingerprint now.
    pub async fn put_key(db: &Db, key: &str) -> Result<(), StoreError> {
        let mut tx = db.write().await?;
        meta::put(&mut tx, KEY, key).await?;
        tx.commit().await
    }
}

/// Gives files that were restored another history: they are good from now on (I14).
pub async fn rename_history(db: &Db, history: HistoryId) -> Result<(), StoreError> {
    let mut tx = db.write().await?;
    meta::put_history(&mut tx, history).await?;
    meta::remove(&mut tx, RESTORING).await?;
    tx.commit().await
}

fn written(start: Start) -> String {
    format!("{}:{}", start.number, start.token)
}

fn start(text: Option<String>) -> Result<Option<Start>, StoreError> {
    let Some(text) = text else { return Ok(None) };
    let (number, token) = text.split_once(':').unwrap_or_default();
    let number = parsed(number.parse(), CURRENT)?;
    Ok(Some(Start { number, token: parsed(token.parse(), CURRENT)? }))
}

fn parsed<T, E>(parsed: Result<T, E>, key: &str) -> Result<T, StoreError> {
    parsed.map_err(|_| StoreError::corrupt(format!("{key} cannot be read")))
}
