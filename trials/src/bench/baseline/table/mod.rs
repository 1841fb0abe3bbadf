//! What tables are compared with: a bare server of their protocol, and loops that read the rows.

mod append;
pub(crate) mod http;
pub(crate) mod pages;
