//! The [`Directory`] keeps everything beside the users' rows, in the same database; its parts stand in a file each:
//! `accounts`, `renames`, `credentials`, `sessions`, `deletions`, `name_index`, `invites`, `reports`, `access_keys`,
//! `last_seen`, `operators`, `audit`, `push`.
//!
//! A call is one statement, or one transaction that begins with the lock of the name or the account, so what another
//! server does at the same moment comes before or after it. Owns a bounded memory of names. Called by `app` for
//! everything about people, and by the queues to learn whether receivers exist.

use std::sync::Arc;

use super::directory_db::SqlDb;
use super::names::Names;
use super::postgres::PgDb;
use super::sql::sql;
use super::sqlite::Db;
use super::{ShownName, StoreError};
use crate::domain::Uid;

/// Uids of one question for names.
const ASKED_AT_ONCE: usize = 5_000;

/// Accounts and sessions; recovery codes and invitations to sign up; invitations into groups; reports; access keys of tables;
/// subscriptions to Web Push.
///
/// Names are compared by their lower-case form, and new ones by what they look like ([`skeletons`](crate::domain::skeletons)). Every
/// change is durable when the call returns, and done whole or not at all.
pub struct Directory {
    pub(super) db: SqlDb,
    pub(super) names: Names,
    for_queues: bool,
}

impl Directory {
    /// That of SQLite, which keeps at most about `cached_names` names in memory.
    pub fn on_sqlite(db: Arc<Db>, cached_names: usize) -> Directory {
        Directory::over(SqlDb::Sqlite(db), cached_names)
    }

    /// That of PostgreSQL, likewise.
    pub fn on_postgres(db: Arc<PgDb>, cached_names: usize) -> Directory {
        Directory::over(SqlDb::Postgres(db), cached_names)
    }

    /// One that forgets everything when it is dropped, for tests of what stands above storage.
    #[cfg(any(test, feature = "test-support"))]
    pub fn in_memory() -> Directory {
        Directory::over(SqlDb::in_memory(), 1_000)
    }

    fn over(db: SqlDb, cached_names: usize) -> Directory {
        Directory { db, names: Names::new(cached_names), for_queues: false }
    }

    /// The same directory for the queues, which do not wait behind everybody's reads.
    pub fn for_queues(&self) -> Directory {
        Directory { db: self.db.clone(), names: self.names.clone(), for_queues: true }
    }

    /// The names of these accounts as others see them, in order. Served from a bounded memory where possible: queues
    /// ask it for every batch to learn whether senders and receivers exist, and lists ask it for titles.
    pub async fn shown_names(&self, uids: &[Uid]) -> Result<Vec<Option<ShownName>>, StoreError> {
        let (mut found, missing) = self.names.look(uids);
        for part in missing.chunks(ASKED_AT_ONCE) {
            let ask = sql(
                "SELECT uid, CASE WHEN deleted_at IS NULL THEN name END AS name FROM accounts WHERE uid = ANY($1)",
            );
            let rows = match self.for_queues {
                true => self.db.rows_for_queues(ask.bind(part)).await?,
                false => self.db.rows(ask.bind(part)).await?,
            };
            for row in rows {
                found.add(&self.names, row.uid()?, row.get("name")?);
            }
        }
        Ok(found.in_order(uids))
    }

    /// The same as texts.
    pub async fn names(&self, uids: &[Uid]) -> Result<Vec<Option<String>>, StoreError> {
        let shown = self.shown_names(uids).await?;
        Ok(shown.into_iter().map(|name| name.map(ShownName::into_text)).collect())
    }

    /// Drops a name from memory: its account may be deleted. Without a uid, all names.
    pub fn forget_names(&self, of: Option<Uid>) {
        self.names.forget(of);
    }
}

/// PostgreSQL has no text with a zero in it, so none is stored.
pub(super) fn is_text(text: &str) -> bool {
    !text.contains('\0')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Timestamp;
    use crate::store::{NewAccount, conformance};

    async fn keeps_the_contract(directory: &Directory) {
        conformance::directory::run(directory).await;
        conformance::credentials::run(directory).await;
        conformance::deletions::run(directory).await;
        conformance::invites::run(directory).await;
        conformance::reports::run(directory).await;
        conformance::files::run(directory).await;
        conformance::access_keys::run(directory).await;
        conformance::renames::run(directory).await;
        conformance::last_seen::run(directory).await;
        conformance::operators::run(directory).await;
        conformance::push::run(directory).await;
    }

    #[tokio::test]
    async fn it_keeps_the_contract_on_sqlite() {
        let place = tempfile::tempdir().expect("a directory");
        let db = Db::open(&place.path().join("tidemark.db")).await.expect("opened");
        keeps_the_contract(&Directory::on_sqlite(Arc::clone(&db), 4)).await;
        db.close().await.expect("closed");
    }

    #[tokio::test]
    async fn it_keeps_the_contract_in_memory() {
        keeps_the_contract(&Directory::in_memory()).await;
    }

    #[tokio::test]
    async fn names_are_found_however_many_are_asked_and_however_few_are_kept() {
        let place = tempfile::tempdir().expect("a directory");
        let db = Db::open(&place.path().join("tidemark.db")).await.expect("opened");
        let directory = Directory::on_sqlite(Arc::clone(&db), 4);
        let mut uids = Vec::new();
        for n in 0..20 {
            let account = NewAccount {
                name: format!("name {n}"),
                password_hash: String::new(),
                created_at: Timestamp(0),
            };
            let uid = Uid(10_001 + n);
            assert!(directory.create_account(uid, account, None).await.expect("made"), "free");
            uids.push(uid);
        }
        uids.extend((0..10_000).map(Uid));
        uids.push(uids[3]);
        let names = directory.names(&uids).await.expect("asked");
        assert_eq!(names.len(), uids.len());
        assert_eq!(names[7].as_deref(), Some("name 7"));
        assert_eq!(names[500], None);
        assert_eq!(names.last().cloned().flatten().as_deref(), Some("name 3"));
        assert!(directory.names.len() <= 4);
        db.close().await.expect("closed");
    }
}
