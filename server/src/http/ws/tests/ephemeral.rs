//! Typing and presence: who is told, who is not, and that nothing waits for it.

use std::sync::atomic::AtomicU64;

use serde_json::value::RawValue;

use super::*;
use crate::app::{EphemeralOptions, Ephemerals, People, Presence};
use crate::domain::Setting;

/// Typing and presence over this storage.
pub(super) fn over(store: Arc<FaultyStore>, directory: Arc<Directory>, config: &Config) -> Ephemerals {
    let options = EphemeralOptions {
        typing: config.messages.typing,
        presence: config.messages.presence,
        group_members: config.limits.typing_group_members,
    };
    Ephemerals::new(store, directory, Presence::new(None), options, Clock::new(|| Timestamp(7)))
}

/// Numbers the changes of settings.
static NEXT: AtomicU64 = AtomicU64::new(1 << 32);

/// The connections of Ann and Bob, both in step, with the table kept.
struct Both {
    store: Arc<FaultyStore>,
    state: HttpState,
    directory: Arc<Directory>,
    ann: World,
    bob: World,
}

impl Both {
    async fn new(config: Config) -> Both {
        let store = Arc::new(FaultyStore::new(Arc::new(MemoryStore::new())));
        let (state, directory) = state(store.clone(), config).await;
        tokio::spawn(state.ephemerals.clone().run(CancellationToken::new()));
        let open = async |uid| {
            let mut world = World::of(store.clone(), state.clone(), directory.clone(), uid).await;
            assert_eq!(world.settled().await[0]["type"], "welcome");
            assert_eq!(world.heartbeat(0).await[0]["type"], "alive");
            world
        };
        let (ann, bob) = (open(ANN).await, open(BOB).await);
        Both { store, state, directory, ann, bob }
    }

    /// Ann's device says that she is typing to Bob; what Bob's device hears of it.
    async fn ann_types(&mut self) -> Vec<Value> {
        self.ann.send(&typing("u:10002"));
        assert_eq!(self.ann.settled().await, [] as [Value; 0], "typing is never answered");
        self.bob.settled().await
    }

    async fn set(&self, uid: Uid, setting: Setting, of: Uid, value: &str) {
        let value = RawValue::from_string(value.to_owned()).expect("JSON");
        let client_id = ClientId(Uuid::from_u128(NEXT.fetch_add(1, Ordering::Relaxed).into()));
        let request = People::setting(client_id, setting, Conversation::User(of), &value).expect("good");
        self.state.messages.mark(uid, request).await.expect("stored");
    }

    async fn bob_comes_back(&mut self) {
        let (store, state, directory) = (self.store.clone(), self.state.clone(), self.directory.clone());
        self.bob = World::of(store, state, directory, BOB).await;
        self.bob.settled().await;
    }
}

fn typing(conversation: &str) -> Value {
    json!({"type": "typing", "conversation": conversation})
}

fn is_typing() -> [Value; 1] {
    [json!({"type": "typing", "conversation": "u:10001", "sender": 10_001})]
}

fn online(people: &[u32]) -> [Value; 1] {
    [json!({"type": "presence", "online": people})]
}

#[tokio::test(start_paused = true)]
async fn typing_reaches_the_other_person_and_is_written_nowhere() {
    let mut both = Both::new(Config::default()).await;
    assert_eq!(both.ann_types().await, is_typing());
    let id = both.ann.ann_says("done").await;
    assert_eq!(id, 1, "it took no id");
    both.ann.settled().await;
    assert_eq!(both.bob.settled().await[0]["entries"].as_array().map(Vec::len), Some(1), "nor a row");
    // Rows that wait to be acknowledged hold nothing up.
    assert_eq!(both.ann_types().await, is_typing());
    // Nobody: oneself, people and groups that are not there.
    for nobody in ["u:10001", "u:10099", "g:7", "u:0"] {
        both.ann.send(&typing(nobody));
    }
    assert_eq!(both.ann.settled().await, [] as [Value; 0]);
    assert_eq!(both.bob.settled().await, [] as [Value; 0]);
}

#[tokio::test(start_paused = true)]
async fn typing_that_comes_too_fast_is_dropped_and_refuses_nothing() {
    let mut both = Both::new(Config::default()).await;
    let mut heard = 0;
    for _ in 0..100 {
        heard += both.ann_types().await.len();
    }
    assert!((20..=21).contains(&heard), "a burst of twenty: {heard}");
}

#[tokio::test(start_paused = true)]
async fn a_device_that_does_not_read_is_told_of_typing_later_or_never() {
    let mut both = Both::new(Config::default()).await;
    both.bob.blocked.store(true, Ordering::Relaxed);
    assert_eq!(both.ann_types().await, [] as [Value; 0]);
    let began = Instant::now();
    assert_eq!(both.ann.heartbeat(0).await[0]["type"], "alive", "Ann's connection goes on");
    assert!(began.elapsed() < Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn whoever_is_blocked_or_does_not_show_it_is_not_shown_to_be_typing() {
    let none = [] as [Value; 0];
    let mut both = Both::new(Config::default()).await;
    let rows_of_bob =
        |frames: Vec<Value>| frames.into_iter().filter(|frame| frame["type"] == "typing").count();
    for (who, setting, of, value) in [
        (BOB, Setting::Block, ANN, r#"{"blocked":true}"#),
        (ANN, Setting::Block, BOB, r#"{"blocked":true}"#),
        (BOB, Setting::Privacy, BOB, r#"{"write":"friends"}"#),
        (BOB, Setting::Privacy, BOB, r#"{"typing":false}"#),
        (ANN, Setting::Privacy, ANN, r#"{"typing":false}"#),
    ] {
        both.set(who, setting, of, value).await;
        both.ann.settled().await;
        both.bob.settled().await;
        advance(Duration::from_secs(4)).await;
        assert_eq!(both.ann_types().await, none, "{who} {value}");
        both.set(who, setting, of, "null").await;
        both.ann.settled().await;
        both.bob.settled().await;
        assert_eq!(rows_of_bob(both.ann_types().await), 1, "{who} cleared {value}");
    }
}

#[tokio::test(start_paused = true)]
async fn presence_is_told_when_asked_and_when_it_changes_and_a_reload_is_no_change() {
    let none = [] as [Value; 0];
    let mut both = Both::new(Config::default()).await;
    both.ann.send(&json!({"type": "presence", "of": [10_002, 10_099]}));
    assert_eq!(both.ann.settled().await, online(&[10_002]));
    // Bob reloads the page.
    both.bob.session.abort();
    advance(Duration::from_secs(5)).await;
    both.bob_comes_back().await;
    advance(Duration::from_secs(60)).await;
    assert_eq!(both.ann.settled().await, none);
    // And goes.
    both.bob.session.abort();
    for _ in 0..9 {
        advance(Duration::from_secs(1)).await;
        assert_eq!(both.ann.settled().await, none);
    }
    sleep(Duration::from_secs(4)).await;
    assert_eq!(both.ann.settled().await, online(&[]));
    both.bob_comes_back().await;
    sleep(Duration::from_secs(1)).await;
    assert_eq!(both.ann.settled().await, online(&[10_002]));
    // Another list takes the place of the first.
    both.ann.send(&json!({"type": "presence", "of": []}));
    assert_eq!(both.ann.settled().await, online(&[]));
    both.bob.session.abort();
    sleep(Duration::from_secs(15)).await;
    assert_eq!(both.ann.settled().await, none);
}

#[tokio::test(start_paused = true)]
async fn presence_is_shown_to_those_who_may_write_and_to_nobody_who_hides_it() {
    let mut both = Both::new(Config::default()).await;
    both.ann.send(&json!({"type": "presence", "of": [10_002]}));
    assert_eq!(both.ann.settled().await, online(&[10_002]));
    for (who, setting, of, value) in [
        (BOB, Setting::Block, ANN, r#"{"blocked":true}"#),
        (BOB, Setting::Privacy, BOB, r#"{"write":"friends"}"#),
        (BOB, Setting::Privacy, BOB, r#"{"presence":false}"#),
        (ANN, Setting::Privacy, ANN, r#"{"presence":false}"#),
        (ANN, Setting::Block, BOB, r#"{"blocked":true}"#),
    ] {
        for (value, expected) in [(value, online(&[])), ("null", online(&[10_002]))] {
            both.set(who, setting, of, value).await;
            let mut told = Vec::new();
            for world in [&mut both.bob, &mut both.ann] {
                for frame in world.settled().await {
                    if frame["type"] == "entries" {
                        world.send(&json!({"type": "heartbeat", "seq": frame["synced"]}));
                    }
                }
            }
            sleep(Duration::from_secs(1)).await;
            both.bob.settled().await;
            told.extend(both.ann.settled().await.into_iter().filter(|frame| frame["type"] == "presence"));
            assert_eq!(told, expected, "{who} {value}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_the_operator_switches_off_is_not_shown_and_refuses_nothing() {
    let mut config = Config::default();
    (config.messages.typing, config.messages.presence) = (false, false);
    let mut both = Both::new(config).await;
    assert_eq!(both.ann_types().await, [] as [Value; 0]);
    both.ann.send(&json!({"type": "presence", "of": [10_002]}));
    assert_eq!(both.ann.settled().await, online(&[]));
}

#[tokio::test(start_paused = true)]
async fn a_list_of_too_many_people_is_refused_and_while_storage_is_silent_the_answer_comes_later() {
    let mut both = Both::new(Config::default()).await;
    both.ann.send(&json!({"type": "presence", "of": (1..=201).collect::<Vec<u32>>()}));
    let refused = both.ann.settled().await;
    assert_eq!((&refused[0]["type"], &refused[0]["code"]), (&json!("error"), &json!("invalid_body")));
    assert!(
        refused[0]["detail"].as_str().is_some_and(|detail| detail.contains("at most 200")),
        "{refused:?}"
    );
}
