//! The owners of uids: the routing table (pure) that the arbiter writes, the stores keep, the AllocSvrs obey and the clients cache (S11,
//! S12).

pub mod order;
pub mod table;

pub use order::Order;
pub use table::{Assignment, Node, NodeState, Table, TableError};
