//! Files that their owner alone may read and write, whatever the umask: they hold messages and the hashes of passwords.
//! SQLite gives the logs beside a database the mode of the database, so it is enough that this one is made first.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, lchown,
};
use std::path::Path;

const FILE: u32 = 0o600;
const DIRECTORY: u32 = 0o700;
const OTHERS: u32 = 0o077;
const STICKY: u32 = 0o1000;

/// The directory in which a file lies.
pub fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Makes a new name in the directory of `path` survive a power cut.
pub fn sync_directory_of(path: &Path) -> io::Result<()> {
    File::open(directory_of(path))?.sync_all()
}

/// Makes the directory, and those above it that are missing.
pub fn make_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(DIRECTORY).create(path)
}

/// Makes an empty file, unless something is there.
pub fn make_file(path: &Path) -> io::Result<()> {
    match OpenOptions::new().write(true).create_new(true).mode(FILE).open(path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// Takes away what others may do with what is at `path`: whether they could do anything. A directory that everybody shares (sticky,
/// as /tmp is) stays as it is.
pub fn tighten(path: &Path) -> io::Result<bool> {
    let found = match fs::metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        found => found?,
    };
    let mode = found.permissions().mode();
    if mode & OTHERS == 0 || (found.is_dir() && mode & STICKY != 0) {
        return Ok(false);
    }
    let most = if found.is_dir() { DIRECTORY } else { FILE };
    fs::set_permissions(path, Permissions::from_mode(mode & most))?;
    Ok(true)
}

/// Gives what root made at `path` to the owner of the directory, who serves from it. SQLite does the same with the logs beside a database.
pub fn belong_to_directory(path: &Path) -> io::Result<()> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let found = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        found => found?,
    };
    let directory = fs::metadata(directory_of(path))?;
    match found.uid() == 0 && directory.uid() != 0 {
        true => lchown(path, Some(directory.uid()), Some(directory.gid())),
        false => Ok(()),
    }
}
