//! What is known of files, and which messages name them. Their bytes lie elsewhere (`crate::files`).
//!
//! A file goes through its states one way: it is unfinished while bytes come, then whole, then going. Each step and each part of an
//! upload is one statement that names what it rests on, so servers that work on the same file at once take nothing from each other. A
//! use is written before the message that names the file. The last step to `Going` looks for uses in its own transaction, so a file
//! that a message may name never goes.

use super::file::{FILES, FileBegun, FileState, FileUse, NewFile, StoredFile, file_of, files, use_of, words};
use super::sql::sql;
use super::{Directory, StoreError};
use crate::domain::{ClientId, FileFacts, FileId, IdempotencyKey, Preview, Segments, Timestamp, Uid};

/// Files and their uses.
impl Directory {
    /// Begins an upload, unless its account has `most_unfinished` of them, or `most_bytes` in files that it would exceed.
    pub async fn begin_file(
        &self,
        new: &NewFile,
        most_unfinished: u64,
        most_bytes: u64,
    ) -> Result<FileBegun, StoreError> {
        let begin = async {
            let mut writer = self.db.writer().await?;
            let mut tx = writer.begin().await?;
            // Requests of one account take turns.
            tx.row(sql("SELECT 1 FROM accounts WHERE uid = $1 FOR UPDATE").bind(new.owner)).await?;
            let sum = sql("SELECT CAST(coalesce(sum(length), 0) AS bigint) AS bytes,
                 count(CASE WHEN state = 0 THEN 1 END) AS unfinished FROM files WHERE owner = $1");
            let held = tx.row(sum.bind(new.owner)).await?;
            let held = held.map_or(Ok((0, 0)), |row| {
                Ok::<_, StoreError>((row.number("bytes")?, row.number("unfinished")?))
            })?;
            let refusal = match held {
                (_, unfinished) if unfinished >= most_unfinished => Some(FileBegun::TooMany),
                (bytes, _) if bytes.saturating_add(new.length) > most_bytes => Some(FileBegun::NoRoom),
                _ => None,
            };
            if let Some(refusal) = refusal {
                tx.roll_back().await?;
                return Ok(refusal);
            }
            let insert = sql(
                "INSERT INTO files (id, owner, name, made_at, length, stored, segments, state, size, media_type, width, height, previews, check_at)
                 VALUES ($1, $2, $3, $4, $5, 0, '', 0, 0, '', 0, 0, '', $6)",
            );
            let insert = insert.bind(new.id).bind(new.owner).bind(&*new.name).bind(new.made_at);
            tx.change(insert.bind(new.length).bind(new.check_at)).await?;
            tx.commit().await?;
            Ok(FileBegun::Begun)
        };
        self.db.limited(begin).await
    }

    /// The file, if there is one.
    pub async fn file(&self, id: FileId) -> Result<Option<StoredFile>, StoreError> {
        let one = sql(format!("{FILES} WHERE id = $1"));
        self.db.row(one.bind(id)).await?.as_ref().map(file_of).transpose()
    }

    /// The files of `owner` with ids above `after`, in their order, at most `limit`.
    pub async fn files_of(
        &self,
        owner: Uid,
        after: Option<FileId>,
        limit: usize,
    ) -> Result<Vec<StoredFile>, StoreError> {
        let own = sql(format!("{FILES} WHERE owner = $1 AND id > $2 ORDER BY id LIMIT $3"));
        let after = after.unwrap_or(FileId(uuid::Uuid::nil()));
        files(&self.db.rows(own.bind(owner).bind(after).bind(limit)).await?)
    }

    /// All files with ids above `after`, in their order, at most `limit`.
    pub async fn all_files(
        &self,
        after: Option<FileId>,
        limit: usize,
    ) -> Result<Vec<StoredFile>, StoreError> {
        let all = sql(format!("{FILES} WHERE id > $1 ORDER BY id LIMIT $2"));
        files(&self.db.rows(all.bind(after.unwrap_or(FileId(uuid::Uuid::nil()))).bind(limit)).await?)
    }

    /// More of an unfinished file is there: `segments`, whose last one begins at `from`. `false`: that is not its end any more.
    pub async fn grow_file(
        &self,
        id: FileId,
        from: u64,
        segments: &Segments,
        check_at: Timestamp,
    ) -> Result<bool, StoreError> {
        let grow = sql(
            "UPDATE files SET stored = $3, segments = $4, check_at = $5 WHERE id = $1 AND stored = $2 AND state = 0 AND length >= $3",
        );
        let grow = grow.bind(id).bind(from).bind(segments.length()).bind(segments.to_string()).bind(check_at);
        Ok(self.db.change(grow).await? > 0)
    }

    /// An unfinished file is whole from now on, with the bytes in `segments`. `false`: it is not unfinished any more.
    pub async fn finish_file(
        &self,
        facts: &FileFacts,
        segments: &Segments,
        check_at: Timestamp,
    ) -> Result<bool, StoreError> {
        let finish = sql(
            "UPDATE files SET state = 1, segments = $2, size = $3, media_type = $4, width = $5, height = $6, previews = $7, check_at = $8
             WHERE id = $1 AND state = 0 AND stored = length",
        );
        let (width, height) = facts.sides.unwrap_or_default();
        let finish =
            finish.bind(facts.id).bind(segments.to_string()).bind(facts.size).bind(&*facts.media_type);
        let finish = finish.bind(width).bind(height).bind(words(&facts.previews)).bind(check_at);
        Ok(self.db.change(finish).await? > 0)
    }

    /// A whole file has these previews from now on.
    pub async fn set_previews(&self, id: FileId, previews: &[Preview]) -> Result<(), StoreError> {
        let set = sql("UPDATE files SET previews = $2 WHERE id = $1 AND state = 1");
        self.db.change(set.bind(id).bind(words(previews))).await.map(drop)
    }

    /// Writes down that a message is about to name these files: of `owner`, or anybody's. The answer has those that it may name. Of a
    /// repetition the time alone is kept.
    pub async fn use_files(
        &self,
        ids: &[FileId],
        owner: Option<Uid>,
        of: &FileUse,
    ) -> Result<Vec<StoredFile>, StoreError> {
        let r#use = async {
            let mut writer = self.db.writer().await?;
            let mut tx = writer.begin().await?;
            let named = sql(format!(
                "{FILES} WHERE id = ANY($1) AND state = 1 AND ($2 IS NULL OR owner = $2) ORDER BY id FOR UPDATE"
            ));
            let found = files(&tx.rows(named.bind(ids).bind(owner)).await?)?;
            let holders: Vec<u32> = of.holders.iter().map(|uid| uid.0).collect();
            let holders = serde_json::to_string(&holders).expect("numbers are JSON");
            for file in &found {
                let insert = sql(
                    "INSERT INTO file_uses (file, sender, client_id, target, holders, used_at) VALUES ($1, $2, $3, $4, $5, $6)
                     ON CONFLICT (file, sender, client_id) DO UPDATE SET used_at = excluded.used_at",
                );
                let insert = insert.bind(file.facts.id).bind(of.key.0).bind(of.key.1);
                tx.change(insert.bind(of.target.to_string()).bind(&*holders).bind(of.at)).await?;
            }
            tx.commit().await?;
            Ok(found)
        };
        self.db.limited(r#use).await
    }

    /// Up to `limit` messages that name the file, or were about to: those after `after`, by their keys.
    pub async fn uses_of_file(
        &self,
        id: FileId,
        after: Option<IdempotencyKey>,
        limit: usize,
    ) -> Result<Vec<FileUse>, StoreError> {
        let (sender, client_id) = after.unwrap_or((Uid(0), ClientId(uuid::Uuid::nil())));
        let uses = sql(
            "SELECT sender, client_id, target, holders, used_at FROM file_uses WHERE file = $1 AND (sender, client_id) > ($2, $3)
             ORDER BY sender, client_id LIMIT $4",
        );
        let rows = self.db.rows(uses.bind(id).bind(sender).bind(client_id).bind(limit)).await?;
        rows.iter().map(use_of).collect()
    }

    /// Nothing is left of that message, unless somebody is about to send it again.
    pub async fn forget_use(&self, id: FileId, of: &FileUse) -> Result<(), StoreError> {
        let forget =
            sql("DELETE FROM file_uses WHERE file = $1 AND sender = $2 AND client_id = $3 AND used_at = $4");
        self.db.change(forget.bind(id).bind(of.key.0).bind(of.key.1).bind(of.at)).await.map(drop)
    }

    /// Files that are to be looked at by `now`, the longest due first, at most `limit`.
    pub async fn files_to_check(&self, now: Timestamp, limit: usize) -> Result<Vec<StoredFile>, StoreError> {
        let due = sql(format!("{FILES} WHERE check_at <= $1 ORDER BY check_at LIMIT $2"));
        files(&self.db.rows(due.bind(now).bind(limit)).await?)
    }

    /// The file is looked at then, unless something has happened to it since `was`.
    pub async fn check_file(&self, id: FileId, was: Timestamp, at: Timestamp) -> Result<(), StoreError> {
        let later = sql("UPDATE files SET check_at = $3 WHERE id = $1 AND check_at = $2");
        self.db.change(later.bind(id).bind(was).bind(at)).await.map(drop)
    }

    /// The files of `owner` are looked at by then.
    pub async fn check_files_of(&self, owner: Uid, at: Timestamp) -> Result<(), StoreError> {
        let soon = sql("UPDATE files SET check_at = $2 WHERE owner = $1 AND check_at > $2");
        self.db.change(soon.bind(owner).bind(at)).await.map(drop)
    }

    /// Nobody can name the file any more, if it has come this far, has not changed since `was`, and nothing names it. It is looked at by
    /// `at` and then removed. `false`: it stays.
    pub async fn let_file_go(
        &self,
        id: FileId,
        state: FileState,
        was: Option<Timestamp>,
        at: Timestamp,
    ) -> Result<bool, StoreError> {
        let go = async {
            let mut writer = self.db.writer().await?;
            let mut tx = writer.begin().await?;
            // Whoever writes a use takes this lock, too.
            let look = sql(
                "SELECT 1 FROM files WHERE id = $1 AND state = $2 AND ($3 IS NULL OR check_at = $3) FOR UPDATE",
            );
            let found = tx.row(look.bind(id).bind(state.code()).bind(was)).await?;
            let uses = tx.row(sql("SELECT 1 FROM file_uses WHERE file = $1 LIMIT 1").bind(id)).await?;
            if found.is_none() || uses.is_some() {
                tx.roll_back().await?;
                return Ok(false);
            }
            let going = sql("UPDATE files SET state = 2, check_at = $2 WHERE id = $1");
            tx.change(going.bind(id).bind(at)).await?;
            tx.commit().await?;
            Ok(true)
        };
        self.db.limited(go).await
    }

    /// Forgets a file that is going: its bytes are removed.
    pub async fn forget_file(&self, id: FileId) -> Result<(), StoreError> {
        self.db.change(sql("DELETE FROM files WHERE id = $1 AND state = 2").bind(id)).await.map(drop)
    }
}
