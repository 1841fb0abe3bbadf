//! Writes the copies for thousands of inboxes in slices while others write, too, so that nobody waits for all of them.
//!
//! Moments go to thousands, and no reader misses one that comes a little later. The acceptance has the first slice; the store knows the
//! receivers of pending copies (I5), so a restart goes on with them. The next slices follow between the requests of others, with pauses,
//! so that others have most of the writer and of the disk. Requests of the same sender wait until the last slice is written (I12). While
//! nobody else writes, nothing is sliced.
//!
//! Where the store assigns the ids nothing is sliced either: all copies are one commit.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::{Options, Queued, Request};
use crate::domain::{Content, Conversation, Uid};
use crate::store::{Accept, AcceptanceId, Recipient, Row};

/// How long somebody counts as writing after a request.
const BUSY: Duration = Duration::from_millis(100);

/// The pause after a slice, in times of what it took.
const PAUSE: u32 = 4;

/// Copies of one acceptance that a queue owes to its receivers.
#[derive(Clone, Debug)]
pub(super) struct Delivery {
    pub(super) acceptance: AcceptanceId,
    pub(super) content: Arc<Content>,
    pub(super) to: Vec<Recipient>,
}

/// The slices that one queue has yet to write to its receivers.
pub(super) struct Slices {
    /// Copies in one slice.
    rows: usize,
    /// Copies in one while nobody else writes.
    most_rows: usize,
    /// In the order of acceptance.
    owed: VecDeque<Delivery>,
    busy_until: Instant,
    due: Instant,
}

impl Slices {
    pub(super) fn new(options: &Options, now: Instant) -> Slices {
        let rows = options.slice_rows.max(1);
        let most_rows = options.batch_rows.max(rows);
        Slices { rows, most_rows, owed: VecDeque::new(), busy_until: now, due: now }
    }

    /// Others write, too, if one of these is not itself sliced.
    pub(super) fn hear(&mut self, requests: &[Queued], now: Instant) {
        let is_small = |queued: &Queued| match &queued.request {
            Request::Publish(publish) => publish.others.len() < self.rows,
            _ => true,
        };
        if requests.iter().any(is_small) {
            self.busy_until = now + BUSY;
        }
    }

    /// Leaves for later what is too much of the copies that are `mine`; says which.
    pub(super) fn cut(
        &self,
        accept: &mut Accept,
        now: Instant,
        mine: impl Fn(Uid) -> bool,
    ) -> Vec<Recipient> {
        let is_large = accept.content.target == Conversation::MOMENTS && accept.rows.len() > self.rows;
        if !is_large || now >= self.busy_until {
            return Vec::new();
        }
        let mut room = self.rows;
        let late = accept.rows.extract_if(.., |row| {
            let is_late = mine(row.receiver) && room == 0;
            room -= usize::from(mine(row.receiver) && !is_late);
            is_late
        });
        let late: Vec<Recipient> = late.map(Row::recipient).collect();
        accept.rest.extend(&late);
        late
    }

    /// Copies of an acceptance that is durable.
    pub(super) fn add(&mut self, delivery: Delivery) {
        if !delivery.to.is_empty() {
            self.owed.push_back(delivery);
        }
    }

    /// The next slice, if it is due.
    pub(super) fn take(&mut self, now: Instant) -> Option<Delivery> {
        if now < self.due {
            return None;
        }
        let rows = if now < self.busy_until { self.rows } else { self.most_rows };
        let mut first = self.owed.pop_front()?;
        if first.to.len() > rows {
            let rest = first.to.split_off(rows);
            self.owed.push_front(Delivery { to: rest, ..first.clone() });
        }
        Some(first)
    }

    /// Writing one took so long.
    pub(super) fn written(&mut self, took: Duration, now: Instant) {
        self.due = if now < self.busy_until { now + took * PAUSE } else { now };
    }

    /// When the next one is due; `None` when there is none.
    pub(super) fn due(&self) -> Option<Instant> {
        (!self.owed.is_empty()).then_some(self.due)
    }

    /// The server stops: there is no time for pauses.
    pub(super) fn hurry(&mut self, now: Instant) {
        self.due = now;
    }

    /// Whether `who` has to wait for slices of the own.
    pub(super) fn holds(&self, who: Uid) -> bool {
        self.owed.iter().any(|delivery| delivery.content.sender == who)
    }

    /// Forgets them, since what is owed is read from the store.
    pub(super) fn clear(&mut self) {
        self.owed.clear();
    }
}

#[cfg(test)]
mod tests;
