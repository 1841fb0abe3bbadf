//! Who this process is in snowflakes: a given machine id, the ordinal of its host name, or one that is registered.

use std::path::PathBuf;
use std::sync::Arc;

use serde::Deserialize;

use super::tag::TagConfig;
use crate::etcd::EtcdConfig;
use crate::issuer::clock::{Clock, ClockOptions, Guard};
use crate::issuer::error::OpenError;
use crate::issuer::machine::{
    EtcdRegistry, Fixed, Holder, HolderOptions, Instance, MemoryRegistry, PostgresRegistry, RedisRegistry,
    Registry, SqliteRegistry, ordinal,
};
use crate::issuer::snowflake::{Bits, DEFAULT_EPOCH, Layout, MachineId, Snowflake, SnowflakeOptions};

/// Whose machine ids these are, in a registry that others use, too.
const POOL: &str = "issuer";

/// The section `[issuer.machine]`. Exactly one of `id`, `host` and `instance` says who this process is; none means a
/// single process: machine 0.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MachineConfig {
    /// A given id.
    pub id: Option<u64>,
    /// A host name that ends in `-N`, as a StatefulSet gives it: N is the id.
    pub host: Option<String>,
    /// The name under which an id is registered: `application:port:ip`, or any of one's own. The registry is the issuer's
    /// database, unless `redis` or `etcd` names another.
    pub instance: Option<String>,
    /// The Redis to register in, `redis://host:port`. It must keep what it confirmed: `appendonly yes` and `appendfsync
    /// always`, and no replica that lags may take over.
    pub redis: Option<String>,
    /// The etcd cluster to register in.
    pub etcd: Option<EtcdConfig>,
    /// How many ids there are to register, from 0 on. Default 1,024.
    pub ids: Option<u32>,
    /// Where the instance's files lie: the machine id, and how far the clock has come. Without it a clock that goes
    /// back between two runs is not noticed.
    pub folder: Option<PathBuf>,
}

/// How the 63 bits of a snowflake are split.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SplitConfig {
    /// Milliseconds since the epoch.
    pub time: u32,
    /// The upper part of the machine id. Default 0.
    #[serde(default)]
    pub data_centre: u32,
    /// The lower part of the machine id.
    pub worker: u32,
    /// Numbers of one millisecond.
    pub sequence: u32,
}

/// The clock and the machine id of this process.
pub(super) struct Identity {
    pub(super) guard: Arc<Guard>,
    pub(super) holder: Option<Arc<Holder>>,
    /// Where it is given.
    id: u64,
}

impl MachineConfig {
    pub(super) async fn open(&self, clock: Clock, database: &str) -> Result<Identity, OpenError> {
        let bad = |error: &dyn std::fmt::Display| OpenError::Bad(format!("[issuer.machine]: {error}"));
        let file = self.folder.as_ref().map(|folder| folder.join("issuer.clock"));
        let ways = [self.id.is_some(), self.host.is_some(), self.instance.is_some()];
        if ways.into_iter().filter(|given| *given).count() > 1 {
            return Err(bad(&"give one of id, host and instance"));
        }
        match (&self.redis, &self.etcd) {
            (Some(_), Some(_)) => return Err(bad(&"register in one of redis and etcd, not in both")),
            (None, None) => {}
            _ if self.instance.is_none() => {
                return Err(bad(
                    &"redis and etcd say where an instance is registered; name it with instance",
                ));
            }
            _ => {}
        }
        let id = match &self.host {
            Some(host) => ordinal(host).map_err(|error| bad(&error))?,
            None => self.id.unwrap_or(0),
        };
        let guard = Guard::open(ClockOptions::default(), clock.clone(), file.as_deref());
        let guard = guard.await.map_err(|error| bad(&error))?;
        let holder = match &self.instance {
            Some(name) => Some(self.hold(name, clock, database).await?),
            None => None,
        };
        Ok(Identity { guard, holder, id })
    }

    async fn hold(&self, name: &str, clock: Clock, database: &str) -> Result<Arc<Holder>, OpenError> {
        let bad = |error: &dyn std::fmt::Display| OpenError::Bad(format!("[issuer.machine]: {error}"));
        let instance = Instance::named(name).map_err(|error| bad(&error))?;
        let registry = self.registry(&clock, database).await.map_err(|error| bad(&error))?;
        let options = HolderOptions::new(instance, 0..self.ids.unwrap_or(1_024), self.folder.clone());
        Holder::open(options, clock, registry).await.map_err(|error| bad(&error))
    }

    async fn registry(&self, clock: &Clock, database: &str) -> Result<Arc<dyn Registry>, String> {
        if let Some(etcd) = &self.etcd {
            return Ok(Arc::new(EtcdRegistry::open(etcd, POOL).map_err(|error| error.0)?));
        }
        if let Some(url) = &self.redis {
            let registry = RedisRegistry::new(url, POOL);
            // Not repeated: it may hold a password.
            let wrong = |_| "redis: the URL cannot be understood; write redis://host:port".to_owned();
            return Ok(Arc::new(registry.map_err(wrong)?));
        }
        Ok(match database.strip_prefix("sqlite:") {
            Some(path) => Arc::new(SqliteRegistry::open(path, POOL).await.map_err(|error| error.0)?),
            None if database == "memory" => Arc::new(MemoryRegistry::new(clock.clone())),
            None => Arc::new(PostgresRegistry::new(database, POOL).map_err(|error| error.0)?),
        })
    }
}

impl Identity {
    /// The snowflakes of one tag.
    pub(super) fn snowflake(&self, tag: &TagConfig) -> Result<Snowflake, OpenError> {
        let bad = |error: &dyn std::fmt::Display| OpenError::Bad(error.to_string());
        let bits = tag.bits.map_or_else(Bits::default, |split| {
            let SplitConfig { time, data_centre, worker, sequence } = split;
            Bits { time, data_centre, worker, sequence }
        });
        let now = self.guard.clock().wall();
        let layout =
            Layout::new(bits, tag.epoch.unwrap_or(DEFAULT_EPOCH), now).map_err(|error| bad(&error))?;
        let machine: Arc<dyn MachineId> = match &self.holder {
            Some(holder) => Arc::<Holder>::clone(holder),
            None => Arc::new(Fixed::new(&layout, self.id).map_err(|error| bad(&error))?),
        };
        Ok(Snowflake::new(layout, SnowflakeOptions::default(), Arc::clone(&self.guard), machine))
    }
}
