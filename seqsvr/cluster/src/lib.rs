//! The roles of a cluster: [`replica`] is a StoreSvr, [`alloc`] an AllocSvr, [`arbiter`] an arbiter, and [`store`] is
//! how the last two reach the stores, as a quorum or in etcd. Each role is a pure core, which the service and the
//! simulation run alike, and a shell around it.

pub mod alloc;
pub mod arbiter;
pub mod replica;
pub mod store;
