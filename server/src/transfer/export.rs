//! Writes one moment of an installation into an archive, or finishes one that was interrupted.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, ErrorKind, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use indicatif::ProgressBar;
use sha2::{Digest as _, Sha256};

use super::error::TransferError;
use super::line::{ArchiveLine, Footer, Header, Totals};
use super::reader::ArchiveReader;
use super::values::hex;
use crate::domain::Timestamp;
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
    /// Whether nothing of an interrupted export was kept, since the installation has changed.
    pub is_begun_anew: bool,
}

/// Writes everything that `snapshot` holds into the file at `path`. When it returns, the file is durable. It holds exactly the contents of
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
    now: Timestamp,
    progress: &ProgressBar,
) -> Result<Exported, TransferError> {
    let about = snapshot.about().await?;
    progress.set_message("exporting");
    progress.set_length(about.totals.iter().sum());
    let header = Header::new(&about, now);
    let (mut writer, is_begun_anew) = match begin {
        Begin::New => (ArchiveWriter::create(path, &header)?, false),
        Begin::Resume => match InterruptedExport::in_file(path, &about)? {
            InterruptedExport::Whole => {
                return Ok(Exported { records: about.totals.iter().sum(), is_begun_anew: false });
            }
            InterruptedExport::Part(part) => (ArchiveWriter::resume(path, *part)?, false),
            InterruptedExport::Nothing => (ArchiveWriter::begin_anew(path, &header)?, false),
            InterruptedExport::Outdated => (ArchiveWriter::begin_anew(path, &header)?, true),
        },
    };
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
                writer.put(record)?;
            }
            progress.set_position(writer.totals.all());
        }
    }
    let records = writer.totals.all();
    if writer.totals != Totals::of(about.totals) {
        let why =
            format!("the counts changed while it was read: {:?} became {:?}", about.totals, writer.totals);
        return Err(crate::store::StoreError::corrupt(why).into());
    }
    writer.finish()?;
    Ok(Exported { records, is_begun_anew })
}

/// The state of the file of an interrupted export.
enum InterruptedExport {
    /// It is complete.
    Whole,
    /// A part of the current contents.
    Part(Box<ArchivePart>),
    /// A part of earlier contents.
    Outdated,
    /// No byte.
    Nothing,
}

/// Complete lines of an archive.
struct ArchivePart {
    length: u64,
    hash: Sha256,
    totals: Totals,
    last: Option<RecordKey>,
}

impl InterruptedExport {
    fn in_file(path: &Path, about: &About) -> Result<InterruptedExport, TransferError> {
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
        let (mut totals, mut last) = (Totals::default(), None);
        while let Some(line) = reader.next()? {
            match line {
                ArchiveLine::Record(record) => {
                    totals.count(&record);
                    last = Some(record.key());
                }
                ArchiveLine::Footer(_) if header.is_of(about) => return Ok(InterruptedExport::Whole),
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
        Ok(InterruptedExport::Part(Box::new(ArchivePart { length, hash: reader.into_hash(), totals, last })))
    }
}

/// An archive while it is written.
struct ArchiveWriter {
    path: PathBuf,
    file: BufWriter<File>,
    hash: Sha256,
    totals: Totals,
    /// The record that was written last.
    last: Option<RecordKey>,
}

impl ArchiveWriter {
    fn create(path: &Path, header: &Header) -> Result<ArchiveWriter, TransferError> {
        let fault = |source: std::io::Error| match source.kind() {
            ErrorKind::AlreadyExists => TransferError::Exists { path: path.to_owned() },
            _ => TransferError::File { path: path.to_owned(), source },
        };
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map_err(fault)?;
        let mut writer = ArchiveWriter::over(path, file, Sha256::new(), Totals::default(), None);
        writer.line(&ArchiveLine::Header(header.clone()))?;
        Ok(writer)
    }

    /// Goes on after these lines.
    fn resume(path: &Path, part: ArchivePart) -> Result<ArchiveWriter, TransferError> {
        let file = ArchiveWriter::cut(path, part.length)?;
        Ok(ArchiveWriter::over(path, file, part.hash, part.totals, part.last))
    }

    /// Writes all of it again.
    fn begin_anew(path: &Path, header: &Header) -> Result<ArchiveWriter, TransferError> {
        let mut writer =
            ArchiveWriter::over(path, ArchiveWriter::cut(path, 0)?, Sha256::new(), Totals::default(), None);
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

    fn over(path: &Path, file: File, hash: Sha256, totals: Totals, last: Option<RecordKey>) -> ArchiveWriter {
        let file = BufWriter::with_capacity(1 << 20, file);
        ArchiveWriter { path: path.to_owned(), file, hash, totals, last }
    }

    fn put(&mut self, record: Record) -> Result<(), TransferError> {
        self.totals.count(&record);
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
        self.line(&ArchiveLine::Footer(Footer::new(self.totals, sha256)))?;
        let flushed = self.file.flush().and_then(|()| self.file.get_ref().sync_all());
        flushed.map_err(|source| self.fault(source))?;
        sync_directory_of(&self.path).map_err(|source| self.fault(source))
    }

    fn fault(&self, source: std::io::Error) -> TransferError {
        TransferError::File { path: self.path.clone(), source }
    }
}
