//! Machine ids in etcd: a key for each id that stays, and one beside it that hangs on a lease and shows that its holder
//! is alive. Every read is linearizable; a write is one transaction that compares the revision of what was read.
//! Leases are etcd's own, measured by no calendar.

use std::collections::BTreeSet;
use std::time::Duration;

use async_trait::async_trait;

use super::Instance;
use super::registry::{Entry, Registry, RegistryError, Row};
use seqsvr_etcd::v3::{KeyValue, RangeRequest, TxnRequest};
use seqsvr_etcd::{EtcdConfig, EtcdError, Members, delete, prefix_end, put, put_leased, unchanged};

/// How long to wait for a connection or an answer of one member.
const WAIT: Duration = Duration::from_secs(2);

/// How many keys one answer carries: some hundred KB.
const PAGE: i64 = 2_000;

/// A [`Registry`] in an etcd cluster.
pub struct EtcdRegistry {
    members: Members,
    prefix: String,
}

impl EtcdRegistry {
    /// A registry in this cluster, whose members are connected to when they are first asked. `pool` keeps systems apart that
    /// share the cluster.
    ///
    /// # Errors
    ///
    /// [`RegistryError`] with what is wrong in the configuration.
    pub fn open(config: &EtcdConfig, pool: &str) -> Result<Self, RegistryError> {
        Ok(Self { members: Members::open(config, WAIT)?, prefix: format!("seqsvr/machines/{pool}/") })
    }

    /// All keys of the pool at one moment.
    async fn stored(&self) -> Result<Vec<KeyValue>, RegistryError> {
        let range_end = prefix_end(self.prefix.as_bytes());
        let (mut key, mut revision, mut stored) = (self.prefix.clone().into_bytes(), 0, Vec::new());
        loop {
            let range = RangeRequest {
                key,
                range_end: range_end.clone(),
                limit: PAGE,
                revision,
                serializable: false,
            };
            let page = self.members.range(&range).await?;
            revision = page.header.map_or(0, |header| header.revision).max(revision);
            stored.extend(page.kvs);
            match stored.last() {
                // The first key behind the last one.
                Some(KeyValue { key: last, .. }) if page.more => key = [last.as_slice(), &[0]].concat(),
                _ => return Ok(stored),
            }
        }
    }

    fn row_key(&self, machine: u32) -> String {
        format!("{}row/{machine}", self.prefix)
    }

    fn live_key(&self, machine: u32) -> String {
        format!("{}live/{machine}", self.prefix)
    }
}

impl From<EtcdError> for RegistryError {
    fn from(error: EtcdError) -> Self {
        Self::new(error)
    }
}

#[async_trait]
impl Registry for EtcdRegistry {
    async fn rows(&self) -> Result<Vec<Row>, RegistryError> {
        let (mut live, mut rows) = (BTreeSet::new(), Vec::new());
        for KeyValue { key, value, mod_revision, .. } in self.stored().await? {
            let key = String::from_utf8_lossy(&key);
            let foreign = || RegistryError(format!("{key} is not what this program writes"));
            let (kind, machine) =
                key.strip_prefix(&self.prefix).and_then(|key| key.split_once('/')).ok_or_else(foreign)?;
            let machine: u32 = machine.parse().map_err(|_| foreign())?;
            if kind == "live" {
                live.insert(machine);
                continue;
            }
            let text = std::str::from_utf8(&value).map_err(|_| foreign())?;
            let entry = entry(machine, text).ok_or_else(foreign)?;
            rows.push(Row { entry, live: false, version: mod_revision.unsigned_abs() });
        }
        rows.iter_mut().for_each(|row| row.live = live.contains(&row.entry.machine));
        Ok(rows)
    }

    async fn write(&self, entry: &Entry, over: u64, lease: Duration) -> Result<bool, RegistryError> {
        let Entry { machine, instance, holder, used_until } = entry;
        let (row, live) = (self.row_key(*machine), self.live_key(*machine));
        let granted = match lease {
            Duration::ZERO => None,
            // In whole seconds, as etcd counts; the cluster may make short ones longer.
            _ => Some(self.members.grant(lease.as_millis().div_ceil(1_000) as i64).await?),
        };
        let compare = vec![unchanged(row.as_str(), over.cast_signed())];
        let shown = match granted {
            Some(id) => put_leased(live, "", id),
            None => delete(live),
        };
        let success = vec![put(row, format!("{holder} {used_until} {instance}")), shown];
        // Once: a second try of one whose answer was lost would find the row changed, by itself.
        let transaction = TxnRequest { compare, success, failure: vec![] };
        let written = self.members.transact_once(transaction).await?.succeeded;
        if let Some(id) = granted.filter(|_| !written) {
            // Nothing hangs on it; should this fail, it ends by itself.
            let _ = self.members.revoke(id).await;
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
    use tidemark_test_support::servers::etcd::{endpoints, fresh_prefix};

    async fn fresh() -> (EtcdRegistry, ()) {
        let pool = fresh_prefix();
        let config = EtcdConfig { endpoints: endpoints(), ..EtcdConfig::default() };
        (EtcdRegistry::open(&config, &pool).unwrap(), ())
    }

    super::super::conformance::conformance!(fresh);
}
