//! The way to one PostgreSQL database: connections that were checked, in two bounded pools.
//!
//! The queues have a pool of their own (`kept`), so that no number of reads keeps them waiting. Everybody else shares the
//! other one, behind a bounded line. A connection that broke is replaced by the next call, so a restart of the database needs
//! none of ours.

use std::ops::{Deref, DerefMut};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use seqsvr_core::postgres_warnings::apart;
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use sqlx::{Connection as _, PgConnection, Postgres};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep, timeout};
use tracing::{info, warn};

use super::check::{check, sums};
use super::clock::DbClock;
use super::kept::{self, LIFE, QueueConnection, QueuePool};
use super::layout::{self, Layout};
use super::life::ServedLife;
use super::options::{Replication, connection, place};
use super::schema::{self, Unfit};
use super::standby::{self, Standby};
use super::{PgOpenError, PgOptions, PgRefusal, rights};
use crate::log_limit::LogLimit;
use crate::store::migrations::{self, PostgresSchema};
use crate::store::{PoolUse, StoreError};

/// A connection of the shared pool that nobody used for so long is tried before it is given out.
const TRIED_AFTER: Duration = Duration::from_secs(10);

/// Between two tries of a start to connect.
const BETWEEN_TRIES: Duration = Duration::from_millis(500);

/// The database.
pub struct PgDb {
    place: String,
    pub(super) connect_timeout: Duration,
    pub(super) lock_timeout: Duration,
    /// How long an answer is waited for, in all.
    patience: Duration,
    /// For the queues alone.
    queues: Arc<QueuePool>,
    /// For everybody else.
    shared: PgPool,
    /// Places of calls that have a connection of the latter or wait for one.
    line: Arc<Semaphore>,
    /// Why the last new connection was not taken, if it was not.
    refusal: Arc<Mutex<Option<Arc<str>>>>,
    /// The history that is served, which each new connection must lead to.
    pub(super) life: Arc<ServedLife>,
    pub(super) standby: Arc<Standby>,
    pub(super) clock: Arc<DbClock>,
    program: &'static PostgresSchema,
    /// How the tables lie.
    pub(super) layout: Layout,
}

/// The database that a new connection must lead to.
#[derive(Clone)]
struct Expected {
    program: &'static PostgresSchema,
    life: Arc<ServedLife>,
    standby: Arc<Standby>,
    layout: Layout,
}

impl PgDb {
    /// Opens the database at `url` (`postgres://USER:PASSWORD@HOST/DATABASE`), checks it, and makes the tables and functions that it
    /// lacks.
    ///
    /// # Errors
    /// When nothing answers, what answers would not keep what it commits, or a newer version has changed it too much.
    pub async fn open(url: &str, options: &PgOptions) -> Result<Arc<PgDb>, PgOpenError> {
        PgDb::open_as(&migrations::POSTGRES, url, options).await
    }

    /// Waits until the database at `url` takes a connection, and for `limit` at most.
    ///
    /// # Errors
    /// The last failure, when time is over; at once where waiting does not help, such as for a wrong password.
    pub async fn wait_for(url: &str, options: &PgOptions, limit: Duration) -> Result<(), PgOpenError> {
        let plain = connection(url)?;
        let place = place(&plain);
        let (deadline, log) = (Instant::now() + limit, LogLimit::default());
        loop {
            match connect(plain.clone(), options, &place).await {
                Ok((first, _)) => {
                    _ = first.close().await;
                    return Ok(());
                }
                Err(error) if error.may_pass() && Instant::now() < deadline => {
                    if log.pass().is_some() {
                        warn!(%error, "waiting for the database, {} s at most", limit.as_secs());
                    }
                }
                Err(error) => return Err(error),
            }
            sleep(BETWEEN_TRIES).await;
        }
    }

    /// The same for a database that has been used already: nothing is made.
    ///
    /// # Errors
    /// [`PgOpenError::Unused`], too.
    pub async fn open_existing(url: &str, options: &PgOptions) -> Result<Arc<PgDb>, PgOpenError> {
        if PgDb::is_used(url, options).await? {
            return PgDb::open(url, options).await;
        }
        Err(PgOpenError::Unused { place: place(&connection(url)?) })
    }

    /// Whether a program has ever used the database at `url`.
    ///
    /// # Errors
    /// When nothing answers.
    pub async fn is_used(url: &str, options: &PgOptions) -> Result<bool, PgOpenError> {
        let plain = connection(url)?;
        let place = place(&plain);
        let (mut first, _) = connect(plain, options, &place).await?;
        let is_used = schema::is_used(&mut first).await;
        _ = first.close().await;
        is_used.map_err(|source| PgOpenError::Unreadable { place, source: source.into() })
    }

    /// The same for a program that has these migrations and functions.
    pub(super) async fn open_as(
        program: &'static PostgresSchema,
        url: &str,
        options: &PgOptions,
    ) -> Result<Arc<PgDb>, PgOpenError> {
        let plain = connection(url)?;
        let place = place(&plain);
        let (mut first, connect) = connect(plain, options, &place).await?;
        let unreadable =
            |source: sqlx::Error| PgOpenError::Unreadable { place: place.clone(), source: source.into() };
        let refused = |refusal| PgOpenError::Refused { place: place.clone(), refusal };
        check(&mut first).await.map_err(unreadable)?.map_err(refused)?;
        rights::check(&mut first).await.map_err(unreadable)?.map_err(refused)?;
        schema::migrate(&mut first, program).await.map_err(|unfit| unfit.at(&place))?;
        let layout = layout::read(&mut first).await.map_err(unreadable)?;
        let data_checksums = sums(&mut first).await.map_err(unreadable)?;
        if let Some(why) = layout.refusal(options.replication) {
            return Err(PgOpenError::Layout { place, why });
        }
        _ = first.close().await;
        let mix = timeout(patience(options), do_statements_mix(&connect)).await;
        if mix.map_err(|_| PgOpenError::Silent { place: place.clone() })?.map_err(unreadable)? {
            return Err(refused(PgRefusal::Pooler));
        }
        info!(database = place, data_checksums, "the database is open");

        let refusal = Arc::new(Mutex::new(None));
        let clock = Arc::new(DbClock::default());
        let life = Arc::new(ServedLife::new(options.replication, Arc::clone(&clock)));
        let standby = Arc::new(Standby::new(options, connect.clone()));
        let pool = |connections, tried_after| {
            let (life, standby) = (Arc::clone(&life), Arc::clone(&standby));
            let expected = Expected { program, life, standby, layout };
            pool(connections, tried_after, &connect, options, expected, Arc::clone(&refusal))
        };
        let places = (options.connections as usize).saturating_add(options.waiting_reads);
        Ok(Arc::new(PgDb {
            connect_timeout: options.connect_timeout,
            lock_timeout: options.lock_timeout,
            patience: patience(options),
            queues: QueuePool::new(pool(options.queue_connections, kept::TRIED_AFTER)),
            shared: pool(options.connections, TRIED_AFTER),
            line: Arc::new(Semaphore::new(places.min(Semaphore::MAX_PERMITS))),
            refusal,
            life,
            standby,
            clock,
            program,
            layout,
            place,
        }))
    }

    /// Refuses a database whose tables are distributed, for `what`, which knows only those of one database.
    ///
    /// # Errors
    /// [`PgOpenError::Layout`].
    pub fn only_plain(&self, what: &str) -> Result<(), PgOpenError> {
        let why = self.layout.only_plain(what);
        why.map_or(Ok(()), |why| Err(PgOpenError::Layout { place: self.place.clone(), why }))
    }

    /// Where it is; nothing in it is secret.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// The connections for everybody else, for those who keep numbers in the same database.
    pub fn pool(&self) -> PgPool {
        self.shared.clone()
    }

    /// A connection for what the queues do, which nobody else uses. Dropped, it goes back.
    pub async fn for_queues(&self) -> Result<QueueConnection, StoreError> {
        self.acquired(pin!(self.queues.acquire())).await
    }

    /// A connection for everybody else, to read and to write, after those who asked earlier.
    ///
    /// # Errors
    /// [`StoreError::Busy`] when the line is full.
    pub async fn reader(&self) -> Result<ReadConnection, StoreError> {
        let place = Arc::clone(&self.line).try_acquire_owned().map_err(|_| StoreError::Busy)?;
        let connection = self.acquired(pin!(self.shared.acquire())).await?;
        Ok(ReadConnection { connection, _place: place })
    }

    /// Waits for `work`, a few statements on a connection, and no longer than an answer may take: where the database is gone without
    /// a word, as a machine that lost its power is, nothing else would end the wait.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] after twice the time that a statement may run. The work may be done already, or may be done later.
    pub async fn limited<T>(
        &self,
        work: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let work = pin!(timeout(self.patience, work));
        let limited = async {
            work.await.unwrap_or_else(|_| {
                Err(StoreError::unavailable(format!(
                    "{} did not answer within {:?}",
                    self.place, self.patience
                )))
            })
        };
        self.standby.watch(limited).await
    }

    /// Checks a connection as if it were a new one. Returns the reason if it cannot be used.
    pub(super) async fn wrong_with(&self, connection: &mut PgConnection) -> Option<String> {
        let (life, standby) = (Arc::clone(&self.life), Arc::clone(&self.standby));
        let expected = Expected { program: self.program, life, standby, layout: self.layout };
        wrong_with(connection, &expected).await
    }

    async fn acquired<C>(
        &self,
        acquiring: Pin<&mut impl Future<Output = Result<C, sqlx::Error>>>,
    ) -> Result<C, StoreError> {
        Standby::waits_for_a_connection(true);
        let acquired = apart(acquiring).await.map_err(|error| match error {
            sqlx::Error::PoolTimedOut => {
                let refusal = self.refusal.lock().unwrap_or_else(PoisonError::into_inner).clone();
                StoreError::Unavailable(refusal.unwrap_or_else(|| {
                    format!("no connection to {} was free within {:?}", self.place, self.connect_timeout)
                        .into()
                }))
            }
            error => error.into(),
        });
        let connection = acquired?;
        self.standby.settle().await?;
        Standby::waits_for_a_connection(false);
        Ok(connection)
    }

    /// How its connections are used.
    pub(super) fn pools(&self) -> Vec<PoolUse> {
        let of = |name, pool: &PgPool, idle| PoolUse {
            name,
            most: pool.options().get_max_connections() as usize,
            open: pool.size() as usize,
            idle,
        };
        let (queues, shared) = (&self.queues, &self.shared);
        vec![of("queues", queues.pool(), queues.idle()), of("others", shared, shared.num_idle())]
    }

    /// Places that are left in the line.
    #[cfg(test)]
    pub(super) fn free_places(&self) -> usize {
        self.line.available_permits()
    }

    /// Closes all connections, after what is under way. Later calls fail.
    pub async fn close(&self) {
        tokio::join!(self.queues.close(), self.shared.close());
    }
}

/// The database ends a statement before that, unless it cannot be reached.
fn patience(options: &PgOptions) -> Duration {
    options.statement_timeout * 2
}

/// The first connection, and how to make more. A pooler may refuse the settings that open a session; whether the sessions behind it
/// have them from elsewhere is seen by the check.
pub(super) async fn connect(
    plain: PgConnectOptions,
    options: &PgOptions,
    place: &str,
) -> Result<(PgConnection, PgConnectOptions), PgOpenError> {
    let one = async |connect: &PgConnectOptions| match timeout(
        options.connect_timeout,
        PgConnection::connect_with(connect),
    )
    .await
    {
        Ok(made) => made,
        Err(_) => Err(sqlx::Error::PoolTimedOut),
    };
    let mut connect = plain.clone().options(options.session());
    let mut made = one(&connect).await;
    let is_pooler = |error: &sqlx::Error| {
        error.as_database_error().is_some_and(|error| error.message().contains("startup parameter"))
    };
    if made.as_ref().err().is_some_and(is_pooler) {
        if options.replication == Replication::Synchronous {
            return Err(PgOpenError::Refused { place: place.to_owned(), refusal: PgRefusal::Hidden });
        }
        connect = plain;
        made = one(&connect).await;
    }
    match made {
        Ok(made) => Ok((made, connect)),
        Err(sqlx::Error::PoolTimedOut) => Err(PgOpenError::Silent { place: place.to_owned() }),
        Err(source) => Err(PgOpenError::Connect { place: place.to_owned(), source }),
    }
}

/// Whether a pooler hands out sessions without regard to the statements that are prepared in them: two connections prepare a statement
/// each, under the same name.
async fn do_statements_mix(connect: &PgConnectOptions) -> Result<bool, sqlx::Error> {
    let mut one = PgConnection::connect_with(connect).await?;
    let mut other = PgConnection::connect_with(connect).await?;
    for _ in 0..2 {
        for (connection, statement, answer) in [(&mut one, "SELECT 1", 1), (&mut other, "SELECT 2", 2)] {
            match sqlx::query_scalar::<_, i32>(statement).fetch_one(connection).await {
                Ok(told) if told == answer => {}
                Ok(_) | Err(sqlx::Error::Database(_)) => return Ok(true),
                Err(error) => return Err(error),
            }
        }
    }
    _ = one.close().await;
    _ = other.close().await;
    Ok(false)
}

fn pool(
    connections: u32,
    tried_after: Duration,
    connect: &PgConnectOptions,
    options: &PgOptions,
    expected: Expected,
    refusal: Arc<Mutex<Option<Arc<str>>>>,
) -> PgPool {
    let patience = patience(options);
    let standby = Arc::clone(&expected.standby);
    PgPoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(options.connect_timeout)
        .max_lifetime(LIFE)
        .test_before_acquire(false)
        .before_acquire(move |connection, meta| {
            Box::pin(async move { Ok(meta.idle_for < tried_after || connection.ping().await.is_ok()) })
        })
        // One that somebody gave up comes back when its statement has ended, or goes.
        .after_release(move |connection, _| {
            let standby = Arc::clone(&standby);
            Box::pin(async move {
                let silent = || StoreError::unavailable("the database does not answer");
                let answers =
                    async { Ok(timeout(patience, connection.ping()).await.map_err(|_| silent())??) };
                Ok(standby.watch(answers).await.is_ok())
            })
        })
        .after_connect(move |connection, _| {
            let (refusal, expected) = (Arc::clone(&refusal), expected.clone());
            Box::pin(async move {
                let note = |wrong: Option<&str>| {
                    *refusal.lock().unwrap_or_else(PoisonError::into_inner) = wrong.map(Arc::from);
                };
                let mut wrong = wrong_with(connection, &expected).await;
                if wrong.is_none() && expected.standby.is_synchronous() {
                    // It takes longer than anybody waits while there is no standby.
                    note(Some(standby::WAITS));
                    wrong = expected.standby.confirm().await.err().map(|why| why.to_string());
                }
                note(wrong.as_deref());
                wrong.map_or(Ok(()), |wrong| Err(sqlx::Error::Protocol(wrong)))
            })
        })
        .connect_lazy_with(connect.clone())
}

/// Checks a new connection. Returns the reason if it cannot be used.
async fn wrong_with(connection: &mut PgConnection, expected: &Expected) -> Option<String> {
    let database = "the database";
    let unreadable = |error: sqlx::Error| Some(Unfit::Unreadable(error).at(database).to_string());
    match check(connection).await {
        Ok(Ok(())) => {}
        Ok(Err(refusal)) => {
            return Some(PgOpenError::Refused { place: database.to_owned(), refusal }.to_string());
        }
        Err(error) => return unreadable(error),
    }
    if let Err(unfit) = schema::check(connection, expected.program).await {
        let is_too_new = matches!(unfit, Unfit::Newer(..));
        let wrong = unfit.at(database).to_string();
        if is_too_new {
            expected.life.end(&wrong);
        }
        return Some(wrong);
    }
    match layout::read(connection).await {
        Ok(layout) if layout == expected.layout => {}
        Ok(_) => {
            let wrong = "the layout of the tables has changed; start the server again";
            expected.life.end(wrong);
            return Some(wrong.to_owned());
        }
        Err(error) => return unreadable(error),
    }
    match expected.life.check(connection).await {
        Ok(wrong) => wrong.map(str::to_owned),
        Err(error) => unreadable(error),
    }
}

/// A connection on somebody's behalf; use it as one (`&mut *connection`).
pub struct ReadConnection {
    connection: PoolConnection<Postgres>,
    _place: OwnedSemaphorePermit,
}

impl Deref for ReadConnection {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        &self.connection
    }
}

impl DerefMut for ReadConnection {
    fn deref_mut(&mut self) -> &mut PgConnection {
        &mut self.connection
    }
}
