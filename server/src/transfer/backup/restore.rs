//! Makes files of an installation from a backup. `tidemark restored` has to follow: until then no server takes them.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Read, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use indicatif::ProgressBar;

use super::error::BackupError;
use super::format::Role;
use super::reader::Whole;
use super::take::enough;
use crate::domain::Timestamp;
use crate::store::sqlite::private::{self, directory_of};
use crate::store::sqlite::{Journal, restoring_at, settle_restored, verify_database};

/// Room for what is made beside the databases.
const BESIDE: u64 = 8 << 20;

/// Where the files go.
#[derive(Clone, Debug)]
pub struct Place {
    /// The main database.
    pub main: PathBuf,
    /// The numbers of users, groups and invitations.
    pub ids: PathBuf,
}

/// Restores the files of `whole`. Returns its moment.
///
/// # Errors
/// When there is something already, the backup is damaged or something cannot be written; then nothing is left.
pub fn restore(whole: &mut Whole, place: &Place, progress: &ProgressBar) -> Result<Timestamp, BackupError> {
    place.begin()?;
    place.or_nothing(|| place.write(whole, progress))
}

/// The same from a stream, of which a copy is kept meanwhile.
///
/// # Errors
/// As [`restore`].
pub fn restore_stream(
    mut from: impl Read,
    place: &Place,
    progress: &ProgressBar,
) -> Result<Timestamp, BackupError> {
    place.begin()?;
    let copy = place.stream();
    place.or_nothing(|| {
        let mut file = new_file(&copy)?;
        io::copy(&mut from, &mut file).map_err(BackupError::at(&copy))?;
        let mut whole = Whole::open(&copy)?;
        // A kill leaves none.
        fs::remove_file(&copy).map_err(BackupError::at(&copy))?;
        place.write(&mut whole, progress)
    })
}

impl Place {
    /// Refuses a directory with something in it, and makes one that is missing. From now on no server takes it.
    fn begin(&self) -> Result<(), BackupError> {
        let directory = directory_of(&self.main);
        match fs::read_dir(directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                private::make_directory(directory).map_err(BackupError::at(directory))?;
            }
            found => {
                if found.map_err(BackupError::at(directory))?.next().is_some() {
                    return Err(BackupError::NotEmpty { directory: directory.to_owned() });
                }
            }
        }
        new_file(&restoring_at(&self.main)).map(drop)
    }

    /// The copy of a stream.
    fn stream(&self) -> PathBuf {
        self.main.with_extension("restore.stream")
    }

    /// Does `work`. If it fails, nothing is left of it.
    fn or_nothing(
        &self,
        work: impl FnOnce() -> Result<Timestamp, BackupError>,
    ) -> Result<Timestamp, BackupError> {
        work().inspect_err(|_| {
            let part = restoring_at(&self.main);
            let with = |ending: &str| PathBuf::from(format!("{}{ending}", part.display()));
            let all = [self.stream(), self.ids.clone(), self.main.clone(), with("-wal"), with("-shm")];
            // The last is what keeps servers away. Why it failed is said, not what removing adds to that.
            let all = all.into_iter().chain(Journal::paths_beside(&self.main)).chain([part]);
            all.for_each(|path| _ = fs::remove_file(path));
        })
    }

    /// The database gets its name last.
    fn write(&self, whole: &mut Whole, progress: &ProgressBar) -> Result<Timestamp, BackupError> {
        enough(directory_of(&self.main), whole.length().saturating_add(BESIDE))?;
        progress.set_message("restoring");
        progress.set_length(2 * whole.length());
        let part = restoring_at(&self.main);
        write_file(whole, Role::Database, &part, progress)?;
        write_file(whole, Role::Ids, &self.ids, progress)?;
        let batches = whole.batches()?;
        progress.set_message("checking");
        let damaged = verify_database(&part, |bytes| progress.inc(bytes)).map_err(BackupError::at(&part))?;
        if let Some(damaged) = damaged.first() {
            return Err(whole.damaged(damaged));
        }
        settle_restored(&self.main, &batches)?;
        Ok(whole.moment())
    }
}

/// A file for its owner alone, which is not there yet.
fn new_file(path: &Path) -> Result<File, BackupError> {
    let new = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    new.map_err(BackupError::at(path))
}

fn write_file(whole: &mut Whole, role: Role, to: &Path, progress: &ProgressBar) -> Result<(), BackupError> {
    if whole.manifest.file(role).is_none() {
        return Ok(());
    }
    let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(to);
    let mut file = BufWriter::with_capacity(1 << 20, file.map_err(BackupError::at(to))?);
    whole.read_file(role, |bytes| {
        progress.inc(bytes.len() as u64);
        file.write_all(bytes).map_err(BackupError::at(to))
    })?;
    let written = file.into_inner().map_err(io::IntoInnerError::into_error);
    written.and_then(|file| file.sync_all()).map_err(BackupError::at(to))
}
