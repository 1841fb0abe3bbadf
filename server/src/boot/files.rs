//! The files of an installation: whether all are there, whole, and of one moment; and readable by their owner alone.
//!
//! Called under the lock of the database, before any of the other files is opened. Going on without a file, or with an
//! older one, could lose what was accepted or give numbers a second time; so a start is refused, with the command that
//! helps. `judge` is pure.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};
use tracing::{info, warn};
use uuid::Uuid;

use super::bad_file::{BadFile, Wrong};
use super::chance::secret_in;
use super::error::BootError;
use crate::config::{Config, MessageIds, SequenceSource};
use crate::store::sqlite::private::{self, directory_of, sync_directory_of};
use crate::store::sqlite::stamp::{self, FileKind, Opened, Stamp, Start};
use crate::store::sqlite::{
    Db, Identity, Journal, LogError, SqliteSearch, check_log, forget_log, restoring_at,
};

const SEQUENCE: &str = "sequence";
const IDS: &str = "ids";

/// How to take files that do not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    /// They must belong together.
    Strict,
    /// Files were restored: what only says how far numbers were given may be older or missing.
    Restored,
}

/// On SQLite, where the segments of all other numbers are kept, and the secret of the codes of invitations.
pub(super) fn issuer_files(config: &Config) -> Result<(PathBuf, PathBuf), BootError> {
    let file = config.storage.file()?.with_file_name("ids.db");
    let secret = file.with_file_name("invites.key");
    Ok((file, secret))
}

/// A file beside the database.
struct Beside {
    role: &'static str,
    path: PathBuf,
}

/// The databases beside the main one.
fn beside(config: &Config) -> Result<Vec<Beside>, BootError> {
    let main = config.storage.file()?;
    let (ids, _) = issuer_files(config)?;
    let mut files = Vec::new();
    if config.message_ids() == MessageIds::Seqsvr && config.sequence.source == SequenceSource::Embedded {
        files.push(Beside { role: SEQUENCE, path: main.with_file_name("sequence.db") });
    }
    files.push(Beside { role: IDS, path: ids });
    Ok(files)
}

/// The databases beside the main one: their roles, and where they lie.
pub(super) fn databases(config: &Config) -> Result<Vec<(&'static str, PathBuf)>, BootError> {
    Ok(beside(config)?.into_iter().map(|Beside { role, path }| (role, path)).collect())
}

/// Refuses a database that cannot be one, and a missing one whose other files are there. Makes nothing.
pub(super) fn check_database(config: &Config) -> Result<(), BootError> {
    let path = config.storage.file()?;
    let restoring = restoring_at(&path);
    if restoring.exists() {
        return Err(BadFile { path: restoring, wrong: Wrong::Restoring }.into());
    }
    let how = match stamp::look(&path) {
        None => return Ok(()),
        Some(FileKind::Missing) => "missing",
        Some(FileKind::Empty) => "empty",
        Some(FileKind::Damaged(why)) => {
            return Err(BadFile { path, wrong: Wrong::DamagedDatabase(why) }.into());
        }
        Some(FileKind::Unreadable(why)) => return Err(BadFile { path, wrong: Wrong::Unusable(why) }.into()),
        Some(_) => return Ok(()),
    };
    let used = |path: &Path| fs::metadata(path).is_ok_and(|found| found.len() > 0);
    let (_, key) = issuer_files(config)?;
    let others = beside(config)?.into_iter().map(|file| file.path).chain([key]);
    let others = others.chain(Journal::paths_beside(&path));
    match others.into_iter().find(|other| used(other)) {
        None => Ok(()),
        Some(beside) => Err(BadFile { path, wrong: Wrong::NoDatabase { how, beside } }.into()),
    }
}

/// Every file that may be there.
fn all_files(config: &Config) -> Result<Vec<PathBuf>, BootError> {
    let main = config.storage.file()?;
    let (_, key) = issuer_files(config)?;
    let databases = beside(config)?.into_iter().map(|file| file.path).chain([main.clone()]);
    let with = |path: &Path, ending: &str| PathBuf::from(format!("{}{ending}", path.display()));
    let mut all: Vec<PathBuf> =
        databases.flat_map(|path| [with(&path, "-wal"), with(&path, "-shm"), path]).collect();
    let words = SqliteSearch::beside(&main);
    all.extend([with(&words, "-wal"), with(&words, "-shm"), words]);
    all.extend([with(&main, ".lock"), key]);
    all.extend(Journal::paths_beside(&main));
    Ok(all)
}

/// Gives files that root has made, such as `tidemark restored`, to the owner of the data directory.
pub(super) fn give_to_owner(config: &Config) -> Result<(), BootError> {
    for path in all_files(config)? {
        private::belong_to_directory(&path).map_err(|why| BootError::File { path, why })?;
    }
    Ok(())
}

/// Takes away what others may do with the files, and with the data directory unless a database was named without it.
pub(super) fn make_private(config: &Config) -> Result<(), BootError> {
    let mut all = all_files(config)?;
    if config.storage.database_url.is_empty() {
        all.push(directory_of(&config.storage.file()?).to_owned());
    }
    let mut tightened = Vec::new();
    for path in all {
        match private::tighten(&path) {
            Ok(false) => {}
            Ok(true) => tightened.push(path.display().to_string()),
            Err(error) => {
                warn!(path = %path.display(), %error, "others may read this file, and that cannot be changed")
            }
        }
    }
    if !tightened.is_empty() {
        info!(files = tightened.join(", "), "others could read these; now their owner alone can");
    }
    Ok(())
}

/// Checks the files and gives all of them the stamp of this start; those that may be missing are made.
pub(super) async fn check_and_stamp(
    config: &Config,
    db: &Db,
    rule: Rule,
    token: Uuid,
    new_installation: Uuid,
) -> Result<(), BootError> {
    let (_, key) = issuer_files(config)?;
    let files = beside(config)?;
    // Side by side, here and below: a start waits for the slowest file and not for their sum.
    let open = |Beside { path, .. }: &Beside| {
        let path = path.clone();
        tokio::task::spawn_blocking(move || Opened::open(path))
    };
    let opening: Vec<_> = files.iter().map(open).collect();
    let mut opened = Vec::with_capacity(files.len());
    for (Beside { path, .. }, file) in files.iter().zip(opening) {
        opened.push(file.await.unwrap_or_else(|panic| Opened::unread(path.clone(), panic)));
    }
    let known = Identity::read(db).await?;
    if known.restoring && rule == Rule::Strict {
        return Err(BadFile { path: config.storage.file()?, wrong: Wrong::NotRestored }.into());
    }
    let key_there = match fs::read_to_string(&key) {
        Ok(secret) => Some(secret).filter(|secret| !secret.trim().is_empty()),
        Err(why) if why.kind() == ErrorKind::NotFound => None,
        Err(why) => return Err(BadFile { path: key, wrong: Wrong::Unusable(why.to_string()) }.into()),
    };
    for (Beside { role, path }, file) in files.iter().zip(&opened) {
        if let Err(wrong) = judge(&known, role, file.found()) {
            allow(rule, path, wrong)?;
        }
    }
    let log = check_log(db).await?;
    let is_lost = log.is_err();
    if let Err(LogError { path, bad }) = log {
        allow(rule, &path, bad.into())?;
    }
    if let Err(wrong) = judge_key(&known, key_there.as_deref()) {
        allow(rule, &key, wrong)?;
    }

    let last = known.current.map_or(0, |start| start.number);
    let installation = known.installation.unwrap_or(new_installation);
    // A start that did not come to its end has stamped some files already, and is continued.
    let start = known.next.unwrap_or(Start { number: last + 1, token });
    Identity::begin(db, installation, start, rule == Rule::Restored).await?;
    if is_lost {
        // Not earlier: if it ends here, no start goes on without the log, but `restored` alone.
        forget_log(db).await?;
    }
    let write = |(Beside { role, .. }, file): (&Beside, Opened)| {
        let stamp = Stamp { role: (*role).to_owned(), installation, start };
        tokio::task::spawn_blocking(move || file.stamp(&stamp))
    };
    let writes: Vec<_> = files.iter().zip(opened).map(write).collect();
    let mut stamped = Ok(());
    for (Beside { path, .. }, written) in files.iter().zip(writes) {
        let written = written.await.unwrap_or_else(|panic| Err(panic.to_string()));
        stamped =
            stamped.and(written.map_err(|why| BadFile { path: path.clone(), wrong: Wrong::Unusable(why) }));
    }
    stamped?;
    let secret = secret_in(&key)?;
    sync_directory_of(&key).map_err(|why| BootError::File { path: directory_of(&key).to_owned(), why })?;
    let roles: Vec<&str> = files.iter().map(|file| file.role).collect();
    Ok(Identity::finish(db, start, &roles, &fingerprint(&secret)).await?)
}

/// Identifies a secret without telling it.
pub(super) fn fingerprint(secret: &str) -> String {
    Sha256::digest(secret.trim()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Checks that the file that was `found` belongs beside the database.
fn judge(known: &Identity, role: &str, found: &FileKind) -> Result<(), Wrong> {
    let required = known.files.iter().any(|known| known == role);
    let stamp = match found {
        FileKind::Missing if required => return Err(Wrong::Missing),
        FileKind::Empty if required => return Err(Wrong::Empty),
        FileKind::Missing | FileKind::Empty => return Ok(()),
        FileKind::Newer => return Err(Wrong::NewerVersion),
        FileKind::Busy => return Err(Wrong::Busy),
        FileKind::Damaged(why) => return Err(Wrong::Damaged(why.clone())),
        FileKind::Unreadable(why) => return Err(Wrong::Unusable(why.clone())),
        FileKind::Unstamped => return Err(Wrong::Foreign),
        FileKind::Stamped(stamp) => stamp,
    };
    if stamp.role != role {
        return Err(Wrong::OtherRole(stamp.role.clone()));
    }
    if known.installation != Some(stamp.installation) {
        return Err(Wrong::Foreign);
    }
    // Not in use since another source of numbers was configured: the comparison with the rows sees to it.
    if !required || [known.current, known.next].contains(&Some(stamp.start)) {
        return Ok(());
    }
    let current = known.current.map_or(0, |start| start.number);
    Err(if stamp.start.number < current { Wrong::Older } else { Wrong::Newer })
}

fn judge_key(known: &Identity, secret: Option<&str>) -> Result<(), Wrong> {
    match (&known.key, secret) {
        (Some(_), None) => Err(Wrong::Missing),
        (Some(known), Some(secret)) if *known != fingerprint(secret) => Err(Wrong::Older),
        _ => Ok(()),
    }
}

/// Lets pass what `restored` makes good.
fn allow(rule: Rule, path: &Path, wrong: Wrong) -> Result<(), BootError> {
    let is_made_good = matches!(wrong, Wrong::Missing | Wrong::Empty | Wrong::Older | Wrong::Newer);
    let bad = BadFile { path: path.to_owned(), wrong };
    if rule == Rule::Restored && is_made_good {
        warn!("{}", bad.to_string().split(';').next().unwrap_or_default());
        return Ok(());
    }
    Err(bad.into())
}
