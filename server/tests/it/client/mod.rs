//! The Rust client against the real program.

mod files;
mod search;
mod servers;
mod sync;
