//! Writes one moment of an installation into an archive, or finishes one that was interrupted.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, ErrorKind, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use indicatif::ProgressBar;
use sha2::{Digest as _, Sha256};

use super::error::TransferError;
use super::file_parts::read_parts;
use super::line::{ArchiveLine, Footer, Header, Totals};
use super::reader::ArchiveReader;
use super::values::hex;
use crate::domain::Timestamp;
use crate::files::FilePlace;
use crate::store::StoredFile;
use crate::store::archive::{About, ArchiveSection, ExportSnapshot, Record, RecordKey};
use crate::store::sqlite::private::sync_directory_of;

/// Records that are read at a time.
const PAGE: usize = 1_000;

/// Whether the file is new or an interrupted export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// Refuse it: the file is new.
    New,
    /// Finish it: after its last complete line while the installation is as it was, else from its beginning.
    Resume,
}

/// The result of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exported {
    /// Records in the file.
    pub records: u64,
    /// Files whose bytes were not there.
    pub gone: u64,
    /// Whether nothing of an interrupted export was kept, since the installation has changed.
    pub is_begun_anew: bool,
}

/// Writes everything that `snapshot` holds into the file at `path`; with `files`, the bytes of files that lie there, too. When it returns, the file is durable. It holds exactly the contents of
/// `snapshot`, even after interruptions and changes.
///
/// The file holds password hashes, so only its owner may read it. It is written with blocking calls: the command
/// that calls this has nothing else to do.
///
/// # Errors
/// When storage or the file fails; [`TransferError::CannotResume`] where there is no interrupted export of this history.
pub async fn export(
    snapshot: &mut dyn ExportSnapshot,
    path: &Path,
    begin: Begin,
    files: Option<&FilePlace>,
    now: Timestamp,
    progress: &ProgressBar,
) -> Result<Exported, TransferError> {
    let about = snapshot.about().await?;
    progress.set_message("exporting");
    progress.set_length(about.totals.iter().sum());
    let header = Header::new(&about, files.is_some(), now);
    let (mut writer, is_begun_anew) = match begin {
        Begin::New => (ArchiveWriter::create(path, &header)?, false),
        Begin::Resume => match InterruptedExport::in_file(path, &about, files.is_some())? {
            InterruptedExport::Whole(records) => {
                return Ok(Exported { records, gone: 0, is_begun_anew: false });
            }
            InterruptedExport::Part(part) => (ArchiveWriter::resume(path, *part)?, false),
            InterruptedExport::Nothing => (ArchiveWriter::begin_anew(path, &header)?, false),
            InterruptedExport::Outdated => (ArchiveWriter::begin_anew(path, &header)?, true),
        },
    };
    if let (Some(files), Some(file)) = (files, writer.file_begun.take()) {
        writer.put_parts(files, &file).await?;
    }
    let from = writer.last.as_ref().map_or(ArchiveSection::Accounts, RecordKey::section);
    for section in ArchiveSection::ALL.into_iter().filter(|section| *section >= from) {
        let mut after = writer.last.clone().filter(|key| key.section() == section);
        loop {
            let page = snapshot.page(section, after.clone(), PAGE).await?;
            if page.is_empty() {
                break;
            }
            after = page.last().map(Record::key);
            for record in page {
                let file = if let Record::File(file) = &record { Some(file.clone()) } else { None };
                writer.put(record)?;
                if let (Some(files), Some(file)) = (files, file) {
                    writer.put_parts(files, &file).await?;
                }
            }
            progress.set_position(writer.totals.all());
        }
    }
    let (records, gone) = (writer.totals.all() + writer.parts, writer.gone);
    if writer.totals != Totals::of(about.totals) {
        let why =
            format!("the counts changed while it was read: {:?} became {:?}", about.totals, writer.totals);
        return Err(crate::store::StoreError::corrupt(why).into());
    }
    writer.finish()?;
    Ok(Exported { records, gone, is_begun_anew })
}

/// The state of the file of an interrupted export.
enum InterruptedExport {
    /// It is complete, with so many records.
    Whole(u64),
    /// A part of the current contents.
    Part(Box<ArchivePart>),
    /// A part of earlier contents.
    Outdated,
    /// No byte.
    Nothing,
}

/// Complete lines of an archive.
#[derive(Default)]
struct ArchivePart {
    length: u64,
    hash: Sha256,
    totals: Totals,
    parts: u64,
    last: Option<RecordKey>,
    file: Option<Box<StoredFile>>,
}

impl InterruptedExport {
    fn in_file(path: &Path, about: &About, file_bytes: bool) -> Result<InterruptedExport, TransferError> {
        let refuse = |why: String| TransferError::CannotResume { path: path.to_owned(), why };
        let mut reader = ArchiveReader::open(path)?;
        let header = match reader.next()? {
            Some(ArchiveLine::Header(header)) => header,
            None if reader.is_empty()? => return Ok(InterruptedExport::Nothing),
            _ => return Err(refuse("it is not an interrupted export: its header is missing".to_owned())),
        };
        if header.history != about.history.0 {
            return Err(refuse("it is an export of another installation, or of another history".to_owned()));
        }
        if header.file_bytes != file_bytes && header.is_current() {
            let why = match file_bytes {
                true => "it was begun with --without-files; finish it with that, too",
                false => "it was begun with the bytes of files; finish it without --without-files",
            };
            return Err(refuse(why.to_owned()));
        }
        let (mut totals, mut parts, mut last, mut file) = (Totals::default(), 0, None, None);
        while let Some(line) = reader.next()? {
            match line {
                ArchiveLine::Record(record) => {
                    totals.count(&record);
                    parts += u64::from(matches!(*record, Record::FilePart(_) | Record::FileGone(_)));
                    last = Some(record.key());
                    match *record {
                        Record::File(begun) => file = Some(begun),
                        Record::FilePart(_) => {}
                        _ => file = None,
                    }
                }
                ArchiveLine::Footer(_) if header.is_of(about) => {
                    return Ok(InterruptedExport::Whole(totals.all() + parts));
                }
                ArchiveLine::Footer(_) => {
                    let at = &header.exported_at;
                    return Err(refuse(format!(
                        "it is complete, and shows the installation as it was at {at}"
                    )));
                }
                ArchiveLine::Header(_) => return Err(refuse("it has two headers".to_owned())),
            }
        }
        if !header.is_of(about) {
            return Ok(InterruptedExport::Outdated);
        }
        let length = reader.offset();
        let hash = reader.into_hash();
        Ok(InterruptedExport::Part(Box::new(ArchivePart { length, hash, totals, parts, last, file })))
    }
}

/// An archive while it is written.
struct ArchiveWriter {
    path: PathBuf,
    file: BufWriter<File>,
    hash: Sha256,
    totals: Totals,
    /// Lines with bytes of files, and those that say that they are gone.
    parts: u64,
    /// The latter alone, of this run.
    gone: u64,
    /// The record that was written last.
    last: Option<RecordKey>,
    /// The file whose parts an interrupted export has to go on with.
    file_begun: Option<Box<StoredFile>>,
}

impl ArchiveWriter {
    fn create(path: &Path, header: &Header) -> Result<ArchiveWriter, TransferError> {
        let fault = |source: std::io::Error| match source.kind() {
            ErrorKind::AlreadyExists => TransferError::Exists { path: path.to_owned() },
            _ => TransferError::File { path: path.to_owned(), source },
        };
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map_err(fault)?;
        let mut writer = ArchiveWriter::over(path, file, ArchivePart::default());
        writer.line(&ArchiveLine::Header(header.clone()))?;
        Ok(writer)
    }

    /// Goes on after these lines.
    fn resume(path: &Path, part: ArchivePart) -> Result<ArchiveWriter, TransferError> {
        let file = ArchiveWriter::cut(path, part.length)?;
        Ok(ArchiveWriter::over(path, file, part))
    }

    /// Writes all of it again.
    fn begin_anew(path: &Path, header: &Header) -> Result<ArchiveWriter, TransferError> {
        let mut writer = ArchiveWriter::over(path, ArchiveWriter::cut(path, 0)?, ArchivePart::default());
        writer.line(&ArchiveLine::Header(header.clone()))?;
        Ok(writer)
    }

    /// Opens the file behind its first `length` bytes; the rest is gone.
    fn cut(path: &Path, length: u64) -> Result<File, TransferError> {
        let fault = |source| TransferError::File { path: path.to_owned(), source };
        let mut file = OpenOptions::new().write(true).open(path).map_err(fault)?;
        file.set_len(length).map_err(fault)?;
        file.seek(SeekFrom::Start(length)).map_err(fault)?;
        Ok(file)
    }

    fn over(path: &Path, file: File, part: ArchivePart) -> ArchiveWriter {
        let ArchivePart { hash, totals, parts, last, file: begun, .. } = part;
        let (path, file) = (path.to_owned(), BufWriter::with_capacity(1 << 20, file));
        ArchiveWriter { path, file, hash, totals, parts, gone: 0, last, file_begun: begun }
    }

    /// Adds the parts of the file that was put last, behind those that are there.
    async fn put_parts(&mut self, files: &FilePlace, file: &StoredFile) -> Result<(), TransferError> {
        let after = if let Some(RecordKey::File(_, part)) = self.last { part } else { 0 };
        let is_there = read_parts(files, file, after, |part| self.put(Record::FilePart(part))).await?;
        if !is_there {
            self.gone += 1;
            self.put(Record::FileGone(file.facts.id))?;
        }
        Ok(())
    }

    fn put(&mut self, record: Record) -> Result<(), TransferError> {
        self.totals.count(&record);
        self.parts += u64::from(matches!(record, Record::FilePart(_) | Record::FileGone(_)));
        self.last = Some(record.key());
        self.line(&ArchiveLine::Record(Box::new(record)))
    }

    fn line(&mut self, line: &ArchiveLine) -> Result<(), TransferError> {
        let text = line.write()?;
        self.hash.update(&text);
        self.file.write_all(text.as_bytes()).map_err(|source| self.fault(source))
    }

    fn finish(mut self) -> Result<(), TransferError> {
        let sha256 = hex(&self.hash.clone().finalize());
        self.line(&ArchiveLine::Footer(Footer::new(self.totals, self.parts, sha256)))?;
        let flushed = self.file.flush().and_then(|()| self.file.get_ref().sync_all());
        flushed.map_err(|source| self.fault(source))?;
        sync_directory_of(&self.path).map_err(|source| self.fault(source))
    }

    fn fault(&self, source: std::io::Error) -> TransferError {
        TransferError::File { path: self.path.clone(), source }
    }
}
