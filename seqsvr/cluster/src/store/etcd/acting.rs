//! Signs of life of the arbiter: a key under an etcd lease. The key is put once for each lease, and a lease that is
//! kept alive makes no revision, so an idle cluster leaves nothing in etcd that would have to be compacted. Only how
//! soon another arbiter bids depends on it, never which table counts: that is decided by the terms, which every write
//! compares.

use std::time::Duration;

use super::{EtcdStore, keys, lock};
use seqsvr_core::clock::Moment;
use seqsvr_core::store::StoreError;
use seqsvr_etcd::v3::TxnRequest;
use seqsvr_etcd::{found, get, holds, put_leased};

/// The seconds of a lease: as long as other arbiters wait for a sign, of which several come in that time. etcd makes it longer where
/// its elections take longer.
const LEASE_SECONDS: i64 = 2;

/// The last sign of the arbiter that this process has seen. etcd itself tells no ages.
#[derive(Debug, Default)]
pub(super) struct LastActivity {
    /// Of the newest sign.
    revision: i64,
    pub(super) at: Moment,
    /// A lease stood when it was last looked at.
    leased: bool,
}

impl LastActivity {
    /// Takes in a reading of `now`, and returns how long the arbiter has been silent, at least.
    pub(super) fn note(&mut self, now: Moment, revision: i64, leased: bool) -> Duration {
        let newer = revision > self.revision;
        if newer {
            self.revision = revision;
        }
        if newer || leased {
            self.at = now;
        } else if self.leased {
            // It is over, so nobody renewed it for as long.
            self.at = now.before(Duration::from_secs(LEASE_SECONDS as u64));
        }
        self.leased = leased;
        now.since(self.at)
    }
}

impl EtcdStore {
    /// Keeps the key of `term` there, and answers the largest promised term.
    pub(super) async fn act(&self, term: u64) -> Result<u64, StoreError> {
        let names = [&self.keys.term, &self.keys.acting];
        let (_, cells) = self.members.look(&names.map(|name| name.clone().into_bytes())).await?;
        let [promised, acting] = &cells[..] else { unreachable!("one answer for each key") };
        let promised = promised.value().map_or(Ok(0), keys::number)?;
        if promised != term {
            return Ok(promised);
        }
        let known = *lock(&self.lease);
        let reported = acting.value() == Some(&term.to_be_bytes());
        if let Some(id) = known.filter(|&id| reported && id == acting.lease)
            && self.members.keep_alive(id).await?
        {
            return Ok(term);
        }
        let id = self.members.grant(LEASE_SECONDS).await?;
        let transaction = TxnRequest {
            compare: vec![holds(self.keys.term.as_str(), term.to_be_bytes())],
            success: vec![put_leased(self.keys.acting.as_str(), term.to_be_bytes(), id)],
            failure: vec![get(self.keys.term.as_str())],
        };
        let done = self.members.transact(&transaction).await?;
        *lock(&self.lease) = Some(id);
        match done.responses.first() {
            Some(other) if !done.succeeded => found(other).value().map_or(Ok(0), keys::number),
            _ => Ok(term),
        }
    }
}
