//! The issuer's configuration: where numbers are durable, and one section for each tag. Checks itself, and opens what it describes; used by
//! the role and by programs that embed an issuer.

mod machine;
mod tag;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;

pub use machine::MachineConfig;
pub use tag::{CodeConfig, SplitConfig, StrategyKind, TagConfig};

use super::builder::Builder;
use super::clock::{Clock, Guard};
use super::error::OpenError;
use super::machine::{Holder, MOST_MACHINES};
use super::plugins::{CallHistory, Plugin, Rate};
use super::repository::{MemoryRepository, PostgresRepository, Repository, SqliteRepository};
use super::scramble::{CodeLedger, Codec, MemoryLedger, PostgresLedger, Scramble, SqliteLedger};
use super::segment::Journal;
use super::service::Issuer;
use super::tag::Tag;

/// The database of an issuer that keeps nothing.
const MEMORY: &str = "memory";

/// Calls that the plugin `history` keeps.
const HISTORY: usize = 1_000;

/// The section `[issuer]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct IssuerConfig {
    /// Where segments are durable: `sqlite:PATH`, `postgres://…`, or `memory`, which forgets. There is no default: tags whose
    /// numbers need a database have to be told which.
    pub database: Option<String>,
    /// Where Redis may be, primary and replicas; for tags with `strategy = "redis"`.
    pub redis: Vec<String>,
    /// The file in which ranges are noted that were taken ahead; for tags with `extend_segments`.
    pub journal: Option<PathBuf>,
    /// The machine id of this process, for snowflakes.
    pub machine: MachineConfig,
    /// The tags, by name.
    pub tags: BTreeMap<String, TagConfig>,
}

/// An open issuer, and what it was opened with.
pub struct Running {
    /// The issuer.
    pub issuer: Issuer,
    /// The calls that the plugin `history` keeps.
    pub history: Arc<CallHistory>,
    /// The counts of the plugin `rate`.
    pub rate: Arc<Rate>,
    /// The clock guard, when there are snowflakes.
    pub guard: Option<Arc<Guard>>,
    /// The holder of the machine id, when the id is registered, also when it is given.
    pub holder: Option<Arc<Holder>>,
}

impl Running {
    /// Ends all background work and gives the machine id back.
    pub async fn shutdown(&self) {
        self.issuer.shutdown().await;
        let Some(guard) = &self.guard else { return };
        guard.close().await;
        if let Some(holder) = &self.holder {
            holder.close(guard.latest()).await;
        }
    }
}

impl IssuerConfig {
    /// Opens the issuer that this describes. `place` is the folder of the configuration: what names no folder lies there.
    ///
    /// # Errors
    ///
    /// [`OpenError`]: the first thing that is wrong, with what to do. A database or a Redis that is away is none, unless
    /// there are codes: their key must be compared with what is stored.
    pub async fn open(&self, clock: Clock, place: &Path) -> Result<Running, OpenError> {
        if self.tags.is_empty() {
            return Err(OpenError::Bad(
                "no tags are configured; add a section [issuer.tags.NAME]".to_owned(),
            ));
        }
        self.check_database()?;
        let mut builder = Issuer::builder().repository(self.repository()?);
        if let Some(path) = &self.journal {
            builder = builder.journal(Journal::open(path, clock.clone())?);
        }
        let (history, rate) = (Arc::new(CallHistory::new(HISTORY)), Arc::new(Rate::new()));
        let has_snowflakes = self.tags.values().any(|tag| tag.strategy == StrategyKind::Snowflake);
        let identity = match has_snowflakes {
            true => Some(self.machine.open(clock, self.database.as_deref(), place, self.machines()).await?),
            false => None,
        };
        let mut codecs = BTreeMap::new();
        for (name, tag) in &self.tags {
            builder = self.add(builder, name, tag, identity.as_ref()).map_err(|error| named(name, error))?;
            if let Some(code) = &tag.code {
                let bad = |error: &dyn std::fmt::Display| OpenError::Bad(format!("tag {name}: {error}"));
                let codec = Codec::new(&Tag::new(name)?, &code.options()?).map_err(|error| bad(&error))?;
                codecs.insert(Tag::new(name)?, codec);
            }
            for plugin in &tag.plugins {
                let plugin: Arc<dyn Plugin> = match plugin.as_str() {
                    "history" => Arc::<CallHistory>::clone(&history),
                    "rate" => Arc::<Rate>::clone(&rate),
                    other => {
                        let problem =
                            format!("tag {name}: unknown plugin {other:?}; there are history and rate");
                        return Err(OpenError::Bad(problem));
                    }
                };
                builder = builder.plugin(plugin, &[name])?;
            }
        }
        if !codecs.is_empty() {
            let tags: Vec<String> = codecs.keys().map(Tag::to_string).collect();
            let tags: Vec<&str> = tags.iter().map(String::as_str).collect();
            builder = builder.plugin(Arc::new(self.scramble(codecs).await?), &tags)?;
        }
        let issuer = builder.open().await?;
        let (guard, holder) =
            identity.map_or((None, None), |identity| (Some(identity.guard), identity.holder));
        Ok(Running { issuer, history, rate, guard, holder })
    }

    fn add(
        &self,
        builder: Builder,
        name: &str,
        tag: &TagConfig,
        identity: Option<&machine::Identity>,
    ) -> Result<Builder, OpenError> {
        tag.check().map_err(OpenError::Bad)?;
        let builder = match (tag.strategy, identity) {
            (StrategyKind::Segment, _) => builder.segment(name, tag.segment())?,
            (StrategyKind::Redis, _) => builder.redis(name, tag.redis(&self.redis))?,
            (StrategyKind::Snowflake, Some(identity)) => {
                builder.strategy(name, "snowflake", Arc::new(identity.snowflake(tag)?))?
            }
            (StrategyKind::Snowflake, None) => return Err(OpenError::Bad("no machine id".to_owned())),
        };
        builder.rejected(name, tag.rejected()?)
    }

    /// How many machine ids every tag of snowflakes tells apart.
    fn machines(&self) -> u32 {
        let snowflakes = self.tags.values().filter(|tag| tag.strategy == StrategyKind::Snowflake);
        let bits = snowflakes.map(|tag| tag.bits().data_centre.saturating_add(tag.bits().worker));
        bits.map(|bits| 1_u32.checked_shl(bits).unwrap_or(u32::MAX)).fold(MOST_MACHINES, u32::min)
    }

    /// The codes, once they agree with those that exist.
    async fn scramble(&self, codecs: BTreeMap<Tag, Codec>) -> Result<Scramble, OpenError> {
        let database = self.database.as_deref().unwrap_or(MEMORY);
        let ledger: Result<Arc<dyn CodeLedger>, _> = match database.strip_prefix("sqlite:") {
            Some(path) => {
                SqliteLedger::open(path).await.map(|ledger| Arc::new(ledger) as Arc<dyn CodeLedger>)
            }
            None if database == MEMORY => Ok(Arc::new(MemoryLedger::default())),
            None => {
                PostgresLedger::open(database).await.map(|ledger| Arc::new(ledger) as Arc<dyn CodeLedger>)
            }
        };
        let ledger = ledger.map_err(|error| OpenError::Bad(format!("codes: {error}")))?;
        Scramble::open(codecs, &*ledger).await.map_err(|error| OpenError::Bad(error.to_string()))
    }

    /// The configuration says whether numbers outlive the process; no default does.
    fn check_database(&self) -> Result<(), OpenError> {
        let stores = |tag: &&TagConfig| tag.strategy != StrategyKind::Snowflake || tag.code.is_some();
        match (&self.database, self.tags.values().find(stores)) {
            (None, Some(_)) => Err(OpenError::Bad(
                "[issuer]: name the database that keeps what was issued: sqlite:PATH or postgres://USER@HOST/NAME; \
                 or database = \"memory\", which begins again at each start"
                    .to_owned(),
            )),
            (Some(database), Some(_)) if database == MEMORY => {
                tracing::warn!("database = \"memory\": every start issues the same numbers again");
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn repository(&self) -> Result<Arc<dyn Repository>, OpenError> {
        let database = self.database.as_deref().unwrap_or(MEMORY);
        if database == MEMORY {
            return Ok(Arc::new(MemoryRepository::new()));
        }
        if let Some(path) = database.strip_prefix("sqlite:") {
            return Ok(Arc::new(SqliteRepository::new(path)));
        }
        if database.starts_with("postgres://") {
            let opened = PostgresRepository::new(database);
            return opened
                .map(|repository| Arc::new(repository) as Arc<dyn Repository>)
                .map_err(|error| OpenError::Bad(format!("database: {error}")));
        }
        // Not repeated: it may hold a password.
        Err(OpenError::Bad("database: write sqlite:PATH, postgres://USER@HOST/NAME or memory".to_owned()))
    }
}

/// Says which tag it is about, unless that is said already.
fn named(tag: &str, error: OpenError) -> OpenError {
    let text = error.to_string();
    if text.contains(tag) { error } else { OpenError::Bad(format!("tag {tag}: {text}")) }
}
