//! The Rust client against the real program.

mod search;
mod servers;
mod sync;
