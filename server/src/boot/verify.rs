//! Reads the files of an installation whole, also beside the server that has them, and says what in them is damaged.

use std::fs;
use std::path::{Path, PathBuf};

use super::BootError;
use super::files::databases;
use super::storage::{check_installed, only_on_sqlite};
use crate::config::Config;
use crate::store::sqlite::{Journal, LogError, verify_database, verify_log};

/// What was found.
#[derive(Debug, Default)]
pub struct Verified {
    /// How many files were read.
    pub files: usize,
    /// The damage, a line for each place.
    pub damaged: Vec<String>,
}

/// Reads all databases and the log. `each` is called with how many bytes were read, and `begin` with how many there are.
///
/// # Errors
/// When there is no installation, or one of PostgreSQL, or a file cannot be read.
pub fn verify(
    config: &Config,
    begin: impl FnOnce(u64),
    mut each: impl FnMut(u64),
) -> Result<Verified, BootError> {
    only_on_sqlite(config, "`tidemark verify`")?;
    check_installed(config)?;
    let databases = databases(config)?;
    let log = Journal::paths_beside(&config.storage.file()?);
    let length = |path: &PathBuf| fs::metadata(path).map_or(0, |found| found.len());
    begin(databases.iter().chain(&log).map(length).sum());
    let mut verified = Verified::default();
    for path in &databases {
        let damaged = verify_database(path, &mut each).map_err(|why| io(path, why))?;
        verified.damaged.extend(damaged);
        verified.files += 1;
    }
    for LogError { path, bad } in verify_log(&databases[0]) {
        verified.damaged.push(format!("{}: {bad}", path.file_name().unwrap_or_default().display()));
    }
    log.iter().for_each(|path| each(length(path)));
    verified.files += log.len();
    Ok(verified)
}

fn io(path: &Path, why: std::io::Error) -> BootError {
    BootError::File { path: path.to_owned(), why }
}
