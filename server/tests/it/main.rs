//! The server and its client from the outside: real servers in the test's process or as processes of their own, over real databases.
//!
//! Tests that must pass on every database are in `api`, and run on the one that `TEST_DATABASE` names: `sqlite` (the default),
//! `postgres`, or `distributed`. The other folders choose theirs.

#[path = "../support/mod.rs"]
mod support;

mod alert_rules;
mod api;
mod client;
mod compose;
mod distributed;
mod files;
mod haproxy;
mod ordering;
mod postgres;
mod push;
mod sqlite;
mod table;
mod tidy;
mod versions;
