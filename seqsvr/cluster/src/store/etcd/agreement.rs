//! What all roles of a Set must have in common, stored beside the table: lease, layout and uids. Stored by the first
//! AllocSvr that reads a table, and compared by every one that starts.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::{EtcdStore, keys};
use seqsvr_core::store::configuration::Bounds;
use seqsvr_core::store::{StoreError, Terms};
use seqsvr_etcd::v3::TxnRequest;
use seqsvr_etcd::{put, unchanged};

impl EtcdStore {
    /// Makes sure that what is stored says what this role's file says, and stores it where nothing is. Compared once. Answers the stored
    /// lease.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`]: one line that says what differs.
    pub(crate) async fn agree(&self, terms: &Terms) -> Result<Duration, StoreError> {
        if self.agreed.load(Ordering::Acquire) {
            return Ok(terms.lease);
        }
        let key = &self.keys.configuration;
        let look = async || {
            let (_, found) = self.members.look(&[key.clone().into_bytes()]).await?;
            found[0].value().map(keys::terms).transpose()
        };
        let stored = match look().await? {
            Some(stored) => stored,
            None => {
                let compare = vec![unchanged(key.as_str(), 0)];
                let success = vec![put(key.as_str(), keys::from_terms(terms))];
                self.members.transact(&TxnRequest { compare, success, failure: vec![] }).await?;
                let gone = || StoreError::Unavailable(format!("{key} was removed from etcd meanwhile"));
                look().await?.ok_or_else(gone)?
            }
        };
        let change = format!(
            "stop every AllocSvr of the Set, wait 1.1 times the lease, and remove the key {key} from etcd"
        );
        let differs = terms.differ_from(stored.lease, stored.layout, key, &change);
        let uids = (stored.uids != terms.uids).then(|| {
            format!(
                "{key} has the uids {:?}, but the table has {:?}; correct first_uid and last_uid of the arbiters",
                stored.uids, terms.uids
            )
        });
        match differs.or(uids) {
            Some(line) => Err(StoreError::Unavailable(line)),
            None => {
                self.agreed.store(true, Ordering::Release);
                Ok(stored.lease)
            }
        }
    }
}

/// What a read is good for that found this stored.
pub(super) fn bounds(stored: Terms) -> Bounds {
    Bounds { lease: stored.lease, awaited: stored.lease, uids: stored.uids }
}
