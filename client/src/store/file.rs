//! Rows and cursor in one file, which survives a crash at any moment.
//!
//! The file is a log: a line per change, its checksum first, synced before it counts. A torn last line is cut off when
//! the file is opened. A change that takes rows away writes a new file beside the old one and renames it over it. A
//! lock file keeps a second process out.

use std::fs::{self, File, TryLockError};
use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::Store;
use crate::sync::{Position, StoreChange};
use crate::wire::Entry;

/// A store in a file. Its calls sync the disk, a few milliseconds each, off the async threads.
#[derive(Debug)]
pub struct FileStore {
    log: Arc<Mutex<Log>>,
}

#[derive(Debug)]
struct Log {
    path: PathBuf,
    /// Held for as long as the store lives.
    _lock: Lock,
    /// `None` after a failed write: what the file holds is unknown until it is opened anew.
    open: Option<StoreFile>,
}

#[derive(Debug)]
struct StoreFile {
    file: File,
    /// Bytes of whole lines.
    length: u64,
    position: Position,
}

/// One line; stored, must stay readable.
#[derive(Serialize, Deserialize)]
struct StoreLine {
    history: Option<String>,
    cursor: u64,
    rows: Vec<Entry>,
}

impl FileStore {
    /// Opens the file at `path`, or makes it; its folder must exist.
    ///
    /// # Errors
    /// When another process has it open, when it cannot be read or written, or when it holds something else.
    pub fn open(path: impl Into<PathBuf>) -> io::Result<FileStore> {
        let path = path.into();
        let lock = Lock::take(&path.with_added_extension("lock")).map_err(|error| match error {
            TryLockError::WouldBlock => io::Error::other(format!(
                "{} is in use by another client: give each its own file",
                path.display()
            )),
            TryLockError::Error(error) => error,
        })?;
        let open = StoreFile::at(&path)?;
        Ok(FileStore { log: Arc::new(Mutex::new(Log { path, _lock: lock, open: Some(open) })) })
    }

    /// All rows, oldest first, read from the file.
    pub fn rows(&self) -> io::Result<Vec<Entry>> {
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        let mut rows = Vec::new();
        read_lines(&File::open(&log.path)?, |line| rows.extend(line.rows))?;
        Ok(rows)
    }

    async fn with_log<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Log) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let log = Arc::clone(&self.log);
        let locked = move || work(&mut log.lock().unwrap_or_else(PoisonError::into_inner));
        tokio::task::spawn_blocking(locked).await.map_err(io::Error::other)?
    }
}

impl Store for FileStore {
    async fn load(&mut self) -> io::Result<Position> {
        self.with_log(|log| Ok(log.opened()?.position.clone())).await
    }

    async fn apply(&mut self, change: &StoreChange) -> io::Result<()> {
        if *change == StoreChange::None {
            return Ok(());
        }
        let change = change.clone();
        self.with_log(move |log| log.apply(change)).await
    }
}

/// A locked file, until it is dropped.
#[derive(Debug)]
struct Lock(File);

impl Lock {
    fn take(path: &Path) -> Result<Lock, TryLockError> {
        let file = File::create(path).map_err(TryLockError::Error)?;
        file.try_lock()?;
        Ok(Lock(file))
    }
}

impl Drop for Lock {
    /// Closing the file is not enough: a process that the application starts has a copy of the open file until it runs
    /// its own program.
    fn drop(&mut self) {
        // Only a file that is not locked or not open could refuse.
        let _ = self.0.unlock();
    }
}

impl Log {
    fn opened(&mut self) -> io::Result<&mut StoreFile> {
        match &mut self.open {
            Some(_) => {}
            closed => *closed = Some(StoreFile::at(&self.path)?),
        }
        self.open.as_mut().ok_or_else(|| io::Error::other("the file was not opened"))
    }

    fn apply(&mut self, change: StoreChange) -> io::Result<()> {
        self.opened()?;
        let Some(open) = self.open.take() else { return Err(io::Error::other("the file was not opened")) };
        let history = open.position.history.clone();
        self.open = Some(match change {
            StoreChange::None => open,
            StoreChange::Append { rows, cursor } => open.append(StoreLine { history, cursor, rows })?,
            StoreChange::Lower { cursor } => {
                let mut rows = Vec::new();
                read_lines(&File::open(&self.path)?, |line| rows.extend(line.rows))?;
                rows.retain(|row| row.message_id <= cursor);
                replace(&self.path, &StoreLine { history, cursor, rows })?
            }
            StoreChange::Reset { history } => {
                replace(&self.path, &StoreLine { history: Some(history), cursor: 0, rows: Vec::new() })?
            }
        });
        Ok(())
    }
}

impl StoreFile {
    /// Reads the whole file once and cuts off a torn end.
    fn at(path: &Path) -> io::Result<StoreFile> {
        let file = File::options().read(true).write(true).create(true).truncate(false).open(path)?;
        let mut position = Position::default();
        let length = read_lines(&file, |line| {
            position = Position { history: line.history, cursor: line.cursor };
        })?;
        file.set_len(length)?;
        file.sync_all()?;
        sync_folder(path)?;
        Ok(StoreFile { file, length, position })
    }

    fn append(mut self, line: StoreLine) -> io::Result<StoreFile> {
        let bytes = encode(&line)?;
        self.file.seek(SeekFrom::Start(self.length))?;
        self.file.write_all(&bytes)?;
        self.file.sync_data()?;
        self.length += bytes.len() as u64;
        self.position = Position { history: line.history, cursor: line.cursor };
        Ok(self)
    }
}

/// Puts a new file that holds only `line` in the place of the old one.
fn replace(path: &Path, line: &StoreLine) -> io::Result<StoreFile> {
    let beside = path.with_added_extension("new");
    let mut file = File::create(&beside)?;
    file.write_all(&encode(line)?)?;
    file.sync_all()?;
    fs::rename(&beside, path)?;
    sync_folder(path)?;
    StoreFile::at(path)
}

/// Makes a new name in the folder survive a power cut.
fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

fn encode(line: &StoreLine) -> io::Result<Vec<u8>> {
    let json = serde_json::to_string(line)?;
    Ok(format!("{:016x} {json}\n", checksum(json.as_bytes())).into_bytes())
}

fn decode(text: &[u8]) -> Option<StoreLine> {
    let text = std::str::from_utf8(text).ok()?.strip_suffix('\n')?;
    let (sum, json) = text.split_once(' ')?;
    (u64::from_str_radix(sum, 16).ok()? == checksum(json.as_bytes()))
        .then(|| serde_json::from_str(json).ok())?
}

/// Calls `each` for every whole line from the start; answers how many bytes they are.
///
/// # Errors
/// When a broken line is not the last one: that is damage, not a torn write, and cutting there would lose rows.
fn read_lines(file: &File, mut each: impl FnMut(StoreLine)) -> io::Result<u64> {
    let mut reader = BufReader::new(file);
    reader.seek(SeekFrom::Start(0))?;
    let (mut length, mut text) = (0, Vec::new());
    while reader.read_until(b'\n', &mut text)? > 0 {
        let Some(line) = decode(&text) else {
            if reader.fill_buf()?.is_empty() {
                return Ok(length);
            }
            let advice = "delete it to fetch everything again";
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("the file of rows is damaged at byte {length}: {advice}"),
            ));
        };
        each(line);
        length += text.len() as u64;
        text.clear();
    }
    Ok(length)
}

/// FNV-1a, 64 bits: tells a torn line from a whole one. Stored, must stay the same.
fn checksum(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::super::conformance::{self, position, row};
    use super::*;
    use crate::wire::Kind;

    fn append(ids: &[u64]) -> StoreChange {
        let cursor = ids.last().copied().expect("some");
        StoreChange::Append { rows: ids.iter().copied().map(row).collect(), cursor }
    }

    /// The rows are those of the wire; what changes there must still be read here.
    const STORED: &str = concat!(
        r#"3515f9b85f40d80d {"history":"h","cursor":7,"rows":[{"partition_key":"d9d4","receiver":10001,"message_id":"#,
        r#"7,"kind":"receipt","conversation":"u:10002","sender":10002,"client_id":"00000000-0000-0000-0000-000000000"#,
        r#"000","body":{"text":"line\n7"},"sent_at":"2026-01-01T00:00:00Z"}]}"#,
        "\n",
    );

    #[tokio::test]
    async fn the_bytes_of_a_line_stay_as_they_are() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("ann");
        let entry = Entry { kind: Kind::ReadMarker, client_id: Some(Uuid::nil()), ..row(7) };
        let line = StoreLine { history: Some("h".to_owned()), cursor: 7, rows: vec![entry.clone()] };
        assert_eq!(String::from_utf8(encode(&line).expect("written")).expect("text"), STORED);
        fs::write(&path, STORED).expect("written");
        let mut store = FileStore::open(&path).expect("opens");
        assert_eq!(store.load().await.expect("loads"), position("h", 7));
        assert_eq!(store.rows().expect("reads"), [entry]);
    }

    #[tokio::test]
    async fn a_file_keeps_the_contract() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = FileStore::open(folder.path().join("ann")).expect("opens");
        conformance::run(store, |store| store.rows().expect("reads")).await;
    }

    #[tokio::test]
    async fn a_crash_at_any_byte_leaves_a_whole_change_or_none() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("ann");
        let mut store = FileStore::open(&path).expect("opens");
        store.apply(&StoreChange::Reset { history: "h".to_owned() }).await.expect("stored");
        store.apply(&append(&[1, 2])).await.expect("stored");
        let before = fs::read(&path).expect("read").len();
        store.apply(&append(&[3])).await.expect("stored");
        drop(store);
        let whole = fs::read(&path).expect("read");
        for cut in before..whole.len() {
            fs::write(&path, &whole[..cut]).expect("cut");
            let mut store = FileStore::open(&path).expect("opens");
            assert_eq!(store.load().await.expect("loads"), position("h", 2), "cut at {cut}");
            store.apply(&append(&[3])).await.expect("stored again");
            drop(store);
            assert_eq!(fs::read(&path).expect("read"), whole);
        }
    }

    #[tokio::test]
    async fn damage_in_the_middle_is_reported_and_nothing_is_cut() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("ann");
        let mut store = FileStore::open(&path).expect("opens");
        store.apply(&append(&[1])).await.expect("stored");
        store.apply(&append(&[2])).await.expect("stored");
        drop(store);
        let mut bytes = fs::read(&path).expect("read");
        bytes[20] ^= 1;
        fs::write(&path, &bytes).expect("damaged");
        let error = FileStore::open(&path).expect_err("damage");
        assert!(error.to_string().contains("delete it"), "{error}");
        assert_eq!(fs::read(&path).expect("read"), bytes);
    }

    #[test]
    fn a_second_client_on_the_same_file_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("ann");
        let first = FileStore::open(&path).expect("opens");
        assert!(FileStore::open(&path).expect_err("in use").to_string().contains("in use"));
        drop(first);
        FileStore::open(&path).expect("free again");
    }

    /// As between fork and exec of a process that the application starts.
    #[test]
    fn a_copy_of_the_open_file_does_not_keep_the_lock() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("ann");
        let first = FileStore::open(&path).expect("opens");
        let copy = first.log.lock().expect("no panic")._lock.0.try_clone().expect("a copy");
        drop(first);
        FileStore::open(&path).expect("free again");
        drop(copy);
    }
}
