//! The files that one user's rows name, when these come from an archive: that rows name them is written down, and those that went since
//! come along. Only `one_user` uses it.

use std::collections::{HashMap, HashSet};

use super::error::TransferError;
use super::file_parts::PartWriter;
use crate::domain::{Clock, Content, FileId, Timestamp, Uid};
use crate::files::FilePlace;
use crate::store::archive::Record;
use crate::store::{Directory, FileUse, StoreError, StoredFile};

/// For so long nobody asks whether a row names a file that has come, in milliseconds.
const KEPT: i64 = 86_400_000;

/// See the module.
pub(super) struct UserFiles<'a> {
    directory: &'a Directory,
    clock: &'a Clock,
    from: Uid,
    into: Uid,
    /// Files that are not here, and what names them.
    wanted: HashMap<FileId, Vec<FileUse>>,
    /// Those that came.
    came: HashSet<FileId>,
    /// The one whose parts come.
    coming: Option<Box<StoredFile>>,
    parts: PartWriter<'a>,
}

impl<'a> UserFiles<'a> {
    /// Of the rows of `from`, which go to the inbox of `into`.
    pub(super) fn of(
        directory: &'a Directory,
        place: &'a FilePlace,
        clock: &'a Clock,
        (from, into): (Uid, Uid),
    ) -> UserFiles<'a> {
        UserFiles {
            directory,
            clock,
            from,
            into,
            wanted: HashMap::new(),
            came: HashSet::new(),
            coming: None,
            parts: PartWriter::into(place),
        }
    }

    /// Writes down that these rows are about to name files that are here. The others are wanted from the archive.
    pub(super) async fn adopt_uses<'c>(
        &mut self,
        rows: impl Iterator<Item = &'c Content>,
    ) -> Result<(), StoreError> {
        let (mut uses, at, into) = (Vec::new(), self.clock.now(), self.into);
        for row in rows {
            let Some(key) = row.key() else { continue };
            // Whoever is not the sender may follow from the conversation or not.
            let holders = if key.0 == into { Vec::new() } else { vec![into] };
            let of = FileUse { key, target: row.target, holders, at };
            uses.extend(row.kept_files().map(|file| (file, of.clone())));
        }
        if uses.is_empty() {
            return Ok(());
        }
        let here = self.directory.adopt_uses(&uses).await?;
        for (file, of) in uses.into_iter().filter(|(file, _)| !here.contains(file)) {
            self.wanted.entry(file).or_default().push(of);
        }
        Ok(())
    }

    /// Takes a file, if it is wanted, and its parts. Others are passed over.
    pub(super) async fn take(&mut self, record: Record) -> Result<(), TransferError> {
        match record {
            Record::File(file) => {
                self.coming = Some(file).filter(|file| self.wanted.contains_key(&file.facts.id));
                if let Some(file) = &self.coming {
                    self.parts.begin(file);
                }
            }
            Record::FilePart(part) if self.coming.is_some() => {
                if self.parts.take(part).await?
                    && let Some(file) = self.coming.take()
                {
                    self.settle(*file).await?;
                }
            }
            _ => self.coming = None,
        }
        Ok(())
    }

    /// Its bytes are durable: now rows may name it.
    async fn settle(&mut self, file: StoredFile) -> Result<(), StoreError> {
        let id = file.facts.id;
        let owner = if file.owner == self.from { self.into } else { file.owner };
        let check_at = Timestamp(self.clock.now().0.saturating_add(KEPT));
        let uses = self.wanted.remove(&id).unwrap_or_default();
        if self.directory.adopt_file(&StoredFile { owner, check_at, ..file }, uses.clone()).await? {
            self.came.insert(id);
        } else {
            self.wanted.insert(id, uses);
        }
        Ok(())
    }

    /// How many files came, and how many did not.
    pub(super) fn done(self) -> (u64, u64) {
        (self.came.len() as u64, self.wanted.len() as u64)
    }
}
