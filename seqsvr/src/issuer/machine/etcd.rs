//! Machine ids in etcd: a key for each id that stays, and one beside it that hangs on a lease and shows that its holder
//! is alive. Every read is linearizable; a write is one transaction that compares the revision of what was read.
//! Leases are etcd's own, measured by no calendar.

use std::collections::BTreeSet;
use std::time::Duration;

use async_trait::async_trait;
use etcd_client::{Client, Compare, CompareOp, ConnectOptions, GetOptions, PutOptions, Txn, TxnOp};

use super::Instance;
use super::registry::{Entry, Registry, RegistryError, Row};

/// How long to wait for a connection or an answer.
const WAIT: Duration = Duration::from_secs(5);

/// A [`Registry`] in an etcd cluster.
pub struct EtcdRegistry {
    client: Client,
    prefix: String,
}

impl EtcdRegistry {
    /// A registry at these members (`http://host:port`), which are connected to when they are first asked. `options` carry
    /// user and certificates; `pool` keeps systems apart that share the cluster.
    ///
    /// # Errors
    ///
    /// [`RegistryError`] for texts that are no endpoints.
    pub async fn open(
        endpoints: &[String],
        options: ConnectOptions,
        pool: &str,
    ) -> Result<Self, RegistryError> {
        let options = options.with_connect_timeout(WAIT).with_timeout(WAIT).with_require_leader(true);
        let client = Client::connect(endpoints, Some(options)).await.map_err(RegistryError::new)?;
        Ok(Self { client, prefix: format!("seqsvr/machines/{pool}/") })
    }

    fn row_key(&self, machine: u32) -> String {
        format!("{}row/{machine}", self.prefix)
    }

    fn live_key(&self, machine: u32) -> String {
        format!("{}live/{machine}", self.prefix)
    }
}

#[async_trait]
impl Registry for EtcdRegistry {
    async fn rows(&self) -> Result<Vec<Row>, RegistryError> {
        let all = GetOptions::new().with_prefix();
        let found = self.client.kv_client().get(self.prefix.as_str(), Some(all)).await;
        let found = found.map_err(RegistryError::new)?;
        let (mut live, mut rows) = (BTreeSet::new(), Vec::new());
        for stored in found.kvs() {
            let key = stored.key_str().map_err(RegistryError::new)?;
            let foreign = || RegistryError(format!("{key} is not what this program writes"));
            let (kind, machine) =
                key.strip_prefix(&self.prefix).and_then(|key| key.split_once('/')).ok_or_else(foreign)?;
            let machine: u32 = machine.parse().map_err(|_| foreign())?;
            if kind == "live" {
                live.insert(machine);
                continue;
            }
            let text = stored.value_str().map_err(RegistryError::new)?;
            let entry = entry(machine, text).ok_or_else(foreign)?;
            rows.push(Row { entry, live: false, version: stored.mod_revision().unsigned_abs() });
        }
        rows.iter_mut().for_each(|row| row.live = live.contains(&row.entry.machine));
        Ok(rows)
    }

    async fn write(&self, entry: &Entry, over: u64, lease: Duration) -> Result<bool, RegistryError> {
        let Entry { machine, instance, holder, used_until } = entry;
        let (row, live) = (self.row_key(*machine), self.live_key(*machine));
        let unchanged = Compare::mod_revision(row.as_str(), CompareOp::Equal, over.cast_signed());
        let put = TxnOp::put(row, format!("{holder} {used_until} {instance}"), None);
        let mut leases = self.client.lease_client();
        let granted = match lease {
            Duration::ZERO => None,
            // In whole seconds, as etcd counts; the cluster may make short ones longer.
            _ => Some(leases.grant(lease.as_millis().div_ceil(1_000) as i64, None).await),
        };
        let granted = granted.transpose().map_err(RegistryError::new)?.map(|lease| lease.id());
        let second = match granted {
            Some(id) => TxnOp::put(live, "", Some(PutOptions::new().with_lease(id))),
            None => TxnOp::delete(live, None),
        };
        let transaction = Txn::new().when([unchanged]).and_then([put, second]);
        let written = self.client.kv_client().txn(transaction).await.map_err(RegistryError::new)?.succeeded();
        if let Some(id) = granted.filter(|_| !written) {
            // Nothing hangs on it; should this fail, it ends by itself.
            let _ = leases.revoke(id).await;
        }
        Ok(written)
    }
}

fn entry(machine: u32, text: &str) -> Option<Entry> {
    let mut words = text.split(' ');
    let holder = words.next()?.parse().ok()?;
    let used_until = words.next()?.parse().ok()?;
    Some(Entry { machine, instance: Instance::named(words.next()?).ok()?, holder, used_until })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::servers::etcd::{endpoints, fresh_prefix};

    async fn fresh() -> (EtcdRegistry, ()) {
        let pool = fresh_prefix();
        (EtcdRegistry::open(&endpoints(), ConnectOptions::new(), &pool).await.unwrap(), ())
    }

    super::super::conformance::conformance!(fresh);
}
