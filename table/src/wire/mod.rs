//! The bytes that travel between clients and tables, and their plain values. No socket is known here.
//!
//! [`proto`] has the messages; [`plain_buffer`] the encoding of rows and keys inside them; [`filter`] the encoding of conditions;
//! [`sign`] and [`compress`] the layers around them. All input comes from strangers: each decoder refuses an error in it with one
//! [`TableError`], and stores no more than a small multiple of the input.

pub mod compress;
mod crc;
pub mod fields;
pub mod filter;
pub mod plain_buffer;
pub mod sign;

use prost::Message as _;

use crate::error::TableError;

/// The body of an answer that refuses.
pub fn encode_error(error: &TableError) -> Vec<u8> {
    proto::Error { code: error.code.as_str().to_owned(), message: error.message.clone() }.encode_to_vec()
}

/// The messages of `proto/*.proto`, as generated.
pub mod proto {
    #![allow(
        missing_docs,
        unreachable_pub,
        clippy::all,
        reason = "generated; the .proto files say what they mean"
    )]
    include!(concat!(env!("OUT_DIR"), "/tidemark.table.rs"));
}
