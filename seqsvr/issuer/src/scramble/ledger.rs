//! Where the fingerprints of codecs are durable: one small row for each tag and key version, written once. Asked
//! by the plugin when it opens.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
#[cfg(feature = "service")]
use sqlx::postgres::PgPool;
use sqlx::sqlite::SqlitePool;
use thiserror::Error;

use super::fingerprint::Fingerprint;
use crate::Tag;
use crate::sql::confirmed;
#[cfg(feature = "service")]
use crate::sql::postgres_pool;
use crate::sql::sqlite_pool;

/// How long to wait for a connection, and for a writer of the same file.
const WAIT: Duration = Duration::from_secs(5);

const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS issuer_codes (biz_tag TEXT NOT NULL, version BIGINT NOT NULL,
        fingerprint TEXT NOT NULL, PRIMARY KEY (biz_tag, version))";

const INSERT: &str = "
    INSERT INTO issuer_codes (biz_tag, version, fingerprint) VALUES ($1, $2, $3)
    ON CONFLICT (biz_tag, version) DO NOTHING";

const SELECT: &str = "SELECT fingerprint FROM issuer_codes WHERE biz_tag = $1 AND version = $2";

/// A ledger that cannot be used now; asking again may help.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("the fingerprints of codes cannot be read or written: {0}")]
pub struct LedgerError(String);

impl LedgerError {
    fn new(error: impl std::fmt::Display) -> Self {
        Self(error.to_string())
    }
}

/// Keeps the fingerprint of each tag and key version. A recorded fingerprint never changes.
#[async_trait]
pub trait CodeLedger: Send + Sync {
    /// Records a fingerprint unless there is one, and answers with the one that is recorded then.
    ///
    /// # Errors
    ///
    /// [`LedgerError`].
    async fn record(&self, tag: &Tag, version: u8, new: Fingerprint) -> Result<Fingerprint, LedgerError>;
}

/// A [`CodeLedger`] that lives as long as the value: for codes that do not outlive the process, and tests.
#[derive(Debug, Default)]
pub struct MemoryLedger(Mutex<BTreeMap<(Tag, u8), Fingerprint>>);

#[async_trait]
impl CodeLedger for MemoryLedger {
    async fn record(&self, tag: &Tag, version: u8, new: Fingerprint) -> Result<Fingerprint, LedgerError> {
        let mut recorded = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(*recorded.entry((tag.clone(), version)).or_insert(new))
    }
}

/// A [`CodeLedger`] in a SQLite file.
#[derive(Debug)]
pub struct SqliteLedger(SqlitePool);

/// A [`CodeLedger`] in a PostgreSQL database.
#[cfg(feature = "service")]
#[derive(Debug)]
pub struct PostgresLedger(PgPool);

impl SqliteLedger {
    /// Opens the file, making it if there is none.
    ///
    /// # Errors
    ///
    /// [`LedgerError`]: the file cannot be opened or is no database.
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, LedgerError> {
        sqlite_pool(path.as_ref(), WAIT, SCHEMA).await.map(Self).map_err(LedgerError::new)
    }
}

#[cfg(feature = "service")]
impl PostgresLedger {
    /// Connects, and makes the table if there is none.
    ///
    /// # Errors
    ///
    /// [`LedgerError`]: the database cannot be reached or does not allow it.
    pub async fn open(url: &str) -> Result<Self, LedgerError> {
        let pool = postgres_pool(url, 1, WAIT, SCHEMA).map_err(LedgerError::new)?;
        drop(pool.acquire().await.map_err(LedgerError::new)?);
        Ok(Self(pool))
    }
}

/// Both databases read the statements alike.
macro_rules! ledger {
    ($ledger:ident) => {
        #[async_trait]
        impl CodeLedger for $ledger {
            async fn record(
                &self,
                tag: &Tag,
                version: u8,
                new: Fingerprint,
            ) -> Result<Fingerprint, LedgerError> {
                let insert = sqlx::query(INSERT).bind(tag.as_str()).bind(i64::from(version));
                let insert = insert.bind(new.to_string()).execute(&self.0);
                confirmed(insert).await.map_err(LedgerError::new)?;
                let select = sqlx::query_scalar(SELECT).bind(tag.as_str()).bind(i64::from(version));
                let recorded: String = select.fetch_one(&self.0).await.map_err(LedgerError::new)?;
                recorded.parse().map_err(LedgerError::new)
            }
        }
    };
}

ledger!(SqliteLedger);
#[cfg(feature = "service")]
ledger!(PostgresLedger);
