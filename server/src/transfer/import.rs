//! Fills an empty installation from an archive that was checked, or goes on where that was interrupted.

use std::path::Path;

use indicatif::ProgressBar;
use seqsvr_core::Sequencer;

use super::check::Checked;
use super::error::TransferError;
use super::file_parts::PartWriter;
use super::line::ArchiveLine;
use super::reader::ArchiveReader;
use crate::domain::HistoryId;
use crate::files::FilePlace;
use crate::store::archive::{FilePart, Import, Record};

/// Records of a transaction.
const CHUNK: usize = 5_000;
/// Bytes of rows of tables, each of which may have megabytes, and of files that a transaction stands for; a chunk with so many is stored.
const CHUNK_BYTES: usize = 16 << 20;

/// Begins to fill the installation from the archive that `checked` is about, or finds that this was begun. Other work for a new life of
/// the data is done after it and before [`import`], which may be called without it.
///
/// # Errors
/// When the installation is not empty or another import was begun, and nothing may be done to it.
pub async fn begin(into: &mut dyn Import, checked: &Checked) -> Result<(), TransferError> {
    Ok(into.begin(&checked.source).await.map(drop)?)
}

/// What is filled.
pub struct Filling<'a> {
    /// Takes the records.
    pub into: &'a mut dyn Import,
    /// Numbers the rows; `None`: the database assigns the ids.
    pub sequencer: Option<&'a dyn Sequencer>,
    /// Takes the bytes of files.
    pub files: &'a FilePlace,
}

/// Stores the records of the archive at `path`, which [`check`](super::check()) found to be as `checked` says, under
/// `history` (a new one). Says how many had been stored by an earlier, interrupted run.
///
/// Ceilings come first: were rows there without them, a crash in between could give a stored number again (I6). Where the database
/// assigns the ids there is no sequencer, and the latest ids come with accounts and rows. Bytes of files are durable before they count as
/// stored; nothing counts in the middle of an object.
///
/// # Errors
/// When the installation is not empty, the file changed in between, or storage fails; running it again with the same
/// file goes on.
pub async fn import(
    Filling { into, sequencer, files }: Filling<'_>,
    path: &Path,
    checked: &Checked,
    history: HistoryId,
    progress: &ProgressBar,
) -> Result<u64, TransferError> {
    let stored = into.begin(&checked.source).await?;
    if let Some(sequencer) = sequencer {
        for (uid, id) in checked.largest.values() {
            sequencer.advance(seqsvr_core::Uid::new(uid.0), id.get()).await?;
        }
    }
    progress.set_message("importing");
    progress.set_length(checked.records);
    let mut reader = ArchiveReader::open(path)?;
    let mut parts = PartWriter::into(files);
    let mut seen = 0;
    let mut chunk = Vec::with_capacity(CHUNK);
    let mut bytes = 0;
    loop {
        match reader.next()? {
            Some(ArchiveLine::Record(mut record)) => {
                seen += 1;
                let is_new = seen > stored;
                match &mut *record {
                    Record::File(file) => parts.begin(file),
                    Record::FilePart(part) if is_new => {
                        bytes += part.bytes.len();
                        let part = FilePart { bytes: std::mem::take(&mut part.bytes), ..*part };
                        parts.take(part).await?;
                    }
                    Record::FilePart(part) => parts.pass(part)?,
                    Record::FileGone(_) => parts.end(),
                    Record::TableRow(row) if is_new => bytes += row.key.len() + row.row.len(),
                    _ => {}
                }
                if is_new {
                    chunk.push(*record);
                }
            }
            Some(ArchiveLine::Header(_)) => {}
            Some(ArchiveLine::Footer(footer)) if footer.sha256 == checked.source => break,
            Some(ArchiveLine::Footer(_)) => {
                return Err(reader.fault("the file was changed during the import".to_owned()));
            }
            None => return Err(reader.cut_off()),
        }
        if (chunk.len() >= CHUNK || bytes >= CHUNK_BYTES) && parts.is_settled() {
            bytes = 0;
            into.write(std::mem::replace(&mut chunk, Vec::with_capacity(CHUNK))).await?;
            progress.set_position(seen);
        }
    }
    if !chunk.is_empty() {
        into.write(chunk).await?;
    }
    progress.set_position(seen);
    into.finish(history).await?;
    Ok(stored)
}
