//! The files of messages beside the backups of their database: a directory `files` in that of the backups, with the same objects.
//!
//! An object never changes, so each is copied once. Those that the installation has no more stay for as long as a backup is there that
//! was made before they went: the time of the last backup that saw an object stands in the object's own time.

use std::fs::{self, File, FileTimes, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use indicatif::ProgressBar;

use super::error::BackupError;
use super::format::PART;
use super::series;
use crate::domain::Timestamp;
use crate::store::sqlite::private::{self, sync_directory_of};

/// Their place among the backups.
const FILES: &str = "files";

/// What an object that is still being written has in its name.
const UNFINISHED: char = '#';

/// The outcome of a copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Copied {
    /// Objects that were not there yet.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Objects that should have been there, and are not.
    pub missing: u64,
}

/// Copies the objects in `from` that the directory of backups lacks, and notes that those there were seen at `now`.
///
/// # Errors
/// When something cannot be read or written. What was copied stays.
pub fn copy_files(
    from: &Path,
    backups: &Path,
    now: Timestamp,
    progress: &ProgressBar,
) -> Result<Copied, BackupError> {
    let to = backups.join(FILES);
    let mut copied = Copied::default();
    progress.set_message("copying files");
    for object in objects(from)? {
        let target = to.join(&object);
        match fs::metadata(&target) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let Some(bytes) = copy(&from.join(&object), &target)? else { continue };
                (copied.objects, copied.bytes) = (copied.objects + 1, copied.bytes + bytes);
                progress.inc(bytes);
            }
            Err(error) => return Err(BackupError::at(&target)(error)),
        }
        seen(&target, now).map_err(BackupError::at(&target))?;
    }
    Ok(copied)
}

/// Removes copies that no backup in the directory needs: those that were last seen before the oldest one was made.
///
/// # Errors
/// When something cannot be read or removed.
pub fn forget_files(backups: &Path) -> Result<(), BackupError> {
    let Some((oldest, _)) = series::all(backups)?.into_iter().next() else { return Ok(()) };
    let (files, oldest) = (backups.join(FILES), system_time(oldest));
    for object in objects(&files)? {
        let path = files.join(object);
        let last = fs::metadata(&path).and_then(|found| found.modified()).map_err(BackupError::at(&path))?;
        if last < oldest {
            fs::remove_file(&path).map_err(BackupError::at(&path))?;
        }
    }
    Ok(())
}

/// Puts these objects of the directory of backups back into an installation.
///
/// # Errors
/// When something cannot be read or written.
pub fn restore_files(
    backups: &Path,
    to: &Path,
    objects: impl IntoIterator<Item = PathBuf>,
) -> Result<Copied, BackupError> {
    let from = backups.join(FILES);
    let mut copied = Copied::default();
    for object in objects {
        match copy(&from.join(&object), &to.join(&object))? {
            Some(bytes) => (copied.objects, copied.bytes) = (copied.objects + 1, copied.bytes + bytes),
            None => copied.missing += 1,
        }
    }
    Ok(copied)
}

/// The objects below `directory`, as paths in it; none where it is not there.
fn objects(directory: &Path) -> Result<Vec<PathBuf>, BackupError> {
    let (mut found, mut left) = (Vec::new(), vec![PathBuf::new()]);
    while let Some(below) = left.pop() {
        let path = directory.join(&below);
        let entries = match fs::read_dir(&path) {
            // A folder goes with its file, also while this looks.
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            entries => entries.map_err(BackupError::at(&path))?,
        };
        for entry in entries {
            let entry = entry.map_err(BackupError::at(&path))?;
            let name = below.join(entry.file_name());
            if entry.file_type().map_err(BackupError::at(&path))?.is_dir() {
                left.push(name);
            } else if !entry.file_name().to_string_lossy().contains([UNFINISHED, '.']) {
                found.push(name);
            }
        }
    }
    Ok(found)
}

/// Copies a file whole or not at all, and returns its bytes; `None`: it is not there any more.
fn copy(from: &Path, to: &Path) -> Result<Option<u64>, BackupError> {
    let mut source = match File::open(from) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        source => source.map_err(BackupError::at(from))?,
    };
    let directory = private::directory_of(to);
    private::make_directory(directory).map_err(BackupError::at(directory))?;
    // Several may copy at a time.
    let part = to.with_added_extension(format!("{}.{PART}", std::process::id()));
    let mut write = || -> io::Result<u64> {
        let mut target =
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&part)?;
        let bytes = io::copy(&mut source, &mut target)?;
        target.sync_all()?;
        fs::rename(&part, to)?;
        sync_directory_of(to)?;
        // The directory of all files, their folders, and the file: root may do this for somebody else.
        to.ancestors()
            .take(4)
            .collect::<Vec<_>>()
            .into_iter()
            .rev()
            .try_for_each(private::belong_to_directory)?;
        Ok(bytes)
    };
    match write() {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) => {
            // Why it failed is said, not what removing adds to that.
            _ = fs::remove_file(&part);
            Err(BackupError::at(to)(error))
        }
    }
}

fn seen(path: &Path, now: Timestamp) -> io::Result<()> {
    let times = FileTimes::new().set_modified(system_time(now));
    OpenOptions::new().write(true).open(path)?.set_times(times)
}

fn system_time(at: Timestamp) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_millis(u64::try_from(at.0).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::super::format::name_of;
    use super::*;

    #[test]
    fn copies_are_kept_for_as_long_as_a_backup_needs_them() {
        let place = tempfile::tempdir().expect("a directory");
        let (data, backups, restored) =
            (place.path().join("data"), place.path().join("backups"), place.path().join("new"));
        let put = |name: &str, bytes: &str| {
            let path = data.join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            fs::write(path, bytes).expect("written");
        };
        put("ab/abc/0001", "one");
        put("ab/abc/0002#1", "unfinished");
        let bar = ProgressBar::hidden();
        let at = |seconds: i64| Timestamp(1_795_261_438_000 + 1_000 * seconds);
        let copy = |seconds| copy_files(&data, &backups, at(seconds), &bar).expect("copied");
        assert_eq!(copy(0), Copied { objects: 1, bytes: 3, missing: 0 });
        fs::write(backups.join(name_of(at(1))), "").expect("written");
        put("ab/abd/0001", "two");
        assert_eq!(copy(2), Copied { objects: 1, bytes: 3, missing: 0 });
        fs::remove_file(data.join("ab/abc/0001")).expect("removed");
        copy(3);
        forget_files(&backups).expect("looked");
        let wanted = ["ab/abc/0001", "ab/abd/0001", "ab/abe/0001"].map(PathBuf::from);
        let back = restore_files(&backups, &restored, wanted).expect("restored");
        assert_eq!(back, Copied { objects: 2, bytes: 6, missing: 1 });
        assert_eq!(fs::read_to_string(restored.join("ab/abc/0001")).expect("there"), "one");
        // The backup that needs it goes.
        fs::rename(backups.join(name_of(at(1))), backups.join(name_of(at(4)))).expect("renamed");
        copy(5);
        forget_files(&backups).expect("looked");
        assert_eq!(objects(&backups.join(FILES)).expect("read"), [PathBuf::from("ab/abd/0001")]);
    }
}
