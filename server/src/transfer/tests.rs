//! Random histories, exported from each database and imported into each: everything reads as before.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use indicatif::ProgressBar;
use proptest::prelude::*;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use tempfile::TempDir;
use tidemark_test_support::servers::postgres::durable_database;
use uuid::Uuid;

use super::{Begin, Filling, check, export, import};
use crate::domain::{HistoryId, MessageId, Timestamp};
use crate::files::FilePlace;
use crate::store::archive::{ExportSnapshot, Import};
use crate::store::conformance::compare::same_answers;
use crate::store::conformance::history::{Move, MoveHistory, moves};
use crate::store::postgres::{PgDb, PgExportSnapshot, PgImport, PgOptions, PostgresStore};
use crate::store::sqlite::{Db, SqliteExportSnapshot, SqliteImport, SqliteOptions, SqliteStore};
use crate::store::{CommitError, Directory, MessageStore, NewAccount, Write};

mod tables;

#[derive(Clone, Copy, Debug)]
enum Kind {
    /// With rows in the journal alone.
    Sqlite,
    /// With every row in the tables.
    Flushed,
    Postgres,
}

/// Where an installation is.
struct Place {
    url: Option<String>,
    files: TempDir,
    options: SqliteOptions,
}

impl Place {
    async fn new(kind: Kind) -> Place {
        let flush_rows = if matches!(kind, Kind::Flushed) { 1 } else { usize::MAX / 2 };
        Place {
            url: if matches!(kind, Kind::Postgres) { Some(durable_database().await) } else { None },
            files: tempfile::tempdir().expect("a directory"),
            options: SqliteOptions { flush_rows, ..SqliteOptions::default() },
        }
    }

    fn file(&self) -> PathBuf {
        self.files.path().join("tidemark.db")
    }

    async fn sqlite(&self) -> Arc<Db> {
        Db::open_with(&self.file(), &self.options).await.expect("opened")
    }

    async fn open(&self) -> (Arc<Directory>, Arc<dyn MessageStore>) {
        let history = HistoryId(Uuid::from_u128(1));
        match &self.url {
            None => {
                let db = self.sqlite().await;
                let directory = Arc::new(Directory::on_sqlite(Arc::clone(&db), 10));
                let store = SqliteStore::open(db, self.options.clone(), history).await.expect("opened");
                (directory, Arc::new(store))
            }
            Some(url) => {
                let db = PgDb::open(url, &PgOptions::default()).await.expect("opened");
                let directory = Arc::new(Directory::on_postgres(Arc::clone(&db), 10));
                (directory, Arc::new(PostgresStore::open(db, history, false).await.expect("opened")))
            }
        }
    }

    async fn snapshot(&self) -> Box<dyn ExportSnapshot> {
        match &self.url {
            None => Box::new(SqliteExportSnapshot::take(&self.file()).await.expect("taken")),
            Some(url) => Box::new(PgExportSnapshot::take(url, &PgOptions::default()).await.expect("taken")),
        }
    }

    /// Exports what is there now. Returns the lines but for header and footer.
    async fn export(&self, file: &Path) -> Vec<String> {
        let mut snapshot = self.snapshot().await;
        let bar = ProgressBar::hidden();
        export(&mut *snapshot, file, Begin::New, Some(&FilePlace::in_memory()), Timestamp(7), &bar)
            .await
            .expect("exported");
        let text = std::fs::read_to_string(file).expect("readable");
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines[1..lines.len() - 1].to_vec()
    }

    /// Fills it from the file.
    async fn import(&self, file: &Path) {
        let bar = ProgressBar::hidden();
        let checked = check(file, 100_000, &bar).expect("a good file");
        let history = HistoryId(Uuid::from_u128(2));
        let place = FilePlace::in_memory();
        let fill = async |into: &mut dyn Import| {
            import(Filling { into, sequencer: None, files: &place }, file, &checked, history, &bar)
                .await
                .expect("imported");
        };
        match &self.url {
            None => {
                let db = self.sqlite().await;
                fill(&mut SqliteImport::new(Arc::clone(&db))).await;
                db.close().await.expect("closed");
            }
            Some(url) => {
                let db = PgDb::open(url, &PgOptions::default()).await.expect("opened");
                fill(&mut PgImport::new(Arc::clone(&db), HistoryId(Uuid::from_u128(3)))).await;
                db.close().await;
            }
        }
    }

    /// Deletes every row from this id on, while nobody has the installation open.
    async fn delete_rows(&self, from: u64) {
        let of = |rows: &str| format!("DELETE FROM {rows} WHERE message_id >= {from};");
        match &self.url {
            None => {
                let tables = rusqlite::Connection::open(self.file()).expect("opened");
                tables.execute_batch(&["entries", "young_entries"].map(of).concat()).expect("deleted");
            }
            Some(url) => {
                let mut connection = PgConnection::connect(url).await.expect("connected");
                sqlx::raw_sql(AssertSqlSafe(of("entries"))).execute(&mut connection).await.expect("deleted");
            }
        }
    }
}

/// Commits the writes of the moves. Stale writes are left out.
async fn commit(store: &dyn MessageStore, history: &mut MoveHistory, moves: &[Move]) {
    let mut writes: Vec<Write> = moves.iter().filter_map(|step| history.write(step)).collect();
    let done = loop {
        match store.commit(writes.clone()).await {
            Err(CommitError::Stale(mut stale)) => {
                while let Some(at) = stale.pop() {
                    writes.remove(at);
                }
            }
            Err(CommitError::Behind(_)) => return,
            done => break done.expect("committed"),
        }
    };
    for (write, done) in writes.iter().zip(&done) {
        history.settle(write, done);
    }
}

/// The history is written into an installation of one kind, moves to one of the other and back. Then rows from `kept` on are deleted.
async fn live(scenes: Vec<Vec<Move>>, (from, to): (Kind, Kind), kept: u64) {
    let (source, target, back) = (Place::new(from).await, Place::new(to).await, Place::new(from).await);
    let (directory, store) = source.open().await;
    let mut history = MoveHistory::default();
    let universe = history.universe();
    for &uid in &universe.uids {
        let (name, password_hash) = (format!("User {uid}"), format!("hash of {uid}"));
        let account = NewAccount { name, password_hash, created_at: Timestamp(i64::from(uid.0)) };
        assert!(directory.create_account(uid, account, None).await.expect("made"));
    }
    for moves in &scenes {
        commit(&*store, &mut history, moves).await;
    }
    let universe = history.universe();
    let file = |name: &str| source.files.path().join(name);
    let exported = source.export(&file("first")).await;
    target.import(&file("first")).await;
    assert_eq!(target.export(&file("second")).await, exported);
    let (people, moved) = target.open().await;
    for &uid in &universe.uids {
        assert_eq!(people.account(uid).await.expect("read"), directory.account(uid).await.expect("read"));
    }
    same_answers(&*store, &*moved, &universe).await;
    store.close().await;
    moved.close().await;

    source.delete_rows(kept).await;
    source.export(&file("third")).await;
    back.import(&file("third")).await;
    let ((_, store), (_, moved)) = (source.open().await, back.open().await);
    let latest = store.latest_ids(&universe.uids).await.expect("read");
    assert_eq!(moved.latest_ids(&universe.uids).await.expect("read"), latest);
    assert!(latest.iter().any(|latest| *latest > MessageId::ZERO) || universe.latest == 1);
    store.close().await;
    moved.close().await;
}

fn run(case: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(case);
}

fn scenes() -> impl Strategy<Value = Vec<Vec<Move>>> {
    prop::collection::vec(moves(), 1..8)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_history_moves_from_sqlite_to_postgresql(scenes in scenes(), kept in 1..20_u64) {
        run(live(scenes, (Kind::Sqlite, Kind::Postgres), kept));
    }

    #[test]
    fn a_history_moves_from_postgresql_to_sqlite(scenes in scenes(), kept in 1..20_u64) {
        run(live(scenes, (Kind::Postgres, Kind::Sqlite), kept));
    }

    #[test]
    fn a_history_moves_from_postgresql_to_another_database(scenes in scenes(), kept in 1..20_u64) {
        run(live(scenes, (Kind::Postgres, Kind::Postgres), kept));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_history_moves_from_the_journal_to_other_files(scenes in scenes(), kept in 1..20_u64) {
        run(live(scenes, (Kind::Sqlite, Kind::Flushed), kept));
    }

    #[test]
    fn a_history_moves_from_the_tables_to_other_files(scenes in scenes(), kept in 1..20_u64) {
        run(live(scenes, (Kind::Flushed, Kind::Sqlite), kept));
    }
}
