//! Clears deleted accounts. The mark in the directory comes first and holds by itself: nobody logs in to the account, and
//! nobody writes to it. Then this task takes back the account's moments, comments and likes, friendships and memberships
//! of groups, with the rows that the person would have written. Then its own rows go.
//!
//! Owns nothing that lasts: the rows themselves show the work that is left. So a server that was killed, or another one, goes
//! on where it ended, and two at a time change nothing twice (the names of their rows are the same). The account is walked
//! over at once, and again when no server can still write for it. Its rows go last, because the walk finds other people by them.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};
use uuid::Uuid;

use self::group_walk::GroupWalk;
use super::{Accounts, Files, Moments, People, Search};
use crate::domain::{
    Body, ClientId, Clock, Conversation, Entry, FRIENDS, GroupId, Kind, RangeQuery, Timestamp, Uid,
};
use crate::queue::{GroupAction, Publish, Queues, Request, SendError};
use crate::store::{Directory, Forgotten, MessageStore, StoreError};

mod group_walk;

/// Accounts, rows of a feed, friends and conversations that are read at a time.
const PAGE: usize = 200;
/// Rows of each kind that go in one transaction.
const FORGOTTEN_AT_ONCE: usize = 1_000;
/// How soon what could not be finished is tried again.
const AGAIN: Duration = Duration::from_secs(5);
/// How often it looks for deletions that nothing told it of.
const LOOK_EVERY: Duration = Duration::from_secs(3_600);
/// How often a change of a group is decided again when others change it at the same moment.
const TRIES: usize = 5;
/// Accounts that are remembered as walked over once.
const REMEMBERED: usize = 10_000;

/// See the module.
pub struct Deletions {
    /// Says which accounts are deleted, and wakes this task.
    pub accounts: Accounts,
    /// Where they are, with their invitations and reports.
    pub directory: Arc<Directory>,
    /// Their rows.
    pub store: Arc<dyn MessageStore>,
    /// Knows current and former friends.
    pub people: People,
    /// Knows the people with a copy of a moment.
    pub moments: Moments,
    /// Has words of their rows.
    pub search: Search,
    /// Those that the account has uploaded.
    pub files: Files,
    /// The way to write.
    pub queues: Queues,
    /// Compared with when an account was deleted.
    pub clock: Clock,
    /// How long a server may still write for an account after its mark.
    pub settles: Duration,
}

/// Why a walk over an account has not come to its end.
#[derive(Debug, thiserror::Error)]
enum Stopped {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Send(#[from] SendError),
}

impl Deletions {
    /// Clears deleted accounts until `stopping`.
    pub async fn run(self, stopping: CancellationToken) {
        let forever = async {
            let mut walked = HashSet::new();
            loop {
                let pause = match self.pass(&mut walked).await {
                    Ok(true) => LOOK_EVERY,
                    Ok(false) => AGAIN,
                    Err(error) => {
                        warn!(%error, "deleted accounts cannot be listed; trying again");
                        AGAIN
                    }
                };
                // Woken or not, it looks again.
                _ = timeout(pause, self.accounts.deleted()).await;
            }
        };
        stopping.run_until_cancelled(forever).await;
    }

    /// One walk over all deleted accounts that are not cleared. Says whether all of them are now.
    async fn pass(&self, walked: &mut HashSet<Uid>) -> Result<bool, StoreError> {
        let (mut after, mut all_clear, mut still) = (Uid(0), true, HashSet::new());
        loop {
            let page = self.directory.to_clear(after, PAGE).await?;
            for &(uid, deleted_at) in &page {
                let is_settled = self.is_settled(deleted_at);
                if is_settled || !walked.contains(&uid) {
                    match self.clear(uid, is_settled).await {
                        Ok(true) => {
                            info!(%uid, "a deleted account is cleared");
                            continue;
                        }
                        Ok(false) => {}
                        Err(error) => {
                            warn!(%uid, %error, "a deleted account cannot be cleared; trying again later");
                            all_clear = false;
                            continue;
                        }
                    }
                }
                all_clear = false;
                if still.len() < REMEMBERED {
                    still.insert(uid);
                }
            }
            match page.last() {
                Some((last, _)) if page.len() == PAGE => after = *last,
                _ => break,
            }
        }
        *walked = still;
        Ok(all_clear)
    }

    fn is_settled(&self, deleted_at: Timestamp) -> bool {
        let settles = i64::try_from(self.settles.as_millis()).unwrap_or(i64::MAX);
        deleted_at.0.saturating_add(settles) <= self.clock.now().0
    }

    /// Takes back what others have of `uid`, and, once that is settled, removes its rows. Says whether nothing is left.
    async fn clear(&self, uid: Uid, is_settled: bool) -> Result<bool, Stopped> {
        self.directory.end_invites_of(uid, self.clock.now()).await?;
        self.directory.forget_reports_of(uid).await?;
        // Before the friendships: by them it is known who may have a copy.
        self.take_back_moments(uid).await?;
        self.end_friendships(uid).await?;
        self.leave_groups(uid).await?;
        if !is_settled {
            return Ok(false);
        }
        loop {
            match self.store.forget_rows(uid, FORGOTTEN_AT_ONCE).await? {
                Forgotten { more: false, .. } => break,
                // The remaining rows are still in memory and reach the tables later.
                Forgotten { removed: 0, more: true } => return Ok(false),
                Forgotten { .. } => {}
            }
        }
        self.search.forget(uid).await?;
        self.files.owner_is_gone(uid).await?;
        self.directory.mark_cleared(uid).await?;
        Ok(true)
    }

    /// Moments and comments are deleted, and likes taken back, for everybody who has them.
    async fn take_back_moments(&self, uid: Uid) -> Result<(), Stopped> {
        let (mut known, former) = self.people.current_and_former_friends(uid).await?;
        known.extend(former);
        let mut before = None;
        loop {
            let page =
                self.store.conversation(uid, Conversation::MOMENTS, RangeQuery::before(before, PAGE)).await?;
            for row in page.rows.iter().filter(|row| row.content.sender == uid) {
                let body = match row.content.kind {
                    Kind::Moment | Kind::Comment => {
                        row.content.key().map(|of| (Kind::Delete, Body::deletion(of)))
                    }
                    Kind::Like if row.content.body.liked() => {
                        row.content.of().map(|of| (Kind::Like, Body::like(of, false)))
                    }
                    _ => None,
                };
                let (Some((kind, body)), Some(key)) = (body, row.content.key()) else { continue };
                let others = self.moments.holders(key, known.clone()).await?;
                self.publish(uid, row, kind, Conversation::MOMENTS, body, others).await?;
            }
            match page.rows.last() {
                Some(last) if page.more => before = Some(last.message_id),
                _ => return Ok(()),
            }
        }
    }

    /// Ends the account's friendships and withdraws the friend requests that it made. The other person of each gets a row.
    /// Requests that others made to it are removed later, with the account's rows.
    async fn end_friendships(&self, uid: Uid) -> Result<(), Stopped> {
        let mut after = String::new();
        loop {
            let page = self.store.newest_under(uid, FRIENDS, &after, PAGE).await?;
            for (_, row) in &page {
                let Conversation::User(other) = row.conversation() else { continue };
                if row.content.sender == uid && row.content.body.wanted() {
                    self.publish(
                        uid,
                        row,
                        Kind::Friend,
                        Conversation::User(other),
                        Body::friend_deleted(),
                        vec![other],
                    )
                    .await?;
                }
            }
            match page.last() {
                Some((last, _)) if page.len() == PAGE => after.clone_from(last),
                _ => return Ok(()),
            }
        }
    }

    /// Takes the account out of all its groups. The other members get a row. If the account owns a group, its heir becomes the owner.
    async fn leave_groups(&self, uid: Uid) -> Result<(), Stopped> {
        let mut walk = GroupWalk::default();
        while let Some(gids) = walk.next(&*self.store, uid, PAGE).await? {
            for gid in gids {
                self.leave(uid, gid).await?;
            }
        }
        Ok(())
    }

    async fn leave(&self, uid: Uid, gid: GroupId) -> Result<(), Stopped> {
        for _ in 0..TRIES {
            let group = self.store.group(gid).await?;
            let Some(epoch) = group.and_then(|group| group.epoch_of(uid)) else { return Ok(()) };
            let client_id = name(uid, &format!("leave {gid} {}", epoch.0));
            let action = GroupAction::Remove(uid);
            match self.queues.submit(uid, Request::Group { client_id, gid, action }).await {
                Err(SendError::GroupChanged) => {}
                outcome => return settled(uid, outcome.map(drop)),
            }
        }
        Err(SendError::GroupChanged.into())
    }

    /// Publishes the row that takes `row` back.
    async fn publish(
        &self,
        uid: Uid,
        row: &Entry,
        kind: Kind,
        target: Conversation,
        body: Body,
        others: Vec<Uid>,
    ) -> Result<(), Stopped> {
        let client_id = name(uid, &format!("take back {}", row.message_id));
        let publish = Publish { client_id, kind, target, body, files: Vec::new(), others };
        settled(uid, self.queues.submit(uid, Request::Publish(publish)).await.map(drop))
    }
}

/// Returns an error that may pass, so that the change is tried again. Logs an error that will not pass and goes on with the rest.
fn settled(uid: Uid, outcome: Result<(), SendError>) -> Result<(), Stopped> {
    match outcome {
        Err(error) if error.is_retryable() => Err(error.into()),
        Err(SendError::UnknownGroup | SendError::NotMember) | Ok(()) => Ok(()),
        Err(error) => {
            warn!(%uid, %error, "a part of a deleted account cannot be taken back from others");
            Ok(())
        }
    }
}

/// The name of a row that clears something of `uid`: the same, whichever server writes it and however often.
fn name(uid: Uid, what: &str) -> ClientId {
    let hash = Sha256::digest(format!("tidemark deletion 1\n{uid}\n{what}").as_bytes());
    ClientId(Uuid::from_slice(&hash[..16]).expect("16 bytes"))
}
