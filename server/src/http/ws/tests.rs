//! The session without a network: one end of a pipe, memory underneath, and time that stands still unless all wait.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::{Sink, Stream};
use proptest::prelude::*;
use serde_json::{Value, json};
use tidemark_process::Version;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;
use tokio::time::{Instant, advance, sleep};
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use super::session::{SocketSession, run};
use crate::app::messages::OutgoingMessage;
use crate::app::{
    AccountOptions, Accounts, Attachments, Audit, Consent, Conversations, Due, FileOptions, Files, Groups,
    Ids, InboxSync, Invites, LiveSession, Messages, Moments, Operators, People, Pictures, Push, Reports,
    Search, SearchOptions, SignUp, Token,
};
use crate::config::Config;
use crate::domain::{ClientId, Clock, Conversation, Mentions, MessageId, PageLimit, Timestamp, Uid};
use crate::files::FilePlace;
use crate::http::budget::Budget;
use crate::http::concurrency::ConcurrencyLimiter;
use crate::http::limits::{ClientNetwork, Rates};
use crate::http::openapi::Docs;
use crate::http::state::{AppState, Fitness, HttpState, Settings, Sockets};
use crate::http::turns::Turns;
use crate::notify::{Local, Notifier};
use crate::queue::{DailyLimit, Options, QueueParts, Queues, Watermarks};
use crate::seq::Numbers;
use crate::store::faulty::FaultyStore;
use crate::store::memory::MemoryStore;
use crate::store::search::MemoryIndex;
use crate::store::{Directory, MessageStore, NewAccount, Session as Stored};
use crate::telemetry::Metrics;

mod ephemeral;
mod marks;
mod order;
mod pauses;

const ANN: Uid = Uid::FIRST;
const BOB: Uid = Uid(Uid::FIRST.0 + 1);
const ROWS: usize = 3; // of one `entries` frame, few enough that `more` happens

/// Our end of the connection.
struct Pipe {
    incoming: UnboundedReceiver<Result<Message, Error>>,
    outgoing: UnboundedSender<Message>,
    blocked: Arc<AtomicBool>,
}

impl Stream for Pipe {
    type Item = Result<Message, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.incoming.poll_recv(cx)
    }
}

impl Sink<Message> for Pipe {
    type Error = Error;

    fn poll_ready(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        if self.blocked.load(Ordering::Relaxed) { Poll::Pending } else { Poll::Ready(Ok(())) }
    }

    fn start_send(self: Pin<&mut Self>, message: Message) -> Result<(), Error> {
        self.outgoing.send(message).map_err(|_| Error::ConnectionClosed)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.poll_ready(cx)
    }

    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.poll_ready(cx)
    }
}

/// Ann, Bob, and a connection of Bob's.
struct World {
    store: Arc<FaultyStore>,
    messages: Messages,
    sent: u128,
    client: UnboundedSender<Result<Message, Error>>,
    server: UnboundedReceiver<Message>,
    blocked: Arc<AtomicBool>,
    session: JoinHandle<()>,
}

impl World {
    async fn new() -> World {
        World::with(Config::default()).await
    }

    async fn with(config: Config) -> World {
        let store = Arc::new(FaultyStore::new(Arc::new(MemoryStore::new())));
        let (state, directory) = state(store.clone(), config).await;
        World::of(store, state, directory, BOB).await
    }

    /// A connection of `uid`.
    async fn of(store: Arc<FaultyStore>, state: HttpState, directory: Arc<Directory>, uid: Uid) -> World {
        let live = log_in(&state, &directory, uid).await;
        let messages = state.messages.clone();
        let watermark = state.sync.watermark(uid).await.expect("memory");
        let network = ClientNetwork::of(std::net::Ipv4Addr::LOCALHOST.into());
        let (client, incoming) = unbounded_channel();
        let (outgoing, server) = unbounded_channel();
        let blocked = Arc::new(AtomicBool::new(false));
        let mut pipe = Pipe { incoming, outgoing, blocked: blocked.clone() };
        let session = tokio::spawn(async move {
            run(&mut pipe, Box::new(SocketSession::new(state, live, watermark, network))).await;
        });
        World { store, messages, sent: 0, client, server, blocked, session }
    }

    /// Ann says something to Bob; the id of Bob's copy is that of Ann's, since they began together.
    async fn ann_says(&mut self, text: &str) -> u64 {
        self.sent += 1;
        let message = OutgoingMessage {
            client_id: ClientId(Uuid::from_u128(self.sent)),
            to: Conversation::User(BOB),
            text: text.to_owned(),
            reply_to: None,
            forward: None,
            files: Vec::new(),
            mentions: Mentions::default(),
        };
        self.messages.submit(ANN, message).await.expect("stored").message_id.get()
    }

    fn send(&self, frame: &Value) {
        self.client.send(Ok(Message::text(frame.to_string()))).expect("open");
    }

    /// Everything that comes until nobody has anything to do any more: only then does the paused clock move.
    async fn settled(&mut self) -> Vec<Value> {
        sleep(Duration::from_millis(1)).await;
        let mut frames = Vec::new();
        while let Ok(message) = self.server.try_recv() {
            frames.push(match message {
                Message::Text(text) => serde_json::from_str(&text).expect("JSON"),
                Message::Close(Some(close)) => json!({"closed": u16::from(close.code)}),
                other => panic!("{other:?}"),
            });
        }
        frames
    }

    async fn heartbeat(&mut self, seq: u64) -> Vec<Value> {
        self.send(&json!({"type": "heartbeat", "seq": seq}));
        self.settled().await
    }
}

async fn log_in(state: &HttpState, directory: &Directory, uid: Uid) -> Arc<LiveSession> {
    let token = Token::random(&mut rand::rng());
    let session = Stored {
        token_hash: token.hash(),
        uid,
        created_at: Timestamp(0),
        expires_at: Timestamp(i64::MAX),
        label: String::new(),
    };
    assert!(directory.create_session(session, "").await.expect("memory"), "the account is there");
    state.accounts.session(token.as_str()).await.expect("memory").expect("kept")
}

async fn state(store: Arc<FaultyStore>, config: Config) -> (HttpState, Arc<Directory>) {
    let directory = Arc::new(Directory::in_memory());
    for (uid, name) in [(ANN, "ann"), (BOB, "bob")] {
        let account =
            NewAccount { name: name.into(), password_hash: String::new(), created_at: Timestamp(0) };
        assert!(directory.create_account(uid, account, None).await.expect("memory"), "the name is free");
    }
    let sections = Arc::new(seqsvr_core::store::Memory::new());
    let numbers = seqsvr_core::Options { limit: MessageId::MAX.get(), ..seqsvr_core::Options::default() };
    let lines = Arc::new(seqsvr_core::alloc::Embedded::open(sections, numbers).await.expect("opens"));
    let numbers = Numbers::new(lines, 100_000);
    let notifier: Arc<dyn Notifier> = Arc::new(Local::new());
    let (watermarks, clock) = (Watermarks::new(store.clone(), 100), Clock::new(|| Timestamp(7)));
    let new_uuid: Arc<dyn Fn() -> Uuid + Send + Sync> = Arc::new(Uuid::nil);
    let parts = QueueParts {
        numbers,
        store: store.clone(),
        directory: directory.clone(),
        notifier: notifier.clone(),
        watermarks: watermarks.clone(),
        clock: clock.clone(),
        new_uuid: new_uuid.clone(),
        rates: None,
    };
    let queues = Queues::start(parts, Options { queues: 1, ..Options::default() });
    let accounts = AccountOptions {
        sign_up: SignUp::Open,
        open_invites: 1,
        sign_ups_per_invite: 1,
        session_days: 1,
        password_memory_kib: 8,
    };
    let history = store.history().await.expect("memory");
    let ids = Ids::in_memory("a secret of the tests").await.expect("opens");
    let consent = Consent::new(store.clone(), DailyLimit::new("strangers", 0, clock.clone(), None));
    let groups =
        Groups::new(store.clone(), directory.clone(), queues.clone(), ids.clone(), consent, new_uuid.clone());
    let people = People::new(store.clone(), directory.clone(), queues.clone(), 10);
    let accounts = Accounts::new(directory.clone(), accounts, clock.clone());
    let audit = Audit::new(directory.clone(), clock.clone());
    let attachments = Attachments::new(directory.clone(), store.clone(), clock.clone());
    let of_files = FileOptions { most_bytes: 1, account_bytes: 1, refused: Vec::new() };
    let files = Files::new(
        directory.clone(),
        store.clone(),
        FilePlace::in_memory(),
        clock.clone(),
        of_files,
        new_uuid,
    );
    let ephemerals = ephemeral::over(store.clone(), directory.clone(), &config);
    let pictures =
        Pictures::new(files.clone(), people.clone(), groups.clone(), accounts.clone(), ephemerals.clone());
    let state = AppState {
        version: Version::default(),
        operators: Operators::new(accounts.clone(), directory.clone(), audit, clock.clone()),
        accounts,
        messages: Messages::new(queues.clone()),
        sync: InboxSync::new(
            store.clone(),
            watermarks,
            notifier,
            history,
            PageLimit { rows: ROWS, bytes: 1 << 20 },
        ),
        conversations: Conversations::new(store.clone(), directory.clone(), 10),
        search: Search::new(
            store.clone(),
            Arc::new(MemoryIndex::default()),
            Arc::new(Due::new(9)),
            SearchOptions::default(),
        ),
        moments: Moments::new(store.clone(), people.clone(), queues.clone(), attachments.clone(), 8_000),
        files,
        pictures,
        attachments,
        people,
        groups: groups.clone(),
        invites: Invites::new(directory.clone(), groups.clone(), ids.clone(), clock.clone()),
        reports: Reports::new(directory.clone(), store, groups, clock.clone()),
        ephemerals,
        push: Push::off(),
        ids,
        new_request_id: Arc::new(|| "1".to_owned()),
        rates: Arc::new(Rates::new(&config.limits)),
        budget: Budget::new(1 << 20, 1 << 20),
        docs: Arc::new(Docs::new(&config.limits)),
        tables: None,
        password_turns: Turns::new(1, 10),
        metrics: Arc::new(Metrics::new(Version::default(), Vec::new())),
        sockets: Sockets {
            limiter: ConcurrencyLimiter::new(10, 10),
            of_accounts: ConcurrencyLimiter::new(10, 10),
            stopping: CancellationToken::new(),
            open: TaskTracker::new(),
        },
        clock,
        readiness: Arc::new(Fitness::default),
        settings: Arc::new(Settings::new(&config)),
    };
    (HttpState::new(state), directory)
}

/// The behaviour of the connection, by the letter of the "Sync rules" of PROTOCOL.md.
#[derive(Default)]
struct Model {
    inbox: Vec<u64>,
    cursor: Option<u64>,
    unacknowledged: bool,
}

impl Model {
    fn latest(&self) -> u64 {
        self.inbox.last().copied().unwrap_or(0)
    }

    /// The frame that rows after `cursor` go out in.
    fn entries(&mut self, cursor: u64) -> (u64, Vec<u64>, bool) {
        let missed: Vec<u64> = self.inbox.iter().copied().filter(|id| *id > cursor).collect();
        self.unacknowledged = true;
        (cursor, missed.iter().copied().take(ROWS).collect(), missed.len() > ROWS)
    }

    fn heartbeat(&mut self, seq: u64) -> Expected {
        let cursor = seq.min(self.latest());
        (self.cursor, self.unacknowledged) = (Some(cursor), false);
        match cursor == self.latest() {
            true => Expected::Alive(cursor),
            false => Expected::Entries(self.entries(cursor)),
        }
    }

    fn commit(&mut self, id: u64) -> Expected {
        self.inbox.push(id);
        match self.cursor {
            Some(cursor) if !self.unacknowledged => Expected::Entries(self.entries(cursor)),
            _ => Expected::Nothing,
        }
    }
}

#[derive(Debug, PartialEq)]
enum Expected {
    Nothing,
    Alive(u64),
    /// After, ids, more.
    Entries((u64, Vec<u64>, bool)),
}

fn read(frames: &[Value]) -> Expected {
    let number = |value: &Value| value.as_u64().expect("a number");
    match frames {
        [] => Expected::Nothing,
        [frame] if frame["type"] == "alive" => Expected::Alive(number(&frame["seq"])),
        [frame] if frame["type"] == "entries" => {
            let rows = frame["entries"].as_array().expect("rows");
            let ids: Vec<u64> = rows.iter().map(|row| number(&row["message_id"])).collect();
            assert_eq!(ids.last().copied(), frame["synced"].as_u64(), "synced is the last row");
            Expected::Entries((number(&frame["after"]), ids, frame["more"].as_bool().expect("more")))
        }
        other => panic!("more than one frame, or another: {other:?}"),
    }
}

#[derive(Clone, Copy, Debug)]
enum Act {
    Commit,
    /// A heartbeat with this share of the latest id, in quarters: below, at and beyond it.
    Heartbeat(u64),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![Just(Act::Commit), (0..=5_u64).prop_map(Act::Heartbeat)];
    proptest::collection::vec(act, 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn frames_follow_the_flow_rule_to_the_letter(acts in acts()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
        runtime.expect("a runtime").block_on(async {
            let mut world = World::new().await;
            assert_eq!(world.settled().await[0]["type"], "welcome");
            let mut model = Model::default();
            for act in acts {
                let (expected, frames) = match act {
                    Act::Commit => {
                        let id = world.ann_says("hi").await;
                        (model.commit(id), world.settled().await)
                    }
                    Act::Heartbeat(quarters) => {
                        let seq = model.latest() * quarters / 4;
                        (model.heartbeat(seq), world.heartbeat(seq).await)
                    }
                };
                assert_eq!(read(&frames), expected, "{act:?}");
            }
        });
    }
}

#[tokio::test(start_paused = true)]
async fn an_up_to_date_heartbeat_asks_no_storage() {
    let mut world = World::new().await;
    world.settled().await;
    let id = world.ann_says("hi").await;
    let asked = world.store.asked();
    for _ in 0..10 {
        assert_eq!(read(&world.heartbeat(id).await), Expected::Alive(id));
    }
    assert_eq!(world.store.asked(), asked);
}

#[tokio::test(start_paused = true)]
async fn three_heartbeats_of_silence_end_a_connection_and_any_frame_begins_them_anew() {
    let mut world = World::new().await;
    let began = Instant::now();
    world.settled().await;
    advance(Duration::from_secs(80)).await;
    world.heartbeat(0).await;
    (&mut world.session).await.expect("it ends");
    let ended = began.elapsed().as_secs();
    assert!((170..=175).contains(&ended), "{ended} s");
    assert_eq!(world.settled().await, [json!({"closed": 1001})]);
}

#[tokio::test(start_paused = true)]
async fn one_who_does_not_read_is_let_go_in_time() {
    let mut world = World::new().await;
    world.settled().await;
    world.heartbeat(0).await;
    world.blocked.store(true, Ordering::Relaxed);
    world.ann_says("hi").await;
    let began = Instant::now();
    (&mut world.session).await.expect("no panic");
    assert!(began.elapsed().as_secs() <= 95, "{:?}", began.elapsed());
}
