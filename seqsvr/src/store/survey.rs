//! How each store of a Set is, for operators: whether it answers, and how far it is behind the newest. Asked for by arbiters; what it
//! costs is one copy of each store's state.

use std::sync::Arc;

use crate::ids::Epoch;
use crate::replica::LayoutsDiffer;
use crate::replica::merge::{behind, merge};
use crate::replica::message::Copy;
use crate::routing::Table;

/// One store, as the asker reaches it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreHealth {
    /// Its address.
    pub addr: String,
    /// What it has, or why it does not answer.
    pub state: Result<StoreState, String>,
}

/// What a store that answers has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreState {
    /// The largest term that it promised.
    pub promised: u64,
    /// Its table; `None` before the first.
    pub table: Option<Arc<Table>>,
    /// Sections of which another store has a newer claim or a larger ceiling.
    pub sections_behind: u32,
    /// How many revisions it is behind the newest of another member; 0 for stores without any.
    pub revisions_behind: u64,
}

impl StoreState {
    /// The version of its table, 0.0 before the first.
    pub fn version(&self) -> Epoch {
        self.table.as_ref().map(|table| table.version).unwrap_or_default()
    }
}

/// What the copies of the replicas at `addrs` say, each compared with everything that any of them has.
pub(super) fn compare(addrs: Vec<String>, copies: Vec<Result<Copy, String>>) -> Vec<StoreHealth> {
    let newest: Result<Copy, LayoutsDiffer> = merge(copies.iter().flatten().cloned());
    let state = |copy: Copy| {
        let newest = newest.as_ref().map_err(ToString::to_string)?;
        let sections_behind = behind(&copy, newest);
        let Copy { promised, table, .. } = copy;
        Ok(StoreState { promised, table, sections_behind, revisions_behind: 0 })
    };
    let stores = addrs.into_iter().zip(copies);
    stores.map(|(addr, copy)| StoreHealth { addr, state: copy.and_then(state) }).collect()
}
