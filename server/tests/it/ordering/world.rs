//! The rig: real queues over storage that fails on command, devices that follow a line, clients that insist.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use seqsvr_core::{Granted, NextError, Sequencer, TryNextError, Unavailable};
use tokio::task::JoinHandle;
use uuid::Uuid;

use tidemark::app::messages::{Messages, OutgoingMessage};
use tidemark::app::sync::InboxSync;
use tidemark::app::{Consent, Groups};
use tidemark::domain::{
    Body, Bound, ClientId, Clock, Conversation, Direction, Entry, Kind, Mentions, MessageId, PageLimit,
    RangeQuery, Timestamp, Uid,
};
use tidemark::notify::Local;
use tidemark::queue::{DailyLimit, Options, Publish, QueueParts, Queues, Request, Watermarks};
use tidemark::seq::{Ids, Numbers};
use tidemark::store::faulty::FaultyStore;
use tidemark::store::memory::MemoryStore;
use tidemark::store::{Directory, MessageStore, NewAccount, PendingKey, SharedRates};

pub(crate) const PEOPLE: u32 = 6;

pub(crate) fn person(n: u32) -> Uid {
    Uid(Uid::FIRST.0 + n % PEOPLE)
}

pub(crate) fn name(n: u128) -> ClientId {
    ClientId(Uuid::from_u128(n))
}

/// Everything that outlives a "process": rows, accounts, ceilings.
pub(crate) struct World {
    pub(crate) rows: Arc<MemoryStore>,
    pub(crate) directory: Arc<Directory>,
    pub(crate) sections: Arc<seqsvr_core::store::Memory>,
    pub(crate) uuids: Arc<AtomicU64>,
    pub(crate) ids: Ids,
}

impl World {
    pub(crate) async fn new() -> World {
        let directory = Arc::new(Directory::in_memory());
        for n in 0..PEOPLE {
            let account =
                NewAccount { name: format!("p{n}"), password_hash: String::new(), created_at: Timestamp(0) };
            assert!(
                directory.create_account(person(n), account, None).await.expect("memory"),
                "the name is free"
            );
        }
        World {
            rows: Arc::new(MemoryStore::new()),
            directory,
            sections: Arc::new(seqsvr_core::store::Memory::new()),
            uuids: Arc::default(),
            ids: Ids::in_memory("a secret of the tests").await.expect("opens"),
        }
    }

    /// A "process" over what there is.
    pub(crate) async fn start(&self, options: Options) -> Process {
        self.start_beside(options, None).await
    }

    /// The same, where others share these rates with it.
    pub(crate) async fn start_beside(
        &self,
        options: Options,
        rates: Option<Arc<dyn SharedRates>>,
    ) -> Process {
        let store = Arc::new(FaultyStore::new(self.rows.clone()));
        let limits = seqsvr_core::Options { limit: MessageId::MAX.get(), ..seqsvr_core::Options::default() };
        let embedded =
            seqsvr_core::alloc::Embedded::open(self.sections.clone(), limits).await.expect("opens");
        let questions = Questions::default();
        let refused = Refused::default();
        let lines =
            Arc::new(Listening { embedded, questions: questions.clone(), refused: Arc::clone(&refused) });
        let watermarks = Watermarks::new(store.clone(), 1_000);
        let notifier = Arc::new(Local::new());
        let uuids = self.uuids.clone();
        let new_uuid: Arc<dyn Fn() -> Uuid + Send + Sync> =
            Arc::new(move || Uuid::from_u128(u128::MAX - u128::from(uuids.fetch_add(1, Ordering::Relaxed))));
        // Every user is a section.
        let numbers = Numbers::new(lines.clone(), 1);
        let parts = QueueParts {
            numbers: numbers.clone(),
            store: store.clone(),
            directory: self.directory.clone(),
            notifier: notifier.clone(),
            watermarks: watermarks.clone(),
            clock: Clock::new(|| Timestamp(7)),
            new_uuid: new_uuid.clone(),
            rates,
        };
        let queues = Queues::start(parts, options);
        let history = store.history().await.expect("memory");
        Process {
            messages: Messages::new(queues.clone()),
            groups: Groups::new(
                store.clone(),
                self.directory.clone(),
                queues.clone(),
                self.ids.clone(),
                Consent::new(
                    store.clone(),
                    DailyLimit::new("strangers", 0, Clock::new(|| Timestamp(7)), None),
                ),
                new_uuid,
            ),
            sync: InboxSync::new(
                store.clone(),
                watermarks,
                notifier,
                history,
                PageLimit { rows: 3, bytes: 4_096 },
            ),
            queues,
            store,
            lines,
            numbers,
            questions,
            refused,
        }
    }

    /// A whole inbox, as GetRange tells it.
    pub(crate) async fn inbox(&self, uid: Uid) -> Vec<Entry> {
        let all = RangeQuery::new(Bound::InfMin, Bound::InfMax, Direction::Forward, RangeQuery::MAX_ROWS);
        let page = self.rows.range(uid, all.expect("a good range")).await.expect("memory");
        assert!(!page.more);
        page.rows
    }
}

pub(crate) struct Process {
    pub(crate) messages: Messages,
    pub(crate) groups: Groups,
    pub(crate) sync: InboxSync,
    pub(crate) queues: Queues,
    pub(crate) store: Arc<FaultyStore>,
    pub(crate) lines: Arc<dyn Sequencer>,
    numbers: Numbers,
    /// How many numbers each call for some of them asked for.
    pub(crate) questions: Questions,
    /// For whom there are no numbers.
    pub(crate) refused: Refused,
}

pub(crate) type Questions = Arc<Mutex<Vec<usize>>>;
pub(crate) type Refused = Arc<Mutex<HashSet<Uid>>>;

/// Sequences that note what they are asked.
struct Listening {
    embedded: seqsvr_core::alloc::Embedded,
    questions: Questions,
    refused: Refused,
}

#[async_trait]
impl Sequencer for Listening {
    fn try_next(&self, uid: seqsvr_core::Uid, count: u32) -> Result<Granted, TryNextError> {
        self.embedded.try_next(uid, count)
    }

    async fn next(&self, uid: seqsvr_core::Uid, count: u32) -> Result<Granted, NextError> {
        self.embedded.next(uid, count).await
    }

    async fn next_each(&self, uids: &[seqsvr_core::Uid], patience: Duration) -> Vec<Result<u64, NextError>> {
        if !uids.is_empty() {
            self.questions.lock().expect("nothing panics while it is locked").push(uids.len());
        }
        let refused = self.refused.lock().expect("nothing panics while it is locked").clone();
        let is_refused = |uid: &seqsvr_core::Uid| refused.contains(&Uid(uid.get()));
        let served: Vec<_> = uids.iter().copied().filter(|uid| !is_refused(uid)).collect();
        let mut numbers = self.embedded.next_each(&served, patience).await.into_iter();
        if served.len() < uids.len() {
            // As the real ones do: all that can be had, when the time is over.
            tokio::time::sleep(patience.min(Duration::from_secs(5))).await;
        }
        let none =
            || NextError::Retryable(Unavailable { waited: patience, reason: "as the test says".into() });
        let of = |uid| if is_refused(uid) { Err(none()) } else { numbers.next().expect("one each") };
        uids.iter().map(of).collect()
    }

    async fn current(&self, uid: seqsvr_core::Uid) -> Result<u64, NextError> {
        self.embedded.current(uid).await
    }

    async fn advance(&self, uid: seqsvr_core::Uid, at_least: u64) -> Result<(), NextError> {
        self.embedded.advance(uid, at_least).await
    }
}

impl Process {
    /// Sequences that were found behind the rows.
    pub(crate) fn overtaken(&self) -> u64 {
        self.numbers.overtaken()
    }

    /// A device that starts at nothing and follows `uid`'s line by cursor until it has `rows` of them.
    pub(crate) fn follow(&self, uid: Uid, rows: usize) -> JoinHandle<Vec<MessageId>> {
        let sync = self.sync.clone();
        tokio::spawn(async move {
            let wake = sync.watch(uid);
            let watermark = sync.watermark(uid).await.expect("memory");
            let (mut cursor, mut seen) = (MessageId::ZERO, Vec::new());
            while seen.len() < rows {
                let pulled = sync.pull(&watermark, cursor).await.expect("memory");
                seen.extend(pulled.entries.iter().map(|entry| entry.message_id));
                cursor = pulled.synced.max(cursor);
                if pulled.entries.is_empty() {
                    wake.notified().await;
                }
            }
            seen
        })
    }

    /// From now on there are no numbers for `uid`.
    pub(crate) fn refuse_numbers(&self, uid: Uid) {
        self.refused.lock().expect("nothing panics while it is locked").insert(uid);
    }

    /// Waits until nothing is owed to anybody.
    pub(crate) async fn owed_nothing(&self, world: &World) {
        while !world.rows.pending(PendingKey::default(), 1).await.expect("memory").is_empty() {
            self.pause().await;
        }
    }

    /// There are numbers for everybody again.
    pub(crate) fn serve_numbers(&self) {
        self.refused.lock().expect("nothing panics while it is locked").clear();
    }

    /// Waits until nobody has anything to do any more: only then does the paused clock move.
    pub(crate) async fn idle(&self) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }

    /// Lets paused time pass: without it the end of a writer's pause would never come.
    pub(crate) async fn pause(&self) {
        tokio::time::advance(Duration::from_millis(20)).await;
    }

    /// Sends until it is durable, as a client does: the same `client_id` again after every retryable refusal.
    pub(crate) async fn insist(&self, who: Uid, message: OutgoingMessage) -> MessageId {
        self.insist_on(who, Request::Message(message)).await
    }

    /// The same for whatever is asked.
    pub(crate) async fn insist_on(&self, who: Uid, request: Request) -> MessageId {
        loop {
            match self.queues.submit(who, request.clone()).await {
                Ok(ack) => return ack.message_id,
                Err(error) => assert!(error.is_retryable(), "{error}"),
            }
            self.pause().await;
        }
    }
}

pub(crate) fn options(queues: usize) -> Options {
    Options { queues, ..Options::default() }
}

pub(crate) fn to(uid: Uid, id: u128, text: &str) -> OutgoingMessage {
    OutgoingMessage {
        client_id: name(id),
        to: Conversation::User(uid),
        text: text.into(),
        reply_to: None,
        forward: None,
        files: Vec::new(),
        mentions: Mentions::default(),
    }
}

/// A moment for everybody else.
pub(crate) fn moment(who: Uid, id: u128) -> Request {
    let others = (0..PEOPLE).map(person).filter(|uid| *uid != who).collect();
    let body = Body::text(&format!("moment {id}"), 100).expect("short");
    let (client_id, kind, target) = (name(id), Kind::Moment, Conversation::MOMENTS);
    Request::Publish(Publish { client_id, kind, target, body, files: Vec::new(), others })
}

pub(crate) fn ids(entries: &[Entry]) -> Vec<MessageId> {
    entries.iter().map(|entry| entry.message_id).collect()
}

pub(crate) fn client_ids_of(entries: &[Entry]) -> Vec<ClientId> {
    entries.iter().filter_map(|entry| entry.content.client_id).collect()
}
