//! What the sequence cluster promises beside its numbers, on real processes: who may call, who stands by, where load
//! goes, what a broken Set touches, what the processes of one machine share, and what bad input is told. Each test has
//! a cluster of its own.

#![allow(clippy::unwrap_used, reason = "a test whose stage cannot be set fails")]

mod certificates;
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
