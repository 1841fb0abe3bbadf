//! A line in which client networks take turns: each has a line of its own, and the next one comes from the line whose turn it is. So a
//! network that asks for much waits for itself, and another one's single request waits for one of each.
//!
//! Passwords are hashed so. A caller who gives up leaves the line.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use super::limits::ClientNetwork;

/// The line. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Turns(Arc<TurnLine>);

#[derive(Debug)]
struct TurnLine {
    /// How many may wait, in all.
    most: usize,
    state: Mutex<LineState>,
}

#[derive(Debug)]
struct LineState {
    /// Turns that nobody has.
    free: usize,
    waiting: HashMap<ClientNetwork, VecDeque<oneshot::Sender<Turn>>>,
    /// The networks among them, in the order in which their turns come.
    order: VecDeque<ClientNetwork>,
}

/// One's turn; dropping it makes it another one's.
#[derive(Debug)]
pub(super) struct Turn(Turns);

impl Turns {
    /// `at_a_time` turns, and room for `most` callers who wait for one.
    pub(super) fn new(at_a_time: usize, most: usize) -> Turns {
        let state = LineState { free: at_a_time, waiting: HashMap::new(), order: VecDeque::new() };
        Turns(Arc::new(TurnLine { most, state: Mutex::new(state) }))
    }

    /// Waits for a turn. `None`: too many wait, and none of them for as many others of their network as this one would.
    pub(super) async fn take(&self, of: ClientNetwork) -> Option<Turn> {
        let turn = {
            let mut state = self.state();
            if state.free > 0 {
                state.free -= 1;
                return Some(Turn(self.clone()));
            }
            if !state.has_room(self.0.most, of) {
                return None;
            }
            let (given, turn) = oneshot::channel();
            state.add(of, given);
            turn
        };
        turn.await.ok()
    }

    /// Gives a turn that is free to the next one who waits.
    fn pass_on(&self) {
        let next = {
            let mut state = self.state();
            let next = state.next();
            if next.is_none() {
                state.free += 1;
            }
            next
        };
        if let Some(next) = next {
            // A caller who has just given up drops it, and so passes it on.
            drop(next.send(Turn(self.clone())));
        }
    }

    fn state(&self) -> MutexGuard<'_, LineState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LineState {
    fn add(&mut self, of: ClientNetwork, given: oneshot::Sender<Turn>) {
        let line = self.waiting.entry(of).or_default();
        if line.is_empty() {
            self.order.push_back(of);
        }
        line.push_back(given);
    }

    /// The first who still waits, of the network whose turn it is; that network's next turn comes after all others'.
    fn next(&mut self) -> Option<oneshot::Sender<Turn>> {
        while let Some(of) = self.order.pop_front() {
            let line = self.waiting.get_mut(&of)?;
            let next = std::iter::from_fn(|| line.pop_front()).find(|given| !given.is_closed());
            match line.is_empty() {
                true => _ = self.waiting.remove(&of),
                false => self.order.push_back(of),
            }
            if next.is_some() {
                return next;
            }
        }
        None
    }

    /// Whether one more of this network may wait. Where the line is full, the last one of the network with the most goes for it.
    fn has_room(&mut self, most: usize, of: ClientNetwork) -> bool {
        let waiting = |state: &LineState| state.waiting.values().map(VecDeque::len).sum::<usize>();
        if waiting(self) < most {
            return true;
        }
        self.waiting.values_mut().for_each(|line| line.retain(|given| !given.is_closed()));
        self.forget_empty();
        if waiting(self) < most {
            return true;
        }
        let own = self.waiting.get(&of).map_or(0, VecDeque::len);
        let longest = self.waiting.values_mut().max_by_key(|line| line.len());
        let gives_way = longest.filter(|line| line.len() > own + 1);
        gives_way.is_some_and(|line| line.pop_back().is_some())
    }

    fn forget_empty(&mut self) {
        self.waiting.retain(|_, line| !line.is_empty());
        let waiting = &self.waiting;
        self.order.retain(|of| waiting.contains_key(of));
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.pass_on();
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;
    use std::pin::Pin;

    use futures_util::FutureExt as _;

    use super::*;

    fn network(last: u8) -> ClientNetwork {
        ClientNetwork::of(IpAddr::from([10, 0, 0, last]))
    }

    type Waiting<'a> = Pin<Box<dyn Future<Output = Option<Turn>> + 'a>>;

    /// One who waits for a turn already.
    fn wait(turns: &Turns, of: u8) -> Waiting<'_> {
        let mut waiting: Waiting<'_> = Box::pin(turns.take(network(of)));
        assert!(waiting.as_mut().now_or_never().is_none(), "it waits");
        waiting
    }

    fn is_next(waiting: &mut Waiting<'_>) -> Option<Turn> {
        waiting.as_mut().now_or_never().flatten()
    }

    #[tokio::test]
    async fn one_request_waits_for_one_of_each_network_however_many_those_have() {
        let turns = Turns::new(1, 100);
        let turn = turns.take(network(0)).await.expect("free");
        let mut floods: Vec<_> =
            (1..=10).flat_map(|of| (0..5).map(move |_| of)).map(|of| wait(&turns, of)).collect();
        let mut person = wait(&turns, 99);
        drop(turn);
        let mut before = 0;
        let turn = loop {
            if let Some(turn) = is_next(&mut person) {
                break turn;
            }
            let at =
                floods.iter_mut().position(|waiting| is_next(waiting).is_some()).expect("somebody is next");
            drop(floods.remove(at));
            before += 1;
        };
        assert_eq!(before, 10);
        drop(turn);
    }

    #[tokio::test]
    async fn a_full_line_makes_room_for_who_has_fewer_in_it() {
        let turns = Turns::new(1, 4);
        let turn = turns.take(network(0)).await.expect("free");
        let mut flood: Vec<_> = (0..4).map(|_| wait(&turns, 1)).collect();
        assert!(turns.take(network(1)).await.is_none(), "the line is full of its own");
        let mut person = wait(&turns, 2);
        let last = flood.pop().expect("four");
        assert!(last.await.is_none(), "it gave way");
        let other = wait(&turns, 3);
        assert!(flood.pop().expect("three").await.is_none());
        assert!(turns.take(network(1)).await.is_none());
        drop(turn);
        drop(is_next(&mut flood[0]).expect("the flood's turn"));
        assert!(is_next(&mut person).is_some());
        drop(other);
    }

    #[tokio::test]
    async fn who_has_given_up_is_passed_over_and_takes_no_room() {
        let turns = Turns::new(1, 2);
        let turn = turns.take(network(0)).await.expect("free");
        drop([wait(&turns, 1), wait(&turns, 1)]);
        let mut next = wait(&turns, 1);
        drop(turn);
        drop(is_next(&mut next).expect("the first who waits"));
        drop(next);
        assert!(turns.take(network(2)).await.is_some(), "the turn is free again");
        let state = turns.state();
        assert!(state.waiting.is_empty() && state.order.is_empty() && state.free == 1);
    }
}
