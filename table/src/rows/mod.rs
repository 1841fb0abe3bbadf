//! The meaning of operations for rows: plain functions over plain values, with the time as an argument.
//!
//! [`key`] and [`stored`] are the format of keys and rows in a database; [`age`] drops the columns that are gone; [`mod@write`]
//! decides a write's effect on a row, and [`select`] a read's answer, through a [`filter`] or without; [`capacity`] counts units.

pub mod age;
pub mod capacity;
pub mod filter;
pub mod key;
pub mod select;
pub mod stored;
pub mod write;
