//! The order of sends that do not wait for each other's answers: those of one connection, or of one batch (I12).
//!
//! When one of them is refused for the moment, those sent behind it must not be accepted before it. So all of them are
//! refused, too, until the first refused one is sent again: both the entry ([`Pipeline::enter`]) and the writer
//! ([`PipelinePlace::is_in_order`]) look here.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::SendError;
use crate::domain::ClientId;

/// Refusals whose followers are remembered. A client that waits for its answers before it sends again leaves one at most.
const REMEMBERED: usize = 16;

/// For how long the sends of a connection wait for one of them that was refused to be sent again.
pub const RESEND_WAIT: Duration = Duration::from_secs(30);

/// Sends of one connection or batch that keep their order. One that was refused is waited for at most [`RESEND_WAIT`]. A cheap clone is
/// the same one.
#[derive(Clone, Debug, Default)]
pub struct Pipeline {
    state: Arc<Mutex<PipelineState>>,
}

#[derive(Debug, Default)]
struct PipelineState {
    /// The place of the next send.
    next: u64,
    refused: Option<Refused>,
    /// Places behind earlier refusals: what is still on its way from there comes too late.
    late: VecDeque<Range<u64>>,
}

/// The first send that was refused for the moment.
#[derive(Debug)]
struct Refused {
    client_id: ClientId,
    at: u64,
    since: Instant,
}

/// The place of one send in its pipeline.
#[derive(Debug)]
pub(super) struct PipelinePlace {
    pipeline: Pipeline,
    at: u64,
    client_id: ClientId,
}

impl Pipeline {
    /// Takes the next send in. The first refused one, sent again, takes the order up again.
    pub(super) fn enter(&self, client_id: ClientId) -> Result<PipelinePlace, SendError> {
        let mut state = self.state();
        if let Some(refused) = &state.refused {
            if refused.client_id != client_id && refused.since.elapsed() < RESEND_WAIT {
                return Err(SendError::OutOfOrder);
            }
            let late = refused.at..state.next;
            state.refused = None;
            state.late.push_front(late);
            state.late.truncate(REMEMBERED);
        }
        let at = state.take();
        Ok(PipelinePlace { pipeline: self.clone(), at, client_id })
    }

    /// A send was refused for the moment before it got a place.
    pub fn refuse(&self, client_id: ClientId) {
        let mut state = self.state();
        let at = state.take();
        state.refuse(client_id, at);
    }

    fn state(&self) -> MutexGuard<'_, PipelineState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PipelineState {
    fn take(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    fn is_late(&self, at: u64) -> bool {
        self.late.iter().any(|late| late.contains(&at))
    }

    fn refuse(&mut self, client_id: ClientId, at: u64) {
        if !self.is_late(at) && self.refused.as_ref().is_none_or(|refused| at < refused.at) {
            self.refused = Some(Refused { client_id, at, since: Instant::now() });
        }
    }
}

impl PipelinePlace {
    /// Whether nothing before it was refused.
    pub(super) fn is_in_order(&self) -> bool {
        let state = self.pipeline.state();
        state.refused.as_ref().is_none_or(|refused| self.at < refused.at) && !state.is_late(self.at)
    }

    /// It was refused for the moment, or given up with the writer that had it.
    pub(super) fn refused(&self) {
        self.pipeline.state().refuse(self.client_id, self.at);
    }

    /// Whether both belong to the same pipeline.
    pub(super) fn is_beside(&self, other: &PipelinePlace) -> bool {
        Arc::ptr_eq(&self.pipeline.state, &other.pipeline.state)
    }
}
