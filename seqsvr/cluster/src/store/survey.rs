//! How each store of a Set is, for operators: whether it answers, and how far it is behind the newest. Asked for by
//! arbiters; it costs one copy of each store's state.

use crate::store::merge::LayoutsDiffer;
use crate::store::merge::{behind, merge};
use seqsvr_core::store::message::Copy;
use seqsvr_core::store::tables::{StoreHealth, StoreState};

/// The health of the replicas at `addrs`: each copy compared with everything that any of them has.
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
