//! The newest routing table of a Set, shared by all processes of a machine and user through a file (S12). Every request of every process
//! looks at one word of the file, which is mapped into memory; only when it has changed is the table itself read, with ordinary reads. The
//! file is a hint: a process that finds it absent, torn or stale goes on without, and the next answer sets it right.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::{MmapOptions, MmapRaw};
use prost::Message;
use sha2::{Digest, Sha256};
use thiserror::Error;

use seqsvr_core::routing::Table;
use seqsvr_rpc::v1;

/// Stored, must stay stable. The file: the generation (8 bytes, native order, since no other machine reads it), then at
/// [`HEADER`] the length of the table, its digest, and the table as on the wire.
const HEADER: u64 = 8;
const LENGTH: usize = 8;
const DIGEST: usize = 32;
/// Larger tables are not believed: 42,950 sections apart take less.
const LARGEST: u64 = 8 << 20;

/// A file with the newest table of one Set.
#[derive(Debug)]
pub struct Cache {
    file: File,
    word: MmapRaw,
    /// The file's name, which tells the cluster and the Set; part of the digest.
    name: String,
}

/// The file cannot be shared.
#[derive(Debug, Error)]
#[error("cannot share routing tables through {}: {why}", path.display())]
pub(crate) struct CacheError {
    path: PathBuf,
    why: io::Error,
}

impl Cache {
    /// Opens or makes the file of Set `set` of `cluster` in `directory`, which is made if need be.
    ///
    /// # Errors
    ///
    /// The file cannot be made, or another user could write it, and with it say where tokens are sent.
    pub(crate) fn open(directory: &Path, cluster: &str, set: u32) -> Result<Self, CacheError> {
        let name = format!("{cluster}.{set}.route");
        let path = directory.join(&name);
        let open = || {
            std::fs::create_dir_all(directory)?;
            let file = OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .mode(0o600)
                .open(&path)?;
            let about = file.metadata()?;
            if about.uid() != rustix::process::geteuid().as_raw() || about.mode() & 0o022 != 0 {
                return Err(io::Error::other(
                    "another user owns it or may write it; remove it, or choose another cache_dir",
                ));
            }
            if about.len() < HEADER {
                file.set_len(HEADER)?;
            }
            let word = MmapOptions::new().len(HEADER as usize).map_raw(&file)?;
            Ok(Self { file, word, name })
        };
        open().map_err(|why| CacheError { path, why })
    }

    /// Differs from the last call's when the table may have changed. Costs one load.
    #[inline]
    pub(crate) fn generation(&self) -> u64 {
        self.word().load(Ordering::Acquire)
    }

    #[expect(unsafe_code, reason = "a word of a mapped file cannot be reached otherwise")]
    #[inline]
    fn word(&self) -> &AtomicU64 {
        // SAFETY: the pointer is the start of a mapping of 8 bytes, so it is aligned (to a page), readable and writable for as
        // long as `self.word` lives, which the returned reference does not outlive. Nobody accesses these bytes but through
        // atomics of this size: ordinary writes of this module begin at HEADER, and other processes run this same code. The
        // pages stay there: the file is at least this long and only grows, and nobody but this user may cut it.
        unsafe { AtomicU64::from_ptr(self.word.as_mut_ptr().cast()) }
    }

    /// The table in the file; `None` when there is none or it is being written.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub(crate) fn read(&self) -> io::Result<Option<v1::Table>> {
        let mut head = [0; LENGTH + DIGEST];
        if let Err(error) = self.file.read_exact_at(&mut head, HEADER) {
            return if error.kind() == io::ErrorKind::UnexpectedEof { Ok(None) } else { Err(error) };
        }
        let (length, digest) = head.split_at(LENGTH);
        let length = u64::from_le_bytes(length.try_into().expect("8 bytes"));
        if length == 0 || length > LARGEST {
            return Ok(None);
        }
        let mut bytes = vec![0; length as usize];
        if self.file.read_exact_at(&mut bytes, HEADER + head.len() as u64).is_err()
            || self.digest(&bytes) != digest
        {
            return Ok(None);
        }
        Ok(v1::Table::decode(bytes.as_slice()).ok())
    }

    /// Puts `table` into the file unless a newer one is there, or another process is writing.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub(crate) fn publish(&self, table: &Table) -> io::Result<()> {
        // Not waiting: a writer that was paused must not hold up the others.
        match self.file.try_lock() {
            Ok(()) => {}
            Err(std::fs::TryLockError::WouldBlock) => return Ok(()),
            Err(std::fs::TryLockError::Error(error)) => return Err(error),
        }
        let written = self.write(table);
        self.file.unlock()?;
        written
    }

    fn write(&self, table: &Table) -> io::Result<()> {
        let there = self.read()?.and_then(|there| Table::try_from(there).ok());
        if there.is_some_and(|there| there.version >= table.version) {
            return Ok(());
        }
        let bytes = v1::Table::from(table).encode_to_vec();
        let mut head = (bytes.len() as u64).to_le_bytes().to_vec();
        head.extend_from_slice(&self.digest(&bytes));
        self.file.write_all_at(&head, HEADER)?;
        self.file.write_all_at(&bytes, HEADER + head.len() as u64)?;
        // After the bytes: a reader that sees the new generation sees them whole.
        self.word().fetch_add(1, Ordering::Release);
        Ok(())
    }

    fn digest(&self, bytes: &[u8]) -> [u8; DIGEST] {
        Sha256::new()
            .chain_update(self.name.as_bytes())
            .chain_update([0])
            .chain_update(bytes)
            .finalize()
            .into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use seqsvr_core::ids::{Epoch, SectionId};
    use seqsvr_core::routing::{Assignment, Node, NodeState};

    fn table(version: u64) -> Table {
        Table {
            set: 0,
            version: Epoch { term: 1, version },
            section_size: 10_000,
            uids: 0..=9_999,
            nodes: Vec::new(),
            assignments: Vec::new(),
        }
    }

    fn version(cache: &Cache) -> Option<u64> {
        let table = cache.read().expect("readable")?;
        Some(Table::try_from(table).expect("a good table").version.version)
    }

    /// Behind the generation, in hex. The table is a message of the wire, which may get fields that are empty here.
    const STORED: &str = "310000000000000063817d2a9574735cf62f02125f5bb4f346dc7325676faebb0627df98ebfe7ebf1204080110\
        0718904e20904e289f9c0132110a0161120a687474703a2f2f613a3118013a0c080110012805320408011002";

    #[test]
    fn the_bytes_of_the_file_stay_as_they_are() {
        let directory = tempfile::tempdir().unwrap();
        let table = Table {
            uids: 10_000..=19_999,
            nodes: vec![Node {
                name: "a".to_owned(),
                addr: "http://a:1".to_owned(),
                state: NodeState::Drained,
            }],
            assignments: vec![Assignment {
                sections: SectionId::new(1)..=SectionId::new(1),
                node: 0,
                home: 0,
                incarnation: 5,
                epoch: Epoch { term: 1, version: 2 },
            }],
            ..table(7)
        };
        let cache = Cache::open(directory.path(), "main", 0).unwrap();
        cache.publish(&table).unwrap();
        assert_eq!(cache.generation(), 1);
        let bytes = std::fs::read(directory.path().join("main.0.route")).unwrap();
        let hex: String = bytes[HEADER as usize..].iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, STORED);
    }

    #[test]
    fn another_process_sees_the_newest_table_and_no_older_one() {
        let directory = tempfile::tempdir().unwrap();
        let open = || Cache::open(directory.path(), "main", 0).unwrap();
        let (mine, theirs) = (open(), open());
        let before = theirs.generation();
        assert_eq!(version(&theirs), None);
        mine.publish(&table(7)).unwrap();
        assert_ne!(theirs.generation(), before);
        assert_eq!(version(&theirs), Some(7));
        let seen = mine.generation();
        theirs.publish(&table(6)).unwrap();
        assert_eq!((mine.generation(), version(&mine)), (seen, Some(7)));
        let other = Cache::open(directory.path(), "other", 0).unwrap();
        assert_eq!(version(&other), None);
    }

    #[test]
    fn a_torn_or_foreign_table_counts_as_none_and_the_next_one_mends_it() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::open(directory.path(), "main", 0).unwrap();
        cache.publish(&table(7)).unwrap();
        cache.file.write_all_at(&[0xFF], HEADER + 42).unwrap();
        assert_eq!(version(&cache), None);
        cache.publish(&table(2)).unwrap();
        assert_eq!(version(&cache), Some(2));
        let copied = directory.path().join("main.1.route");
        std::fs::copy(directory.path().join("main.0.route"), copied).unwrap();
        let other = Cache::open(directory.path(), "main", 1).unwrap();
        assert_eq!(version(&other), None);
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(200))]

        /// Nobody but this user writes the file, but a disk or a careless program may.
        #[test]
        fn whatever_is_in_the_file_a_wrong_table_is_never_taken(
            at in 0..200u64, bytes in proptest::collection::vec(proptest::num::u8::ANY, 1..60),
        ) {
            let directory = tempfile::tempdir().unwrap();
            let cache = Cache::open(directory.path(), "main", 0).unwrap();
            cache.publish(&table(7)).unwrap();
            cache.file.write_all_at(&bytes, HEADER + at).unwrap();
            proptest::prop_assert!(matches!(version(&cache), None | Some(7)));
            cache.publish(&table(8)).unwrap();
            proptest::prop_assert_eq!(version(&cache), Some(8), "the next one mends it");
        }
    }

    #[test]
    fn a_writer_that_holds_the_lock_is_not_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let open = || Cache::open(directory.path(), "main", 0).unwrap();
        let (paused, cache) = (open(), open());
        paused.file.lock().unwrap();
        cache.publish(&table(1)).unwrap();
        assert_eq!(version(&cache), None);
        paused.file.unlock().unwrap();
        cache.publish(&table(1)).unwrap();
        assert_eq!(version(&paused), Some(1));
    }

    #[test]
    fn a_file_that_others_may_write_is_refused() {
        use std::os::unix::fs::PermissionsExt as _;
        let directory = tempfile::tempdir().unwrap();
        drop(Cache::open(directory.path(), "main", 0).unwrap());
        let path = directory.path().join("main.0.route");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o622)).unwrap();
        let refused = Cache::open(directory.path(), "main", 0).unwrap_err().to_string();
        assert!(refused.contains("remove it, or choose another cache_dir"), "{refused}");
    }
}
