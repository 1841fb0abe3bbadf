//! The limits of the machine itself, measured beside every figure of ours.

pub(crate) mod disk;
pub(crate) mod echo;
pub(crate) mod files;
pub(crate) mod grpc;
pub(crate) mod numbers;
pub(crate) mod process;
pub(crate) mod redis;
pub(crate) mod rows;
pub(crate) mod sqlite;
pub(crate) mod table;
