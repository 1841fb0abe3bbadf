//! Reads the files of an installation whole, also beside the server that has them, and says what in them is damaged.

use std::fs;
use std::path::PathBuf;

use super::database::{check_installed, only_on_sqlite};
use super::error::BootError;
use super::files::databases;
use crate::config::Config;
use crate::store::sqlite::{Journal, required_files, verify_database, verify_log};

/// The result of [`verify`].
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
    let main = config.storage.file()?;
    let required = required_files(&main);
    // Files that do not belong to it yet may be missing.
    let beside = databases(config)?.into_iter();
    let beside = beside.filter(|(role, path)| path.exists() || required.iter().any(|known| known == role));
    let all: Vec<PathBuf> = std::iter::once(main.clone()).chain(beside.map(|(_, path)| path)).collect();
    let log = Journal::paths_beside(&main);
    if !all.iter().chain(&log).any(|path| path.exists()) {
        check_installed(config)?;
    }
    let length = |path: &PathBuf| fs::metadata(path).map_or(0, |found| found.len());
    begin(all.iter().chain(&log).map(length).sum());
    let files = all.iter().chain(&log).filter(|path| path.exists()).count();
    let mut damaged = Vec::new();
    for path in &all {
        let found = verify_database(path, &mut each);
        damaged.extend(found.map_err(|why| BootError::File { path: path.clone(), why })?);
    }
    damaged.extend(verify_log(&main));
    log.iter().for_each(|path| each(length(path)));
    Ok(Verified { files, damaged })
}
