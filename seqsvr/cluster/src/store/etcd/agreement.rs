//! The settings that all roles of a Set must share, stored beside the table: lease, layout and uids. The first arbiter
//! stores them, and every AllocSvr that starts compares the layout with its file.

use std::sync::atomic::Ordering;

use super::{EtcdStore, keys};
use seqsvr_core::store::configuration::Bounds;
use seqsvr_core::store::{Layout, SetTerms, StoreError};
use seqsvr_etcd::v3::TxnRequest;
use seqsvr_etcd::{put, unchanged};

impl EtcdStore {
    async fn terms(&self) -> Result<Option<SetTerms>, StoreError> {
        let (_, found) = self.members.look(&[self.keys.configuration.clone().into_bytes()]).await?;
        found[0].value().map(keys::terms).transpose()
    }

    /// Stores the common settings of all roles, where none are stored.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub(crate) async fn establish(&self, terms: &SetTerms) -> Result<(), StoreError> {
        if self.terms().await?.is_none() {
            let key = self.keys.configuration.as_str();
            let (compare, success) = (vec![unchanged(key, 0)], vec![put(key, keys::from_terms(terms))]);
            self.members.transact(&TxnRequest { compare, success, failure: vec![] }).await?;
        }
        Ok(())
    }

    /// Makes sure that this role's file says the same as the stored settings. Compared once.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`]: one line that says what differs, or that nothing is stored.
    pub(crate) async fn agree(&self, layout: Layout) -> Result<(), StoreError> {
        if self.agreed.load(Ordering::Acquire) {
            return Ok(());
        }
        let key = &self.keys.configuration;
        let Some(stored) = self.terms().await? else {
            let line = format!("{key} is not in etcd yet: an arbiter of the Set stores it");
            return Err(StoreError::Unavailable(line));
        };
        if let Some(line) = layout.differs_from(stored.layout, key) {
            return Err(StoreError::Unavailable(line));
        }
        self.agreed.store(true, Ordering::Release);
        Ok(())
    }
}

/// The bounds of a read that found these settings stored.
pub(super) fn bounds(stored: SetTerms) -> Bounds {
    Bounds { lease: stored.lease, uids: stored.uids }
}
