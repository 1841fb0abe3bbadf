//! What travels over the wire, and between it and the plain values of the crate. Only this folder and its users name gRPC
//! types; the cores know none.

pub(crate) mod allocator;
mod convert;
pub(crate) mod door;
pub mod issuer;
pub mod security;
pub(crate) mod sequence;
pub(crate) mod store;

pub use convert::WireError;

/// The messages and services of `seqsvr.proto`, as generated.
pub mod v1 {
    #![allow(
        missing_docs,
        unreachable_pub,
        clippy::all,
        reason = "generated; the .proto file says what they mean"
    )]
    tonic::include_proto!("seqsvr.v1");
}

/// Describes the services to callers that ask what there is.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
