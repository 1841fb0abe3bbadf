//! Invitations in memory: for tests of what stands above storage.

use async_trait::async_trait;

use super::MemoryDirectory;
use crate::domain::{Invite, Timestamp};
use crate::store::{Invites, StoreError};

#[async_trait]
impl Invites for MemoryDirectory {
    async fn put_invite(&self, invite: Invite) -> Result<(), StoreError> {
        self.invites().insert(invite.number, invite);
        Ok(())
    }

    async fn invite(&self, number: u64) -> Result<Option<Invite>, StoreError> {
        Ok(self.invites().get(&number).copied())
    }

    async fn use_invite(&self, number: u64, now: Timestamp) -> Result<bool, StoreError> {
        let mut invites = self.invites();
        let Some(invite) = invites.get_mut(&number).filter(|invite| invite.is_open(now)) else {
            return Ok(false);
        };
        invite.uses_left -= 1;
        Ok(true)
    }

    async fn return_use(&self, number: u64) -> Result<(), StoreError> {
        if let Some(invite) = self.invites().get_mut(&number) {
            invite.uses_left += 1;
        }
        Ok(())
    }

    async fn forget_invites(&self, now: Timestamp, limit: usize) -> Result<u64, StoreError> {
        let mut invites = self.invites();
        let over = invites.values().filter(|invite| invite.expires_at <= now).take(limit);
        let over: Vec<u64> = over.map(|invite| invite.number).collect();
        for number in &over {
            invites.remove(number);
        }
        Ok(over.len() as u64)
    }
}
