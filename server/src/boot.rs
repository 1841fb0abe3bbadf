//! The composition root: opens what lies at the bottom, and puts each layer on the one beneath it.
//!
//! [`Storage`], SQLite or PostgreSQL, is the part that the operator's commands need, too. [`start`] goes on from there: numbers, queues, use
//! cases, HTTP. The first step that fails ends the start with what to do. [`RunningServer`] goes down again the other way.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::LocalBoxFuture;
use prometheus_client::collector::Collector;
use tidemark_process::Version;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio::try_join;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{error, info, warn};
use uuid::Uuid;

use crate::app::{
    Accounts, Consent, Conversations, Deletions, ENTRIES_BYTES, Ephemerals, Follow, Groups, InboxSync,
    Invites, Messages, Moments, People, Presence, RememberedKeys,
};
use crate::config::{Config, Listen};
use crate::domain::{Clock, HistoryId, PageLimit};
use crate::http::{Dependencies, Fitness, HttpServer, Rates, Tables, UseCases};
use crate::notify::{Local, Notifier, SharedNotifier};
use crate::queue::{DailyLimit, QueueParts, Queues, Watermarks};
use crate::seq::{Ids, RequestIds, Sequences};
use crate::store::{MessageStore, StoreError};
use crate::table::{MayPost, Posts, TableService, WithInboxes};
use crate::telemetry::{Metrics, Overtaken, QueueDepths, SequenceMetrics, StoreHealth};

mod error;
mod files;
mod issued;
mod options;
mod sequences;
mod status;
mod storage;
mod transfer;
mod verify;

pub use error::BootError;
pub use files::BadFile;
pub use issued::{numbers_of_users, renew_numbers, renew_stored_numbers};
pub use sequences::{as_installed, sequencer};
pub use status::status;
pub use storage::{Storage, begin_another_life, is_installed, only_on_sqlite};
pub use transfer::export_snapshot;
pub use verify::{Verified, verify};

use issued::numbers_of_all_else;
use options::{account_options, ephemeral_options, queue_options, table_options};
use sequences::numbers_of_messages;

/// How often expired sessions are swept up, and how many in one transaction.
const SWEEP_EVERY: Duration = Duration::from_secs(3_600);
const SWEEP_AT_ONCE: usize = 1_000;
/// How long after an account was marked as deleted a request may still be under way that was decided on before it. Other servers hear
/// of the mark by a hint, or by a look every ten seconds, so among others it is a minute.
const SETTLES: Duration = Duration::from_secs(5);
const SETTLES_AMONG_OTHERS: Duration = Duration::from_secs(60);
/// Names of one transaction, each with some ten rows.
const INDEXED_AT_ONCE: usize = 200;

/// Users whose latest committed id is kept in memory beside those who are connected.
const KNOWN_WATERMARKS: usize = 1_000_000;

/// The stop did not finish what had been accepted in time.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("what was accepted could not be finished in time; it will be at the next start")]
pub struct Unfinished;

/// A name for a life of the data that begins now (I14).
pub fn new_history() -> HistoryId {
    HistoryId(random_uuid())
}

/// The tasks that tell other servers of rows written here; ended after the last write.
#[derive(Default)]
pub struct Hinting {
    closing: CancellationToken,
    tasks: TaskTracker,
}

impl Hinting {
    /// Sends the remaining hints, within a second.
    pub async fn stop(&self) {
        self.closing.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

/// A server at work.
pub struct RunningServer {
    address: SocketAddr,
    metrics_address: Option<SocketAddr>,
    /// The service of tables and where it is served, if it is.
    tables: Option<(TableService, SocketAddr)>,
    stopping: CancellationToken,
    http: JoinHandle<()>,
    tasks: TaskTracker,
    queues: Queues,
    hints: Hinting,
    /// `None`: the database assigns the ids.
    sequences: Option<Sequences>,
    ids: Ids,
    messages: Arc<dyn MessageStore>,
    storage: Storage,
}

/// Starts everything, in the order in which a message comes back up.
///
/// Boxed, as [`RunningServer::stop`] is: the whole server is compiled once, in this library, and not again in each program that starts one.
pub fn start(
    config: &Config,
    clock: Clock,
    version: Version,
) -> LocalBoxFuture<'_, Result<RunningServer, BootError>> {
    Box::pin(async move {
        let installed = as_installed(config)?;
        let config = &*installed;
        let storage = Storage::open(config).await?;
        let clock = storage.clock(clock).await?;
        let ids_from = storage.check_message_ids(config).await?;
        let table_address = config.table.address()?;
        if table_address.is_some() {
            storage.check_tables()?;
        }
        let (messages, tables) = storage.rows(config).await?;
        storage.check_heads().await?;
        let history = messages.history().await?;
        info!(%history, "the rows are there");

        // Side by side: neither needs the other.
        let ((sequences, numbers), ids) = try_join!(
            numbers_of_messages(config, ids_from, &storage, &messages),
            numbers_of_all_else(config, &storage, &*messages),
        )?;
        match &sequences {
            Some(Sequences::Embedded(embedded)) => {
                info!(epoch = %embedded.epoch(), "the sequences are served")
            }
            Some(Sequences::Cluster(_)) => {
                info!(file = config.sequence.client_config, "numbers come from a cluster")
            }
            None => info!("the database assigns the ids of messages"),
        }

        // They are heard before anything is read that they may change.
        let hints = Hinting::default();
        let others = storage.others(config, &hints.closing, &hints.tasks).await?;
        let local = Local::new();
        let (notifier, watermarks): (Arc<dyn Notifier>, _) = match &others {
            Some(others) => (
                Arc::new(SharedNotifier::new(local.clone(), Arc::clone(&others.hints))),
                Watermarks::of_shared(Arc::clone(&messages), KNOWN_WATERMARKS),
            ),
            None => (Arc::new(local.clone()), Watermarks::new(Arc::clone(&messages), KNOWN_WATERMARKS)),
        };
        let new_uuid: Arc<dyn Fn() -> Uuid + Send + Sync> = Arc::new(random_uuid);
        let parts = QueueParts {
            numbers: numbers.clone(),
            store: Arc::clone(&messages),
            directory: Arc::clone(&storage.directory_for_queues),
            notifier: Arc::clone(&notifier),
            watermarks: watermarks.clone(),
            clock: clock.clone(),
            new_uuid: Arc::clone(&new_uuid),
            rates: others.as_ref().map(|others| Arc::clone(&others.rates)),
        };
        let queues = Queues::start(parts, queue_options(config));
        info!(queues = config.queues.count, "the queues take requests");

        let limits = &config.limits;
        let pull = PageLimit { rows: limits.entries_rows, bytes: ENTRIES_BYTES };
        let directory = &storage.directory;
        let request_ids = RequestIds::open(config.server.machine_id).await?;
        let new_request_id = Arc::new(move || request_ids.next().to_string());
        let strangers = DailyLimit::new(
            "strangers",
            limits.strangers_per_account_per_day,
            clock.clone(),
            others.as_ref().map(|others| Arc::clone(&others.rates)),
        );
        let consent = Consent::new(Arc::clone(&messages), strangers);
        let groups = Groups::new(
            Arc::clone(&messages),
            Arc::clone(directory),
            queues.clone(),
            ids.clone(),
            consent,
            new_uuid,
        );
        let accounts = storage.accounts_beside(config, clock.clone(), others.clone());
        let stopping = CancellationToken::new();
        let tasks = TaskTracker::new();
        let presence = Presence::new(others.as_ref().map(|others| Arc::clone(&others.hints)));
        let ephemerals = Ephemerals::new(Arc::clone(&messages), presence, ephemeral_options(config));
        tasks.spawn(ephemerals.clone().run(stopping.clone()));
        let settles = if others.is_some() { SETTLES_AMONG_OTHERS } else { SETTLES };
        if let Some(others) = others {
            let follow = Follow {
                watermarks: watermarks.clone(),
                local,
                accounts: accounts.clone(),
                hints: others.hints,
                look_every: config.server.heartbeat(),
            };
            tasks.spawn(follow.run(stopping.clone()));
        } else {
            tasks.spawn(accounts.clone().follow_operator(stopping.clone()));
        }
        let people =
            People::new(Arc::clone(&messages), Arc::clone(directory), queues.clone(), limits.friends);
        let moments =
            Moments::new(Arc::clone(&messages), people.clone(), queues.clone(), limits.text_characters);
        let deletions = Deletions {
            accounts: accounts.clone(),
            directory: Arc::clone(directory),
            store: Arc::clone(&messages),
            people: people.clone(),
            moments: moments.clone(),
            queues: queues.clone(),
            clock: clock.clone(),
            settles,
        };
        tasks.spawn(deletions.run(stopping.clone()));
        let use_cases = UseCases {
            accounts,
            messages: Messages::new(queues.clone()),
            sync: InboxSync::new(Arc::clone(&messages), watermarks, notifier, history, pull),
            conversations: Conversations::new(
                Arc::clone(&messages),
                Arc::clone(directory),
                limits.conversations,
            ),
            people,
            moments,
            groups: groups.clone(),
            invites: Invites::new(Arc::clone(directory), groups, ids.clone(), clock.clone()),
            ephemerals,
            ids: ids.clone(),
        };

        tasks.spawn(sweep(use_cases.accounts.clone(), use_cases.invites.clone(), stopping.clone()));
        let parts: Vec<Box<dyn Collector>> = vec![
            Box::new(QueueDepths(queues.clone())),
            Box::new(SequenceMetrics(sequences.clone())),
            Box::new(Overtaken(numbers)),
            Box::new(StoreHealth(Arc::clone(&messages))),
        ];
        let metrics = Metrics::new(version, parts);
        let (listener, address) = listen(&config.server.listen, "choose another with --listen").await?;
        let (metrics_listener, metrics_address) = match config.metrics.address()? {
            Some(own) => {
                let (listener, address) = listen(&own, "choose another in [metrics] listen").await?;
                info!(%address, "metrics are served");
                (Some(listener), Some(address))
            }
            None => (None, None),
        };
        let rates = Arc::new(Rates::new(limits));
        let mut table_service = None;
        let mut served_tables = None;
        if let Some(wanted) = &table_address {
            let (listener, address) = listen(wanted, "choose another in [table] listen").await?;
            let both = Arc::new(WithInboxes::new(tables, Arc::clone(&messages)));
            let counted = Arc::clone(&rates);
            let may_post: MayPost = Arc::new(move |uid| counted.may_post(uid));
            let posts = Posts::new(use_cases.messages.clone(), limits.text_characters, may_post);
            let service = TableService::start(both, clock.clone(), table_options(config)).with_posts(posts);
            let keys = Arc::new(RememberedKeys::new(Arc::clone(&storage.directory)));
            served_tables = Some(Tables { listener, service: service.clone(), keys });
            table_service = Some((service, address));
        }
        let healthy = Arc::clone(&messages);
        let dependencies = Dependencies {
            version,
            new_request_id,
            readiness: Arc::new(move || {
                let health = healthy.health();
                Fitness { trouble: health.trouble, damaged: health.damaged }
            }),
            rates,
            tables: served_tables,
        };
        let listeners = (listener, metrics_listener);
        let server = HttpServer::new(
            listeners,
            config,
            use_cases,
            Arc::new(metrics),
            clock,
            dependencies,
            stopping.clone(),
        );
        let http = tokio::spawn(server.run());
        info!(%address, "listening");
        if let Some((_, address)) = &table_service {
            info!(%address, "tables are served");
        }
        Ok(RunningServer {
            address,
            metrics_address,
            tables: table_service,
            stopping,
            http,
            tasks,
            queues,
            hints,
            sequences,
            ids,
            messages,
            storage,
        })
    })
}

/// Listens on `wanted`; where that fails, `otherwise` says what to do.
async fn listen(wanted: &Listen, otherwise: &'static str) -> Result<(TcpListener, SocketAddr), BootError> {
    let failed = |why| BootError::Listen { address: wanted.clone(), why, otherwise };
    let listener = wanted.bind().await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok((listener, address))
}

impl RunningServer {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where the metrics are served, if they have an address of their own.
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics_address
    }

    /// Where tables are served, if they are.
    pub fn table_address(&self) -> Option<SocketAddr> {
        self.tables.as_ref().map(|(_, address)| *address)
    }

    /// Waits until this server must not serve on, and says why: what it has in memory is of an earlier life of the data (I14), or a newer
    /// program has changed the tables too much for it. The next start goes by what is there now.
    pub async fn must_end(&self) -> String {
        self.storage.must_end().await
    }

    /// Stops in two phases. First nothing new is taken: no connection, no request, no frame; sockets are told to come
    /// back. Then what was accepted is finished and the files are closed. Both together may take `limit`; requests that
    /// are still under way after half of it are cut off, so that a slow client cannot keep the files open.
    pub fn stop(mut self, limit: Duration) -> LocalBoxFuture<'static, Result<(), Unfinished>> {
        Box::pin(async move {
            info!("stopping: nothing new is taken");
            self.stopping.cancel();
            self.tasks.close();
            let finished = timeout(limit, async {
                match timeout(limit / 2, &mut self.http).await {
                    Ok(Ok(())) => {}
                    Ok(Err(error)) => error!(%error, "the HTTP side ended badly"),
                    Err(_) => {
                        warn!("requests that take too long are cut off");
                        self.http.abort();
                    }
                }
                self.tasks.wait().await;
                info!("stopping: finishing what was accepted");
                if let Some((tables, _)) = &self.tables {
                    tables.stop().await;
                }
                self.queues.stop().await;
                self.hints.stop().await;
                if let Some(sequences) = &self.sequences {
                    sequences.shutdown().await;
                }
                self.ids.shutdown().await;
                self.messages.close().await;
                if let Err(error) = self.storage.close().await {
                    error!(%error, "the database did not close well");
                }
            });
            finished.await.map_err(|_| Unfinished)?;
            info!("stopped");
            Ok(())
        })
    }
}

/// Forgets expired sessions and invitations now and then, and indexes the names that another version stored.
async fn sweep(accounts: Accounts, invites: Invites, stopping: CancellationToken) {
    let mut hours = tokio::time::interval(SWEEP_EVERY);
    while stopping.run_until_cancelled(hours.tick()).await.is_some() {
        until_few(&stopping, INDEXED_AT_ONCE, || accounts.index_names(INDEXED_AT_ONCE)).await;
        until_few(&stopping, SWEEP_AT_ONCE, || accounts.forget_expired(SWEEP_AT_ONCE)).await;
        until_few(&stopping, SWEEP_AT_ONCE, || invites.forget_expired(SWEEP_AT_ONCE)).await;
    }
}

/// Repeats a sweep until it finds less than the `most` that it may take at once.
async fn until_few<F>(stopping: &CancellationToken, most: usize, sweep: impl Fn() -> F)
where
    F: Future<Output = Result<u64, StoreError>>,
{
    loop {
        match sweep().await {
            Ok(done) if done == most as u64 && !stopping.is_cancelled() => {}
            Ok(_) => return,
            Err(error) => {
                warn!(%error, "a sweep of the database is tried again in an hour");
                return;
            }
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the one place where names are drawn; all else is handed them")]
fn random_uuid() -> Uuid {
    Uuid::new_v4()
}
