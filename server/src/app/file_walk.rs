//! Removes files that nobody needs: uploads to which nothing was added for a day, and files that no row names, a day after they were
//! looked at last.
//!
//! It asks for those that are due, and of each whether one of the messages that were about to name it is still a row: first the
//! sender's own copy, which nearly always answers, and else all others and those still owed. So it is with the row of a person's
//! picture; of a group's the group itself is asked. What cannot be found out keeps the file.
//! Owns nothing that lasts; several servers may walk at a time.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use super::Files;
use super::files::{FileError, KEPT};
use crate::domain::{Conversation, Entry, FileId, Group, IdempotencyKey, Timestamp, Uid};
use crate::log_limit::LogLimit;
use crate::store::{FileState, FileUse, PendingKey, StoreError, StoredFile};

/// Between two looks for files that are due.
const EVERY: Duration = Duration::from_secs(60);
/// Files of one look.
const AT_ONCE: usize = 50;
/// How long it pauses after a file.
const PAUSE: Duration = Duration::from_millis(2);
/// Messages of a file, and people of a message, that are asked for at a time.
const PAGE: usize = 200;
/// Acceptances with copies owed that are looked at, at once and in all.
const PENDING_PAGE: usize = 1_000;
const MOST_PAGES: usize = 20;
/// How soon a file that could not be removed is tried again.
const AGAIN: Duration = Duration::from_secs(600);

/// See the module.
pub struct FileWalk(pub Files);

impl FileWalk {
    /// Removes what nobody needs until `stopping`.
    pub async fn run(self, stopping: CancellationToken) {
        let log = LogLimit::default();
        let forever = async {
            loop {
                match self.pass().await {
                    Ok(AT_ONCE) => continue,
                    Ok(_) => {}
                    Err(error) => {
                        if let Some(left_out) = log.pass() {
                            warn!(%error, left_out, "files that nobody needs cannot be removed; trying again");
                        }
                    }
                }
                // Woken or not, it looks again.
                _ = timeout(EVERY, self.0.due.notified()).await;
            }
        };
        stopping.run_until_cancelled(forever).await;
    }

    /// One look. Says how many files were due.
    async fn pass(&self) -> Result<usize, FileError> {
        let files = &self.0;
        let due = files.directory.files_to_check(files.clock.now(), AT_ONCE).await?;
        for file in &due {
            if let Err(error) = self.check(file).await {
                // The others do not wait for this one.
                let again = self.after(AGAIN);
                files.directory.check_file(file.facts.id, file.check_at, again).await?;
                warn!(id = %file.facts.id, %error, "a file that nobody needs cannot be removed; trying again later");
            }
            sleep(PAUSE).await;
        }
        Ok(due.len())
    }

    fn after(&self, time: Duration) -> Timestamp {
        Timestamp(self.0.clock.now().0.saturating_add(millis(time)))
    }

    async fn check(&self, file: &StoredFile) -> Result<(), FileError> {
        let (files, id) = (&self.0, file.facts.id);
        if file.state == FileState::Whole && self.is_named(id).await? {
            return Ok(files.directory.check_file(id, file.check_at, self.after(KEPT)).await?);
        }
        let is_gone = file.state == FileState::Going
            || files.directory.let_file_go(id, file.state, Some(file.check_at), files.clock.now()).await?;
        match is_gone {
            true => {
                files.clear(id).await?;
                debug!(%id, "a file that nobody needs is removed");
                Ok(())
            }
            // Somebody has named it just now, or added to it.
            false => Ok(files.directory.check_file(id, file.check_at, self.after(KEPT)).await?),
        }
    }

    /// Whether a row names the file, or soon may. Messages of which nothing is left are forgotten on the way.
    async fn is_named(&self, id: FileId) -> Result<bool, StoreError> {
        let directory = &self.0.directory;
        let mut after = None;
        loop {
            let uses = directory.uses_of_file(id, after, PAGE).await?;
            for one in &uses {
                // It may still be on its way into the store.
                let is_young = one.at.0.saturating_add(millis(KEPT)) > self.0.clock.now().0;
                if is_young || self.is_left(one, id).await? {
                    return Ok(true);
                }
                directory.forget_use(id, one).await?;
            }
            match uses.last() {
                Some(last) if uses.len() == PAGE => after = Some(last.key),
                _ => return Ok(false),
            }
        }
    }

    /// Whether somebody has a row of that message that names the file, or is still owed one.
    async fn is_left(&self, of: &FileUse, id: FileId) -> Result<bool, StoreError> {
        if self.have(&[of.key.0], of.key, id).await? {
            return Ok(true);
        }
        // Before the rows: what is delivered in between is among them.
        if self.is_owed(of.key).await? {
            return Ok(true);
        }
        let mut people = of.holders.clone();
        match of.target {
            Conversation::MOMENTS => {}
            Conversation::User(other) => people.push(other),
            Conversation::Group(gid) => {
                let group = self.0.store.group(gid).await?;
                // The row that said so may have expired.
                let is_seen = |group: &Arc<Group>| {
                    group.settings.picture == Some(id) && group.active().next().is_some()
                };
                if group.as_ref().is_some_and(is_seen) {
                    return Ok(true);
                }
                // Also those who have left: they keep their rows.
                people.extend(group.iter().flat_map(|group| group.members.iter().map(|member| member.uid)));
            }
        }
        for some in people.chunks(PAGE) {
            if self.have(some, of.key, id).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether one of these people has a row of that message that names the file.
    async fn have(&self, people: &[Uid], of: IdempotencyKey, id: FileId) -> Result<bool, StoreError> {
        let copies = self.0.store.copies(of, people).await?;
        let rows: Vec<_> = people.iter().zip(copies).filter_map(|(uid, copy)| Some((*uid, copy?))).collect();
        let names = |entry: &Entry| {
            let content = &entry.content;
            content.kept_files().any(|file| file == id)
        };
        Ok(self.0.store.entries(&rows).await?.iter().flatten().any(names))
    }

    /// Whether a copy of that message is still owed to somebody, or that cannot be said.
    async fn is_owed(&self, of: IdempotencyKey) -> Result<bool, StoreError> {
        let mut after = PendingKey::default();
        for _ in 0..MOST_PAGES {
            let pending = self.0.store.pending(after, PENDING_PAGE).await?;
            let Some(last) = pending.last() else { return Ok(false) };
            if pending.iter().any(|pending| pending.content.key() == Some(of)) {
                return Ok(true);
            }
            after = last.key();
        }
        Ok(true)
    }
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}
