//! Invitations in memory: for tests of what stands above storage.

use std::collections::BTreeMap;

use async_trait::async_trait;

use super::MemoryDirectory;
use crate::domain::{ClientId, GroupId, Invite, Timestamp, Uid};
use crate::store::{Invites, StoreError};

/// An invitation, with the claims on it.
pub(super) struct Kept {
    invite: Invite,
    claims: BTreeMap<Uid, ClientId>,
}

impl Kept {
    /// Ends a claim, if there is such a one.
    fn end(&mut self, guest: Uid, name: ClientId) -> bool {
        let found = self.claims.get(&guest) == Some(&name);
        if found {
            self.claims.remove(&guest);
        }
        found
    }
}

#[async_trait]
impl Invites for MemoryDirectory {
    async fn put_invite(&self, invite: Invite) -> Result<Invite, StoreError> {
        let mut invites = self.invites();
        let is_same = |kept: &&Kept| {
            invite.client_id.is_some()
                && (kept.invite.made_by, kept.invite.client_id) == (invite.made_by, invite.client_id)
        };
        if let Some(standing) = invites.values().find(is_same) {
            return Ok(standing.invite);
        }
        invites.insert(invite.number, Kept { invite, claims: BTreeMap::new() });
        Ok(invite)
    }

    async fn open_invites(
        &self,
        gid: GroupId,
        made_by: Option<Uid>,
        now: Timestamp,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Invite>, StoreError> {
        let invites = self.invites();
        let all = invites.range(after + 1..).map(|(_, kept)| kept.invite).filter(|invite| {
            invite.gid == gid && made_by.is_none_or(|uid| uid == invite.made_by) && invite.is_open(now)
        });
        Ok(all.take(limit).collect())
    }

    async fn end_invite(&self, number: u64, at: Timestamp) -> Result<(), StoreError> {
        if let Some(kept) = self.invites().get_mut(&number) {
            kept.invite.expires_at = kept.invite.expires_at.min(at);
        }
        Ok(())
    }

    async fn end_invites_of(&self, made_by: Uid, at: Timestamp) -> Result<(), StoreError> {
        for kept in self.invites().values_mut().filter(|kept| kept.invite.made_by == made_by) {
            kept.invite.expires_at = kept.invite.expires_at.min(at);
        }
        Ok(())
    }

    async fn invite(&self, number: u64) -> Result<Option<Invite>, StoreError> {
        Ok(self.invites().get(&number).map(|kept| kept.invite))
    }

    async fn largest_invite(&self) -> Result<u64, StoreError> {
        Ok(self.invites().keys().next_back().copied().unwrap_or(0))
    }

    async fn claim_use(
        &self,
        number: u64,
        guest: Uid,
        name: ClientId,
        now: Timestamp,
    ) -> Result<Option<ClientId>, StoreError> {
        let mut invites = self.invites();
        let Some(kept) = invites.get_mut(&number).filter(|kept| now < kept.invite.expires_at) else {
            return Ok(None);
        };
        if let Some(name) = kept.claims.get(&guest) {
            return Ok(Some(*name));
        }
        if kept.invite.uses_left == 0 {
            return Ok(None);
        }
        kept.invite.uses_left -= 1;
        kept.claims.insert(guest, name);
        Ok(Some(name))
    }

    async fn claim(&self, number: u64, guest: Uid) -> Result<Option<ClientId>, StoreError> {
        Ok(self.invites().get(&number).and_then(|kept| kept.claims.get(&guest).copied()))
    }

    async fn settle_use(&self, number: u64, guest: Uid, name: ClientId) -> Result<(), StoreError> {
        if let Some(kept) = self.invites().get_mut(&number) {
            kept.end(guest, name);
        }
        Ok(())
    }

    async fn return_use(&self, number: u64, guest: Uid, name: ClientId) -> Result<(), StoreError> {
        if let Some(kept) = self.invites().get_mut(&number)
            && kept.end(guest, name)
        {
            kept.invite.uses_left += 1;
        }
        Ok(())
    }

    async fn forget_invites(&self, now: Timestamp, limit: usize) -> Result<u64, StoreError> {
        let mut invites = self.invites();
        let newest = invites.keys().next_back().copied();
        let is_over = |invite: &Invite| invite.expires_at <= now && Some(invite.number) != newest;
        let over = invites.values().filter(|kept| is_over(&kept.invite)).take(limit);
        let over: Vec<u64> = over.map(|kept| kept.invite.number).collect();
        for number in &over {
            invites.remove(number);
        }
        Ok(over.len() as u64)
    }
}
