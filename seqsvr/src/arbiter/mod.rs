//! The arbiter of a Set: probes the AllocSvrs and decides who serves which sections (S8, S11, S13). `core` decides (pure), with
//! `reign` for the time that it acts, `health` for what it thinks of the nodes, and `plan` for what the table should be. `run` is the
//! shell around it, with `probe`, the Admin service in `admin`, and what it shows of itself in `view`.

pub(crate) mod admin;
mod balance;
pub(crate) mod config;
pub(crate) mod core;
pub(crate) mod health;
pub(crate) mod monitor;
pub(crate) mod plan;
pub(crate) mod probe;
mod reign;
pub(crate) mod run;
mod slots;
mod spread;
mod standby;
#[cfg(test)]
mod tests;
pub(crate) mod view;
