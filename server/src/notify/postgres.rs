//! Hints by PostgreSQL's LISTEN and NOTIFY.
//!
//! Owns two connections of its own: one listens, one notifies. It notifies after the commit and apart from it, since a
//! NOTIFY in the transaction that writes would take one lock for the whole database and let all commits wait for each
//! other. A hint is one request: its statement is prepared once, and a connection that broke is noticed by a hint that
//! fails, which is sent again over a new one. Each second it notifies itself, too. If that does not come back, the
//! connection is dead although nobody says so, and it listens anew. The connection that listens also shares a lock which
//! an import of a whole installation takes for itself, so no server serves what is half filled.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use sqlx::postgres::{PgConnectOptions, PgListener, PgPool, PgPoolOptions};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use tokio::sync::{Notify, mpsc};
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{info, warn};

use super::hints::ephemeral::{self, Ephemeral, EphemeralOutbox};
use super::hints::outbox::Outbox;
use super::hints::text::{ServerNumber, decode, encode, sign_of_life};
use super::{Heard, Hint, Hints};
use crate::log_limit::LogLimit;

#[cfg(test)]
mod tests;

/// Between two signs of life.
const BEAT: Duration = Duration::from_secs(1);
/// Without a sign of life for so long, the connection is taken for dead.
const SILENCE: Duration = Duration::from_secs(2);
/// How long opening a connection or a statement may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long the last hints may take when the server stops.
const LAST_WORD: Duration = Duration::from_secs(1);
/// Between two tries.
const PAUSE: Duration = Duration::from_millis(500);
/// Hints that were heard and not yet taken; beyond this many they become a gap.
const UNHEARD: usize = 1_024;

/// The lock that each server shares while it listens, by the schema. Stored by nobody; all programs must agree on it.
pub const SERVED: &str = "hashtextextended('tidemark served ' || current_schema(), 0)";

/// PostgreSQL's error code for a lock that did not come in time.
const LOCK_NOT_AVAILABLE: &str = "55P03";

/// The one for a statement that was prepared in another session.
const NO_SUCH_STATEMENT: &str = "26000";

/// The hints cannot be opened; the text says what to do.
#[derive(Debug, thiserror::Error)]
pub enum HintsError {
    /// The database cannot be asked.
    #[error("the database cannot be listened to: {0}")]
    Database(#[from] sqlx::Error),
    /// Notifications do not come back.
    #[error(
        "notifications of the database do not arrive, so servers could not wake each other's devices; a pooler in \
         transaction mode drops them: set [storage] listen_url to the address of PostgreSQL itself"
    )]
    Deaf,
    /// An import fills it.
    #[error("an import into the database is running; start the server when it has ended")]
    Filled,
    /// Servers serve it, or an import fills it.
    #[error("servers or an import are using the database; stop all of them first")]
    Served,
}

/// While it lives, no server serves the database.
pub struct Alone {
    /// Holds the lock.
    connection: PgConnection,
}

impl Alone {
    /// Servers may start from now on.
    pub async fn end(mut self) {
        // A connection that is closed gives up the lock a moment later.
        let unlock = AssertSqlSafe(format!("SELECT pg_advisory_unlock({SERVED})"));
        _ = timeout(PATIENCE, sqlx::raw_sql(unlock).execute(&mut self.connection)).await;
    }
}

/// Keeps servers away from the schema to which `options` lead, which must lead to PostgreSQL itself. One that is ending is waited for.
///
/// # Errors
/// [`HintsError::Served`] when one is at work, or somebody else keeps them away already.
pub async fn keep_servers_away(options: &PgConnectOptions) -> Result<Alone, HintsError> {
    let opening = timeout(PATIENCE, PgConnection::connect_with(options)).await;
    let mut connection = opening.map_err(|_| sqlx::Error::PoolTimedOut)??;
    let lock = format!("SET lock_timeout = '{}ms'; SELECT pg_advisory_lock({SERVED})", LAST_WORD.as_millis());
    match sqlx::raw_sql(AssertSqlSafe(lock)).execute(&mut connection).await {
        Ok(_) => Ok(Alone { connection }),
        Err(sqlx::Error::Database(why)) if why.code().as_deref() == Some(LOCK_NOT_AVAILABLE) => {
            Err(HintsError::Served)
        }
        Err(error) => Err(error.into()),
    }
}

/// See the module.
pub struct PgHints {
    waiting: Arc<WaitingHints>,
    heard: tokio::sync::Mutex<mpsc::Receiver<Heard>>,
    heard_ephemeral: tokio::sync::Mutex<mpsc::Receiver<(ServerNumber, Ephemeral)>>,
}

#[derive(Default)]
struct WaitingHints {
    outbox: Mutex<Outbox>,
    ephemeral: Mutex<EphemeralOutbox>,
    some: Notify,
}

impl WaitingHints {
    fn outbox(&self) -> MutexGuard<'_, Outbox> {
        self.outbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ephemeral(&self) -> MutexGuard<'_, EphemeralOutbox> {
        self.ephemeral.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The state of both tasks.
struct HintChannel {
    /// For the connection that listens.
    pool: PgPool,
    /// The connection that notifies, while nothing is wrong with it.
    speaking: tokio::sync::Mutex<Option<PgConnection>>,
    channel: String,
    server: ServerNumber,
}

impl PgHints {
    /// Listens and notifies in the schema to which `options` lead, until `closing`. `options` must lead to PostgreSQL itself.
    ///
    /// # Errors
    /// When the database does not answer, or notifications do not come back.
    pub async fn open(
        options: PgConnectOptions,
        closing: &CancellationToken,
        tasks: &TaskTracker,
    ) -> Result<PgHints, HintsError> {
        // One that fell silent keeps its place for as long as nobody says that it is dead; the next one needs another.
        let pool = PgPoolOptions::new().max_connections(2).acquire_timeout(PATIENCE);
        let pool = pool.idle_timeout(None).max_lifetime(None).connect_with(options).await?;
        // One for each schema, and within the length of a name.
        let channel = sqlx::query_scalar("SELECT 'tidemark_' || md5(current_schema())");
        let channel: String = channel.persistent(false).fetch_one(&pool).await?;
        let (server, speaking) = (ServerNumber(rand::random()), tokio::sync::Mutex::default());
        let line = Arc::new(HintChannel { pool, speaking, channel, server });
        let mut listener = line.listen().await?;
        match line.notify(&[sign_of_life(line.server)]).await {
            // The pooler gave the session that listens to the one who notifies.
            Err(error) if is_of_a_mixed_session(&error) => return Err(HintsError::Deaf),
            told => told?,
        }
        match timeout(PATIENCE, line.hear_own(&mut listener)).await {
            Ok(heard) => heard?,
            Err(_) => return Err(HintsError::Deaf),
        }
        let waiting = Arc::new(WaitingHints::default());
        let (hear, heard) = mpsc::channel(UNHEARD);
        let (overhear, heard_ephemeral) = mpsc::channel(UNHEARD);
        let (speaking, listening) = (Arc::clone(&line), Arc::clone(&line));
        let (told, closed, closing) = (Arc::clone(&waiting), closing.clone(), closing.clone());
        tasks.spawn(async move {
            speaking.speak(&told, &closed).await;
            speaking.say_the_rest(&told).await;
        });
        tasks.spawn(async move {
            closing.run_until_cancelled(listening.stay_tuned(listener, hear, overhear)).await;
        });
        let (heard, heard_ephemeral) = (heard.into(), heard_ephemeral.into());
        Ok(PgHints { waiting, heard, heard_ephemeral })
    }
}

#[async_trait]
impl Hints for PgHints {
    fn tell(&self, hint: Hint) {
        self.waiting.outbox().put(hint);
        self.waiting.some.notify_one();
    }

    async fn hear(&self) -> Heard {
        match self.heard.lock().await.recv().await {
            Some(heard) => heard,
            // Closing: nothing comes any more.
            None => std::future::pending().await,
        }
    }

    fn tell_ephemeral(&self, said: Ephemeral) {
        self.waiting.ephemeral().put(said);
        self.waiting.some.notify_one();
    }

    async fn hear_ephemeral(&self) -> (ServerNumber, Ephemeral) {
        match self.heard_ephemeral.lock().await.recv().await {
            Some(heard) => heard,
            // Closing: nothing comes any more.
            None => std::future::pending().await,
        }
    }
}

/// Whether this is the error of a session that a pooler gave to several connections by turns.
fn is_of_a_mixed_session(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Protocol(_) => true,
        sqlx::Error::Database(why) => why.code().as_deref() == Some(NO_SUCH_STATEMENT),
        _ => false,
    }
}

impl HintChannel {
    async fn listen(&self) -> Result<PgListener, HintsError> {
        let mut listener = PgListener::connect_with(&self.pool).await?;
        // Silence is noticed here, and what was lost in between is told.
        listener.eager_reconnect(false);
        let lock = AssertSqlSafe(format!("SELECT pg_try_advisory_lock_shared({SERVED})"));
        if !sqlx::query_scalar(lock).persistent(false).fetch_one(&mut listener).await? {
            return Err(HintsError::Filled);
        }
        listener.listen(&self.channel).await?;
        Ok(listener)
    }

    /// Notifies. A connection that fails, or is given up in the middle, is not used again. Its hints may come twice then.
    async fn notify(&self, payloads: &[String]) -> Result<(), sqlx::Error> {
        let mut speaking = self.speaking.lock().await;
        let connection = match speaking.take() {
            Some(connection) => self.notify_over(connection, payloads).await.ok(),
            None => None,
        };
        *speaking = match connection {
            Some(connection) => Some(connection),
            None => {
                let options = self.pool.connect_options();
                let opening = timeout(PATIENCE, PgConnection::connect_with(&options)).await;
                let connection = opening.map_err(|_| sqlx::Error::PoolTimedOut)??;
                Some(self.notify_over(connection, payloads).await?)
            }
        };
        Ok(())
    }

    /// Notifies without waiting for the disk or a standby: nothing is stored by it. Gives the connection back.
    async fn notify_over(
        &self,
        mut connection: PgConnection,
        payloads: &[String],
    ) -> Result<PgConnection, sqlx::Error> {
        let notify = sqlx::query(
            "WITH unflushed AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true))
             SELECT pg_notify($1, payload) FROM unflushed, unnest($2::text[]) AS payload",
        );
        notify.bind(&self.channel).bind(payloads).execute(&mut connection).await?;
        Ok(connection)
    }

    async fn hear_own(&self, listener: &mut PgListener) -> Result<(), sqlx::Error> {
        loop {
            let notification = listener.recv().await?;
            if decode(notification.payload()).is_some_and(|(server, _)| server == self.server) {
                return Ok(());
            }
        }
    }

    /// Tells the others what waits, as soon as something does, and shows each second that this is heard.
    /// Ends when `closed` is cancelled. A hint that is on its way at that moment is still sent, within [`LAST_WORD`].
    async fn speak(&self, waiting: &WaitingHints, closed: &CancellationToken) {
        let (mut beat, log) = (interval(BEAT), LogLimit::default());
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let mut payloads = Vec::new();
            tokio::select! {
                () = closed.cancelled() => return,
                () = waiting.some.notified() => {}
                _ = beat.tick() => payloads.push(sign_of_life(self.server)),
            }
            let hints = waiting.outbox().take();
            payloads.extend(hints.iter().flat_map(|hint| encode(self.server, hint)));
            if payloads.is_empty() {
                self.say_ephemeral(waiting).await;
                continue;
            }
            let too_late = async {
                let is_closed = timeout(PATIENCE, closed.cancelled()).await.is_ok();
                sleep(if is_closed { LAST_WORD } else { Duration::ZERO }).await;
            };
            let failure = tokio::select! {
                told = self.notify(&payloads) => match told {
                    Ok(()) => {
                        self.say_ephemeral(waiting).await;
                        continue;
                    }
                    Err(error) => error.to_string(),
                },
                () = too_late => format!("no answer within {} s", PATIENCE.as_secs()),
            };
            if let Some(left_out) = log.pass() {
                warn!(
                    error = failure,
                    left_out, "other servers cannot be notified of new rows; trying again"
                );
            }
            hints.into_iter().for_each(|hint| waiting.outbox().put(hint));
            closed.run_until_cancelled(sleep(PAUSE)).await;
            waiting.some.notify_one();
        }
    }

    /// Sends the notices that are never stored, after the hints. Notices that cannot be sent are dropped.
    async fn say_ephemeral(&self, waiting: &WaitingHints) {
        let said = waiting.ephemeral().take();
        let payloads: Vec<String> =
            said.iter().flat_map(|said| ephemeral::encode(self.server, said)).collect();
        if payloads.is_empty() {
            return;
        }
        _ = timeout(LAST_WORD, self.notify(&payloads)).await;
        if !waiting.ephemeral().is_empty() {
            waiting.some.notify_one();
        }
    }

    /// Sends the waiting hints when the server stops. If they cannot be sent now, the other servers find the rows by themselves.
    async fn say_the_rest(&self, waiting: &WaitingHints) {
        let hints = waiting.outbox().take();
        let payloads: Vec<String> = hints.iter().flat_map(|hint| encode(self.server, hint)).collect();
        if !payloads.is_empty() {
            _ = timeout(LAST_WORD, self.notify(&payloads)).await;
        }
        self.say_ephemeral(waiting).await;
    }

    /// Hears the others, for as long as the connection lives, and then over another one.
    async fn stay_tuned(
        &self,
        mut listener: PgListener,
        hear: mpsc::Sender<Heard>,
        overhear: mpsc::Sender<(ServerNumber, Ephemeral)>,
    ) {
        let log = LogLimit::default();
        loop {
            let failure = self.hear(&mut listener, &hear, &overhear).await;
            if let Some(left_out) = log.pass() {
                warn!(
                    error = failure,
                    left_out, "notifications of other servers do not arrive; listening again"
                );
            }
            drop(listener);
            listener = loop {
                match timeout(PATIENCE, self.listen()).await {
                    Ok(Ok(listener)) => break listener,
                    Ok(Err(_)) | Err(_) => sleep(PAUSE).await,
                }
            };
            info!("notifications of other servers arrive again");
            if hear.send(Heard::Gap).await.is_err() {
                return;
            }
        }
    }

    /// Why it ended.
    async fn hear(
        &self,
        listener: &mut PgListener,
        hear: &mpsc::Sender<Heard>,
        overhear: &mpsc::Sender<(ServerNumber, Ephemeral)>,
    ) -> String {
        let mut alive = tokio::time::Instant::now();
        loop {
            let notification = match tokio::time::timeout_at(alive + SILENCE, listener.try_recv()).await {
                Ok(Ok(Some(notification))) => notification,
                Ok(Ok(None)) => return "the connection was closed".to_owned(),
                Ok(Err(error)) => return error.to_string(),
                Err(_) => return format!("no sign of life within {} s", SILENCE.as_secs()),
            };
            match decode(notification.payload()) {
                Some((server, _)) if server == self.server => alive = tokio::time::Instant::now(),
                Some((_, Some(hint))) => {
                    // Nobody takes what is heard fast enough: they look at everything when they come.
                    match hear.try_send(Heard::Hint(hint)) {
                        Ok(()) => {}
                        Err(_) => _ = hear.send(Heard::Gap).await,
                    }
                }
                Some((_, None)) => {}
                None => match ephemeral::decode(notification.payload()) {
                    Some((server, _)) if server == self.server => {}
                    // Nobody takes what is heard fast enough: it is dropped.
                    Some(said) => _ = overhear.try_send(said),
                    None => {}
                },
            }
        }
    }
}
