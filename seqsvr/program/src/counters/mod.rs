//! The numbers behind the Redis protocol: `durable` counters of `seqsvr embedded`, kept in a file; the sections of a `cluster`;
//! the `tags` of the issuer. Each is one implementation of `seqsvr_resp::KeyCounters`; the roles under `cli` open them.

pub(crate) mod cluster;
pub(crate) mod durable;
pub(crate) mod tags;
