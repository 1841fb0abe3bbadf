//! Invitations into groups: a member makes a link, a guest follows it. The invitation acts for its maker: it ends when
//! the maker leaves the group.

use std::sync::Arc;

use tracing::warn;

use super::Groups;
use crate::domain::message::Person;
use crate::domain::{
    ClientId, Clock, GroupId, Invite, LONGEST_INVITE_SECONDS, MOST_INVITE_USES, Role, Timestamp, Uid,
};
use crate::queue::SendError;
use crate::seq::{Ids, NumberError};
use crate::store::{Directory, StoreError};

/// How long an invitation lasts where nothing else is said, in seconds, and how many come in by it.
const USUAL: (u32, u32) = (7 * 24 * 60 * 60, 10);

/// An invitation just made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewInvite {
    /// The code in the link.
    pub code: String,
    /// From when on nobody comes in by it.
    pub expires_at: Timestamp,
    /// How many may come in by it.
    pub uses: u32,
}

/// An invitation by which somebody can come in, as members see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenInvite {
    /// The code in the link.
    pub code: String,
    /// Its maker.
    pub made_by: Person,
    /// When.
    pub made_at: Timestamp,
    /// From when on nobody comes in by it.
    pub expires_at: Timestamp,
    /// How many may come in by it in all.
    pub uses: u32,
    /// How many may still come in by it.
    pub uses_left: u32,
}

/// An invitation as a guest sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InviteView {
    /// Into which group.
    pub gid: GroupId,
    /// The group's name.
    pub group: String,
    /// The member that invites.
    pub from: Person,
}

/// Why an invitation was not made or followed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum InviteError {
    /// A limit is passed.
    #[error(
        "choose a time of 60 to {LONGEST_INVITE_SECONDS} seconds and 1 to {MOST_INVITE_USES} people for the invitation"
    )]
    Terms,
    /// No invitation has this code.
    #[error("this invitation does not exist; ask for a new link")]
    Unknown,
    /// Its time is over, or its maker has left the group.
    #[error("the invitation has expired; ask for a new link")]
    Expired,
    /// As many came in as it was made for.
    #[error("the invitation is used up; ask for a new link")]
    UsedUp,
    /// The group refuses.
    #[error(transparent)]
    Group(#[from] SendError),
    /// No number could be had.
    #[error(transparent)]
    Number(#[from] NumberError),
    /// Storage failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Invitations.
#[derive(Clone)]
pub struct Invites {
    directory: Arc<Directory>,
    groups: Groups,
    ids: Ids,
    clock: Clock,
}

impl Invites {
    /// Use cases over the invitations of `directory` into `groups`.
    pub fn new(directory: Arc<Directory>, groups: Groups, ids: Ids, clock: Clock) -> Invites {
        Invites { directory, groups, ids, clock }
    }

    /// Makes an invitation into a group of which `by` is a member. Without terms it lasts a week and lets ten people in. A repetition under the same `key` makes no second one, as long as the first is kept.
    pub async fn create(
        &self,
        by: Uid,
        gid: GroupId,
        seconds: Option<u32>,
        uses: Option<u32>,
        key: Option<ClientId>,
    ) -> Result<NewInvite, InviteError> {
        let (seconds, uses) = (seconds.unwrap_or(USUAL.0), uses.unwrap_or(USUAL.1));
        if !(60..=LONGEST_INVITE_SECONDS).contains(&seconds) || !(1..=MOST_INVITE_USES).contains(&uses) {
            return Err(InviteError::Terms);
        }
        // A caller outside the group gets `UnknownGroup`.
        self.groups.role(by, gid).await?;
        let (number, code) = self.ids.invite().await?;
        let made_at = self.clock.now();
        let expires_at = Timestamp(made_at.0 + i64::from(seconds) * 1_000);
        let invite =
            Invite { number, gid, made_by: by, made_at, expires_at, uses, uses_left: uses, client_id: key };
        let kept = self.directory.put_invite(invite).await?;
        if kept.number == number {
            return Ok(NewInvite { code, expires_at, uses });
        }
        // One that was revoked ends earlier than it was to.
        let lasts = kept.expires_at.0 - kept.made_at.0;
        if (kept.gid, kept.uses) != (gid, uses) || lasts > i64::from(seconds) * 1_000 {
            return Err(SendError::ClientIdReused.into());
        }
        Ok(NewInvite { code: self.ids.code_of(kept.number)?, expires_at: kept.expires_at, uses })
    }

    /// The open invitations, oldest first: all for the owner and administrators, their own for members. From behind the code `after` on,
    /// at most `limit`; and `after` for the next page.
    pub async fn open_ones(
        &self,
        by: Uid,
        gid: GroupId,
        after: Option<&str>,
        limit: usize,
    ) -> Result<(Vec<OpenInvite>, Option<String>), InviteError> {
        let after = after.map(|code| self.ids.invite_of(code).ok_or(InviteError::Unknown)).transpose()?;
        let made_by = (self.groups.role(by, gid).await? == Role::Member).then_some(by);
        let (now, after) = (self.clock.now(), after.unwrap_or(0));
        let mut page = self.directory.open_invites(gid, made_by, now, after, limit + 1).await?;
        let more = page.len() > limit;
        page.truncate(limit);
        let next = page.last().filter(|_| more).map(|last| self.ids.code_of(last.number)).transpose()?;
        let makers: Vec<Uid> = page.iter().map(|invite| invite.made_by).collect();
        let names = self.directory.names(&makers).await?;
        let mut open = Vec::with_capacity(page.len());
        for (invite, name) in page.into_iter().zip(names) {
            // It has ended with its maker's membership.
            if !self.groups.has(gid, invite.made_by).await? {
                continue;
            }
            let name = name.unwrap_or_else(|| invite.made_by.to_string());
            open.push(OpenInvite {
                code: self.ids.code_of(invite.number)?,
                made_by: Person { uid: invite.made_by, name },
                made_at: invite.made_at,
                expires_at: invite.expires_at,
                uses: invite.uses,
                uses_left: invite.uses_left,
            });
        }
        Ok((open, next))
    }

    /// Ends an invitation. Its maker may, and the owner and administrators of the group.
    pub async fn revoke(&self, by: Uid, gid: GroupId, code: &str) -> Result<(), InviteError> {
        let role = self.groups.role(by, gid).await?;
        let invite = self.find(code).await?.filter(|invite| invite.gid == gid);
        let invite = invite.ok_or(InviteError::Unknown)?;
        if invite.made_by != by && role == Role::Member {
            return Err(SendError::AdministratorsOnly.into());
        }
        Ok(self.directory.end_invite(invite.number, self.clock.now()).await?)
    }

    /// The group and the maker behind a link.
    pub async fn look(&self, code: &str) -> Result<InviteView, InviteError> {
        let invite = self.open(code).await?;
        let group = self.groups.get(invite.made_by, invite.gid).await.map_err(ended)?;
        let name = self.directory.names(&[invite.made_by]).await?.pop().flatten();
        let name = name.unwrap_or_else(|| invite.made_by.to_string());
        Ok(InviteView {
            gid: invite.gid,
            group: group.settings.name.clone(),
            from: Person { uid: invite.made_by, name },
        })
    }

    /// Lets `guest` into the group. One who is in it already takes no use.
    ///
    /// The use is claimed before the group changes, and the claim names the change: after a crash, or an error that says that asking
    /// again may help, the same call goes on with the claim that stands and takes no second use.
    pub async fn accept(&self, guest: Uid, code: &str) -> Result<GroupId, InviteError> {
        let Some(invite) = self.find(code).await? else { return Err(InviteError::Unknown) };
        if self.finish(&invite, guest).await? {
            return Ok(invite.gid);
        }
        let now = self.clock.now();
        if invite.expires_at <= now {
            return Err(InviteError::Expired);
        }
        let name = self.groups.new_name();
        let Some(name) = self.directory.claim_use(invite.number, guest, name, now).await? else {
            return Err(InviteError::UsedUp);
        };
        match self.groups.admit(name, invite.made_by, invite.gid, guest, invite.made_at).await {
            Ok(()) => {
                // The guest is in. If this fails, the next call by this link sees to it.
                if let Err(error) = self.directory.settle_use(invite.number, guest, name).await {
                    warn!(%error, "the use of an invitation is not recorded yet");
                }
                Ok(invite.gid)
            }
            Err(SendError::AlreadyMember) => {
                self.finish(&invite, guest).await?;
                Ok(invite.gid)
            }
            Err(error) => {
                // One that may pass leaves the claim, for the guest has it still, and perhaps is in.
                if !error.is_retryable() {
                    self.directory.return_use(invite.number, guest, name).await?;
                }
                Err(ended(error))
            }
        }
    }

    /// Whether `guest` is in the group. Cleans up after an earlier call: a use that let the guest in is settled, one that
    /// is no longer needed is given back.
    async fn finish(&self, invite: &Invite, guest: Uid) -> Result<bool, InviteError> {
        // In this order: a guest that came in by the claim is found under its name.
        let inside = self.groups.has(invite.gid, guest).await?;
        if let Some(name) = self.directory.claim(invite.number, guest).await? {
            if self.groups.was_made(invite.made_by, name).await? {
                self.directory.settle_use(invite.number, guest, name).await?;
            } else if inside {
                self.directory.return_use(invite.number, guest, name).await?;
            }
        }
        Ok(inside)
    }

    /// Forgets up to `limit` that are over, and tells how many.
    pub async fn forget_expired(&self, limit: usize) -> Result<u64, StoreError> {
        self.directory.forget_invites(self.clock.now(), limit).await
    }

    async fn find(&self, code: &str) -> Result<Option<Invite>, InviteError> {
        match self.ids.invite_of(code) {
            Some(number) => Ok(self.directory.invite(number).await?),
            None => Ok(None),
        }
    }

    async fn open(&self, code: &str) -> Result<Invite, InviteError> {
        let invite = self.find(code).await?.ok_or(InviteError::Unknown)?;
        match invite {
            _ if invite.expires_at <= self.clock.now() => Err(InviteError::Expired),
            Invite { uses_left: 0, .. } => Err(InviteError::UsedUp),
            invite => Ok(invite),
        }
    }
}

/// To a guest, a maker who has left and a group that is gone are the same.
fn ended(error: SendError) -> InviteError {
    match error {
        SendError::UnknownGroup | SendError::NotMember | SendError::AccountDeleted(_) => InviteError::Expired,
        error => InviteError::Group(error),
    }
}
