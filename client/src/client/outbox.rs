//! Messages that are not settled yet, in the order in which they were given.
//!
//! A message leaves only when the server said `sent` or refused it for good. After a lost connection all of them go
//! out again, oldest first, under the same `client_id`; those that had arrived get their first answer (I4).

use std::collections::VecDeque;

use uuid::Uuid;

use crate::wire::Draft;

/// The unsettled messages; `A` is where the answer goes.
#[derive(Debug)]
pub(super) struct Outbox<A> {
    items: VecDeque<Item<A>>,
    in_flight: usize,
    /// One was refused for the moment: nothing goes out before all in flight are answered, so that what the server refused behind it
    /// follows it in order.
    draining: bool,
    /// How many may wait for their answer at a time.
    window: usize,
    /// How many may be here at a time.
    capacity: usize,
}

#[derive(Debug)]
struct Item<A> {
    draft: Draft,
    answer: A,
    in_flight: bool,
}

impl<A> Outbox<A> {
    pub(super) fn new(window: usize, capacity: usize) -> Self {
        Outbox {
            items: VecDeque::new(),
            in_flight: 0,
            draining: false,
            window: window.max(1),
            capacity: capacity.max(1),
        }
    }

    /// Whether another message may come.
    pub(super) fn has_room(&self) -> bool {
        self.items.len() < self.capacity
    }

    /// Puts a message behind the others.
    pub(super) fn push(&mut self, draft: Draft, answer: A) {
        self.items.push_back(Item { draft, answer, in_flight: false });
    }

    /// The next message to go out, now counted as in flight; `None` when there is none or the window is full.
    pub(super) fn take_next(&mut self) -> Option<&Draft> {
        self.draining &= self.in_flight > 0;
        if self.draining || self.in_flight >= self.window {
            return None;
        }
        // Those in flight are among the oldest, so this walks about a window.
        let item = self.items.iter_mut().find(|item| !item.in_flight)?;
        item.in_flight = true;
        self.in_flight += 1;
        Some(&item.draft)
    }

    /// The message is settled: it leaves, and whoever gave it gets the answer.
    pub(super) fn settle(&mut self, client_id: Uuid) -> Option<A> {
        let at = self.items.iter().position(|item| item.draft.client_id == client_id)?;
        let item = self.items.remove(at)?;
        self.in_flight -= usize::from(item.in_flight);
        Some(item.answer)
    }

    /// The message has to go out again, in its old place and before any later one.
    pub(super) fn again(&mut self, client_id: Uuid) {
        if let Some(item) = self.items.iter_mut().find(|item| item.draft.client_id == client_id) {
            self.in_flight -= usize::from(item.in_flight);
            item.in_flight = false;
            self.draining = true;
        }
    }

    /// The connection is gone, and with it every answer that was on its way.
    pub(super) fn all_again(&mut self) {
        self.in_flight = 0;
        for item in &mut self.items {
            item.in_flight = false;
        }
    }

    /// Everything that is left, for the end.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = A> {
        self.in_flight = 0;
        std::mem::take(&mut self.items).into_iter().map(|item| item.answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Recipient;

    fn id(n: u128) -> Uuid {
        Uuid::from_u128(n)
    }

    fn filled(window: usize, count: u128) -> Outbox<u128> {
        let mut outbox = Outbox::new(window, 100);
        for n in 0..count {
            outbox.push(Draft::text_as(id(n), Recipient::User(1), "x"), n);
        }
        outbox
    }

    fn go_out(outbox: &mut Outbox<u128>) -> Vec<u128> {
        std::iter::from_fn(|| outbox.take_next().map(|draft| draft.client_id.as_u128())).collect()
    }

    #[test]
    fn messages_go_out_in_order_within_the_window() {
        let mut outbox = filled(2, 4);
        assert_eq!(go_out(&mut outbox), [0, 1]);
        assert_eq!(outbox.settle(id(0)), Some(0));
        assert_eq!(go_out(&mut outbox), [2]);
        assert_eq!(outbox.settle(id(0)), None, "an answer that comes twice settles nothing");
    }

    #[test]
    fn a_lost_connection_sends_the_unsettled_again_oldest_first() {
        let mut outbox = filled(3, 4);
        go_out(&mut outbox);
        outbox.settle(id(1));
        outbox.all_again();
        assert_eq!(go_out(&mut outbox), [0, 2, 3]);
    }

    #[test]
    fn a_refused_message_keeps_its_place() {
        let mut outbox = filled(2, 3);
        go_out(&mut outbox);
        outbox.again(id(0));
        assert_eq!(go_out(&mut outbox), [0_u128; 0], "the answer to the second one is on its way");
        assert_eq!(outbox.settle(id(1)), Some(1));
        assert_eq!(go_out(&mut outbox), [0, 2]);
    }

    #[test]
    fn what_was_refused_behind_another_follows_it_in_order() {
        let mut outbox = filled(3, 5);
        go_out(&mut outbox);
        for n in 0..3 {
            assert_eq!(go_out(&mut outbox), [0_u128; 0], "nothing overtakes what is refused");
            outbox.again(id(n));
        }
        assert_eq!(go_out(&mut outbox), [0, 1, 2]);
        assert_eq!(outbox.settle(id(0)), Some(0));
        assert_eq!(go_out(&mut outbox), [3]);
    }

    #[test]
    fn a_full_outbox_has_no_room_until_something_settles() {
        let mut outbox = Outbox::new(1, 1);
        outbox.push(Draft::text_as(id(1), Recipient::User(1), "x"), ());
        assert!(!outbox.has_room());
        outbox.settle(id(1));
        assert!(outbox.has_room());
    }
}
