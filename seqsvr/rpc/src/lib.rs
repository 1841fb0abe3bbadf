//! The wire format, and conversions between it and the plain values: the generated messages and services, access control
//! by certificates and tokens, and limits of connections. The cores name no type of gRPC.

#[cfg(feature = "serve")]
pub mod connections;
mod convert;
#[cfg(feature = "serve")]
pub mod grpc_server;
pub mod net;
pub mod security;
pub mod store;

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

/// The messages and services of `issuer.proto`, as generated.
pub mod issuer_v1 {
    #![allow(
        missing_docs,
        unreachable_pub,
        clippy::all,
        reason = "generated; the .proto file says what they mean"
    )]
    tonic::include_proto!("issuer.v1");
}

/// Describes the services to callers that ask for a list.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));

/// An error with its causes.
pub fn text(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        let reported = next.to_string();
        // Some errors already include the text of their causes.
        if !text.ends_with(&reported) {
            text = format!("{text}: {reported}");
        }
        cause = next.source();
    }
    text
}
