//! The connections of the queues, which are kept between two uses without a word to the database if the next one comes soon.
//!
//! sqlx's pool asks each connection that comes back whether it still answers, twice over with our own question: a message
//! that is alone would pay for more questions than it has statements. So a connection on which nothing is under way is
//! kept here. Any other goes back through the pool: one that somebody gave up comes again when its statement has ended,
//! and a broken one is replaced. What a connection must lead to is checked when it is made, as that of any other: a
//! session that is kept leads where it did. Owns the kept connections; called by [`PgDb`](super::PgDb).

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use sqlx::pool::PoolConnection;
use sqlx::postgres::PgPool;
use sqlx::{Connection as _, PgConnection, Postgres};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};

/// A connection that nobody used for so long is tried before it is given out; under load none is. A commit over one that broke unnoticed
/// would hold its queue up: its outcome is unknown until its deadline has passed.
pub(super) const TRIED_AFTER: Duration = Duration::from_millis(5);

/// One that nobody used for so long is closed.
const IDLE: Duration = Duration::from_secs(600);

/// The life of a connection: after it, the next one follows what has changed about roles, settings and addresses.
pub(super) const LIFE: Duration = Duration::from_secs(1_800);

/// The connections, in a bounded number.
#[derive(Debug)]
pub(super) struct QueuePool {
    /// Makes them, and gets those back that are not kept.
    pool: PgPool,
    /// As many as the pool has connections. A place is free when a connection is kept, or the pool has one or may make one.
    places: Arc<Semaphore>,
    /// The last one is given out first. `None`: closed.
    kept: Mutex<Option<Vec<KeptConnection>>>,
}

#[derive(Debug)]
struct KeptConnection {
    connection: PoolConnection<Postgres>,
    /// When it left the pool.
    from: Instant,
    /// Since when nobody uses it.
    since: Instant,
}

/// A connection of the queues; use it as one (`&mut *connection`). Dropped, it goes back.
#[derive(Debug)]
pub struct QueueConnection {
    /// There until it goes back.
    connection: Option<PoolConnection<Postgres>>,
    from: Instant,
    of: Arc<QueuePool>,
    /// Likewise.
    place: Option<OwnedSemaphorePermit>,
}

impl QueuePool {
    /// Over the connections of `pool`, which nobody else uses.
    pub(super) fn new(pool: PgPool) -> Arc<QueuePool> {
        let places = Arc::new(Semaphore::new(pool.options().get_max_connections() as usize));
        Arc::new(QueuePool { pool, places, kept: Mutex::new(Some(Vec::new())) })
    }

    /// A connection, after those who asked earlier.
    ///
    /// # Errors
    /// [`sqlx::Error::PoolTimedOut`] when none comes within the time of the pool.
    pub(super) async fn acquire(self: &Arc<QueuePool>) -> Result<QueueConnection, sqlx::Error> {
        let limit = self.pool.options().get_acquire_timeout();
        timeout(limit, self.next()).await.unwrap_or(Err(sqlx::Error::PoolTimedOut))
    }

    async fn next(self: &Arc<QueuePool>) -> Result<QueueConnection, sqlx::Error> {
        let mut place = Arc::clone(&self.places).acquire_owned().await.expect("never closed");
        loop {
            let kept = self.kept().as_mut().and_then(Vec::pop);
            let Some(KeptConnection { connection, from, since }) = kept else { break };
            let mut lent = self.lend(connection, from, place);
            if since.elapsed() < TRIED_AFTER || lent.ping().await.is_ok() {
                return Ok(lent);
            }
            place = lent.end();
        }
        // On the heap, since it is large and seldom needed.
        Ok(self.lend(Box::pin(self.pool.acquire()).await?, Instant::now(), place))
    }

    fn lend(
        self: &Arc<QueuePool>,
        connection: PoolConnection<Postgres>,
        from: Instant,
        place: OwnedSemaphorePermit,
    ) -> QueueConnection {
        QueueConnection { connection: Some(connection), from, of: Arc::clone(self), place: Some(place) }
    }

    fn kept(&self) -> MutexGuard<'_, Option<Vec<KeptConnection>>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a connection on which nothing is under way, or gives it back: all are closed, or its life is over.
    fn keep(&self, connection: PoolConnection<Postgres>, from: Instant) -> Option<PoolConnection<Postgres>> {
        let (mut kept, since) = (self.kept(), Instant::now());
        let kept = match &mut *kept {
            Some(kept) if since - from < LIFE => kept,
            _ => return Some(connection),
        };
        kept.push(KeptConnection { connection, from, since });
        if since - kept[0].since >= IDLE {
            kept.remove(0).connection.close_on_drop();
        }
        None
    }

    /// Makes the connections.
    pub(super) fn pool(&self) -> &PgPool {
        &self.pool
    }

    /// Connections that nobody uses.
    pub(super) fn idle(&self) -> usize {
        self.pool.num_idle() + self.kept().as_ref().map_or(0, Vec::len)
    }

    /// Closes all connections, after what is under way. Later calls fail.
    pub(super) async fn close(&self) {
        drop(self.kept().take());
        self.pool.close().await;
    }
}

impl QueueConnection {
    /// Closes it. Its place is for another one.
    fn end(mut self) -> OwnedSemaphorePermit {
        if let Some(mut connection) = self.connection.take() {
            connection.close_on_drop();
        }
        self.place.take().expect("it has not gone back")
    }
}

impl Drop for QueueConnection {
    fn drop(&mut self) {
        let (Some(mut connection), Some(place)) = (self.connection.take(), self.place.take()) else { return };
        // Ready at once, and without a word to the database, unless something is under way, or a failure has left its end unread.
        let is_ready = matches!(connection.flush().now_or_never(), Some(Ok(())));
        let back = if is_ready { self.of.keep(connection, self.from) } else { Some(connection) };
        if let Some(mut connection) = back {
            tokio::spawn(async move {
                connection.return_to_pool().await;
                drop(place);
            });
        }
    }
}

impl Deref for QueueConnection {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        self.connection.as_ref().expect("it has not gone back")
    }
}

impl DerefMut for QueueConnection {
    fn deref_mut(&mut self) -> &mut PgConnection {
        self.connection.as_mut().expect("it has not gone back")
    }
}
