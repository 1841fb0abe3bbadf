//! Authors are told how many have read, at most once in a pause, and nothing of it is lost.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use tidemark::app::messages::OutgoingMessage;
use tidemark::domain::{Conversation, GroupId, Kind, MessageId, Uid};
use tidemark::queue::Request;
use tidemark::store::faulty::Fault;
use tidemark::store::{SharedRates, StoreError};
use tokio::time::{Instant, advance, sleep};

use super::world::{PEOPLE, Process, World, options, person, to};

const PAUSE: Duration = Duration::from_secs(1);

/// A group of these people, the first of whom makes it.
async fn group(process: &Process, people: impl IntoIterator<Item = u32>) -> GroupId {
    let mut people = people.into_iter().map(person);
    let owner = people.next().expect("somebody");
    process.groups.create(owner, "all".into(), people.collect(), None).await.expect("made")
}

async fn say(process: &Process, who: Uid, gid: GroupId, id: u128) {
    process.insist(who, OutgoingMessage { to: Conversation::Group(gid), ..to(who, id, "hi") }).await;
}

/// `who` reads all that there is in the group.
async fn read(world: &World, process: &Process, who: Uid, gid: GroupId) {
    let conversation = Conversation::Group(gid);
    let rows = world.inbox(who).await;
    let last =
        rows.iter().rfind(|row| row.content.kind == Kind::Message && row.content.target == conversation);
    let message_id = last.expect("a message").message_id;
    process.insist_on(who, Request::Read { conversation, message_id }).await;
}

/// The newest of what the author knows: how many have read which message.
async fn known(world: &World, author: Uid) -> Vec<(u128, u32)> {
    let rows = world.inbox(author).await;
    let row = rows.iter().rfind(|row| row.content.kind == Kind::Seen);
    let counts = row.map(|row| row.content.body.counts()).unwrap_or_default();
    counts.iter().map(|one| (one.client_id.0.as_u128(), one.count)).collect()
}

/// Notes when each of the rows comes by which `author` is told.
fn times(process: &Process, author: Uid) -> Arc<Mutex<Vec<Instant>>> {
    let times = Arc::new(Mutex::new(Vec::new()));
    let (sync, noted) = (process.sync.clone(), Arc::clone(&times));
    tokio::spawn(async move {
        let wake = sync.watch(author);
        let watermark = sync.watermark(author).await.expect("memory");
        let mut cursor = MessageId::ZERO;
        loop {
            let pulled = sync.pull(&watermark, cursor).await.expect("memory");
            let told = pulled.entries.iter().filter(|row| row.content.kind == Kind::Seen).count();
            noted.lock().expect("whole").extend(std::iter::repeat_n(Instant::now(), told));
            cursor = pulled.synced.max(cursor);
            if pulled.entries.is_empty() {
                wake.notified().await;
            }
        }
    });
    times
}

/// Nobody may read in that group again, so the next read cannot be waited for.
#[tokio::test(start_paused = true)]
async fn how_many_have_read_is_told_again_when_it_was_refused_for_the_moment() {
    let world = World::new().await;
    let process = world.start(options(1)).await;
    let (ann, bob) = (person(0), person(1));
    let gid = group(&process, 0..2).await;
    say(&process, ann, gid, 1).await;
    // The read marker passes.
    process.store.script([Fault::Pass, Fault::Refuse, Fault::LoseWrite]);
    read(&world, &process, bob, gid).await;
    for _ in 0..20 {
        advance(PAUSE).await;
        process.idle().await;
    }
    assert_eq!(known(&world, ann).await, [(1, 1)]);
    process.queues.stop().await;
}

/// Others read all the time, also while some of the authors are put off.
#[tokio::test(start_paused = true)]
async fn no_author_is_told_twice_within_a_pause_whatever_is_refused_meanwhile() {
    use Fault::{LoseAnswer, LoseWrite, Pass, Refuse};
    for faults in
        [vec![], vec![Pass, Pass, Refuse, Pass, LoseWrite], vec![Pass, Refuse, Pass, LoseAnswer, Pass]]
    {
        let world = World::new().await;
        let process = world.start(options(1)).await;
        let authors = [person(0), person(1)];
        let gid = group(&process, 0..PEOPLE).await;
        let times = authors.map(|author| times(&process, author));
        let round = 100;
        for n in 0..round {
            say(&process, authors[n % 2], gid, n as u128).await;
            process.store.script(faults.iter().copied());
            // Not in step with the pause.
            sleep(Duration::from_millis(130)).await;
            read(&world, &process, person(2 + n as u32 % (PEOPLE - 2)), gid).await;
        }
        for reader in 2..PEOPLE {
            read(&world, &process, person(reader), gid).await;
        }
        sleep(Duration::from_secs(600)).await;
        for (author, times) in authors.into_iter().zip(times) {
            let newest = known(&world, author).await;
            assert!(newest.iter().all(|(_, count)| *count >= PEOPLE - 2), "{faults:?}: {newest:?}");
            let times = times.lock().expect("whole");
            let gaps: Vec<Duration> = times.windows(2).map(|two| two[1] - two[0]).collect();
            // How often a row is lost or refused depends on which of the two authors comes first.
            let least = if faults.is_empty() { 6 } else { 1 };
            assert!(gaps.len() >= least, "{faults:?}: {gaps:?}");
            assert!(gaps.iter().all(|gap| *gap >= PAUSE), "{faults:?}: {gaps:?}");
        }
        process.queues.stop().await;
    }
}

/// A question to the rates: the caller, the time, the interval and the burst.
type Asked = ([u8; 32], Instant, Duration, Duration);

/// Rates that answer as the test says, and then let everything pass.
#[derive(Default)]
struct Scripted {
    answers: Mutex<VecDeque<Result<Option<Duration>, StoreError>>>,
    asked: Mutex<Vec<Asked>>,
}

#[async_trait]
impl SharedRates for Scripted {
    async fn take(
        &self,
        caller: &[u8; 32],
        interval: Duration,
        burst: Duration,
    ) -> Result<Option<Duration>, StoreError> {
        self.asked.lock().expect("whole").push((*caller, Instant::now(), interval, burst));
        self.answers.lock().expect("whole").pop_front().unwrap_or(Ok(None))
    }

    async fn give_back(&self, _: &[u8; 32], _: Duration) -> Result<(), StoreError> {
        panic!("a row that was told is not taken back")
    }
}

#[tokio::test(start_paused = true)]
async fn who_gets_no_leave_from_the_other_servers_is_told_when_there_is_some() {
    let world = World::new().await;
    let rates = Arc::new(Scripted::default());
    let process = world.start_beside(options(1), Some(rates.clone())).await;
    let (ann, bob, cat) = (person(0), person(1), person(2));
    let gid = group(&process, 0..3).await;
    say(&process, ann, gid, 1).await;
    let short = Duration::from_millis(300);
    let answers = [Err(StoreError::unavailable("as the test says")), Ok(Some(short)), Ok(Some(2 * PAUSE))];
    rates.answers.lock().expect("whole").extend(answers);
    let begin = Instant::now();
    read(&world, &process, bob, gid).await;
    sleep(3 * PAUSE).await;
    assert_eq!(known(&world, ann).await, [], "there is no leave yet");
    // Counted anew when there is.
    read(&world, &process, cat, gid).await;
    sleep(PAUSE).await;
    assert_eq!(known(&world, ann).await, [(1, 2)]);
    let asked: Vec<Asked> = rates.asked.lock().expect("whole").drain(..).collect();
    assert!(asked.iter().all(|one| (one.0, one.2, one.3) == (asked[0].0, PAUSE, PAUSE)), "one rate");
    let at: Vec<u128> = asked.iter().map(|one| (one.1 - begin).as_millis()).collect();
    // A pause longer than the rate's own comes from a clock that was set: it is asked again all the same.
    assert_eq!(at, [1_000, 2_000, 2_300, 3_300]);

    // An author that was told takes nothing more from the other servers when another author is told later.
    say(&process, ann, gid, 2).await;
    say(&process, bob, gid, 3).await;
    rates.answers.lock().expect("whole").extend([Ok(None), Ok(Some(short))]);
    read(&world, &process, cat, gid).await;
    sleep(2 * PAUSE).await;
    assert_eq!((known(&world, ann).await, known(&world, bob).await), (vec![(2, 1), (1, 2)], vec![(3, 1)]));
    assert_eq!(rates.asked.lock().expect("whole").len(), 3);
    let other = group(&process, 0..2).await;
    say(&process, ann, other, 4).await;
    read(&world, &process, bob, other).await;
    sleep(2 * PAUSE).await;
    let mut callers: Vec<[u8; 32]> = rates.asked.lock().expect("whole").iter().map(|one| one.0).collect();
    callers.push(asked[0].0);
    callers.sort_unstable();
    callers.dedup();
    assert_eq!(callers.len(), 3, "another author, and another group, has another rate");
    process.queues.stop().await;
}
