//! The arbiter's pure parts: `plan` by properties over random histories of a Set, `health` by its counts, `core`
//! against the real rules of a replica, `run` with sockets.

mod core;
mod health;
mod plan;
mod run;
