//! Tests that need one server over its own files: starts, files, limits, an operator's commands.

mod admin;
mod backup;
mod backup_files;
mod backup_refused;
mod deletion_killed;
mod files;
mod flips;
mod ids;
pub(crate) mod operation;
mod operator;
mod presence;
mod restored;
mod search;
mod status;
mod upload_killed;
