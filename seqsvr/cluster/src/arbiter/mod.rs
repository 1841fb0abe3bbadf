//! The arbiter of a Set: probes the AllocSvrs and assigns the sections to them (S8, S11, S13). `core` decides (pure),
//! by its `rules`, with `leadership` for the time that it acts, `health` for the state of the nodes, and `plan` for the next table.
//! `run` is the shell around it, with `probe`, the Admin service in `admin`, and the state that it shows in `view`.

pub mod admin;
mod balance;
pub mod config;
pub mod core;
mod event;
pub mod health;
mod leadership;
pub mod monitor;
pub mod plan;
pub mod probe;
mod rules;
pub mod run;
mod slots;
mod spread;
mod standby;
#[cfg(test)]
mod tests;
pub(crate) mod view;
