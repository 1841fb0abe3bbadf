//! When a member of a slow group last said something there.

use std::time::Duration;

use crate::domain::{Conversation, GroupId, RangeQuery, Timestamp, Uid};
use crate::store::{MessageStore, StoreError};

/// Rows that are read at once.
const PAGE: usize = 200;
/// Rows that are looked at. Members of a slow group say little; where others fill it all the same, a message may come too soon.
const MOST_ROWS: usize = 2_000;

/// When `who` last said something in the group within the time `slow` before `now`, also if that was taken back or deleted since.
pub(super) async fn spoke(
    store: &dyn MessageStore,
    who: Uid,
    gid: GroupId,
    slow: Duration,
    now: Timestamp,
) -> Result<Option<Timestamp>, StoreError> {
    let since = now.0.saturating_sub(i64::try_from(slow.as_millis()).unwrap_or(i64::MAX));
    let (mut before, mut looked_at) = (None, 0);
    while looked_at < MOST_ROWS {
        let query = RangeQuery::before(before, PAGE);
        let page = store.conversation(who, Conversation::Group(gid), query).await?;
        for row in &page.rows {
            let content = &row.content;
            if content.sent_at.0 <= since {
                return Ok(None);
            }
            if content.sender == who && (content.kind.is_said() || content.kind.is_gone()) {
                return Ok(Some(content.sent_at));
            }
        }
        match page.rows.last() {
            Some(last) if page.more => before = Some(last.message_id),
            _ => return Ok(None),
        }
        looked_at += page.rows.len();
    }
    Ok(None)
}
