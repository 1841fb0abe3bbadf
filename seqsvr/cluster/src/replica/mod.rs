//! One replica of the durable state of a Set: its questions, its answers and its state. The state and its rules are
//! pure; the shell around them makes each change durable before the answer leaves (S5).
//!
//! ```text
//!  service ──▶ asker ──▶ writer (one thread): state.ask ──▶ files.keep (one sync) ──▶ answers
//! ```

pub mod config;
mod directory;
mod frame;
mod identity;
mod journal;
mod metrics;
mod progress_file;
mod record;
mod serve;
mod service;
pub mod state;
mod writer;

pub use config::{StoreConfig, StoreConfigError};
pub use identity::{FilesError, FramePlace, Identity};
pub use serve::{Replica, ServeError, Start};
