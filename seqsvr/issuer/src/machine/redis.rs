//! Machine ids in Redis: a hash for each pool, a field for each id, written by one short script that compares and sets.
//! Leases run on Redis's own clock.
//!
//! Redis must keep what it confirmed: run it with `appendonly yes` and `appendfsync always`, and do not let a replica
//! that lags take over. A Redis that forgets its leases can give an id to two processes until the first one's
//! lease is over. Where that cannot be promised, register in a database or in etcd. Scripts must be allowed.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, RedisError, Script};

use super::Instance;
use super::registry::{Entry, Registry, RegistryError, Row};
use crate::redis::address;

/// How long to wait for a connection or an answer.
const WAIT: Duration = Duration::from_secs(5);

/// A field is `version lease_end holder used_until instance`. Only the first two are Redis's business.
const WRITE: &str = "
local time = redis.call('TIME')
local row = redis.call('HGET', KEYS[1], ARGV[1])
local version = row and tonumber(string.match(row, '^%d+')) or 0
if version ~= tonumber(ARGV[2]) then return 0 end
local ends = time[1] * 1000 + math.floor(time[2] / 1000) + ARGV[3]
redis.call('HSET', KEYS[1], ARGV[1], string.format('%.0f %.0f ', version + 1, ends) .. ARGV[4])
return 1";

/// A [`Registry`] in a Redis.
#[derive(Debug)]
pub struct RedisRegistry {
    client: Client,
    key: String,
    write: Script,
    /// `None` before the first call and after a failed one.
    connection: Mutex<Option<MultiplexedConnection>>,
}

impl RedisRegistry {
    /// A registry at `url` (`redis://…` or `rediss://…`), which is connected to when it is first asked; `pool` keeps systems
    /// apart that share the Redis.
    ///
    /// # Errors
    ///
    /// [`RegistryError`] for a URL that is not taken.
    pub fn new(url: &str, pool: &str) -> Result<Self, RegistryError> {
        let client = address::client(url).map_err(RegistryError)?;
        let key = format!("seqsvr:machines:{pool}");
        Ok(Self { client, key, write: Script::new(WRITE), connection: Mutex::new(None) })
    }

    async fn connection(&self) -> Result<MultiplexedConnection, RegistryError> {
        let open = self.connection.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(open) = open {
            return Ok(open);
        }
        let config =
            AsyncConnectionConfig::new().set_connection_timeout(Some(WAIT)).set_response_timeout(Some(WAIT));
        let connect = self.client.get_multiplexed_async_connection_with_config(&config);
        let new = connect.await.map_err(RegistryError::new)?;
        *self.connection.lock().unwrap_or_else(PoisonError::into_inner) = Some(new.clone());
        Ok(new)
    }

    /// After an error the next call connects anew.
    fn failed(&self, error: &RedisError) -> RegistryError {
        *self.connection.lock().unwrap_or_else(PoisonError::into_inner) = None;
        RegistryError::new(error)
    }
}

#[async_trait]
impl Registry for RedisRegistry {
    async fn rows(&self) -> Result<Vec<Row>, RegistryError> {
        let mut connection = self.connection().await?;
        type RegistryAnswer = ((u64, u64), Vec<(u32, String)>);
        let ((seconds, microseconds), fields): RegistryAnswer = redis::pipe()
            .atomic()
            .cmd("TIME")
            .hgetall(&self.key)
            .query_async(&mut connection)
            .await
            .map_err(|error| self.failed(&error))?;
        let now = seconds * 1_000 + microseconds / 1_000;
        let rows = fields.iter().map(|(machine, text)| {
            row(*machine, text, now).ok_or_else(|| {
                RegistryError(format!("field {machine} of {} is not what this program writes", self.key))
            })
        });
        rows.collect()
    }

    async fn write(&self, entry: &Entry, over: u64, lease: Duration) -> Result<bool, RegistryError> {
        let mut connection = self.connection().await?;
        let Entry { machine, instance, holder, used_until } = entry;
        let mut script = self.write.prepare_invoke();
        script.key(&self.key).arg(machine).arg(over).arg(lease.as_millis() as u64);
        script.arg(format!("{holder} {used_until} {instance}"));
        script.invoke_async(&mut connection).await.map_err(|error| self.failed(&error))
    }
}

fn row(machine: u32, text: &str, now: u64) -> Option<Row> {
    let mut words = text.split(' ');
    let mut number = || words.next()?.parse::<u64>().ok();
    let (version, ends, holder, used_until) = (number()?, number()?, number()?, number()?);
    let instance = Instance::named(words.next()?).ok()?;
    Some(Row { entry: Entry { machine, instance, holder, used_until }, live: now < ends, version })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidemark_test_support::servers::redis::RedisServer;

    async fn fresh() -> (RedisRegistry, RedisServer) {
        let server = RedisServer::start();
        (RedisRegistry::new(&server.url(), "test").unwrap(), server)
    }

    super::super::conformance::conformance!(fresh);

    #[tokio::test]
    async fn pools_of_one_redis_do_not_touch_each_other() {
        let (one, server) = fresh().await;
        let two = RedisRegistry::new(&server.url(), "other").unwrap();
        let instance = Instance::named("a").unwrap();
        let entry = Entry { machine: 1, instance, holder: 1, used_until: 1 };
        assert_eq!(one.write(&entry, 0, WAIT).await, Ok(true));
        assert_eq!(two.rows().await, Ok(vec![]));
    }

    #[tokio::test]
    async fn a_redis_that_went_away_is_an_error_until_it_is_back() {
        let (registry, mut server) = fresh().await;
        assert_eq!(registry.rows().await, Ok(vec![]));
        server.kill();
        assert!(registry.rows().await.is_err());
        let refused = RedisRegistry::new("http://nowhere", "test").unwrap_err().to_string();
        assert!(refused.starts_with("the registry of machine ids cannot be used"), "{refused}");
    }
}
