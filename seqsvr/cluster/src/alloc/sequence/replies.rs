//! Outcomes as wire messages. The four calls have a reply each, with the same ways to say no.

use crate::alloc::view::{Cause, Denied, ServedView};
use seqsvr_core::ids::{Epoch, Granted};
use seqsvr_rpc::v1::stream_reply::Answer;
use seqsvr_rpc::v1::{self, advance_reply, current_reply, next_each_reply, next_reply};

/// The reply to any of the calls.
pub(super) struct Reply(Answer);

/// The outcome of one call that says no.
macro_rules! no {
    ($call:ident, $denied:expr) => {
        Some(match $denied {
            Denied::NotOwner => $call::Outcome::NotOwner(v1::NotOwner {}),
            Denied::Later(_) => $call::Outcome::Unavailable(unavailable(Cause::Raise)),
            Denied::Unavailable(cause) => $call::Outcome::Unavailable(unavailable(*cause)),
            Denied::Refused(refusal) => $call::Outcome::Refused(refusal.into()),
        })
    };
}

impl Reply {
    #[inline]
    pub(super) fn granted(granted: Granted) -> Self {
        let Granted { first, last, epoch } = granted;
        let granted = v1::Granted { first, last, epoch: Some(epoch.into()) };
        Self(Answer::Next(v1::NextReply {
            outcome: Some(next_reply::Outcome::Granted(granted)),
            table: None,
        }))
    }

    pub(super) fn granted_each((numbers, epochs): (Vec<u64>, Vec<(u32, Epoch)>)) -> Self {
        let run = |(count, epoch): (u32, Epoch)| v1::EpochRun { count, epoch: Some(epoch.into()) };
        let granted = v1::GrantedEach { numbers, epochs: epochs.into_iter().map(run).collect() };
        let outcome = Some(next_each_reply::Outcome::Granted(granted));
        Self(Answer::NextEach(v1::NextEachReply { outcome, table: None }))
    }

    pub(super) fn upper_bounds(numbers: Vec<u64>) -> Self {
        let outcome = Some(current_reply::Outcome::UpperBounds(v1::UpperBounds { numbers }));
        Self(Answer::Current(v1::CurrentReply { outcome, table: None }))
    }

    pub(super) fn advanced() -> Self {
        let outcome = Some(advance_reply::Outcome::Advanced(v1::Advanced {}));
        Self(Answer::Advance(v1::AdvanceReply { outcome, table: None }))
    }

    pub(super) fn next_denied(denied: &Denied) -> Self {
        Self(Answer::Next(v1::NextReply { outcome: no!(next_reply, denied), table: None }))
    }

    pub(super) fn each_denied(denied: &Denied) -> Self {
        Self(Answer::NextEach(v1::NextEachReply { outcome: no!(next_each_reply, denied), table: None }))
    }

    pub(super) fn current_denied(denied: &Denied) -> Self {
        Self(Answer::Current(v1::CurrentReply { outcome: no!(current_reply, denied), table: None }))
    }

    pub(super) fn advance_denied(denied: &Denied) -> Self {
        Self(Answer::Advance(v1::AdvanceReply { outcome: no!(advance_reply, denied), table: None }))
    }

    /// Adds the table of `view` if the caller goes by an older one; a caller that names none wants none. Answers whether it did.
    #[inline]
    pub(super) fn attach(&mut self, view: &ServedView, route: Option<&v1::Route>) -> bool {
        let Some((route, table)) = route.zip(view.table()) else { return false };
        let older = (Epoch { term: route.term, version: route.version }) < table.version;
        if older {
            *self.table() = Some(v1::Table::from(&**table));
        }
        older
    }

    fn table(&mut self) -> &mut Option<v1::Table> {
        match &mut self.0 {
            Answer::Next(reply) => &mut reply.table,
            Answer::NextEach(reply) => &mut reply.table,
            Answer::Current(reply) => &mut reply.table,
            Answer::Advance(reply) => &mut reply.table,
        }
    }

    /// Why the request was wrong, if it was.
    pub(super) fn refusal(&self) -> Option<&str> {
        match &self.0 {
            Answer::Next(v1::NextReply { outcome: Some(next_reply::Outcome::Refused(why)), .. })
            | Answer::NextEach(v1::NextEachReply {
                outcome: Some(next_each_reply::Outcome::Refused(why)),
                ..
            })
            | Answer::Current(v1::CurrentReply {
                outcome: Some(current_reply::Outcome::Refused(why)), ..
            })
            | Answer::Advance(v1::AdvanceReply {
                outcome: Some(advance_reply::Outcome::Refused(why)), ..
            }) => Some(&why.reason),
            _ => None,
        }
    }

    pub(super) fn into_next(self) -> v1::NextReply {
        let Answer::Next(reply) = self.0 else { return v1::NextReply::default() };
        reply
    }

    pub(super) fn into_each(self) -> v1::NextEachReply {
        let Answer::NextEach(reply) = self.0 else { return v1::NextEachReply::default() };
        reply
    }

    pub(super) fn into_current(self) -> v1::CurrentReply {
        let Answer::Current(reply) = self.0 else { return v1::CurrentReply::default() };
        reply
    }

    pub(super) fn into_advance(self) -> v1::AdvanceReply {
        let Answer::Advance(reply) = self.0 else { return v1::AdvanceReply::default() };
        reply
    }

    /// The reply to request `id` of a stream.
    #[inline]
    pub(super) fn to(self, id: u64) -> v1::StreamReply {
        v1::StreamReply { id, answer: Some(self.0) }
    }
}

/// The table in a reply, if it has an answer.
pub(super) fn table(reply: &mut v1::StreamReply) -> Option<&mut Option<v1::Table>> {
    Some(match reply.answer.as_mut()? {
        Answer::Next(reply) => &mut reply.table,
        Answer::NextEach(reply) => &mut reply.table,
        Answer::Current(reply) => &mut reply.table,
        Answer::Advance(reply) => &mut reply.table,
    })
}

/// Takes back the answer in a reply that has not left.
pub(super) fn take_back(reply: &mut v1::StreamReply, denied: &Denied) {
    let Some(answer) = reply.answer.take() else { return };
    let mut no = match answer {
        Answer::Next(_) => Reply::next_denied(denied),
        Answer::NextEach(_) => Reply::each_denied(denied),
        Answer::Current(_) => Reply::current_denied(denied),
        Answer::Advance(_) => Reply::advance_denied(denied),
    };
    *no.table() = Reply(answer).table().take();
    reply.answer = Some(no.0);
}

fn unavailable(cause: Cause) -> v1::Unavailable {
    let (reason, retry_after_ms) = match cause {
        Cause::NoTable => ("it has not read the routing table yet", 100),
        Cause::Lease => ("it cannot reach the stores, and its lease is over", 100),
        Cause::Gaining => ("the section has just been assigned to it", 5),
        Cause::Raise => ("the ceiling could not be raised in time", 100),
        Cause::Crowded => ("too many requests of this stream wait already", 20),
    };
    v1::Unavailable { reason: reason.to_owned(), retry_after_ms }
}

/// Why a request is wrong, in one line.
pub(super) fn text(denied: &Denied) -> String {
    match denied {
        Denied::Refused(refusal) => refusal.to_string(),
        Denied::NotOwner => "another process serves it".to_owned(),
        Denied::Later(_) => unavailable(Cause::Raise).reason,
        Denied::Unavailable(cause) => unavailable(*cause).reason,
    }
}
