//! How the database comes to its answers: along the keys, however large the tables are.

use super::*;
use crate::domain::{Bound, ClientId, Direction, GroupChange, GroupStep, Timestamp};
use crate::store::Deliver;
use crate::store::Recipient;
use crate::store::conformance::read_marker;

/// Tables in which a scan costs more than a look along a key, and nobody has told the database so.
pub(super) const MUCH: &str = "
    INSERT INTO heads SELECT left(md5(n::text), 4), n, 20 FROM generate_series(20001, 24000) n;
    INSERT INTO entries SELECT left(md5(n::text), 4), n, id, 1, 'u:1', 1, decode(md5(n || ' ' || id), 'hex'), '{}', 0
        FROM generate_series(20001, 21000) n, generate_series(1, 20) id;
    INSERT INTO sent SELECT left(md5(n::text), 4), n, decode(md5(n::text), 'hex'), '', 1, 0 FROM generate_series(20001, 24000) n;
    INSERT INTO conversations SELECT left(md5(n::text), 4), n, 'u:1', 20, 0 FROM generate_series(20001, 24000) n;
    INSERT INTO groups SELECT n, 1, jsonb_build_object('name', 'walkers') FROM generate_series(20001, 24000) n;
    INSERT INTO members SELECT n, uid, 1, true, 0, 1 FROM generate_series(20001, 24000) n, generate_series(20001, 20003) uid;
    INSERT INTO pending SELECT left(md5(n::text), 4), n, nextval('acceptances'), 1, 'u:1', NULL, '{}', 0 FROM generate_series(20001, 24000) n;
    INSERT INTO outbox SELECT partition_key, sender, acceptance, 1, 1, 0 FROM pending;";

const TABLES: [&str; 8] =
    ["heads", "entries", "sent", "conversations", "groups", "members", "pending", "outbox"];

/// Scans of the tables from end to end so far, and looks along a key.
async fn scans(store: &PostgresStore) -> HashMap<String, (i64, i64)> {
    let mut only = store.db.for_queues().await.expect("a connection");
    run(&mut only, "SELECT pg_stat_force_next_flush()").await;
    let sql = "SELECT relname::text, seq_scan, coalesce(idx_scan, 0) FROM pg_stat_user_tables WHERE relname::text = ANY($1)";
    let rows: Vec<(String, i64, i64)> =
        sqlx::query_as(sql).bind(TABLES.as_slice()).fetch_all(&mut *only).await.expect("counted");
    rows.into_iter().map(|(name, whole, keyed)| (name, (whole, keyed))).collect()
}

/// Everything that queues and devices ask, so often that the database keeps its plans.
pub(super) async fn ask_everything(store: &PostgresStore, round: u64) {
    let user = |n: u64| Uid(20_001 + (round * 7 + n) as u32 % 900);
    let with_one = Conversation::User(Uid(1));
    let uids: Vec<Uid> = (0..50).map(user).collect();
    let keys: Vec<IdempotencyKey> = uids.iter().map(|uid| (*uid, client_id(5))).collect();
    store.keys(&keys).await.expect("read");
    store.latest_ids(&uids).await.expect("read");
    let rows: Vec<(Uid, MessageId)> = uids.iter().map(|uid| (*uid, id(7))).collect();
    assert!(store.entries(&rows).await.expect("read").iter().all(Option::is_some));
    let markers: Vec<(Uid, Conversation)> = uids.iter().map(|uid| (*uid, with_one)).collect();
    store.read_markers(&markers).await.expect("read");
    assert_eq!(store.watermark(user(1)).await.expect("read"), id(20));
    for (start, end, direction) in [
        (Bound::Id(5), Bound::InfMax, Direction::Forward),
        (Bound::InfMax, Bound::InfMin, Direction::Backward),
    ] {
        let query = RangeQuery::new(start, end, direction, 10).expect("a range");
        assert_eq!(store.range(user(2), query).await.expect("read").rows.len(), 10);
    }
    assert_eq!(
        store.conversation(user(3), with_one, RangeQuery::before(None, 10)).await.expect("read").rows.len(),
        10
    );
    assert_eq!(store.heard_from(user(3), &[Uid(1), Uid(2)]).await.expect("read"), [true, false]);
    assert_eq!(store.conversations(user(4), None, 10).await.expect("read")[0].unread, 20);
    assert!(store.group(GroupId(20_001 + round)).await.expect("read").is_some());
}

/// Every kind of write.
pub(super) async fn write_everything(store: &PostgresStore, round: u64) {
    let (from, to) = (Uid(22_001 + round as u32), Uid(23_001 + round as u32));
    let gid = GroupId(22_001 + round);
    let name = |n: u64| u128::from(round * 10 + n);
    let step = GroupStep::Added(to, MembershipEpoch(1));
    let change = Some(GroupChange::of_step(gid, 1, from, Timestamp(0), &step));
    let group =
        accept(text_message(from, Conversation::Group(gid), name(1), "in"), vec![member(from, 1)], vec![]);
    let spoken =
        accept(text_message(from, Conversation::Group(gid), name(2), "hi"), vec![member(from, 1)], vec![]);
    let owed = vec![Recipient { uid: to, epoch: MembershipEpoch(0) }];
    let content = text_message(from, Conversation::User(to), name(3), "later");
    let marker = read_marker(from, Conversation::User(Uid(1)), 3);
    let writes = vec![
        Write::Accept(say(from, to, name(0))),
        Write::Accept(Accept { change, group_version: Some(1), ..group }),
        Write::Accept(spoken),
        Write::Accept(accept(Arc::clone(&content), vec![unnumbered(from)], owed)),
        Write::Accept(accept(marker, vec![unnumbered(from)], vec![])),
    ];
    let done = store.commit(writes).await.expect("committed");
    let Outcome::Accepted(acceptance, _) = done[3] else { panic!("{done:?}") };
    assert!(done.iter().all(|done| matches!(done, Outcome::Accepted(..))), "{done:?}");
    let done = one(
        store,
        Write::Deliver(Deliver { acceptance, content, rows: vec![unnumbered(to)], earlier: Vec::new() }),
    )
    .await;
    assert_eq!(done.copies()[0].1, CopyOutcome::Stored);
}

#[tokio::test]
async fn every_statement_goes_along_a_key() {
    let url = durable_database().await;
    // One connection of each kind, so that the counts are told by whom they are asked from.
    let store =
        open_with(&url, PgOptions { queue_connections: 1, connections: 1, ..PgOptions::default() }).await;
    // Plans are made while the tables are empty.
    for round in 0..8 {
        _ = store.keys(&[(ANN, client_id(round))]).await.expect("read");
    }
    run(&mut connection(&url).await, MUCH).await;
    run(&mut connection(&url).await, "ANALYZE").await;
    let before = scans(&store).await;
    for round in 0..10 {
        ask_everything(&store, round).await;
        store.largest_group_id().await.expect("read");
        store
            .pending(PendingKey { sender: Uid(0), acceptance: AcceptanceId(round) }, 10)
            .await
            .expect("read");
        write_everything(&store, round).await;
    }
    run(&mut store.db.reader().await.expect("a connection"), "SELECT pg_stat_force_next_flush()").await;
    let after = scans(&store).await;
    for table in TABLES {
        let ((whole, keyed), (whole_after, keyed_after)) = (before[table], after[table]);
        assert_eq!(whole_after, whole, "{table} was scanned");
        assert!(keyed_after > keyed, "{table} was looked at by key");
    }
}

/// Each step of a walk over inboxes that are all old.
#[tokio::test]
async fn what_is_old_is_removed_along_the_keys() {
    let url = durable_database().await;
    let store =
        open_with(&url, PgOptions { queue_connections: 1, connections: 1, ..PgOptions::default() }).await;
    let step = async |(inbox, record), limit| {
        let rows = store.expire_rows(inbox, Timestamp(1), limit).await.expect("removed");
        let records = store.expire_records(record, Timestamp(1), limit).await.expect("removed");
        store.expired_to(Uid(20_001)).await.expect("read");
        store.keeping(inbox).await.expect("read");
        // Nothing is so old.
        let (uid, of) = (Uid(20_001), Conversation::User(BOB));
        store.expire_conversation(uid, of, Timestamp(i64::MIN), limit).await.expect("read");
        ((rows.after, records.after), rows.removed.min(records.removed))
    };
    // Plans are made while the tables are empty.
    for _ in 0..8 {
        step((None, None), 10).await;
    }
    run(&mut connection(&url).await, MUCH).await;
    run(&mut connection(&url).await, "ANALYZE").await;
    let before = scans(&store).await;
    let (mut after, mut removed) = ((None, None), 0);
    for _ in 0..10 {
        let of_both;
        (after, of_both) = step(after, 300).await;
        removed += of_both;
    }
    assert!(removed > 2_000, "{removed}");
    run(&mut store.db.reader().await.expect("a connection"), "SELECT pg_stat_force_next_flush()").await;
    let now = scans(&store).await;
    for table in ["heads", "entries", "sent", "conversations"] {
        assert_eq!(now[table].0, before[table].0, "{table} was scanned");
        assert!(now[table].1 > before[table].1, "{table} was looked at by key");
    }
}

/// The function keeps to the keys also where the database knows nothing of the tables: its plans are those of the first call.
#[tokio::test]
async fn a_commit_goes_along_the_keys_of_tables_that_have_just_grown() {
    let url = durable_database().await;
    let store = open_with(&url, PgOptions { queue_connections: 1, ..PgOptions::default() }).await;
    for name in 0..10 {
        one(&store, Write::Accept(say(ANN, BOB, name))).await;
    }
    run(&mut connection(&url).await, MUCH).await;
    let grown = scans(&store).await;
    for round in 0..3 {
        write_everything(&store, round).await;
    }
    let after = scans(&store).await;
    for table in ["heads", "entries", "sent", "conversations", "groups", "members"] {
        assert_eq!(after[table].0, grown[table].0, "{table} was scanned");
    }
}

/// Pages of `table` that are read by `work`.
async fn pages_read<T>(store: &PostgresStore, table: &str, work: impl Future<Output = T>) -> i64 {
    let sql = "SELECT heap_blks_hit + heap_blks_read + idx_blks_hit + idx_blks_read FROM pg_statio_user_tables WHERE relname::text = $1";
    let read = async || {
        let mut only = store.db.for_queues().await.expect("a connection");
        run(&mut only, "SELECT pg_stat_force_next_flush()").await;
        let read: i64 = sqlx::query_scalar(sql).bind(table).fetch_one(&mut *only).await.expect("counted");
        read
    };
    let before = read().await;
    work.await;
    read().await - before
}

/// A person with many rows among many with few, of which the database knows nothing.
const BUSY: Uid = Uid(30_001);

/// A store with the rows of that person, beside others, and with one connection of each kind. Everything else is younger.
async fn with_a_busy_person() -> PostgresStore {
    let url = durable_database().await;
    let store =
        open_with(&url, PgOptions { queue_connections: 1, connections: 1, ..PgOptions::default() }).await;
    let (key, rows) = (BUSY.partition_key(), "generate_series(1, 20000) id");
    let fill = format!(
        "{MUCH} INSERT INTO heads VALUES ('{key}', {BUSY}, 20000);
         INSERT INTO entries SELECT '{key}', {BUSY}, id, 1, 'u:1', 1, decode(md5('busy ' || id), 'hex'), '{{}}', id - 1000000 FROM {rows};
         INSERT INTO sent SELECT '{key}', {BUSY}, decode(md5('busy ' || id), 'hex'), '', 1, id - 1000000 FROM {rows};
         INSERT INTO compaction_keys SELECT '{key}', {BUSY}, 'star 1 ' || id, 1 FROM {rows};
         INSERT INTO conversations VALUES ('{key}', {BUSY}, 'u:1', 20000, 0)"
    );
    run(&mut connection(&url).await, &fill).await;
    run(&mut connection(&url).await, "ANALYZE").await;
    store
}

/// Pages of `table` that are read by `work`, which takes 300 rows of the busy person away.
async fn pages_read_for_a_few<T>(store: &PostgresStore, table: &str, work: impl Future<Output = T>) {
    let counted = async {
        work.await;
        run(&mut store.db.reader().await.expect("a connection"), "SELECT pg_stat_force_next_flush()").await;
    };
    let pages = pages_read(store, table, counted).await;
    assert!(pages < 8_000, "{pages} pages of {table} were read");
}

#[tokio::test]
async fn what_is_old_is_removed_without_a_look_at_what_is_not() {
    let place = |uid: Uid| (uid.partition_key(), uid);
    let before = (20_001..=24_000).map(Uid).filter(|uid| place(*uid) < place(BUSY));
    let before = before.max_by_key(|uid| place(*uid)).expect("one of many");
    let store = with_a_busy_person().await;
    let rows = async || {
        let expired = store.expire_rows(Some(before), Timestamp(-1), 300).await.expect("removed");
        assert_eq!(expired.removed, 300);
    };
    let records = async || {
        let after = Some((before, ClientId(Uuid::max())));
        let expired = store.expire_records(after, Timestamp(-1), 300).await.expect("removed");
        assert_eq!(expired.removed, 300);
    };
    // So often that the database keeps its plans.
    for _ in 0..7 {
        for table in ["entries", "compaction_keys"] {
            pages_read_for_a_few(&store, table, rows()).await;
        }
        pages_read_for_a_few(&store, "sent", records()).await;
    }
}

#[tokio::test]
async fn rows_of_a_deleted_account_are_removed_without_a_look_at_the_others() {
    let store = with_a_busy_person().await;
    for _ in 0..7 {
        for table in ["entries", "sent", "compaction_keys"] {
            let forgotten = async { assert!(store.forget_rows(BUSY, 300).await.expect("removed").more) };
            pages_read_for_a_few(&store, table, forgotten).await;
        }
    }
}

/// While somebody holds a snapshot, no version of a head may go. Commits and looks find the newest all the same, without going through
/// the others.
#[tokio::test]
async fn old_versions_that_a_snapshot_keeps_are_not_gone_through() {
    let url = durable_database().await;
    let store = open_with(&url, PgOptions { queue_connections: 1, ..PgOptions::default() }).await;
    // Other reads of the tables would be counted, too.
    let alone = "ALTER TABLE heads SET (autovacuum_enabled = off); ALTER TABLE conversations SET (autovacuum_enabled = off)";
    run(&mut connection(&url).await, alone).await;
    one(&store, Write::Accept(say(ANN, BOB, 0))).await;
    let mut reporter = connection(&url).await;
    run(&mut reporter, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM heads").await;
    let with_ann = Conversation::User(ANN);
    let work = async |from: u128| {
        for name in from..from + 20 {
            one(&store, Write::Accept(say(ANN, BOB, name))).await;
        }
        assert_eq!(store.latest_ids(&[BOB]).await.expect("read").len(), 1);
        assert_eq!(store.read_markers(&[(BOB, with_ann)]).await.expect("read"), [MessageId::ZERO]);
    };
    let mut few = HashMap::new();
    for (from, table) in (1_u128..).step_by(20).zip(["heads", "conversations"]) {
        few.insert(table, pages_read(&store, table, work(from)).await);
    }
    // As many versions as a busy hour makes.
    let versions = "DO $$ BEGIN FOR n IN 1..5000 LOOP
        UPDATE heads SET last_id = last_id; UPDATE conversations SET last_id = last_id; END LOOP; END $$";
    let mut busy = connection(&url).await;
    run(&mut busy, versions).await;
    // The reads of this session are counted before the next look, and not at some later moment.
    run(&mut busy, "SELECT pg_stat_force_next_flush()").await;
    for (from, table) in (1_001_u128..).step_by(20).zip(["heads", "conversations"]) {
        let many = pages_read(&store, table, work(from)).await;
        assert!(many < 3 * few[table], "{table}: {many} pages are read for what took {}", few[table]);
    }
    run(&mut reporter, "COMMIT").await;
}
