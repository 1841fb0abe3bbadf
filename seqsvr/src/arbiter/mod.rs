//! The arbiter of a Set: probes the AllocSvrs and decides who serves which sections (S8, S11, S13). `core` decides (pure), with
//! `reign` for the time that it acts, `health` for what it thinks of the nodes, and `plan` for what the table should be.

mod balance;
pub(crate) mod core;
pub(crate) mod health;
pub(crate) mod plan;
mod reign;
mod slots;
mod spread;
mod standby;
#[cfg(test)]
mod tests;
