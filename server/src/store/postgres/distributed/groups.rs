//! Changes of groups in the distributed layout. A change is made where the group is, together with a note of what is to
//! be accepted in the inbox of whoever made it. Then it is accepted there, and the note goes. The next change of the
//! group waits until then, or accepts it itself: so no server that dies in between holds a group up.

use std::collections::HashSet;

use tracing::warn;

use super::calls::{self, ChangeAnswer, NewChange, PgCallFailure, Unaccepted};
use super::commit::{Commit, new_acceptance};
use crate::domain::{GroupChange, GroupId, Uid};
use crate::store::postgres::PgDb;
use crate::store::{Accept, Outcome, StoreError};

/// Changes of others that one change accepts before it is made.
const MOST_BEFORE: usize = 4;

/// Changes that one look accepts.
const AT_ONCE: i64 = 100;

impl Commit<'_> {
    /// Makes the change of a group, and accepts it.
    pub(super) async fn change(&mut self, at: usize, accept: &Accept, change: &GroupChange) {
        let is_outdated = self.changed.get(&change.gid).is_some_and(|now| *now != change.from_version);
        let made = match is_outdated || !change.is_whole() {
            true => Ok(false),
            false => make(self.db, accept, change).await,
        };
        if matches!(made, Ok(true)) {
            self.changed.insert(change.gid, change.from_version + 1);
            return self.accept_change(at, accept, change).await;
        }
        self.unchanged.insert(change.gid, change.from_version);
        match made {
            Ok(_) => self.outcomes[at] = Some(Outcome::GroupChanged),
            Err(failure) => self.failed(at, failure),
        }
    }

    /// The change is made: whatever happens to it from here on, somebody accepts it.
    async fn accept_change(&mut self, at: usize, accept: &Accept, change: &GroupChange) {
        match calls::accept(self.db, accept.content.sender, &[new_acceptance(accept)]).await {
            Ok(answers) if answers[0].verdict == "used" => {
                self.unknown = Some(StoreError::unavailable("another server accepts the change"));
            }
            Ok(answers) => self.accepted(at, &answers[0]),
            Err(PgCallFailure::Refused(error)) => return self.unknown = Some(error),
            Err(failure) => return self.failed(at, failure),
        }
        if let Err(failure) = calls::settle_change(self.db, change.gid, change.from_version + 1).await {
            warn!(?failure, gid = %change.gid, "the change of a group is accepted, but its record is not removed yet");
        }
    }
}

/// Whether it is made: the group is at the version that it was decided on.
async fn make(db: &PgDb, accept: &Accept, change: &GroupChange) -> Result<bool, PgCallFailure> {
    let wanted = NewChange::new(change, accept.content.sender, new_acceptance(accept));
    for _ in 0..MOST_BEFORE {
        match calls::change(db, &wanted).await? {
            ChangeAnswer::Made => return Ok(true),
            ChangeAnswer::Stale => return Ok(false),
            ChangeAnswer::Owed(before) => {
                accept_one(db, change.gid, *before).await.map_err(PgCallFailure::Refused)?;
            }
        }
    }
    Err(PgCallFailure::Refused(StoreError::unavailable("other servers keep changing the group")))
}

/// Accepts a change that is made; its copies stay owed.
async fn accept_one(db: &PgDb, gid: GroupId, change: Unaccepted) -> Result<(), StoreError> {
    let Unaccepted { version, actor, accept } = change;
    let answers = calls::accept(db, Uid(actor), &[accept]).await?;
    match answers[0].verdict.as_str() {
        "stored" | "used" => Ok(calls::settle_change(db, gid, version).await?),
        other => {
            Err(StoreError::corrupt(format!("version {version} of group {gid} cannot be accepted: {other}")))
        }
    }
}

/// Accepts changes that were there at the last look, too: those whose servers have died. `seen`: those that were there.
pub(super) async fn accept_changes(db: &PgDb, seen: &mut HashSet<(GroupId, u64)>) -> Result<(), StoreError> {
    let look = async { calls::unaccepted(&mut *db.for_queues().await?, AT_ONCE).await };
    let changes = db.limited(look).await?;
    let now = changes.iter().map(|(gid, change)| (*gid, change.version)).collect();
    let before = std::mem::replace(seen, now);
    for (gid, change) in changes.into_iter().filter(|(gid, change)| before.contains(&(*gid, change.version)))
    {
        accept_one(db, gid, change).await?;
    }
    Ok(())
}
