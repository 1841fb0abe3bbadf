//! Why etcd cannot be used, for people.

use thiserror::Error;

use seqsvr_core::store::StoreError;

/// etcd cannot be used; one line that says which member, and why.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{0}")]
pub struct EtcdError(pub(super) String);

impl From<EtcdError> for StoreError {
    fn from(error: EtcdError) -> Self {
        Self::Unavailable(error.to_string())
    }
}
