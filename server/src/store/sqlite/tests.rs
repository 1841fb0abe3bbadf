//! Crashes, at every step: whatever was acknowledged is there after it, and reads as if nothing had happened.
//!
//! A crash is the files as they lie there at that moment, copied to another place and opened anew.

use std::path::{Path, PathBuf};

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use tempfile::TempDir;
use uuid::Uuid;

use super::flush::{Flush, Frozen};
use super::young::Settling;
use super::*;
use crate::domain::Conversation;
use crate::store::conformance::compare::{Universe, same_answers, same_tails};
use crate::store::conformance::expiry::expire_all;
use crate::store::conformance::history::{Move, MoveHistory, moves};
use crate::store::conformance::{Made, id, ids, send_text, text_message};
use crate::store::memory::MemoryStore;

mod failures;
mod looks;
mod tables;
mod young;

/// Options under which everything is flushed at once, a row at a time, and little is remembered.
fn flushing() -> SqliteOptions {
    SqliteOptions {
        flush_rows: 1,
        flush_chunk: 1,
        known_latest_ids: 0,
        known_counters: 0,
        known_groups: 0,
        ..SqliteOptions::default()
    }
}

/// The same, and all young rows settle at the end of each flush.
fn settling() -> SqliteOptions {
    SqliteOptions { young_parts: 1, ..flushing() }
}

/// Nothing is flushed by itself; then some inboxes have their rows young, and one of two parts settles. A flush that is cut off
/// has these options in each history, and may be done again with others.
fn unflushed() -> SqliteOptions {
    SqliteOptions { young_rows: 3, young_parts: 2, ..SqliteOptions::unflushed() }
}

async fn open(directory: &Path, options: SqliteOptions) -> SqliteStore {
    let db = Db::open_with(&directory.join("tidemark.db"), &options).await.expect("opened");
    SqliteStore::open(db, options, HistoryId(Uuid::nil())).await.expect("opened")
}

async fn made(options: SqliteOptions) -> Made {
    let directory = tempfile::tempdir().expect("a directory");
    Made::keeping(open(directory.path(), options).await, directory)
}

/// The files of a directory as they lie there, in a new one.
fn copied(from: &Path) -> TempDir {
    let to = tempfile::tempdir().expect("a directory");
    for file in std::fs::read_dir(from).expect("a directory") {
        let path: PathBuf = file.expect("a file").path();
        // The shared-memory index of a log does not outlive the processes that share it.
        let name = path.file_name().expect("a name").to_owned();
        if !name.to_string_lossy().ends_with("-shm") {
            match std::fs::copy(&path, to.path().join(name)) {
                // A store at work removes its own.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                done => drop(done.expect("copied")),
            }
        }
    }
    to
}

/// Everything of a copied installation that is not flushed, ready to be flushed step by step.
async fn frozen(directory: &Path, options: SqliteOptions) -> (Arc<Db>, FlushSteps) {
    let db = Db::open(&directory.join("tidemark.db")).await.expect("opened");
    let flushed = meta::number(db.readers(), meta::FLUSHED).await.expect("read");
    let journal = Journal::open(&db, flushed).await.expect("opened");
    let (ledger, memtable) = replay::replay(&db, &journal, flushed).await.expect("replayed");
    let frozen = Frozen {
        memtable: Arc::new(memtable),
        through: journal.last(),
        accepted: ledger.accepted(),
        open: ledger.open().iter().map(|(acceptance, open)| (*acceptance, open.clone())).collect(),
    };
    let options = SqliteOptions { flush_chunk: 3, ..options };
    let flush = Flush::new(Arc::new(frozen), &options);
    (db, FlushSteps { flush, settling: None, options })
}

/// A flush, transaction by transaction.
struct FlushSteps {
    flush: Flush,
    /// Once all rows are in the tables.
    settling: Option<Settling>,
    options: SqliteOptions,
}

impl FlushSteps {
    /// One transaction; `false` after the last one.
    async fn step(&mut self, db: &Db) -> Result<bool, StoreError> {
        if let Some(settling) = &mut self.settling {
            return Ok(settling.step(db).await?.is_some());
        }
        if !self.flush.step(db).await? {
            self.settling = Some(Settling::next(db, &self.options).await?);
        }
        Ok(true)
    }
}

mod everything_in_memory {
    async fn make() -> super::Made {
        super::made(super::SqliteOptions::unflushed()).await
    }
    crate::message_store_conformance!(make);
}

mod everything_flushed {
    async fn make() -> super::Made {
        super::made(super::flushing()).await
    }
    crate::message_store_conformance!(make);
}

mod everything_settled {
    async fn make() -> super::Made {
        super::made(super::settling()).await
    }
    crate::message_store_conformance!(make);
}

/// An event between two commits.
#[derive(Clone, Debug)]
enum StoreEvent {
    /// Nothing.
    Go,
    /// The process dies.
    Crash,
    /// The process dies in a flush, after so many of its steps.
    CrashInFlush(u8),
    /// The process ends in order.
    Close,
    /// The process ends in order, and the next one dies after so many steps in which it removes such a part of what is old.
    CrashInExpiry(u8, u8),
}

fn events() -> impl Strategy<Value = StoreEvent> {
    prop_oneof![
        4 => Just(StoreEvent::Go),
        1 => Just(StoreEvent::Crash),
        2 => (0..30u8).prop_map(StoreEvent::CrashInFlush),
        1 => Just(StoreEvent::Close),
        2 => (0..8u8, any::<u8>()).prop_map(|(steps, share)| StoreEvent::CrashInExpiry(steps, share)),
    ]
}

/// A store and its files.
struct StoreLife {
    directory: TempDir,
    store: SqliteStore,
}

impl StoreLife {
    async fn begin(options: SqliteOptions) -> StoreLife {
        let directory = tempfile::tempdir().expect("a directory");
        let store = open(directory.path(), options).await;
        StoreLife { directory, store }
    }

    async fn after(self, event: &StoreEvent, options: SqliteOptions) -> StoreLife {
        let directory = match event {
            StoreEvent::Go => return self,
            StoreEvent::Crash => copied(self.directory.path()),
            StoreEvent::CrashInFlush(steps) => {
                let between = copied(self.directory.path());
                let (db, mut flush) = frozen(between.path(), unflushed()).await;
                for _ in 0..*steps {
                    if !flush.step(&db).await.expect("flushed") {
                        break;
                    }
                }
                copied(between.path())
            }
            StoreEvent::Close | StoreEvent::CrashInExpiry(..) => {
                self.store.close().await;
                copied(self.directory.path())
            }
        };
        let store = open(directory.path(), options).await;
        StoreLife { directory, store }
    }
}

/// Commits the moves to both stores, which must answer alike.
async fn commit(store: &SqliteStore, model: &MemoryStore, history: &mut MoveHistory, moves: &[Move]) {
    let mut writes: Vec<Write> = moves.iter().filter_map(|step| history.write(step)).collect();
    for write in &mut writes {
        // Some come with a proof, as a queue's do; others make the commit look.
        if let Write::Accept(accept) = write
            && let Some(key) = accept.content.key().filter(|_| accept.rows[0].message_id.get() % 4 > 0)
            && let [KeyState::Unused(unused)] = store.keys(&[key]).await.expect("read")[..]
        {
            accept.unused = Some(unused);
        }
    }
    let done = match (store.commit(writes.clone()).await, model.commit(writes.clone()).await) {
        (Err(CommitError::Behind(behind)), Err(CommitError::Behind(expected))) => {
            return assert_eq!(behind.latest, expected.latest);
        }
        (done, expected) => {
            let done = done.expect("committed");
            assert_eq!(done, expected.expect("committed"));
            done
        }
    };
    for (write, done) in writes.iter().zip(&done) {
        history.settle(write, done);
    }
}

async fn live(scenes: Vec<(Vec<Move>, StoreEvent)>, options: fn() -> SqliteOptions) {
    let (model, mut history) = (MemoryStore::new(), MoveHistory::default());
    let mut life = StoreLife::begin(options()).await;
    for (moves, event) in scenes {
        commit(&life.store, &model, &mut history, &moves).await;
        life = life.after(&event, options()).await;
        if let StoreEvent::CrashInExpiry(steps, share) = event {
            let before = history.expire(share);
            expire_all(&model, before, 3).await;
            let mut after = None;
            for _ in 0..steps {
                let expired = life.store.expire_rows(after, before, 3).await.expect("removed");
                after = expired.after.filter(|_| !expired.is_done);
            }
            life = life.after(&StoreEvent::Crash, options()).await;
            expire_all(&life.store, before, 3).await;
        }
        same_answers(&life.store, &model, &history.universe()).await;
        same_tails(&life.store, &model, &history.universe()).await;
    }
    life.store.close().await;
    let again = open(life.directory.path(), options()).await;
    same_answers(&again, &model, &history.universe()).await;
}

fn run(case: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(case);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_history_reads_like_the_model_across_crashes(
        scenes in prop::collection::vec((moves(), events()), 1..10),
    ) {
        run(live(scenes, unflushed));
    }

    #[test]
    fn any_history_reads_like_the_model_while_it_is_flushed(
        scenes in prop::collection::vec((moves(), events()), 1..6),
    ) {
        run(live(scenes, flushing));
    }

    #[test]
    fn any_history_reads_like_the_model_while_it_is_flushed_and_settles(
        scenes in prop::collection::vec((moves(), events()), 1..6),
    ) {
        run(live(scenes, settling));
    }
}

/// The random histories are worth something only if they go everywhere.
#[tokio::test]
async fn random_histories_meet_every_outcome() {
    let (model, mut history) = (MemoryStore::new(), MoveHistory::default());
    let mut runner = TestRunner::deterministic();
    let mut met = std::collections::BTreeSet::new();
    for _ in 0..200 {
        let moves = moves().new_tree(&mut runner).expect("generated").current();
        let writes: Vec<Write> = moves.iter().filter_map(|step| history.write(step)).collect();
        let done = match model.commit(writes.clone()).await {
            Err(CommitError::Behind(_)) => {
                met.insert("Behind".to_owned());
                continue;
            }
            done => done.expect("committed"),
        };
        for (write, done) in writes.iter().zip(&done) {
            history.settle(write, done);
            match done {
                Outcome::Accepted(_, copies) | Outcome::Delivered(copies) => {
                    met.extend(copies.iter().map(|(_, outcome)| format!("{outcome:?}")));
                }
                Outcome::GroupChanged => _ = met.insert("GroupChanged".to_owned()),
                Outcome::Rejected(why) => _ = met.insert(why.split("10").next().expect("a part").to_owned()),
            }
        }
    }
    let expected =
        ["Already", "Behind", "GroupChanged", "Stored", "Void", "this client_id has been accepted before"];
    for outcome in expected {
        assert!(met.contains(outcome), "{outcome} is not in {met:?}");
    }
    assert!(met.iter().any(|why| why.contains("not larger")), "{met:?}");
}

#[tokio::test]
async fn commits_that_wait_share_a_batch() {
    let life = StoreLife::begin(SqliteOptions::unflushed()).await;
    let tell = |n: u32| send_text(&life.store, (Uid(2 * n), 1), (Uid(2 * n + 1), 1), n.into());
    futures_util::future::join_all((1..=40).map(tell)).await;
    let after = copied(life.directory.path());
    let batches = batches(after.path()).await;
    assert!((1..40).contains(&batches), "{batches} batches for 40 commits");
    for n in 2..=81 {
        assert_eq!(ids(&life.store, Uid(n)).await, [1]);
    }
}

/// How many batches the journal of a copied installation has.
async fn batches(directory: &Path) -> u64 {
    let db = Db::open(&directory.join("tidemark.db")).await.expect("opened");
    let last = Journal::open(&db, 0).await.expect("opened").last();
    db.close().await.expect("closed");
    last
}

/// Six users who tell each other things, some flushed, some not. The files are still while the store lives and nobody asks it.
async fn some_life(directory: &Path) -> (SqliteStore, MemoryStore, Universe) {
    let (model, store) = (MemoryStore::new(), open(directory, SqliteOptions::unflushed()).await);
    for store in [&store as &dyn MessageStore, &model] {
        tell_around(store, 1..=6).await;
    }
    store.close().await;
    let store = open(directory, SqliteOptions::unflushed()).await;
    for store in [&store as &dyn MessageStore, &model] {
        tell_around(store, 7..=12).await;
    }
    let names = (0..15).map(crate::store::conformance::client_id).collect();
    (store, model, Universe { uids: (1..=7).map(Uid).collect(), gids: vec![], names, latest: 26 })
}

async fn tell_around(store: &dyn MessageStore, turns: std::ops::RangeInclusive<u64>) {
    for n in turns {
        let user = |n: u64| Uid(1 + (n % 6) as u32);
        send_text(store, (user(n), 2 * n), (user(n + 1), 2 * n + 1), n.into()).await;
    }
}

#[tokio::test]
async fn a_flush_may_be_cut_off_after_any_of_its_steps() {
    let directory = tempfile::tempdir().expect("a directory");
    let (_alive, model, universe) = some_life(directory.path()).await;
    let mut steps = 0;
    loop {
        let cut = copied(directory.path());
        let (db, mut flush) = frozen(cut.path(), unflushed()).await;
        let mut more = true;
        for _ in 0..steps {
            more = flush.step(&db).await.expect("flushed");
        }
        let after = copied(cut.path());
        let store = open(after.path(), SqliteOptions::unflushed()).await;
        same_answers(&store, &model, &universe).await;
        same_tails(&store, &model, &universe).await;
        store.close().await;
        let store = open(after.path(), SqliteOptions::unflushed()).await;
        same_answers(&store, &model, &universe).await;
        same_tails(&store, &model, &universe).await;
        if !more {
            break;
        }
        steps += 1;
    }
    assert!(steps > 5, "the flush has several steps, so each was cut off");
}

#[tokio::test]
async fn what_is_flushed_and_not_yet_trimmed_is_not_replayed() {
    let directory = tempfile::tempdir().expect("a directory");
    let (_alive, model, universe) = some_life(directory.path()).await;
    let cut = copied(directory.path());
    let (db, flush) = frozen(cut.path(), unflushed()).await;
    flush.flush.run(&db, &flush.options, |_| ()).await.expect("flushed");
    let after = copied(cut.path());
    let store = open(after.path(), SqliteOptions::unflushed()).await;
    assert_eq!(store.shared.memory.active().rows(), 0);
    same_answers(&store, &model, &universe).await;
    send_text(&store, (Uid(1), 30), (Uid(2), 31), 900).await;
    assert_eq!(ids(&store, Uid(2)).await, [2, 13, 14, 25, 31]);
}

#[tokio::test]
async fn a_reader_with_an_old_view_sees_no_row_twice_and_misses_none() {
    let life = StoreLife::begin(flushing()).await;
    for n in 1..=5 {
        send_text(&life.store, (Uid(1), n), (Uid(2), n), n.into()).await;
    }
    let reader = life.store.reader(Uid(2));
    for n in 6..=20 {
        send_text(&life.store, (Uid(1), n), (Uid(2), n), n.into()).await;
    }
    let seen = reader.range(RangeQuery::after(MessageId::ZERO, 100)).await.expect("read");
    let seen: Vec<u64> = seen.rows.iter().map(|entry| entry.message_id.get()).collect();
    assert_eq!(seen[..5], [1, 2, 3, 4, 5]);
    assert!(seen.iter().zip(1..).all(|(seen, expected)| *seen == expected), "{seen:?}");
}

#[tokio::test]
async fn a_tail_is_served_from_memory_for_whoever_was_up_to_date() {
    let life = StoreLife::begin(SqliteOptions::unflushed()).await;
    send_text(&life.store, (Uid(1), 1), (Uid(2), 5), 1).await;
    life.store.close().await;
    let store = open(life.directory.path(), SqliteOptions::unflushed()).await;
    send_text(&store, (Uid(1), 2), (Uid(2), 9), 2).await;
    let ten = PageLimit::of_rows(10);
    let page = store.tail(Uid(2), id(5), id(9), ten).expect("the one new row is in memory");
    assert_eq!(page.rows[0].content, text_message(Uid(1), Conversation::User(Uid(2)), 2, "message 2"));
    assert_eq!(store.tail(Uid(2), id(4), id(9), ten), None);
    assert_eq!(store.tail(Uid(2), id(9), id(9), ten), Some(Page::default()));
}
