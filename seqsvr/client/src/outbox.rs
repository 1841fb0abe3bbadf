//! Questions to one process, on their way: the ones that wait to be sent, and the ones that wait for their answer. Gathers calls for one
//! number each into one frame. No I/O and no clock: age is counted in ticks of the peer that owns it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Waker;

use slab::Slab;
use tokio::sync::oneshot;

use super::error::AttemptError;
use super::seen::SeenNumbers;
use seqsvr_core::flaws::{Flaw, Flaws};
use seqsvr_core::ids::Granted;
use seqsvr_rpc::v1::{self, stream_request};

/// Ticks in the time that one answer may take.
pub const TICKS: u32 = 4;

/// The request of one call, about uids of one Set, to one process.
#[derive(Clone, Debug)]
pub enum CallRequest {
    Next { uid: u32, count: u32 },
    Each(Arc<[u32]>),
    Current(Arc<[u32]>),
    Advance { uid: u32, at_least: u64 },
}

impl CallRequest {
    /// Whether it is for one number, and may be gathered with others.
    pub(crate) fn is_single(&self) -> bool {
        matches!(self, Self::Next { count: 1, .. })
    }
}

/// The answer to a call.
#[derive(Clone, Debug)]
pub enum Answered {
    Granted(Granted),
    /// Numbers or upper bounds, in the order of the question.
    Numbers(Vec<u64>),
    Advanced,
}

/// A call for one number, to be gathered with others.
pub struct Single {
    pub(crate) uid: u32,
    pub(crate) queued: u32,
    pub(crate) answer: oneshot::Sender<Result<Granted, AttemptError>>,
}

/// Any other call.
pub struct QueuedCall {
    pub(crate) ask: CallRequest,
    pub(crate) queued: u32,
    pub(crate) answer: oneshot::Sender<Result<Answered, AttemptError>>,
}

pub enum WaitingCalls {
    Singles(Vec<Single>),
    Call(QueuedCall),
}

/// A frame that was sent.
pub struct Pending {
    serial: u32,
    sent: u32,
    /// The newest number known for each uid of the frame when it left.
    pub(crate) known: Vec<u64>,
    pub(crate) waiting: WaitingCalls,
}

/// The reply to the writer of a stream that asks for a frame.
pub enum Next {
    Frame(v1::StreamRequest),
    /// Come back when woken.
    Empty,
    /// The stream that asks is no longer the current one.
    Ended,
}

/// Bounds of an outbox.
#[derive(Clone, Copy)]
pub struct Bounds {
    /// Calls that wait or are under way.
    pub calls: usize,
    /// Calls for one number each that share a frame.
    pub gather: usize,
}

pub struct Outbox {
    bounds: Bounds,
    singles: VecDeque<Single>,
    calls: VecDeque<QueuedCall>,
    pending: Slab<Pending>,
    /// All calls in here.
    held: usize,
    serial: u32,
    tick: u32,
    /// Counts streams: what an older one asks or answers is ignored.
    era: u32,
    singles_first: bool,
    flaws: Flaws,
    waker: Option<Waker>,
}

impl Outbox {
    pub fn new(bounds: Bounds, flaws: Flaws) -> Self {
        Self {
            bounds,
            singles: VecDeque::new(),
            calls: VecDeque::new(),
            pending: Slab::new(),
            held: 0,
            serial: 0,
            tick: 0,
            era: 0,
            singles_first: true,
            flaws,
            waker: None,
        }
    }

    /// Begins a new stream.
    pub fn begin(&mut self) -> u32 {
        self.era = self.era.wrapping_add(1);
        self.waker = None;
        self.era
    }

    /// Queues a call for one number. Wake what is returned once the lock is given back.
    pub fn single(
        &mut self,
        uid: u32,
        answer: oneshot::Sender<Result<Granted, AttemptError>>,
    ) -> Result<Option<Waker>, AttemptError> {
        self.admit()?;
        self.singles.push_back(Single { uid, queued: self.tick, answer });
        Ok(self.waker.take())
    }

    /// Queues any other call.
    pub fn call(
        &mut self,
        ask: CallRequest,
        answer: oneshot::Sender<Result<Answered, AttemptError>>,
    ) -> Result<Option<Waker>, AttemptError> {
        self.admit()?;
        self.calls.push_back(QueuedCall { ask, queued: self.tick, answer });
        Ok(self.waker.take())
    }

    fn admit(&mut self) -> Result<(), AttemptError> {
        if self.held >= self.bounds.calls {
            return Err(AttemptError::Busy(self.bounds.calls));
        }
        self.held += 1;
        Ok(())
    }

    /// The next frame for the stream `era`, or a note to wake it.
    pub fn next(&mut self, era: u32, waker: &Waker, route: v1::Route, seen: &SeenNumbers) -> Next {
        if era != self.era {
            return Next::Ended;
        }
        self.singles_first = !self.singles_first;
        let waiting = if self.singles_first || self.calls.is_empty() {
            self.gather().or_else(|| self.take_call())
        } else {
            self.take_call().or_else(|| self.gather())
        };
        let Some(waiting) = waiting else {
            self.waker = Some(waker.clone());
            return Next::Empty;
        };
        let (call, known) = waiting.frame(route, seen);
        self.serial = self.serial.wrapping_add(1);
        let (serial, sent) = (self.serial, self.tick);
        let at = self.pending.insert(Pending { serial, sent, known, waiting });
        let id = u64::from(serial) << 32 | at as u64;
        Next::Frame(v1::StreamRequest { id, call: Some(call) })
    }

    fn take_call(&mut self) -> Option<WaitingCalls> {
        while let Some(call) = self.calls.pop_front() {
            if !call.answer.is_closed() {
                return Some(WaitingCalls::Call(call));
            }
            self.held -= 1;
        }
        None
    }

    fn gather(&mut self) -> Option<WaitingCalls> {
        let mut frame = Vec::with_capacity(self.singles.len().min(self.bounds.gather));
        while frame.len() < self.bounds.gather
            && let Some(single) = self.singles.pop_front()
        {
            if single.answer.is_closed() {
                self.held -= 1;
            } else {
                frame.push(single);
            }
        }
        (!frame.is_empty()).then_some(WaitingCalls::Singles(frame))
    }

    /// Takes out the frame that the answer with this id is for; `None` when nobody waits for it.
    pub fn answered(&mut self, era: u32, id: u64) -> Option<Pending> {
        let (at, serial) = ((id & u64::from(u32::MAX)) as usize, (id >> 32) as u32);
        let there = self.pending.get(at)?;
        let its = era == self.era && there.serial == serial;
        if !its && !self.flaws.has(Flaw::AnswerByPlace) {
            return None;
        }
        let pending = self.pending.remove(at);
        self.held -= pending.waiting.len();
        Some(pending)
    }

    /// Time goes on. Gives up what has been here for more than `patience` ticks.
    pub fn tick(&mut self, patience: u32) -> Vec<WaitingCalls> {
        self.tick = self.tick.wrapping_add(1);
        let tick = self.tick;
        let old = move |then: u32| tick.wrapping_sub(then) > patience;
        let late: Vec<usize> =
            self.pending.iter().filter(|(_, one)| old(one.sent)).map(|(at, _)| at).collect();
        let mut given_up: Vec<WaitingCalls> =
            late.into_iter().map(|at| self.pending.remove(at).waiting).collect();
        // The queues are in order of age.
        let singles = self.singles.partition_point(|one| old(one.queued));
        given_up.push(WaitingCalls::Singles(self.singles.drain(..singles).collect()));
        let calls = self.calls.partition_point(|one| old(one.queued));
        given_up.extend(self.calls.drain(..calls).map(WaitingCalls::Call));
        given_up.retain(|waiting| waiting.len() != 0);
        self.held -= given_up.iter().map(WaitingCalls::len).sum::<usize>();
        given_up
    }

    /// The stream is gone: gives up everything.
    pub fn lose_all(&mut self) -> Vec<WaitingCalls> {
        self.begin();
        self.held = 0;
        let mut given_up: Vec<WaitingCalls> = self.pending.drain().map(|one| one.waiting).collect();
        given_up.push(WaitingCalls::Singles(self.singles.drain(..).collect()));
        given_up.extend(self.calls.drain(..).map(WaitingCalls::Call));
        given_up
    }
}

impl WaitingCalls {
    /// How many calls these are.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Singles(singles) => singles.len(),
            Self::Call(_) => 1,
        }
    }

    /// Tells everyone that it failed.
    pub fn fail(self, fault: &AttemptError) {
        // A caller who has left needs no answer.
        match self {
            Self::Singles(singles) => {
                for single in singles {
                    let _ = single.answer.send(Err(fault.clone()));
                }
            }
            Self::Call(call) => drop(call.answer.send(Err(fault.clone()))),
        }
    }

    fn frame(&self, route: v1::Route, seen: &SeenNumbers) -> (stream_request::Call, Vec<u64>) {
        let route = Some(route);
        let last = |uids: &[u32]| uids.iter().map(|&uid| seen.last(uid)).collect();
        match self {
            Self::Singles(singles) => {
                let uids: Vec<u32> = singles.iter().map(|single| single.uid).collect();
                let known = last(&uids);
                (stream_request::Call::NextEach(v1::NextEachRequest { uids, route }), known)
            }
            Self::Call(call) => match &call.ask {
                &CallRequest::Next { uid, count } => {
                    let known = vec![seen.last(uid)];
                    (stream_request::Call::Next(v1::NextRequest { uid, count, route }), known)
                }
                CallRequest::Each(uids) => {
                    let request = v1::NextEachRequest { uids: uids.to_vec(), route };
                    (stream_request::Call::NextEach(request), last(uids))
                }
                CallRequest::Current(uids) => {
                    let request = v1::CurrentRequest { uids: uids.to_vec(), route };
                    (stream_request::Call::Current(request), last(uids))
                }
                &CallRequest::Advance { uid, at_least } => {
                    let request = v1::AdvanceRequest { uid, at_least, route };
                    (stream_request::Call::Advance(request), Vec::new())
                }
            },
        }
    }
}
