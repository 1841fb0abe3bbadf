//! Moments that are taken while rows are written and flushed, and files that are made of them.

use super::super::{Db, SqliteOptions, SqliteStore};
use super::*;
use crate::domain::Uid;
use crate::store::conformance::send_text;
use crate::store::{Directory, MessageStore as _, NewAccount};

async fn store(path: &Path, options: &SqliteOptions) -> (std::sync::Arc<Db>, SqliteStore) {
    let db = Db::open_with(path, options).await.expect("opened");
    let mut tx = db.write().await.expect("begun");
    meta::put(&mut tx, identity::INSTALLATION, Uuid::nil()).await.expect("noted");
    tx.commit().await.expect("noted");
    let store = SqliteStore::open(db.clone(), options.clone(), HistoryId(Uuid::nil())).await.expect("opened");
    (db, store)
}

#[tokio::test]
async fn what_was_made_between_the_two_readings_makes_it_begin_again_and_a_flush_does_not() {
    let place = tempfile::tempdir().expect("a directory");
    let path = place.path().join("tidemark.db");
    let (db, store) = store(&path, &SqliteOptions { flush_rows: 1, ..SqliteOptions::default() }).await;
    let is_one = |half: Half| half.with_journal(&path).expect("read").is_some();

    let before = Half::begin(&path).expect("begun");
    send_text(&store, (Uid(10_001), 1), (Uid(10_002), 1), 1).await;
    while meta::number(db.readers(), meta::FLUSHED).await.expect("read") == before.flushed {
        tokio::task::yield_now().await;
    }
    let taken = before.with_journal(&path).expect("read").expect("the journal has it still");
    assert_eq!(taken.batches.len(), 1, "what was flushed meanwhile");

    let before = Half::begin(&path).expect("begun");
    let ann = NewAccount { name: "ann".into(), password_hash: String::new(), created_at: Timestamp(0) };
    Directory::on_sqlite(db.clone(), 1).create_account(Uid::FIRST, ann, None).await.expect("made");
    assert!(!is_one(before), "an account was made");

    let before = Half::begin(&path).expect("begun");
    let mut tx = db.write().await.expect("begun");
    let table = "INSERT INTO tables (instance, name, definition, created_at) VALUES ('a', 'b', '{}', 0)";
    sqlx::query(table).execute(&mut *tx).await.expect("made");
    tx.commit().await.expect("made");
    assert!(!is_one(before), "a table was made");

    let before = Half::begin(&path).expect("begun");
    named_files::name_a_file(&db, &store, (Uid(10_001), Uid(10_002)), 2).await;
    assert!(!is_one(before), "a row names a file that it does not know");

    assert!(is_one(Half::begin(&path).expect("begun")), "nothing happened");
    store.close().await;
}

/// The copy is of the moment, whatever is written and moved into the database meanwhile, and each of its pages has its sum.
#[tokio::test]
async fn pages_are_those_of_the_moment_and_the_journal_goes_on() {
    let place = tempfile::tempdir().expect("a directory");
    let path = place.path().join("tidemark.db");
    let (db, store) = store(&path, &SqliteOptions::unflushed()).await;
    for n in 1..=3 {
        send_text(&store, (Uid(10_001), n), (Uid(10_002), n), u128::from(n)).await;
    }
    let moment = BackupMoment::take(&path).expect("taken");
    assert_eq!(moment.batches.len(), 3);
    send_text(&store, (Uid(10_001), 4), (Uid(10_002), 4), 4).await;
    let mut tx = db.write().await.expect("begun");
    meta::put(&mut tx, "later", "x".repeat(100_000)).await.expect("noted");
    tx.commit().await.expect("noted");
    db.checkpointer().await.expect("opened").checkpoint().await.expect("moved");

    let new = place.path().join("new");
    fs::create_dir(&new).expect("made");
    let main = new.join("tidemark.db");
    let mut copied = 0;
    let mut copy = moment.copy(&place.path().join("copy"), |bytes| copied += bytes).expect("copied");
    assert_eq!(copied, moment.length().expect("known"));
    assert!(!place.path().join("copy").exists(), "it has no name");
    let mut part = File::create(restoring_at(&main)).expect("made");
    io::copy(&mut copy, &mut part).expect("copied");
    assert_eq!(page_sums::verify(&restoring_at(&main), |_| {}).expect("read"), []);
    settle_restored(&main, &moment.batches).expect("settled");
    drop((moment, store));
    db.close().await.expect("closed");

    let restored = Connection::open(&main).expect("opened");
    assert_eq!(text(&restored, "later").expect("read"), None);
    assert_eq!(text(&restored, identity::RESTORING).expect("read").as_deref(), Some("1"));
    drop(restored);
    let db = Db::open(&main).await.expect("opened");
    let store =
        SqliteStore::open(db, SqliteOptions::unflushed(), HistoryId(Uuid::nil())).await.expect("opened");
    let latest = store.latest_ids(&[Uid(10_001), Uid(10_002)]).await.expect("read");
    assert!(latest.iter().all(|id| id.get() == 3), "{latest:?}");
    store.close().await;
}
