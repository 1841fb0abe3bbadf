//! Baselines for tables: a bare server of their protocol, and loops that read the rows.

mod append;
pub(crate) mod http;
pub(crate) mod pages;
