//! Snowflakes: 64-bit ids made of the time, the machine and a sequence (S25), without storage on the way.
//!
//! [`Layout`] is the pure format. A [`Snowflake`] owns the last id of one tag, one atomic number that only grows, and
//! asks the process's clock guard and the holder of its machine id whenever a millisecond begins; within one
//! nothing but that number is touched. Called by the issuer's service through the [`Strategy`] seam.
//!
//! [`Strategy`]: super::Strategy

mod generator;
mod layout;
mod strategy;
#[cfg(test)]
mod tests;

pub use generator::{MachineId, NotNow, Snowflake, SnowflakeMetrics, SnowflakeOptions, Unheld};
pub use layout::{BadLayout, Bits, DEFAULT_EPOCH, IdParts, Layout, MOST_MACHINE_BITS};
