//! Files: how they come in part by part, what they are once they are whole, and who may read them.
//!
//! An upload goes on at any server: what is there of it stands in the directory, and each part is an object of its own. A server
//! that writes a part which another one has written meanwhile is told where the upload stands now. A file is read by way of a row that names it, in
//! the reader's own inbox: so a right ends with its row, by whatever way that goes.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use uuid::Uuid;

pub use self::error::FileError;
pub use self::reading::Readable;
pub use self::receiving::Incoming;
use crate::domain::{Clock, FileId, Timestamp, Uid, file_name};
use crate::files::{FilePlace, Lying};
use crate::store::{Directory, FileBegun, FileState, MessageStore, NewFile, StoreError, StoredFile};

mod error;
mod reading;
mod receiving;
mod whole;

/// For how long an unfinished upload is kept after its last byte, and a file that nothing names.
pub(super) const KEPT: Duration = Duration::from_secs(86_400);

/// Unfinished uploads of one account.
const MOST_UNFINISHED: u64 = 20;

/// What the configuration says of files.
#[derive(Clone, Debug)]
pub struct FileOptions {
    /// Bytes of one file.
    pub most_bytes: u64,
    /// Bytes of all files of one account.
    pub account_bytes: u64,
    /// Types that are refused: `image/gif`, `video/*`, or the end of a name, `.exe`.
    pub refused: Vec<String>,
}

impl FileOptions {
    /// Which of the refused types it is of, if any.
    fn refuses(&self, name: &str, media_type: Option<&str>) -> Option<&str> {
        let name = name.to_lowercase();
        let is_of = |refused: &&String| match refused.strip_suffix("/*") {
            _ if refused.starts_with('.') => name.ends_with(&**refused),
            Some(family) => {
                media_type.and_then(|kind| kind.split_once('/')).is_some_and(|(of, _)| of == family)
            }
            None => media_type == Some(refused),
        };
        self.refused.iter().find(is_of).map(String::as_str)
    }
}

/// How far an upload has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Upload {
    /// Which.
    pub id: FileId,
    /// Its bytes in all.
    pub length: u64,
    /// Those that are there.
    pub stored: u64,
    /// When it goes unless more of it comes; `None`: it is whole.
    pub expires: Option<Timestamp>,
}

impl Upload {
    fn of(file: &StoredFile) -> Upload {
        let is_whole = file.state == FileState::Whole;
        let expires = (!is_whole).then_some(file.check_at);
        Upload { id: file.facts.id, length: file.length, stored: file.stored, expires }
    }
}

/// Uploads and downloads. Cheap to clone.
#[derive(Clone)]
pub struct Files {
    pub(super) directory: Arc<Directory>,
    pub(super) store: Arc<dyn MessageStore>,
    pub(super) place: FilePlace,
    pub(super) clock: Clock,
    /// Wakes the walk over files that are due.
    pub(super) due: Arc<Notify>,
    options: Arc<FileOptions>,
    new_uuid: Arc<dyn Fn() -> Uuid + Send + Sync>,
}

impl Files {
    /// Use cases over files that lie in `place`.
    pub fn new(
        directory: Arc<Directory>,
        store: Arc<dyn MessageStore>,
        place: FilePlace,
        clock: Clock,
        options: FileOptions,
        new_uuid: Arc<dyn Fn() -> Uuid + Send + Sync>,
    ) -> Files {
        let (options, due) = (Arc::new(options), Arc::new(Notify::new()));
        Files { directory, store, place, clock, due, options, new_uuid }
    }

    /// Bytes of one file.
    pub fn most_bytes(&self) -> u64 {
        self.options.most_bytes
    }

    /// Bytes that an upload keeps in memory, about.
    pub fn in_memory(&self) -> usize {
        self.place.buffered()
    }

    pub(super) fn in_a_day(&self) -> Timestamp {
        Timestamp(self.clock.now().0.saturating_add(i64::try_from(KEPT.as_millis()).unwrap_or(i64::MAX)))
    }

    /// Begins an upload of so many bytes.
    ///
    /// # Errors
    /// When it breaks a rule, or the account has no room for it.
    pub async fn begin(&self, owner: Uid, name: &str, length: u64) -> Result<Upload, FileError> {
        let name = file_name(name)?;
        if let Some(refused) = self.options.refuses(&name, None) {
            return Err(FileError::TypeRefused(refused.to_owned()));
        }
        match length {
            0 => return Err(FileError::Empty),
            _ if length > self.options.most_bytes => {
                return Err(FileError::TooLarge(self.options.most_bytes));
            }
            _ => {}
        }
        let (id, made_at, check_at) = (FileId((self.new_uuid)()), self.clock.now(), self.in_a_day());
        let new = NewFile { id, owner, name, length, made_at, check_at };
        match self.directory.begin_file(&new, MOST_UNFINISHED, self.options.account_bytes).await? {
            FileBegun::Begun => Ok(Upload { id, length, stored: 0, expires: Some(check_at) }),
            FileBegun::TooMany => Err(FileError::TooManyUploads(MOST_UNFINISHED)),
            FileBegun::NoRoom => Err(FileError::NoRoom(self.options.account_bytes)),
        }
    }

    /// How far an upload of `owner` has come. One whose last byte is there, and that nobody has looked at since, is looked at now.
    ///
    /// # Errors
    /// When there is none, or what has come is refused.
    pub async fn upload(&self, owner: Uid, id: FileId) -> Result<Upload, FileError> {
        let file = self.own(owner, id).await?;
        if file.state == FileState::Unfinished && file.stored == file.length {
            return self.finish(file).await;
        }
        Ok(Upload::of(&file))
    }

    /// Ends an upload of `owner`, or takes back a file that no message names.
    ///
    /// # Errors
    /// When there is none, or a message names it.
    pub async fn end(&self, owner: Uid, id: FileId) -> Result<(), FileError> {
        let file = self.own(owner, id).await?;
        match self.remove(&file).await? {
            true => Ok(()),
            false => Err(FileError::Named),
        }
    }

    /// An account is gone with all its rows: its files go soon, but for those that others' rows name.
    ///
    /// # Errors
    /// The store's errors.
    pub async fn owner_is_gone(&self, owner: Uid) -> Result<(), StoreError> {
        self.directory.check_files_of(owner, self.clock.now()).await?;
        self.due.notify_one();
        Ok(())
    }

    /// The files that `owner` has uploaded or begun to, with ids above `after`, in their order, at most `limit`.
    ///
    /// # Errors
    /// The store's errors.
    pub async fn own_files(
        &self,
        owner: Uid,
        after: Option<FileId>,
        limit: usize,
    ) -> Result<Vec<StoredFile>, StoreError> {
        self.directory.files_of(owner, after, limit).await
    }

    /// The file of `owner`, if there is one that nobody has let go.
    async fn own(&self, owner: Uid, id: FileId) -> Result<StoredFile, FileError> {
        let file = self.directory.file(id).await?;
        let is_own = |file: &StoredFile| file.owner == owner && file.state != FileState::Going;
        file.filter(is_own).ok_or(FileError::Unknown)
    }

    /// Removes a file, unless something names it. What cannot be removed now goes later.
    pub(super) async fn remove(&self, file: &StoredFile) -> Result<bool, FileError> {
        let id = file.facts.id;
        if !self.directory.let_file_go(id, file.state, None, self.clock.now()).await? {
            return Ok(false);
        }
        self.clear(id).await?;
        Ok(true)
    }

    /// Removes the bytes of a file that nobody can name any more, and then what is known of it.
    pub(super) async fn clear(&self, id: FileId) -> Result<(), FileError> {
        self.place.remove_others(id, &[]).await?;
        Ok(self.directory.forget_file(id).await?)
    }

    /// The objects that a file needs.
    fn needed(file: &StoredFile) -> Vec<Lying> {
        let segments = file.segments.0.iter().map(|segment| Lying::Segment(segment.name));
        segments.chain(file.facts.previews.iter().copied().map(Lying::Preview)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_refuse_types_families_and_names() {
        let refused = ["image/gif", "video/*", ".exe"].map(str::to_owned).to_vec();
        let options = FileOptions { most_bytes: 1, account_bytes: 1, refused };
        for (name, kind, expected) in [
            ("a", Some("image/gif"), Some("image/gif")),
            ("a", Some("video/webm"), Some("video/*")),
            ("A.EXE", None, Some(".exe")),
            ("a.exe.txt", Some("image/png"), None),
            ("gif", None, None),
        ] {
            assert_eq!(options.refuses(name, kind), expected, "{name} {kind:?}");
        }
    }
}
