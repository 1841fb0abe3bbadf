//! A base backup of PostgreSQL, as `pg_basebackup` writes one: whether it is as it was written, and of when. PostgreSQL's own
//! `pg_verifybackup` reads it.

use std::fs::{self, File};
use std::io::{self, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;

use super::error::BackupError;
use super::format::MOST_MANIFEST;
use crate::domain::Timestamp;

const MANIFEST: &str = "backup_manifest";

/// It is written when the backup begins.
const LABEL: &str = "backup_label";

const PROGRAM: &str = "pg_verifybackup";

/// The part of PostgreSQL's manifest that says of when it is.
#[derive(Deserialize)]
struct Listing {
    #[serde(rename = "Files")]
    files: Vec<Listed>,
}

#[derive(Deserialize)]
struct Listed {
    #[serde(rename = "Path", default)]
    path: String,
    #[serde(rename = "Last-Modified")]
    modified: String,
}

/// Whether `directory` is a base backup, in PostgreSQL's plain format.
pub fn is_base_backup(directory: &Path) -> bool {
    directory.join(MANIFEST).is_file()
}

/// Reads all of the base backup in `directory`. Returns when it was begun.
///
/// # Errors
/// What `pg_verifybackup` finds wrong, or that it is not there.
pub fn check_base_backup(directory: &Path) -> Result<Timestamp, BackupError> {
    let bad = |what: String| BackupError::BaseBackup { path: directory.to_owned(), what };
    let version = fs::read_to_string(directory.join("PG_VERSION")).unwrap_or_default();
    let verifying = Command::new(program(version.trim()))
        .args(["--quiet", "--exit-on-error", "--"])
        .arg(directory)
        .stdin(Stdio::null())
        .output()
        .map_err(|why| match why.kind() {
            io::ErrorKind::NotFound => BackupError::NoVerifier { version: version.trim().to_owned() },
            _ => BackupError::File { path: PROGRAM.into(), source: why },
        })?;
    if !verifying.status.success() {
        let said = String::from_utf8_lossy(&verifying.stderr);
        return Err(bad(said.lines().next().unwrap_or("pg_verifybackup failed without a word").to_owned()));
    }
    let path = directory.join(MANIFEST);
    let file = File::open(&path).map_err(BackupError::at(&path))?.take(MOST_MANIFEST);
    let listing: Listing = serde_json::from_reader(BufReader::new(file))
        .map_err(|error| bad(format!("{MANIFEST} cannot be read: {error}")))?;
    let label = listing.files.iter().find(|listed| listed.path == LABEL);
    let begun = label.and_then(|label| label.modified.strip_suffix(" GMT"));
    let begun = begun.and_then(|time| Timestamp::from_rfc3339(&format!("{}Z", time.replace(' ', "T"))));
    begun.ok_or_else(|| bad(format!("{MANIFEST} does not say when {LABEL} was written")))
}

/// `pg_verifybackup` of that version of PostgreSQL; Debian keeps it out of the path.
fn program(version: &str) -> PathBuf {
    let of_version = PathBuf::from(format!("/usr/lib/postgresql/{version}/bin/{PROGRAM}"));
    let is_number = !version.is_empty() && version.bytes().all(|digit| digit.is_ascii_digit());
    if is_number && of_version.exists() { of_version } else { PROGRAM.into() }
}
