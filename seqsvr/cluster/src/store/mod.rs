//! How AllocSvrs and arbiters reach the stores of a Set: [`quorum`] over StoreSvrs, or [`etcd`].

pub mod backup_file;
pub mod config;
pub mod etcd;
pub(crate) mod merge;
pub mod quorum;
pub(crate) mod section_map;
pub mod survey;

pub use config::{Stores, StoresConfig, StoresError};
pub use merge::LayoutsDiffer;
