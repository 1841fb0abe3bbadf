//! How much an account has stored with others: rows times bytes of its messages to groups and to all its friends.
//!
//! The cost of a message is known only when it is decided, so it is charged then, and the next requests are refused until that is made up
//! for. The two rows of a message to a person are not counted: the rate of messages holds them.

use std::time::Duration;

use quick_cache::sync::Cache;
use tokio::time::Instant;

use super::quota::Quota;
use super::{GroupAction, Request, SendError};
use crate::domain::{Content, Conversation, Kind, Uid};

/// Accounts that are remembered.
const KNOWN: usize = 100_000;

/// How long an account may go on at once with what it may have stored in the long run.
const BURST: Duration = Duration::from_secs(60);

/// Bytes of a row beside its body, roughly.
const ROW: usize = 256;

/// Rows that every message has.
const FREE_ROWS: usize = 2;

/// The amounts that accounts have stored lately.
pub(super) struct FanOut {
    /// In a second, in the long run; 0 lifts the limit.
    bytes: u64,
    /// When the allowance of each is whole again.
    whole: Cache<Uid, Instant>,
    /// Of a day, for everything.
    pub(super) quota: Quota,
}

impl FanOut {
    pub(super) fn new(bytes_per_second: u64, quota: Quota) -> FanOut {
        FanOut { bytes: bytes_per_second, whole: Cache::new(KNOWN), quota }
    }

    /// Refuses requests that store rows with many while `who` has stored too much.
    pub(super) fn check(&self, who: Uid, request: &Request, now: Instant) -> Result<(), SendError> {
        let is_for_many = match request {
            Request::Message(message) => matches!(message.to, Conversation::Group(_)),
            Request::Amend(amend) => matches!(amend.conversation, Conversation::Group(_)),
            Request::Publish(publish) => publish.target == Conversation::MOMENTS,
            // A new member may get many earlier messages.
            Request::Group { action, .. } => matches!(action, GroupAction::Add(_)),
            Request::Post(_) | Request::Read { .. } | Request::Seen { .. } | Request::ReadCounts { .. } => {
                false
            }
        };
        if self.bytes == 0 || !is_for_many {
            return Ok(());
        }
        let ahead = self.whole.get(&who).map_or(Duration::ZERO, |whole| whole.duration_since(now));
        match ahead.checked_sub(BURST) {
            Some(wait) if !wait.is_zero() => Err(SendError::TooMuchStored(wait)),
            _ => Ok(()),
        }
    }

    /// So many rows are stored.
    pub(super) fn charge(&self, content: &Content, rows: usize, now: Instant) {
        let row = content.body.as_json().len() + ROW;
        // The quota leaves out `seen` rows, which tell how far messages have come.
        if content.kind != Kind::Seen {
            self.quota.charge(content.sender, rows.saturating_mul(row));
        }
        let more = rows.saturating_sub(FREE_ROWS);
        self.charge_for(content.sender, more.saturating_mul(row), now);
    }

    /// So many rows with bodies of so many bytes are stored, which `who` has caused.
    pub(super) fn charge_bytes(&self, who: Uid, rows: usize, bodies: usize, now: Instant) {
        self.charge_for(who, rows.saturating_mul(ROW).saturating_add(bodies), now);
    }

    fn charge_for(&self, who: Uid, bytes: usize, now: Instant) {
        if self.bytes == 0 || bytes == 0 {
            return;
        }
        let time = Duration::from_secs_f64(bytes as f64 / self.bytes as f64);
        let whole = self.whole.get(&who).map_or(now, |whole| whole.max(now));
        self.whole.insert(who, whole + time);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Body, ClientId, Clock, GroupId, Mentions, Timestamp};
    use crate::queue::{DailyLimit, OutgoingMessage};

    fn to(to: Conversation) -> Request {
        let client_id = ClientId(uuid::Uuid::from_u128(1));
        Request::Message(OutgoingMessage {
            client_id,
            to,
            text: "hi".into(),
            reply_to: None,
            forward: None,
            files: Vec::new(),
            mentions: Mentions::default(),
        })
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_stored_with_many_is_made_up_for_before_more_is() {
        let (ann, bob) = (Uid(1), Uid(2));
        let content = Content {
            kind: Kind::Message,
            sender: ann,
            target: Conversation::Group(GroupId(7)),
            client_id: None,
            body: Body::text(&"x".repeat(733), 1_000).expect("short"),
            sent_at: Timestamp(0),
        };
        let quota = || Quota::new(0, DailyLimit::new("chunks", 0, Clock::new(|| Timestamp(0)), None));
        let fan_out = FanOut::new(1_000, quota());
        let now = Instant::now();
        let may = |who, now| fan_out.check(who, &to(Conversation::Group(GroupId(7))), now);
        assert_eq!(may(ann, now), Ok(()));
        // A thousand bytes a row.
        fan_out.charge(&content, 2, now);
        fan_out.charge(&content, 62, now);
        assert_eq!(may(ann, now), Ok(()), "a burst");
        fan_out.charge(&content, 12, now);
        assert_eq!(may(ann, now), Err(SendError::TooMuchStored(Duration::from_secs(10))));
        assert_eq!(may(bob, now), Ok(()));
        assert_eq!(fan_out.check(ann, &to(Conversation::User(bob)), now), Ok(()), "one person is not many");
        assert_eq!(may(ann, now + Duration::from_secs(10)), Ok(()));
        let lifted = FanOut::new(0, quota());
        lifted.charge(&content, usize::MAX, now);
        assert_eq!(lifted.check(ann, &to(Conversation::Group(GroupId(7))), now), Ok(()));
    }
}
