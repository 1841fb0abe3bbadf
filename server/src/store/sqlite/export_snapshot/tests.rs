//! Snapshots that are taken while rows are written and flushed.

use std::sync::atomic::{AtomicU64, Ordering};

use uuid::Uuid;

use super::super::{Db, SqliteInboxImport, SqliteOptions, SqliteStore};
use super::*;
use crate::domain::{Amendment, Body, Content, Conversation, MembershipEpoch, Timestamp, Uid};
use crate::store::archive::InboxImport as _;
use crate::store::conformance::{accept, id, row, send_text, text_message};
use crate::store::{Deliver, Directory, MessageStore as _, NewAccount, Recipient, Write};

async fn all(snapshot: &mut SqliteExportSnapshot, section: ArchiveSection) -> Vec<Record> {
    let mut records: Vec<Record> = Vec::new();
    loop {
        let page = snapshot.page(section, records.last().map(Record::key), 7).await.expect("a page");
        if page.is_empty() {
            return records;
        }
        records.extend(page);
    }
}

fn connect(path: &Path) -> SqliteConnectOptions {
    db::connect_options(path).read_only(true)
}

#[tokio::test]
async fn what_was_flushed_or_signed_up_between_the_two_readings_makes_it_begin_again() {
    let place = tempfile::tempdir().expect("a directory");
    let path = place.path().join("tidemark.db");
    let options = SqliteOptions { flush_rows: 1, ..SqliteOptions::default() };
    let db = Db::open_with(&path, &options).await.expect("opened");
    let store = SqliteStore::open(db.clone(), options.clone(), HistoryId(Uuid::nil())).await.expect("opened");
    let main = connect(&path);
    let flushed = async || meta::number(db.readers(), meta::FLUSHED).await.expect("read");

    let before = Tables::begin(&path, &main).await.expect("begun");
    send_text(&store, (Uid(10_001), 1), (Uid(10_002), 1), 1).await;
    while flushed().await == before.flushed {
        tokio::task::yield_now().await;
    }
    assert!(before.with_journal(&path, &main).await.expect("read").is_none(), "a flush ended");

    let before = Tables::begin(&path, &main).await.expect("begun");
    let ann = NewAccount { name: "ann".into(), password_hash: String::new(), created_at: Timestamp(0) };
    Directory::on_sqlite(db.clone(), 1).create_account(Uid::FIRST, ann, None).await.expect("made");
    assert!(before.with_journal(&path, &main).await.expect("read").is_none(), "an account was made");

    let before = Tables::begin(&path, &main).await.expect("begun");
    let mut taken = before.with_journal(&path, &main).await.expect("read").expect("nothing happened");
    assert_eq!(taken.about().await.expect("told").totals, [1, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0]);
    store.close().await;
}

#[tokio::test]
async fn a_row_that_names_a_file_is_in_a_snapshot_with_its_file_and_use() {
    let place = tempfile::tempdir().expect("a directory");
    let path = place.path().join("tidemark.db");
    let options = SqliteOptions::unflushed();
    let db = Db::open_with(&path, &options).await.expect("opened");
    let store = SqliteStore::open(db.clone(), options.clone(), HistoryId(Uuid::nil())).await.expect("opened");
    let main = connect(&path);
    let before = Tables::begin(&path, &main).await.expect("begun");
    named_files::name_a_file(&db, &store, (Uid(10_001), Uid(10_002)), 2).await;
    assert!(before.with_journal(&path, &main).await.expect("read").is_none(), "the file came after it");
    let mut taken = SqliteExportSnapshot::take(&path).await.expect("taken");
    let about = taken.about().await.expect("told");
    assert_eq!(about.totals, [0, 0, 0, 2, 1, 0, 0, 0, 0, 1, 1]);
    assert!(about.files > 0);
    let files = all(&mut taken, ArchiveSection::Files).await;
    let uses = all(&mut taken, ArchiveSection::FileUses).await;
    assert!(matches!(&files[..], [Record::File(file)] if file.facts.size == 3), "{files:?}");
    assert!(matches!(&uses[..], [Record::FileUse(_, of)] if of.key.0 == Uid(10_001)), "{uses:?}");
    store.close().await;
}

/// A copy is owed; the same message comes into the inbox by an import; then the copy is delivered, and not flushed yet.
#[tokio::test]
async fn a_copy_that_the_next_flush_sets_aside_is_left_out() {
    let place = tempfile::tempdir().expect("a directory");
    let path = place.path().join("tidemark.db");
    let options = SqliteOptions::unflushed();
    let content = text_message(Uid(1), Conversation::User(Uid(2)), 1, "hi");
    let open = async || {
        let db = Db::open_with(&path, &options).await.expect("opened");
        SqliteStore::open(db, options.clone(), HistoryId(Uuid::nil())).await.expect("opened")
    };
    let store = open().await;
    let owed = Recipient { uid: Uid(2), epoch: MembershipEpoch(0) };
    let write = accept(content.clone(), vec![row(Uid(1), 1)], vec![owed]);
    store.commit(vec![Write::Accept(write)]).await.expect("committed");
    store.close().await;
    drop(store);

    let db = Db::open_with(&path, &options).await.expect("opened");
    let mut inbox = SqliteInboxImport::open(Arc::clone(&db), &options).await.expect("opened");
    let imported = Entry { receiver: Uid(2), message_id: id(9), content: content.clone() };
    inbox.append(vec![imported.clone()], vec![]).await.expect("appended");
    drop(inbox);
    db.close().await.expect("closed");
    drop(db);

    let store = open().await;
    let owed = Write::Deliver(Deliver {
        acceptance: AcceptanceId(1),
        content,
        rows: vec![row(Uid(2), 10)],
        earlier: Vec::new(),
    });
    store.commit(vec![owed]).await.expect("committed");
    send_text(&store, (Uid(3), 1), (Uid(2), 11), 2).await;
    let of_two = async |snapshot: &mut SqliteExportSnapshot| {
        let rows = all(snapshot, ArchiveSection::Rows).await.into_iter();
        let rows = rows.filter_map(|record| match record {
            Record::Row(entry) if entry.receiver == Uid(2) => Some(entry.message_id),
            _ => None,
        });
        (rows.collect::<Vec<_>>(), snapshot.about().await.expect("told").totals)
    };
    let mut before = SqliteExportSnapshot::take(&path).await.expect("taken");
    let expected = (vec![id(9), id(11)], [0, 0, 0, 4, 2, 0, 0, 0, 0, 0, 0]);
    assert_eq!(of_two(&mut before).await, expected, "before the flush");
    store.close().await;
    let mut after = SqliteExportSnapshot::take(&path).await.expect("taken");
    assert_eq!(of_two(&mut after).await, expected, "after it");
}

/// Bob deletes a message for himself that was edited, and its author edits it again. Neither is flushed at first.
#[tokio::test]
async fn edits_of_a_deleted_message_are_neither_exported_nor_counted() {
    let place = tempfile::tempdir().expect("a directory");
    let path = place.path().join("tidemark.db");
    let options = SqliteOptions::unflushed();
    let open = async || {
        let db = Db::open_with(&path, &options).await.expect("opened");
        SqliteStore::open(db, options.clone(), HistoryId(Uuid::nil())).await.expect("opened")
    };
    let (ann, bob) = (Uid(1), Uid(2));
    let message = text_message(ann, Conversation::User(bob), 1, "hi");
    let amend = async |store: &SqliteStore, who: Uid, n: u64, what: Amendment| {
        let body = Body::amendment(&what, message.key().expect("named"), &message, 100).expect("short");
        let to = Conversation::User(if who == ann { bob } else { ann });
        let content = Content::clone(&text_message(who, to, n.into(), "replaced"));
        let content = Arc::new(Content { kind: what.kind(), body, ..content });
        let rows = if who == ann { vec![row(ann, n), row(bob, n)] } else { vec![row(bob, n)] };
        store.commit(vec![Write::Accept(accept(content, rows, vec![]))]).await.expect("committed");
    };
    let rows_of_bob = async || {
        let mut snapshot = SqliteExportSnapshot::take(&path).await.expect("taken");
        let rows = all(&mut snapshot, ArchiveSection::Rows).await;
        assert_eq!(snapshot.about().await.expect("told").totals[3], rows.len() as u64, "{rows:?}");
        let of_bob = rows.into_iter().filter_map(|record| match record {
            Record::Row(entry) if entry.receiver == bob => Some(entry.message_id.get()),
            _ => None,
        });
        of_bob.collect::<Vec<_>>()
    };

    let store = open().await;
    store
        .commit(vec![Write::Accept(accept(message.clone(), vec![row(ann, 1), row(bob, 1)], vec![]))])
        .await
        .expect("committed");
    amend(&store, ann, 2, Amendment::Edit("secret".to_owned())).await;
    store.close().await;
    assert_eq!(rows_of_bob().await, [1, 2]);
    let store = open().await;
    amend(&store, bob, 3, Amendment::Delete).await;
    assert_eq!(rows_of_bob().await, [1, 3], "before the flush");
    store.close().await;
    assert_eq!(rows_of_bob().await, [1, 3], "after it");
    let store = open().await;
    amend(&store, ann, 4, Amendment::Edit("again".to_owned())).await;
    _ = rows_of_bob().await;
    store.close().await;
    assert_eq!(rows_of_bob().await, [1, 3], "the flush leaves it out");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_snapshot_is_whole_however_often_flushes_begin_and_end() {
    let place = tempfile::tempdir().expect("a directory");
    let path = place.path().join("tidemark.db");
    // Flushes follow each other without a pause, each in many small transactions.
    let options = SqliteOptions { flush_rows: 40, flush_chunk: 3, ..SqliteOptions::default() };
    let db = Db::open_with(&path, &options).await.expect("opened");
    let store = SqliteStore::open(db, options.clone(), HistoryId(Uuid::nil())).await.expect("opened");
    let committed = AtomicU64::new(0);
    let writing = async {
        for n in 1..=600u64 {
            let (from, to) = (Uid(10_001 + n as u32 % 7), Uid(10_101 + n as u32 % 5));
            send_text(&store, (from, n), (to, n), n.into()).await;
            committed.store(n, Ordering::SeqCst);
        }
    };
    let looking = async {
        let mut sizes = Vec::new();
        while committed.load(Ordering::SeqCst) < 600 {
            let before = committed.load(Ordering::SeqCst);
            let mut snapshot = SqliteExportSnapshot::take(&path).await.expect("taken");
            let after = committed.load(Ordering::SeqCst);
            let about = snapshot.about().await.expect("told");
            assert!((before..=after + 1).contains(&about.accepted), "{about:?} between {before} and {after}");
            let rows = all(&mut snapshot, ArchiveSection::Rows).await;
            let sent = all(&mut snapshot, ArchiveSection::Sent).await;
            assert!(rows.is_sorted_by_key(Record::key) && sent.is_sorted_by_key(Record::key));
            // Every message up to the last has both its copies and its record, and there is nothing else.
            assert_eq!((rows.len() as u64, sent.len() as u64), (2 * about.accepted, about.accepted));
            assert_eq!(about.totals, [0, 0, 0, 2 * about.accepted, about.accepted, 0, 0, 0, 0, 0, 0]);
            for record in rows {
                let Record::Row(entry) = record else { panic!("{record:?}") };
                assert!(entry.message_id.get() <= about.accepted);
            }
            sizes.push(about.accepted);
        }
        sizes
    };
    let ((), sizes) = tokio::join!(writing, looking);
    assert!(sizes.len() > 3, "looked while it was written: {sizes:?}");
    store.close().await;
}
