//! When people were online last: kept as their last connections end, and told to friends and to people to whom they have written, unless
//! one of the two hides it.

use super::{Ephemerals, contents};
use crate::domain::{LastSeen, Privacy, Relation, Uid};
use crate::store::StoreError;

/// People of one statement.
const AT_ONCE: usize = 1_000;

impl Ephemerals {
    /// When `other` was online last, as far as `who` is told: `None` where it is not known or not shown. The server does not say which.
    pub async fn last_seen(&self, who: Uid, other: Uid) -> Result<Option<LastSeen>, StoreError> {
        let shows = |privacy: &Privacy| privacy.presence && privacy.last_seen;
        if who == other || !self.options.presence || !shows(&self.own_privacy(who).await?) {
            return Ok(None);
        }
        let rows = self.store.newest(&Relation::keys(other, who)).await?;
        let relation = Relation::read(other, contents(&rows));
        if relation.is_blocked || relation.has_blocked || !shows(&relation.privacy) {
            return Ok(None);
        }
        let is_known =
            relation.friendship.is_mutual() || self.store.heard_from(who, &[other]).await? == [true];
        if !is_known {
            return Ok(None);
        }
        let at = self.directory.last_seen(other).await?;
        Ok(at.map(|at| LastSeen::of(at, self.clock.now())))
    }

    /// Keeps that these people were here until now.
    pub(super) async fn keep_last_seen(&self, people: &[Uid]) {
        let now = self.clock.now();
        for some in people.chunks(AT_ONCE).take_while(|_| self.options.presence) {
            // Where nothing can be stored, an older time is shown.
            if let Err(error) = self.directory.put_last_seen(some, now).await {
                tracing::debug!(%error, "it is not kept when people were online last");
                return;
            }
        }
    }
}
