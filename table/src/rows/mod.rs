//! What operations mean for rows: plain functions over plain values, with the time as an argument.
//!
//! [`key`] and [`stored`] are how keys and rows lie in a database; [`age`] is what of a row is still there; [`capacity`] counts units.

pub mod age;
pub mod capacity;
pub mod key;
pub mod stored;
