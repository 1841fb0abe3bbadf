//! A client of etcd, as much of it as sections, tables and machine ids need: reads, transactions, watches and leases.
//! It speaks etcd's public gRPC API, of which `etcd.proto` holds the part that is used. Owns the connections; knows
//! nothing of what is stored.

mod cell;
mod config;
mod error;
mod members;
mod operations;

pub use cell::Cell;
pub use config::EtcdConfig;
pub use error::EtcdError;
pub use members::Members;
pub use operations::{delete, found, get, holds, prefix_end, put, put_leased, unchanged};

/// The messages and services of `etcd.proto`, as generated.
pub mod v3 {
    #![allow(
        missing_docs,
        unreachable_pub,
        clippy::all,
        reason = "generated; the .proto file says what they mean"
    )]
    tonic::include_proto!("etcdserverpb");
}
