//! What the machine itself reaches, measured beside every figure of ours.

pub(crate) mod disk;
pub(crate) mod echo;
pub(crate) mod numbers;
pub(crate) mod sqlite;
