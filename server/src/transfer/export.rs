//! Writes one moment of an installation into an archive, or goes on where that was interrupted.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, ErrorKind, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use indicatif::ProgressBar;
use sha2::{Digest as _, Sha256};

use super::error::TransferError;
use super::line::{Footer, Header, Line, Totals};
use super::reader::Reader;
use super::record::hex;
use crate::domain::Timestamp;
use crate::store::archive::{About, ExportSnapshot, Key, Record, Section};

/// Records that are read at a time.
const PAGE: usize = 1_000;

/// What to do with a file of that name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// Refuse it: the file is new.
    New,
    /// Go on after its last complete line.
    Resume,
}

/// Writes everything that `snapshot` holds into the file at `path` and says how many records that are. When it
/// returns, the file is durable.
///
/// The file holds password hashes, so only its owner may read it. It is written with blocking calls: the command
/// that calls this has nothing else to do.
///
/// # Errors
/// When storage or the file fails; [`TransferError::CannotResume`] when the installation has changed since.
pub async fn export(
    snapshot: &mut dyn ExportSnapshot,
    path: &Path,
    begin: Begin,
    now: Timestamp,
    progress: &ProgressBar,
) -> Result<u64, TransferError> {
    let about = snapshot.about().await?;
    progress.set_message("exporting");
    progress.set_length(about.totals.iter().sum());
    let mut writer = match begin {
        Begin::New => Writer::create(path, &Header::new(&about, now))?,
        Begin::Resume => match Writer::resume(path, &about)? {
            Some(writer) => writer,
            None => return Ok(about.totals.iter().sum()),
        },
    };
    let from = writer.last.as_ref().map_or(Section::Accounts, Key::section);
    for section in Section::ALL.into_iter().filter(|section| *section >= from) {
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
    Ok(records)
}

/// An archive while it is written.
struct Writer {
    path: PathBuf,
    file: BufWriter<File>,
    hash: Sha256,
    totals: Totals,
    /// The record that was written last.
    last: Option<Key>,
}

impl Writer {
    fn create(path: &Path, header: &Header) -> Result<Writer, TransferError> {
        let fault = |source: std::io::Error| match source.kind() {
            ErrorKind::AlreadyExists => TransferError::Exists { path: path.to_owned() },
            _ => TransferError::File { path: path.to_owned(), source },
        };
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map_err(fault)?;
        let mut writer = Writer::over(path, file, Sha256::new(), Totals::default(), None);
        writer.line(&Line::Header(header.clone()))?;
        Ok(writer)
    }

    /// Goes on after the last complete line; `None` when the archive is complete.
    fn resume(path: &Path, about: &About) -> Result<Option<Writer>, TransferError> {
        let refuse = |why: &str| TransferError::CannotResume { path: path.to_owned(), why: why.to_owned() };
        let mut reader = Reader::open(path)?;
        match reader.next()? {
            Some(Line::Header(header)) if header.is_of(about) => {}
            Some(Line::Header(_)) => return Err(refuse("the installation has changed since it was begun")),
            _ => return Err(refuse("it has no header")),
        }
        let (mut totals, mut last) = (Totals::default(), None);
        while let Some(line) = reader.next()? {
            match line {
                Line::Record(record) => {
                    totals.count(&record);
                    last = Some(record.key());
                }
                Line::Footer(_) => return Ok(None),
                Line::Header(_) => return Err(refuse("it has two headers")),
            }
        }
        let offset = reader.offset();
        let fault = |source| TransferError::File { path: path.to_owned(), source };
        let mut file = OpenOptions::new().write(true).open(path).map_err(fault)?;
        file.set_len(offset).map_err(fault)?;
        file.seek(SeekFrom::Start(offset)).map_err(fault)?;
        Ok(Some(Writer::over(path, file, reader.into_hash(), totals, last)))
    }

    fn over(path: &Path, file: File, hash: Sha256, totals: Totals, last: Option<Key>) -> Writer {
        let file = BufWriter::with_capacity(1 << 20, file);
        Writer { path: path.to_owned(), file, hash, totals, last }
    }

    fn put(&mut self, record: Record) -> Result<(), TransferError> {
        self.totals.count(&record);
        self.last = Some(record.key());
        self.line(&Line::Record(Box::new(record)))
    }

    fn line(&mut self, line: &Line) -> Result<(), TransferError> {
        let text = line.write()?;
        self.hash.update(&text);
        self.file.write_all(text.as_bytes()).map_err(|source| self.fault(source))
    }

    fn finish(mut self) -> Result<(), TransferError> {
        let sha256 = hex(&self.hash.clone().finalize());
        self.line(&Line::Footer(Footer::new(self.totals, sha256)))?;
        let flushed = self.file.flush().and_then(|()| self.file.get_ref().sync_all());
        flushed.map_err(|source| self.fault(source))?;
        let directory = match self.path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        File::open(directory).and_then(|opened| opened.sync_all()).map_err(|source| self.fault(source))
    }

    fn fault(&self, source: std::io::Error) -> TransferError {
        TransferError::File { path: self.path.clone(), source }
    }
}
