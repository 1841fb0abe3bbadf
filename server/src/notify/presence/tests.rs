//! The table of who is connected, with a clock that stands still.

use tokio::time::advance;

use super::ear::{MOST_TYPING, STALE};
use super::*;

const ANN: Uid = Uid(1);
const BOB: Uid = Uid(2);
const HERE: ServerNumber = ServerNumber(1);
const THERE: ServerNumber = ServerNumber(2);

fn changes(connected: &Connected) -> Vec<Uid> {
    connected.ear.take_changes().into_iter().collect()
}

async fn after(presence: &Presence, time: Duration) {
    advance(time).await;
    presence.settle();
    presence.expire();
}

#[tokio::test(start_paused = true)]
async fn who_is_back_within_the_grace_has_not_been_away() {
    let presence = Presence::new(None);
    let ann = presence.join(ANN);
    ann.watch([BOB].into());
    assert_eq!(changes(&ann), [BOB], "all of a new list are looked at");
    let bob = presence.join(BOB);
    assert_eq!(changes(&ann), [BOB]);
    for _ in 0..5 {
        drop(presence.join(BOB));
        after(&presence, GRACE / 2).await;
    }
    drop(bob);
    after(&presence, GRACE - Duration::from_millis(1)).await;
    let bob = presence.join(BOB);
    after(&presence, GRACE).await;
    assert!(!ann.ear.has_changes() && presence.is_online(BOB));
    drop(bob);
    after(&presence, GRACE).await;
    after(&presence, GRACE).await;
    assert_eq!(changes(&ann), [BOB]);
    assert!(!presence.is_online(BOB));
    drop(ann);
    after(&presence, GRACE * 2).await;
    assert!(presence.0.shards.iter().all(|shard| shard.lock().expect("unpoisoned").is_empty()));
    assert!(presence.leaving().is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_another_server_says_ends_with_its_word_or_with_its_silence() {
    let presence = Presence::new(None);
    let ann = presence.join(ANN);
    ann.watch([BOB].into());
    changes(&ann);
    presence.hear(HERE, Ephemeral::Came(vec![BOB]));
    assert_eq!(changes(&ann), [BOB]);
    presence.hear(THERE, Ephemeral::Came(vec![BOB]));
    presence.hear(HERE, Ephemeral::Went(vec![BOB]));
    assert!(!ann.ear.has_changes() && presence.is_elsewhere(BOB));
    after(&presence, LIFETIME / 2).await;
    presence.hear(THERE, Ephemeral::Came(vec![BOB]));
    after(&presence, LIFETIME / 2).await;
    assert!(presence.is_online(BOB) && !ann.ear.has_changes());
    after(&presence, LIFETIME / 2).await;
    assert!(!presence.is_online(BOB));
    assert_eq!(changes(&ann), [BOB]);
    presence.hear(HERE, Ephemeral::Changed(vec![BOB]));
    assert_eq!(changes(&ann), [BOB]);
}

#[tokio::test(start_paused = true)]
async fn who_was_connected_to_a_server_that_stops_has_the_grace_to_come_to_another_one() {
    let presence = Presence::new(None);
    presence.hear(THERE, Ephemeral::Came(vec![ANN, BOB]));
    presence.hear(HERE, Ephemeral::Came(vec![Uid(3)]));
    presence.hear(THERE, Ephemeral::Stops);
    after(&presence, GRACE - Duration::from_millis(1)).await;
    assert!(presence.is_online(ANN) && presence.is_online(BOB));
    presence.hear(HERE, Ephemeral::Came(vec![BOB]));
    after(&presence, Duration::from_millis(1)).await;
    assert!(!presence.is_online(ANN) && presence.is_online(BOB) && presence.is_online(Uid(3)));
}

#[tokio::test(start_paused = true)]
async fn a_device_is_told_who_is_online_once_and_then_what_changes() {
    let presence = Presence::new(None);
    let ann = presence.join(ANN);
    let all: HashSet<Uid> = [BOB, Uid(3)].into();
    ann.watch(all.clone());
    assert_eq!(ann.ear.settle(&all, &HashSet::new()), Some(vec![]), "the answer, although nobody is there");
    assert_eq!(ann.ear.settle(&all, &HashSet::new()), None);
    assert_eq!(ann.ear.settle(&[BOB].into(), &[BOB].into()), Some(vec![BOB]));
    assert_eq!(ann.ear.settle(&[Uid(3)].into(), &[Uid(3)].into()), Some(vec![BOB, Uid(3)]));
    ann.watch([BOB].into());
    assert_eq!(ann.ear.settle(&all, &all), Some(vec![BOB]), "nobody who is not watched");
}

#[tokio::test(start_paused = true)]
async fn notices_of_typing_are_few_and_fresh() {
    let presence = Presence::new(None);
    let ann = presence.join(ANN);
    let with_bob = Conversation::User(BOB);
    for _ in 0..2 {
        presence.hear_typing(ANN, with_bob, BOB);
    }
    assert_eq!(ann.ear.take_typing(), [(with_bob, BOB)]);
    presence.hear_typing(ANN, with_bob, BOB);
    advance(STALE).await;
    assert_eq!(ann.ear.take_typing(), []);
    for n in 0..100 {
        presence.hear_typing(ANN, Conversation::User(Uid(n)), Uid(n));
    }
    assert_eq!(ann.ear.take_typing().len(), MOST_TYPING);
}
