//! The state of a tag that its callers and its worker share.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use tokio::time::Instant;

use crate::segment::lasts;
use crate::strategy::Status;
use crate::tag::Tag;

pub(super) struct RedisState {
    pub(super) tag: Tag,
    issued: AtomicU64,
    trouble: Mutex<Option<String>>,
    flow: Mutex<Flow>,
}

/// How many numbers are at hand, and how fast they go.
struct Flow {
    left: u64,
    /// By all processes, as far as this one saw it.
    used: u64,
    /// The last two times at which there were more than before, and what was used by then.
    refills: [(Instant, u64); 2],
}

impl RedisState {
    pub(super) fn new(tag: Tag) -> Self {
        let begun = (Instant::now(), 0);
        let flow = Flow { left: 0, used: 0, refills: [begun, begun] };
        Self { tag, issued: AtomicU64::new(0), trouble: Mutex::new(None), flow: Mutex::new(flow) }
    }

    /// Notes that `count` numbers were issued and that `left` are left that need no database.
    pub(super) fn issued(&self, count: u64, left: u64) {
        self.issued.fetch_add(count, Ordering::Relaxed);
        let mut flow = self.flow.lock().unwrap_or_else(PoisonError::into_inner);
        if left > flow.left {
            flow.refills = [flow.refills[1], (Instant::now(), flow.used)];
        }
        flow.used += flow.left.saturating_sub(left);
        flow.left = left;
    }

    /// Notes the present problem; `None`: there is none.
    pub(super) fn tell(&self, trouble: Option<String>) {
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = trouble;
    }

    pub(super) fn status(&self) -> Status {
        let flow = self.flow.lock().unwrap_or_else(PoisonError::into_inner);
        let (since, used) = flow.refills[0];
        Status {
            issued: self.issued.load(Ordering::Relaxed),
            left: Some(flow.left),
            lasts: lasts(flow.left, flow.used - used, since.elapsed()),
            trouble: self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_is_left_lasts_as_long_as_the_rate_since_the_last_segment_but_one_says() {
        let shared = RedisState::new(Tag::new("order").unwrap());
        assert_eq!(shared.status().lasts, None);
        shared.issued(1, 999);
        for left in [899, 1_799, 1_699] {
            tokio::time::advance(Duration::from_secs(60)).await;
            shared.issued(1, left);
        }
        let status = shared.status();
        assert_eq!((status.issued, status.left), (4, Some(1_699)));
        let minutes = status.lasts.unwrap().as_secs() / 60;
        assert!((16..=26).contains(&minutes), "two hundred of three minutes were seen: {minutes}");
    }
}
