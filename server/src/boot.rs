//! The composition root: opens what lies at the bottom, and puts each layer on the one beneath it.
//!
//! [`start`] goes up in four steps, a file each: `storage`, `core`, `tables`, `web`. The first that fails ends the start with what to do.
//! [`RunningServer`] goes down again the other way. [`Storage`], SQLite or PostgreSQL, is what the operator's commands share with it: they
//! open it in `database`, and go on in `others`, `issued`, `sequences`, `transfer`, `verify` and `status`.

use futures_util::future::LocalBoxFuture;
use tidemark_process::Version;

use crate::config::Config;
use crate::domain::Clock;

mod bad_file;
mod chance;
mod core;
mod database;
mod error;
mod file_place;
mod files;
mod issued;
mod listen;
mod options;
mod others;
mod push;
mod running;
mod sequences;
mod status;
mod storage;
mod tables;
mod tasks;
mod transfer;
mod verify;
mod web;

pub use bad_file::BadFile;
pub use chance::new_history;
pub use database::{Storage, is_installed, only_on_sqlite, search_index_beside};
pub use error::BootError;
pub use file_place::files_place;
pub use issued::{numbers_of_users, renew_numbers, renew_stored_numbers};
pub use others::{Hinting, begin_another_life};
pub use running::{RunningServer, Unfinished};
pub use sequences::{as_installed, sequencer};
pub use status::status;
pub use transfer::{directory_of_files, export_snapshot, files_to_back_up, place_to_restore};
pub use verify::{Verified, verify};

/// Starts everything, in the order in which a message comes back up.
///
/// Boxed, as [`RunningServer::stop`] is: the whole server is compiled once, in this library, and not again in each program that starts one.
pub fn start(
    config: &Config,
    clock: Clock,
    version: Version,
) -> LocalBoxFuture<'_, Result<RunningServer, BootError>> {
    Box::pin(async move {
        let config = &*as_installed(config)?;
        let bottom = storage::open(config, clock).await?;
        let core = core::start(config, &bottom).await?;
        let (to_serve, tables) = tables::start(config, &bottom, &core).await?.unzip();
        let web = web::start(config, version, &bottom, &core, to_serve).await?;
        Ok(RunningServer { bottom, core, tables, web })
    })
}
