//! The backups of a directory: their names, which say the moment, and which of them is wanted.

use std::fs;
use std::path::{Path, PathBuf};

use super::error::BackupError;
use super::format::{PART, moment_of};
use super::reader::Whole;
use crate::domain::Timestamp;

/// The backups in `directory`, oldest first.
///
/// # Errors
/// When it cannot be read.
pub(super) fn all(directory: &Path) -> Result<Vec<(Timestamp, PathBuf)>, BackupError> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).map_err(BackupError::at(directory))? {
        let entry = entry.map_err(BackupError::at(directory))?;
        if let Some(moment) = moment_of(Path::new(&entry.file_name())) {
            found.push((moment, entry.path()));
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// Removes what backups that were killed have left in `directory`. Nobody else writes there.
pub(super) fn tidy(directory: &Path) -> Result<(), BackupError> {
    for entry in fs::read_dir(directory).map_err(BackupError::at(directory))? {
        let path = entry.map_err(BackupError::at(directory))?.path();
        let is_part = path.extension().is_some_and(|ending| ending == PART)
            && path.file_stem().and_then(|name| moment_of(Path::new(name))).is_some();
        if is_part {
            fs::remove_file(&path).map_err(BackupError::at(&path))?;
        }
    }
    Ok(())
}

/// The backup at `path`, if that is a file, or, if it is a directory, the newest in it; none that is later than `at`.
///
/// # Errors
/// When there is none, or it is not as it was written.
pub fn chosen(path: &Path, at: Option<Timestamp>) -> Result<Whole, BackupError> {
    let is_directory = fs::metadata(path).map_err(BackupError::at(path))?.is_dir();
    if !is_directory {
        let whole = Whole::open(path)?;
        let first = whole.moment();
        return match at.is_some_and(|at| at < first) {
            true => Err(BackupError::TooEarly { path: path.to_owned(), first: first.to_rfc3339() }),
            false => Ok(whole),
        };
    }
    let all = all(path)?;
    let Some((first, _)) = all.first() else {
        return Err(BackupError::Nothing { directory: path.to_owned() });
    };
    let wanted = all.iter().rev().find(|(moment, _)| at.is_none_or(|at| *moment <= at));
    let Some((moment, file)) = wanted else {
        return Err(BackupError::TooEarly { path: path.to_owned(), first: first.to_rfc3339() });
    };
    let whole = Whole::open(file)?;
    match whole.moment() == *moment {
        true => Ok(whole),
        false => Err(whole.damaged("its name is that of another moment")),
    }
}
