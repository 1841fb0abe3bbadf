//! A segment: one of the two files of the log, open and locked.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, StatxFlags, statx};
use seqsvr_core::file_lock::FileLock;

use super::bad::BadLog;
use super::sector::{self, Frame, Header, SECTOR, START};
use crate::store::sqlite::private;

/// Bytes of free sectors that are written at a time.
const SOME: usize = 1 << 16;

pub(super) struct Segment {
    lock: FileLock,
    path: PathBuf,
    header: Header,
    /// In order, one behind the other.
    frames: Vec<Frame>,
    /// After so many more syncs one fails.
    #[cfg(test)]
    pub(super) fails_after: Option<u32>,
}

impl Segment {
    /// Makes one without a batch in place of any file at `path`; what the header says of the length is not looked at. Durable when it
    /// returns, but for its name.
    pub(super) fn make(path: &Path, header: Header) -> Result<Segment, BadLog> {
        private::make_file(path)?;
        let mut made = Segment::over(path, Header { length: 0, ..header })?;
        made.file().set_len(0)?;
        made.grow(START)?;
        Ok(made)
    }

    /// Opens the file at `path`, which nobody else has.
    pub(super) fn open(path: &Path) -> Result<(Segment, Vec<u8>), BadLog> {
        let lock = lock(path)?;
        let bytes = std::fs::read(path)?;
        let header = Header::decode(&bytes)?;
        let mut opened = Segment::over_lock(lock, path, header);
        opened.frames = sector::find(&bytes, &header)?;
        Ok((opened, bytes))
    }

    fn over(path: &Path, header: Header) -> Result<Segment, BadLog> {
        Ok(Segment::over_lock(lock(path)?, path, header))
    }

    fn over_lock(lock: FileLock, path: &Path, header: Header) -> Segment {
        Segment {
            lock,
            path: path.to_owned(),
            header,
            frames: Vec::new(),
            #[cfg(test)]
            fails_after: None,
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn header(&self) -> &Header {
        &self.header
    }

    pub(super) fn frames(&self) -> &[Frame] {
        &self.frames
    }

    /// The number of its last batch, or of the one behind which it begins.
    pub(super) fn last(&self) -> u64 {
        self.frames.last().map_or(self.header.first.saturating_sub(1), |frame| frame.seq)
    }

    /// Where the next frame goes.
    pub(super) fn end(&self) -> u64 {
        self.frames.last().map_or(START, Frame::end)
    }

    /// Writes a header, not synced.
    pub(super) fn write_header(&mut self, header: Header) -> io::Result<()> {
        self.file().write_all_at(&header.encode(), 0)?;
        self.header = header;
        Ok(())
    }

    /// Begins it anew behind the batch `after`; what it held is not needed any more. Not synced: until it is, either may be found.
    pub(super) fn begin(&mut self, after: u64) -> io::Result<()> {
        self.write_header(Header { first: after + 1, durable: after, ..self.header })?;
        self.frames.clear();
        Ok(())
    }

    /// Writes its frames behind the batch `after` anew, as they are in `bytes`: what was written before a sync that failed, and is only
    /// believed to lie on the disk, lies there after the next one.
    pub(super) fn write_again(&self, bytes: &[u8], after: u64) -> io::Result<()> {
        let from =
            self.frames.iter().find(|frame| frame.seq > after).map_or(self.end(), |frame| frame.offset);
        self.file().write_all_at(&bytes[from as usize..self.end() as usize], from)
    }

    /// Makes durable what was written.
    pub(super) fn sync(&mut self) -> io::Result<()> {
        #[cfg(test)]
        match self.fails_after.take() {
            Some(0) => return Err(io::Error::other("as the test says")),
            left => self.fails_after = left.map(|left| left - 1),
        }
        self.file().sync_data()
    }

    /// Makes the file at least so long. The sectors are there before the header says so. After an error it may be called again; what lies
    /// beyond the length that is known here is written anew then.
    pub(super) fn grow(&mut self, to: u64) -> io::Result<()> {
        let header = self.header;
        let mut some = Vec::with_capacity(SOME);
        for at in (header.length..to).step_by(SECTOR as usize) {
            sector::encode_free(header.log.id, at, &mut some);
            if some.len() >= SOME || at + SECTOR >= to {
                self.file().write_all_at(&some, at + SECTOR - some.len() as u64)?;
                some.clear();
            }
        }
        self.sync()?;
        let written = self.write_header(Header { length: to, ..header }).and_then(|()| self.sync());
        if written.is_err() {
            self.header = header;
        }
        written
    }

    /// Appends the frame of a batch, for which there is room. Not synced. `durable`: a number to write into the header with it.
    pub(super) fn append(
        &mut self,
        seq: u64,
        blob: &[u8],
        durable: Option<u64>,
        buffer: &mut Vec<u8>,
    ) -> io::Result<()> {
        let offset = self.end();
        buffer.clear();
        sector::encode(self.header.log.id, offset, seq, blob, buffer);
        if let Some(durable) = durable {
            self.write_header(Header { durable, ..self.header })?;
        }
        self.file().write_all_at(buffer, offset)?;
        self.frames.push(Frame { seq, offset, length: blob.len() });
        Ok(())
    }

    /// The blob of a batch.
    pub(super) fn read(&self, seq: u64) -> io::Result<Option<Vec<u8>>> {
        let Ok(at) = self.frames.binary_search_by_key(&seq, |frame| frame.seq) else { return Ok(None) };
        let frame = self.frames[at];
        let mut sectors = vec![0; sector::size(frame.length) as usize];
        self.file().read_exact_at(&mut sectors, frame.offset)?;
        Ok(Some(frame.blob(&sectors)))
    }

    /// Without a name the file is gone with the process, however durable it is.
    pub(super) fn check_name(&self) -> Result<(), BadLog> {
        // The names alone: once somebody has asked for the times of a file, Linux keeps the time of its next write exactly, and each sync
        // writes that, too.
        let about =
            statx(self.file(), "", AtFlags::EMPTY_PATH, StatxFlags::NLINK).map_err(io::Error::from)?;
        if about.stx_nlink == 0 { Err(BadLog::Removed) } else { Ok(()) }
    }

    fn file(&self) -> &File {
        self.lock.file()
    }
}

fn lock(path: &Path) -> Result<FileLock, BadLog> {
    Ok(FileLock::of(OpenOptions::new().read(true).write(true).open(path)?)?)
}
