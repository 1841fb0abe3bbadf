//! The machine id of this process in snowflakes: given, or registered.

use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;

use super::MEMORY;
use super::tag::TagConfig;
use crate::clock::{Clock, ClockOptions, Guard};
use crate::error::OpenError;
use crate::machine::{
    BadInstance, EtcdRegistry, Fixed, Holder, HolderOptions, Instance, MOST_MACHINES, PostgresRegistry,
    RedisRegistry, Registry, SqliteRegistry,
};
use crate::snowflake::{DEFAULT_EPOCH, Layout, MachineId, Snowflake, SnowflakeOptions};
use seqsvr_etcd::EtcdConfig;

/// The pool of the issuer's machine ids, in a registry that others use, too.
const POOL: &str = "issuer";

/// Where the files of instances lie that name no folder of their own: one folder below this for each.
const FOLDER: &str = "issuer-state";

/// How long a given id counts as used by a process that ended without a word.
const GIVEN_LEASE: Duration = Duration::from_secs(60);

/// The section `[issuer.machine]`. One of `id` and `instance` identifies this process.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MachineConfig {
    /// A given id: another one for each process.
    pub id: Option<u64>,
    /// The name under which an id is registered: `application:port:ip`, or any other. The registry is the issuer's database, unless `redis`
    /// or `etcd` names another.
    pub instance: Option<String>,
    /// The Redis to register in, `redis://host:port` or `rediss://…`. It must keep what it confirmed: `appendonly yes` and `appendfsync
    /// always`, and no replica that lags may take over.
    pub redis: Option<String>,
    /// The etcd cluster to register in.
    pub etcd: Option<EtcdConfig>,
    /// Where the files of this process lie: its machine id, and how far the clock has come. Made when it is missing. Default
    /// `issuer-state/INSTANCE` or `issuer-state/machine-ID`, beside the configuration.
    pub folder: Option<PathBuf>,
}

/// The clock and the machine id of this process.
pub(super) struct Identity {
    pub(super) guard: Arc<Guard>,
    /// The holder of the registered machine id, if one is registered.
    pub(super) holder: Option<Arc<Holder>>,
    /// Where it is given.
    id: Option<u64>,
}

/// The identity of a process.
enum Who {
    /// The id is given.
    Given(u64),
    /// An id is registered under this name.
    Named(Instance),
}

impl Who {
    /// The name under which this is registered, and of the default folder.
    fn instance(&self) -> Result<Instance, BadInstance> {
        match self {
            Self::Given(id) => Instance::named(&format!("machine-{id}")),
            Self::Named(instance) => Ok(instance.clone()),
        }
    }
}

impl MachineConfig {
    /// Opens the clock guard and, where there is a registry, the holder of the machine id. `database`: where segments are durable, if that
    /// is configured. `place`: the folder of the configuration. `ids`: how many ids there are to register, from 0 on.
    pub(super) async fn open(
        &self,
        clock: Clock,
        database: Option<&str>,
        place: &Path,
        ids: u32,
    ) -> Result<Identity, OpenError> {
        let who = self.who().map_err(bad)?;
        let shared = database.filter(|&database| database != MEMORY);
        if matches!(who, Who::Named(_)) && shared.is_none() && self.redis.is_none() && self.etcd.is_none() {
            return Err(bad(
                "an instance is registered where all processes see it: set [issuer] database to sqlite:PATH or \
                 postgres://…, or name redis or etcd here; or give each process its own id",
            ));
        }
        let instance = who.instance().map_err(bad)?;
        let folder = match &self.folder {
            Some(folder) => folder.clone(),
            // Wherever the process is started, it finds the same one.
            None => place.join(FOLDER).join(instance.as_str()),
        };
        fs::create_dir_all(&folder).map_err(|why| {
            bad(format!(
                "cannot make the folder {} ({why}); set folder to one that this process may write",
                folder.display()
            ))
        })?;
        let file = folder.join("issuer.clock");
        let guard = Guard::open(ClockOptions::default(), clock.clone(), Some(&file)).await.map_err(bad)?;
        let options = HolderOptions::new(instance, 0..ids, Some(folder));
        let holder = self.hold(&who, options, clock, shared).await;
        if holder.is_err() {
            guard.close().await;
        }
        let id = if let Who::Given(id) = who { Some(id) } else { None };
        Ok(Identity { guard, holder: holder?, id })
    }

    fn who(&self) -> Result<Who, String> {
        let who = match (self.id, &self.instance) {
            (Some(id), None) => Who::Given(id),
            (None, Some(name)) => Who::Named(Instance::named(name).map_err(|error| error.to_string())?),
            (None, None) => {
                return Err(
                    "snowflakes need to know who this process is: write id = 0 if no other process makes \
                            them, else give each its own id or instance"
                        .to_owned(),
                );
            }
            _ => return Err("give one of id and instance".to_owned()),
        };
        match (&self.redis, &self.etcd) {
            (Some(_), Some(_)) => Err("register in one of redis and etcd, not in both".to_owned()),
            (None, None) => Ok(who),
            _ if self.instance.is_none() => {
                Err("redis and etcd say where an instance is registered; name it with instance".to_owned())
            }
            _ => Ok(who),
        }
    }

    /// Registers this process. A given id is registered, too, where the database is shared, so that a second process with the
    /// same one is found; it does not depend on that, and is used while the database is away.
    async fn hold(
        &self,
        who: &Who,
        options: HolderOptions,
        clock: Clock,
        database: Option<&str>,
    ) -> Result<Option<Arc<Holder>>, OpenError> {
        let options = match who {
            Who::Named(_) => options,
            Who::Given(id) => {
                // Whether it fits is for the layout of each tag to say.
                let Some(id) = u32::try_from(*id).ok().filter(|id| *id < MOST_MACHINES) else {
                    return Ok(None);
                };
                if database.is_none() {
                    return Ok(None);
                }
                HolderOptions {
                    machines: id..id + 1,
                    lease: GIVEN_LEASE,
                    margin: GIVEN_LEASE / 10,
                    renew_every: GIVEN_LEASE / 5,
                    ..options
                }
            }
        };
        let registry = self.registry(database).await.map_err(bad)?;
        let holder = Holder::open(options, clock, registry).await.map_err(bad)?;
        if let (Who::Given(id), true) = (who, holder.is_anothers()) {
            holder.close(0).await;
            return Err(bad(format!(
                "machine id {id} is held by another process that uses the same database; give this one another id, \
                 or stop the other (one that was killed holds it for up to {} s)",
                GIVEN_LEASE.as_secs()
            )));
        }
        Ok(Some(holder))
    }

    async fn registry(&self, database: Option<&str>) -> Result<Arc<dyn Registry>, String> {
        if let Some(etcd) = &self.etcd {
            return Ok(Arc::new(EtcdRegistry::open(etcd, POOL).map_err(|error| error.0)?));
        }
        if let Some(url) = &self.redis {
            return Ok(Arc::new(RedisRegistry::new(url, POOL).map_err(|error| error.0)?));
        }
        let database = database.unwrap_or_default();
        Ok(match database.strip_prefix("sqlite:") {
            Some(path) => Arc::new(SqliteRegistry::open(path, POOL).await.map_err(|error| error.0)?),
            None => Arc::new(PostgresRegistry::new(database, POOL).map_err(|error| error.0)?),
        })
    }
}

fn bad(error: impl Display) -> OpenError {
    OpenError::Bad(format!("[issuer.machine]: {error}"))
}

impl Identity {
    /// The snowflakes of one tag.
    pub(super) fn snowflake(&self, tag: &TagConfig) -> Result<Snowflake, OpenError> {
        let bad = |error: &dyn std::fmt::Display| OpenError::Bad(error.to_string());
        let now = self.guard.clock().wall();
        let layout =
            Layout::new(tag.bits(), tag.epoch.unwrap_or(DEFAULT_EPOCH), now).map_err(|error| bad(&error))?;
        let machine: Arc<dyn MachineId> = match (self.id, &self.holder) {
            (None, Some(holder)) => Arc::<Holder>::clone(holder),
            (id, _) => Arc::new(Fixed::new(&layout, id.unwrap_or_default()).map_err(|error| bad(&error))?),
        };
        Ok(Snowflake::new(layout, SnowflakeOptions::default(), Arc::clone(&self.guard), machine))
    }
}
