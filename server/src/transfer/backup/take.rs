//! Makes a backup: of the moment that is now, into a directory or a stream, beside the process that serves.

use std::collections::HashMap;
use std::fs::{self, OpenOptions, TryLockError};
use std::io::{BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use indicatif::ProgressBar;

use super::error::BackupError;
use super::format::{Chunk, MOST_BYTES, Manifest, PART, Role, Sum, name_of};
use super::reader::Whole;
use super::series;
use super::writer::Writer;
use crate::domain::{Clock, Timestamp};
use crate::store::StoreError;
use crate::store::sqlite::private::{self, sync_directory_of};
use crate::store::sqlite::{BackupMoment, alone, copy_database, free_bytes};

/// A series that is older gets no further backup: what is referred to must be kept as long as the newest of the series.
const LONGEST_SERIES: Duration = Duration::from_secs(7 * 24 * 3_600);

/// The copy of a database in the directory; it has a name for a moment only.
const COPY: &str = "copy.part";

/// Backups into a directory come one after the other.
const LOCK: &str = "lock";

const MIB: u64 = 1 << 20;

/// From where, by whom.
#[derive(Clone, Debug)]
pub struct Taking {
    /// The main database.
    pub main: PathBuf,
    /// The numbers of users, groups and invitations; may be missing.
    pub ids: PathBuf,
    /// The program's version.
    pub program: String,
    /// What time it is.
    pub clock: Clock,
}

/// A backup that was made and is good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    /// All that was answered before it is in the backup.
    pub moment: Timestamp,
    /// Where it lies.
    pub file: PathBuf,
    /// Bytes of the installation.
    pub length: u64,
    /// Bytes of the file.
    pub written: u64,
    /// Why it refers to no earlier one; `None`: it does.
    pub full_because: Option<String>,
}

/// What earlier backups have.
struct Base {
    known: HashMap<Sum, (u32, u64)>,
    sources: Vec<String>,
    series: String,
}

/// Makes one in `directory`, and reads it back. It refers to chunks of earlier ones, unless there are none that are good, or `full` is set.
///
/// # Errors
/// When the installation cannot be read, or the backup not be written whole; then nothing of it is left.
pub fn take(
    taking: &Taking,
    directory: &Path,
    full: bool,
    progress: &ProgressBar,
) -> Result<Taken, BackupError> {
    private::make_directory(directory).map_err(BackupError::at(directory))?;
    let lock = directory.join(LOCK);
    let _alone = alone(&lock).map_err(|error| match error {
        TryLockError::WouldBlock => BackupError::Busy { directory: directory.to_owned() },
        TryLockError::Error(source) => BackupError::File { path: lock, source },
    })?;
    series::tidy(directory)?;
    let newest = series::all(directory)?.pop();
    if let Some((newest, _)) = newest.as_ref().filter(|(newest, _)| *newest >= taking.clock.now()) {
        return Err(BackupError::Later { directory: directory.to_owned(), newest: newest.to_rfc3339() });
    }
    // Of which installation it is, also where it may not be referred to.
    let whose = newest.as_ref().and_then(|(_, path)| Some(Whole::open(path).ok()?.manifest.installation));
    let (newest, full_because) = match newest {
        None => (None, Some("it is the first one here".to_owned())),
        Some(_) if full => (None, Some("that was asked for".to_owned())),
        Some((_, path)) => match good(&path, taking.clock.now(), progress) {
            Ok(newest) => (Some(newest), None),
            Err(why) => (None, Some(why)),
        },
    };

    let moment = taking.clock.now();
    let mut taken = taking.take()?;
    if whose.is_some_and(|whose| whose != taken.installation) {
        return Err(BackupError::OfAnother { directory: directory.to_owned() });
    }
    let mut base = newest.map(|newest| Base::of(&newest));
    let length = taking.length(&taken)?;
    enough(directory, if base.is_some() { length } else { 2 * length })?;

    let file = directory.join(name_of(moment));
    let part = file.with_added_extension(PART);
    let mut write = || -> Result<(), BackupError> {
        let fault = BackupError::at;
        let to =
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(&part).map_err(fault(&part))?;
        let to = BufWriter::with_capacity(MIB as usize, to);
        let to =
            taking.write(&mut taken, moment, base.take(), &directory.join(COPY), (&part, to), progress)?;
        to.get_ref().sync_all().map_err(fault(&part))?;
        let mut whole = Whole::open(&part)?;
        progress.set_message("checking");
        whole.check_own(progress)?;
        fs::rename(&part, &file).map_err(fault(&file))?;
        sync_directory_of(&file).map_err(fault(directory))
    };
    if let Err(why) = write() {
        // Why it failed is said, not what removing adds to that.
        _ = fs::remove_file(&part);
        return Err(why);
    }
    let written = fs::metadata(&file).map_err(BackupError::at(&file))?.len();
    Ok(Taken { moment, file, length, written, full_because })
}

/// Writes a full one to `to`. Nothing reads it back.
///
/// # Errors
/// When the installation cannot be read, or `to` not be written.
pub fn take_stream(
    taking: &Taking,
    to: impl Write,
    progress: &ProgressBar,
) -> Result<Timestamp, BackupError> {
    let moment = taking.clock.now();
    let mut taken = taking.take()?;
    // Several may run at a time.
    let copy = taking.main.with_extension(format!("backup.{}.part", std::process::id()));
    let length = taking.length(&taken)?;
    enough(private::directory_of(&copy), length)?;
    let to = (Path::new("standard output"), BufWriter::with_capacity(MIB as usize, to));
    taking.write(&mut taken, moment, None, &copy, to, progress)?;
    Ok(moment)
}

impl Taking {
    fn take(&self) -> Result<BackupMoment, BackupError> {
        BackupMoment::take(&self.main).map_err(|why| self.unreadable(why))
    }

    /// Bytes of the main database, if a backup can hold so many.
    fn length(&self, taken: &BackupMoment) -> Result<u64, BackupError> {
        match taken.length().map_err(|why| self.unreadable(why))? {
            length if length > MOST_BYTES => Err(BackupError::TooLarge {
                path: self.main.clone(),
                gib: length >> 30,
                most: MOST_BYTES >> 30,
            }),
            length => Ok(length),
        }
    }

    fn unreadable(&self, source: StoreError) -> BackupError {
        BackupError::Installation { path: self.main.clone(), source }
    }

    /// Writes to `to`, which errors call by the name. The numbers are read after the moment: larger ones are safe, smaller ones would not
    /// be.
    fn write<W: Write>(
        &self,
        taken: &mut BackupMoment,
        moment: Timestamp,
        base: Option<Base>,
        copy: &Path,
        (name, to): (&Path, W),
        progress: &ProgressBar,
    ) -> Result<W, BackupError> {
        let fault = |source| BackupError::File { path: name.to_owned(), source };
        let unreadable = |why| self.unreadable(why);
        progress.set_message("copying");
        progress.set_position(0);
        progress.set_length(2 * taken.length().map_err(unreadable)?);
        let database = taken.copy(copy, |bytes| progress.inc(bytes)).map_err(unreadable)?;
        // The moment ends here; from now on nothing is kept for it.
        taken.end().map_err(unreadable)?;
        let ids = self.ids.exists().then(|| copy_database(&self.ids, copy)).transpose();
        let ids = ids.map_err(|source| BackupError::Installation { path: self.ids.clone(), source })?;

        progress.set_message("writing");
        let series = base.as_ref().map_or_else(|| moment.to_rfc3339(), |base| base.series.clone());
        let (known, sources) = base.map_or_else(Default::default, |base| (base.known, base.sources));
        let mut writer = Writer::begin(to, known).map_err(fault)?;
        writer.file(Role::Database, database, progress).map_err(fault)?;
        let batches: Vec<u8> = taken
            .batches
            .iter()
            .flat_map(|batch| {
                let length = u32::try_from(batch.len()).expect("a frame of the log names its bytes in four");
                [&length.to_le_bytes()[..], batch].concat()
            })
            .collect();
        writer.file(Role::Journal, &batches[..], progress).map_err(fault)?;
        if let Some(ids) = ids {
            writer.file(Role::Ids, ids, progress).map_err(fault)?;
        }
        let about = Manifest {
            program: self.program.clone(),
            migration: taken.migration,
            installation: taken.installation,
            history: taken.history.0,
            moment: moment.to_rfc3339(),
            series,
            sources,
            files: Vec::new(),
            sum: Sum::of(&[]),
        };
        writer.finish(about).map_err(fault)
    }
}

/// The newest backup, if the next one may refer to it; an error says why not.
fn good(path: &Path, now: Timestamp, progress: &ProgressBar) -> Result<Whole, String> {
    let cause = |why: BackupError| why.to_string().split(';').next().unwrap_or_default().to_owned();
    let mut newest = Whole::open(path).map_err(cause)?;
    let begun = Timestamp::from_rfc3339(&newest.manifest.series).unwrap_or(Timestamp(0));
    if now.0.saturating_sub(begun.0) > LONGEST_SERIES.as_millis() as i64 {
        return Err(format!("the earlier ones begin on {}", newest.manifest.series));
    }
    newest.check(progress).map_err(cause)?;
    Ok(newest)
}

impl Base {
    fn of(newest: &Whole) -> Base {
        let name = newest.path().file_name().unwrap_or_default().to_string_lossy().into_owned();
        let manifest = &newest.manifest;
        let chunks = manifest.files.iter().flat_map(|file| &file.chunks);
        let known = chunks.map(|Chunk(sum, source, offset)| (*sum, (source + 1, *offset))).collect();
        let sources = [name].into_iter().chain(manifest.sources.iter().cloned()).collect();
        Base { known, sources, series: manifest.series.clone() }
    }
}

/// Refuses a disk without so much room.
pub(super) fn enough(directory: &Path, bytes: u64) -> Result<(), BackupError> {
    match free_bytes(directory) {
        Some(free) if free < bytes => Err(BackupError::NoSpace {
            directory: directory.to_owned(),
            free: free / MIB,
            needed: bytes.div_ceil(MIB),
        }),
        _ => Ok(()),
    }
}
