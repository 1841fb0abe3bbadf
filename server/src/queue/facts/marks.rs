//! Which messages are pinned and starred, before another one is. Where they are as many as there may be, those count that were not
//! taken back or deleted since.

use crate::domain::{Conversation, Entry, IdempotencyKey, MOST_PINS, MessageId, STARS, Uid, pins};
use crate::store::marked::marked;
use crate::store::{MessageStore, StoreError};

/// Pins that are looked at, also of what was taken back.
const MOST_LOOKED_AT: usize = 4 * MOST_PINS;

/// The messages that are pinned in a conversation, as `who` has it.
pub(super) async fn pinned(
    store: &dyn MessageStore,
    who: Uid,
    conversation: Conversation,
) -> Result<Vec<IdempotencyKey>, StoreError> {
    let rows =
        marked(store, who, &pins(conversation), MOST_LOOKED_AT, |content| content.body.pinned()).await?;
    let mut pinned: Vec<IdempotencyKey> = rows.iter().filter_map(|row| row.content.of()).collect();
    if pinned.len() < MOST_PINS {
        return Ok(pinned);
    }
    let mut copies = Vec::with_capacity(pinned.len());
    for key in pinned.iter().take(MOST_LOOKED_AT) {
        copies.extend(store.copies(*key, &[who]).await?.into_iter().flatten().map(|id| (who, id)));
    }
    let gone = gone(store, &copies).await?;
    pinned.retain(|key| !gone.contains(key));
    Ok(pinned)
}

/// The messages that `who` has starred; `most`: as many as there may be.
pub(super) async fn starred(
    store: &dyn MessageStore,
    who: Uid,
    most: usize,
) -> Result<Vec<IdempotencyKey>, StoreError> {
    let is_starred = |row: &Entry| Some((row.content.of()?, (who, row.content.body.starred()?)));
    // Twice as many are read: those that were deleted since do not count.
    let rows =
        marked(store, who, STARS, most.saturating_mul(2), |content| content.body.starred().is_some()).await?;
    let starred: Vec<(IdempotencyKey, (Uid, MessageId))> = rows.iter().filter_map(is_starred).collect();
    let (mut starred, copies): (Vec<_>, Vec<_>) = starred.into_iter().unzip();
    if starred.len() >= most {
        let gone = gone(store, &copies).await?;
        starred.retain(|key| !gone.contains(key));
    }
    Ok(starred)
}

/// Those of these copies that were taken back or deleted.
async fn gone(
    store: &dyn MessageStore,
    copies: &[(Uid, MessageId)],
) -> Result<Vec<IdempotencyKey>, StoreError> {
    let rows = store.entries(copies).await?.into_iter().flatten();
    let gone = rows.filter(|row| row.content.kind.is_gone());
    Ok(gone.filter_map(|row| row.content.key()).collect())
}
