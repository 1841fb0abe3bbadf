//! The Rust client against the real program.

mod servers;
mod sync;
