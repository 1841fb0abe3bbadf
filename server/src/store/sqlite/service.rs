//! Connections that read for the queues and for the committer alone, so that no number of other reads keeps them
//! waiting.
//!
//! Not a pool of sqlx: that one sends each connection once more to its thread when it comes back, which a message alone
//! in its batch would pay for. Owned by `Db`.

use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, PoisonError};

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{Connection, SqliteConnection};
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::store::StoreError;

/// One for the queues, one for the committer.
const CONNECTIONS: u32 = 2;

/// The connections; each is opened when it is first needed.
pub(super) struct Service {
    options: SqliteConnectOptions,
    idle: Mutex<Vec<SqliteConnection>>,
    free: Semaphore,
}

impl Service {
    /// Connections with these options.
    pub(super) fn new(options: SqliteConnectOptions) -> Service {
        Service { options, idle: Mutex::default(), free: Semaphore::new(CONNECTIONS as usize) }
    }

    /// A connection, after those who asked earlier.
    pub(super) async fn connection(&self) -> Result<ServiceConnection<'_>, StoreError> {
        let permit = self.free.acquire().await;
        let permit = permit.map_err(|_| StoreError::unavailable("the database is closed"))?;
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let connection = match idle {
            Some(connection) => connection,
            None => SqliteConnection::connect_with(&self.options).await?,
        };
        Ok(ServiceConnection { connection, idle: &self.idle, _permit: permit })
    }

    /// Waits for the reads under way and closes the connections. Later reads fail.
    pub(super) async fn close(&self) -> Result<(), StoreError> {
        let all = self.free.acquire_many(CONNECTIONS).await;
        self.free.close();
        let idle = std::mem::take(&mut *self.idle.lock().unwrap_or_else(PoisonError::into_inner));
        for connection in idle {
            connection.close().await?;
        }
        drop(all);
        Ok(())
    }
}

/// A connection in use; use it as one (`&mut *connection`). Dropped, it is closed: nobody knows what state it is in.
pub(in crate::store) struct ServiceConnection<'a> {
    connection: SqliteConnection,
    idle: &'a Mutex<Vec<SqliteConnection>>,
    _permit: SemaphorePermit<'a>,
}

impl ServiceConnection<'_> {
    /// Keeps the connection for the next one.
    pub(in crate::store) fn give_back(self) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(self.connection);
    }
}

impl Deref for ServiceConnection<'_> {
    type Target = SqliteConnection;

    fn deref(&self) -> &SqliteConnection {
        &self.connection
    }
}

impl DerefMut for ServiceConnection<'_> {
    fn deref_mut(&mut self) -> &mut SqliteConnection {
        &mut self.connection
    }
}
