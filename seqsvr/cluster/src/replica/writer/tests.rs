//! The writer over real files: reads that wait, syncs that are shared, and disks that fail.

use std::ops::RangeInclusive;
use std::pin::pin;
use std::sync::Arc;

use futures_util::future::join_all;
use tempfile::TempDir;

use super::super::directory::Directory;
use super::super::identity::Identity;
use super::*;
use seqsvr_core::ids::{Epoch, SectionId};
use seqsvr_core::routing::Table;
use seqsvr_core::store::message::Raised;
use seqsvr_core::store::{Ceiling, Configuration, Layout, Member, Moves, Owner};

const LAYOUT: Layout = Layout { section_size: 100_000, step: 10_000 };
const OWNER: Owner = Owner { epoch: Epoch { term: 1, version: 1 }, incarnation: 1 };
const LIMITS: WriterLimits =
    WriterLimits { queue: 1_000, batch: 1_000, waiters: 2, longest_wait: Duration::from_secs(60) };

fn sections() -> RangeInclusive<SectionId> {
    SectionId::new(0)..=SectionId::new(9)
}

/// A replica that owns ten sections.
async fn started() -> (TempDir, ReplicaWriter, Asker) {
    started_on(|_| ()).await
}

/// The same, after something happened to its disk.
async fn started_on(disk: fn(&mut Files)) -> (TempDir, ReplicaWriter, Asker) {
    let at = tempfile::tempdir().unwrap();
    let identity = Identity { cluster: "test".to_owned(), set: 0, name: "s".to_owned() };
    let directory = Directory::lock(at.path(), identity, LAYOUT, 1 << 16).unwrap();
    let (mut state, mut files) = directory.init().unwrap();
    let members = vec![Member { id: state.id(), name: "s".to_owned(), addr: "http://s:1".to_owned() }];
    let (lease, uids, moves) = (Duration::from_secs(2), 0..=u32::MAX, Moves::default());
    let (number, write, layout, taking) = (1, 1, LAYOUT, None);
    let next = Arc::new(Configuration { number, members, write, lease, layout, uids, taking, moves });
    state.ask(Moment::default(), &Question::Install { next, copy: Arc::default() });
    files.turn(&state).unwrap();
    let claim = Question::Claim { sections: vec![sections()], owner: OWNER, layout: LAYOUT };
    let change = state.ask(Moment::default(), &claim).change.unwrap();
    files.keep(&journal::batch(&[change]), &state).unwrap();
    disk(&mut files);
    let stopping = CancellationToken::new();
    let (writer, asker) = ReplicaWriter::start(state, files, LIMITS, stopping, Metrics::new());
    (at, writer, asker)
}

fn raise(section: u32, max: u64) -> Question {
    Question::Raise { owner: OWNER, ceilings: vec![Ceiling { section: SectionId::new(section), max }] }
}

fn table(version: u64) -> Arc<Table> {
    let version = Epoch { term: 1, version };
    let uids = 0..=999_999;
    Arc::new(Table { set: 0, version, section_size: 100_000, uids, nodes: vec![], assignments: vec![] })
}

async fn revision(asker: &Asker) -> u64 {
    match asker.ask(Question::Read { revision: 0, wait: Duration::ZERO, releases: true }).await {
        Ok(Answer::Table { revision, .. }) => revision,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn questions_asked_together_share_a_sync() {
    let (_at, writer, asker) = started().await;
    let asked = (1..=500).map(|max| asker.ask(raise(max as u32 % 10, max)));
    for answer in join_all(asked).await {
        let Ok(Answer::Raised(raised)) = answer else { panic!("{answer:?}") };
        assert!(matches!(raised[..], [Raised::Confirmed(_)]));
    }
    let text = asker.metrics.text();
    let syncs = text.lines().find_map(|line| line.strip_prefix("seqsvr_store_sync_seconds_count "));
    let syncs: u32 = syncs.unwrap().parse().unwrap();
    assert!((1..400).contains(&syncs), "{syncs} syncs for 500 questions");
    assert!(text.contains("seqsvr_store_questions_total{kind=\"raise\"} 500"), "{text}");
    writer.stop().await.unwrap();
}

#[tokio::test]
async fn a_held_back_read_is_woken_by_a_table_and_by_a_release() {
    let (_at, writer, asker) = started().await;
    for change in [Question::Write(table(1)), Question::Release { owner: OWNER, sections: vec![sections()] }]
    {
        let known = revision(&asker).await;
        let reading =
            asker.ask(Question::Read { revision: known, wait: Duration::from_secs(60), releases: true });
        let (read, changed) = tokio::join!(reading, asker.ask(change));
        changed.unwrap();
        let Ok(Answer::Table { revision, table: read, .. }) = read else { panic!("{read:?}") };
        assert!(revision > known);
        assert_eq!(read, Some(table(1)));
    }
    writer.stop().await.unwrap();
}

#[tokio::test]
async fn a_release_wakes_nobody_who_waits_for_the_table_alone() {
    let (_at, writer, asker) = started().await;
    let known = revision(&asker).await;
    let wait = Duration::from_secs(60);
    let mut reading = pin!(asker.ask(Question::Read { revision: known, wait, releases: false }));
    let release = async {
        asker.ask(Question::Release { owner: OWNER, sections: vec![sections()] }).await.unwrap();
        // If the release had woken the reader, its question would have been answered before this one.
        assert!(revision(&asker).await > known);
    };
    tokio::select! {
        biased;
        read = &mut reading => panic!("nothing new for it: {read:?}"),
        () = release => {}
    }
    let (read, written) = tokio::join!(reading, asker.ask(Question::Write(table(1))));
    written.unwrap();
    assert!(matches!(read, Ok(Answer::Table { table: Some(read), .. }) if read == table(1)));
    writer.stop().await.unwrap();
}

#[tokio::test]
async fn a_held_back_read_is_answered_after_its_wait() {
    let (_at, writer, asker) = started().await;
    let revision = revision(&asker).await;
    let read = asker.ask(Question::Read { revision, wait: Duration::from_millis(10), releases: true }).await;
    assert!(matches!(read, Ok(Answer::Table { revision: now, .. }) if now == revision), "{read:?}");
    writer.stop().await.unwrap();
}

#[tokio::test]
async fn more_readers_than_may_wait_are_refused() {
    let (_at, writer, asker) = started().await;
    let revision = revision(&asker).await;
    let read = || asker.ask(Question::Read { revision, wait: Duration::from_secs(60), releases: true });
    let third = async {
        while asker.waiters.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(read().await, Err(Unanswered::Waiters(2)));
        asker.stopping.cancel();
    };
    let (first, second, ()) = tokio::join!(read(), read(), third);
    assert_eq!((first, second), (Err(Unanswered::Stopped), Err(Unanswered::Stopped)));
    writer.stop().await.unwrap();
}

#[tokio::test]
async fn after_a_failed_write_nothing_is_answered_any_more() {
    let (_at, mut writer, asker) = started_on(Files::break_disk).await;
    assert_eq!(asker.ask(raise(0, 10)).await, Err(Unanswered::Stopped));
    writer.ended().await;
    let read = Question::Read { revision: 0, wait: Duration::ZERO, releases: true };
    assert_eq!(
        asker.ask(read).await,
        Err(Unanswered::Stopped),
        "not even a read: it could show what was lost"
    );
    assert!(matches!(writer.stop().await, Err(FilesError::Io { .. })));
}

#[tokio::test]
async fn a_full_disk_is_waited_for_and_nothing_shows_that_is_not_durable() {
    let (at, writer, asker) = started_on(Files::fill_disk).await;
    let read = || asker.ask(Question::Read { revision: 0, wait: Duration::ZERO, releases: true });
    let before = revision(&asker).await;
    assert_eq!(asker.ask(Question::Write(table(1))).await, Err(Unanswered::Full));
    assert_eq!(read().await, Err(Unanswered::Full), "a read would show the table");
    let waking = Question::Read { revision: before, wait: Duration::from_secs(60), releases: true };
    let after = loop {
        match asker.ask(waking.clone()).await {
            Err(Unanswered::Full) => tokio::task::yield_now().await,
            other => break other,
        }
    };
    assert!(matches!(after, Ok(Answer::Table { table: Some(ref now), .. }) if *now == table(1)), "{after:?}");
    assert!(matches!(asker.ask(raise(0, 10)).await, Ok(Answer::Raised(_))));
    writer.stop().await.unwrap();
    let identity = Identity { cluster: "test".to_owned(), set: 0, name: "s".to_owned() };
    let (state, _files) = Directory::lock(at.path(), identity, LAYOUT, 1 << 16).unwrap().open().unwrap();
    assert_eq!(state.copy().table, Some(table(1)), "and it outlives the process");
}
