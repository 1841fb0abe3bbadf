//! Changes of groups in the distributed layout. A change is made where the group is, together with a note of what is to
//! be accepted in the inbox of whoever made it. Then it is accepted there, and the note goes. The next change of the
//! group waits until then, or accepts it itself: so no server that dies in between holds a group up.

use std::collections::HashSet;

use tracing::warn;

use super::calls::{self, ChangeAnswer, NewChange, PgCallFailure, Unaccepted};
use super::{Commit, CopyOf, changed_meanwhile, new_acceptance, owed};
use crate::domain::{GroupChange, GroupId, Member, Uid};
use crate::store::postgres::PgDb;
use crate::store::{Accept, CopyOutcome, Outcome, PendingKey, Row, StoreError, group_settings};

/// Changes of others that one change accepts before it is made.
const MOST_BEFORE: usize = 4;

/// Changes that one look accepts.
const AT_ONCE: i64 = 100;

impl Commit<'_> {
    /// Makes the change of a group, and accepts it.
    pub(super) async fn change(&mut self, at: usize, accept: &Accept) {
        let Some(change) = &accept.change else { return };
        let refusal = if self.changed.get(&change.gid).is_some_and(|now| *now != change.from_version) {
            Some(Ok(Outcome::GroupChanged))
        } else if change.is_whole() {
            self.make(accept).await
        } else {
            Some(Ok(changed_meanwhile(accept)))
        };
        match refusal {
            None => {
                self.changed.insert(change.gid, change.from_version + 1);
                self.accept_change(at, accept).await;
            }
            Some(refusal) => {
                self.unchanged.insert(change.gid, change.from_version);
                match refusal {
                    Ok(outcome) => self.outcomes[at] = Some(outcome),
                    Err(failure) => self.failed(at, failure),
                }
            }
        }
    }

    /// `None`: it is made.
    async fn make(&self, accept: &Accept) -> Option<Result<Outcome, PgCallFailure>> {
        let change = accept.change.as_ref()?;
        let members: Vec<calls::ChangedMember> = change.members.iter().map(member).collect();
        let GroupChange { gid, from_version, ref setting, .. } = *change;
        let (by, accept_after) = (accept.content.sender, new_acceptance(accept));
        let settings = group_settings::changed(setting.as_ref());
        let wanted = NewChange { gid, from_version, by, settings, members, accept: accept_after };
        for _ in 0..MOST_BEFORE {
            match calls::change(self.db, &wanted).await {
                Ok(ChangeAnswer::Made) => return None,
                Ok(ChangeAnswer::Stale) => return Some(Ok(changed_meanwhile(accept))),
                Ok(ChangeAnswer::Owed(before)) => {
                    if let Err(error) = accept_one(self.db, gid, *before).await {
                        return Some(Err(PgCallFailure::Refused(error)));
                    }
                }
                Err(failure) => return Some(Err(failure)),
            }
        }
        let why = "other servers keep changing the group";
        Some(Err(PgCallFailure::Refused(StoreError::unavailable(why))))
    }

    /// The change is made: whatever happens to it from here on, somebody accepts it.
    async fn accept_change(&mut self, at: usize, accept: &Accept) {
        let Some(change) = &accept.change else { return };
        let answer = match calls::accept(self.db, accept.content.sender, &[new_acceptance(accept)]).await {
            Ok(mut answers) => answers.remove(0),
            Err(failure) => return self.failed(at, failure),
        };
        if answer.verdict == "used" {
            // Somebody else has accepted it in between, and may have delivered some of it.
            self.note_stored(at, accept, answer.id());
            self.plan_what_is_owed(at, accept, answer.id().get()).await;
        } else {
            self.accepted(at, &answer);
        }
        if let Err(failure) = calls::settle_change(self.db, change.gid, change.from_version + 1).await {
            warn!(?failure, gid = %change.gid, "the change of a group is accepted, but its record is not removed yet");
        }
    }

    async fn plan_what_is_owed(&mut self, at: usize, accept: &Accept, number: u64) {
        let key =
            PendingKey { sender: accept.content.sender, acceptance: crate::store::AcceptanceId(number) };
        let look = async { owed::open(&mut *self.db.for_queues().await?, &[key]).await };
        let owed = match self.db.limited(look).await {
            Ok(mut owed) => owed.remove(&key).map(|owed| owed.copies).unwrap_or_default(),
            Err(error) => return self.failed(at, PgCallFailure::Refused(error)),
        };
        for nth in 1..accept.rows.len() {
            let row: Row = accept.rows[nth];
            match owed.iter().find(|copy: &&CopyOf| copy.to.uid == row.receiver) {
                Some(copy) => self.plan(Some((at, nth)), &accept.content, *copy, row.message_id),
                None => {
                    if let Some((_, rows)) = self.stored.get_mut(&at) {
                        rows[nth] = Some((row, CopyOutcome::Already));
                    }
                }
            }
        }
    }
}

/// Accepts a change that is made; its copies stay owed.
async fn accept_one(db: &PgDb, gid: GroupId, change: Unaccepted) -> Result<(), StoreError> {
    let Unaccepted { version, actor, accept } = change;
    let refused = |failure| match failure {
        PgCallFailure::Refused(error) | PgCallFailure::Unknown(error) => error,
        PgCallFailure::Unstorable(why) => StoreError::corrupt(why),
    };
    let answers = calls::accept(db, Uid(actor), &[accept]).await.map_err(refused)?;
    match answers[0].verdict.as_str() {
        "stored" | "used" => calls::settle_change(db, gid, version).await.map_err(refused),
        other => {
            Err(StoreError::corrupt(format!("version {version} of group {gid} cannot be accepted: {other}")))
        }
    }
}

/// Accepts changes that were there at the last look, too: those whose servers have died. `seen`: those that were there.
pub(in super::super) async fn accept_changes(
    db: &PgDb,
    seen: &mut HashSet<(GroupId, u64)>,
) -> Result<(), StoreError> {
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

fn member(member: &Member) -> calls::ChangedMember {
    let (standing, since) = member.standing.code();
    let (uid, epoch, active) = (member.uid.0, member.epoch.0, member.is_active());
    calls::ChangedMember { uid, epoch, active, standing, since }
}
