//! What operations mean for rows: plain functions over plain values, with the time as an argument.
//!
//! [`key`] and [`stored`] are how keys and rows lie in a database; [`age`] is what of a row is still there; [`mod@write`] decides what a write
//! makes of a row, and [`select`] what a read shows of it, through a [`filter`] or without; [`capacity`] counts units.

pub mod age;
pub mod capacity;
pub mod filter;
pub mod key;
pub mod select;
pub mod stored;
pub mod write;
