//! The arbiter's pure parts: `plan` by properties over random histories of a Set, `health` by its counts, `core` against the real
//! rules of a replica.

mod core;
mod health;
mod plan;
