//! The promises of the sequence cluster beside its numbers, on real processes: which callers it lets in, which node stands by, where
//! load goes, how far a broken Set reaches, the table that the processes of one machine share, and the answers to bad input. Each test
//! has a cluster of its own.

#![allow(clippy::unwrap_used, reason = "a test whose stage cannot be set fails")]

mod chat;
mod load;
mod operations;
mod refusals;
mod replacement;
mod security;
mod sets;
mod shared_table;
mod standby;
mod support;
mod verify;
