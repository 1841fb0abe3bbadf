//! Many requests on one stream. They are answered in the very poll that finds them, without a task or a channel: a
//! batch of what has arrived is carried out, then the clock is compared with the deadline once, then the answers leave.
//! Only what must wait for a raise is set aside, boundedly.

use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, Stream, StreamExt};
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::WaitForCancellationFutureOwned;
use tonic::Status;

use super::replies::{self, Reply, take_back};
use super::{RequestWork, SequenceService};
use crate::alloc::set_server::SetServer;
use crate::alloc::view::{Cause, Denied, ServedView};
use seqsvr_core::error::Refusal;
use seqsvr_core::ids::Epoch;
use seqsvr_rpc::v1::stream_request::Call;
use seqsvr_rpc::v1::{self, StreamReply, StreamRequest};

/// Requests carried out between two looks at the clock. Their answers have not left when the clock is compared, so
/// each is covered as if it were alone.
const BATCH: usize = 32;

/// The answers to the requests of one stream.
pub struct Answers<S> {
    service: SequenceService,
    requests: S,
    /// Read, for another Set than the batch before it.
    held: Option<(u64, RequestWork, Arc<SetServer>)>,
    ready: VecDeque<StreamReply>,
    waiting: FuturesUnordered<BoxFuture<'static, (u32, StreamReply)>>,
    /// The newest table that was sent here, by Set: a caller whose requests were under way meanwhile needs it once.
    sent: BTreeMap<u32, Epoch>,
    /// No more requests come; with the error that ended them.
    ended: Option<Option<Status>>,
    stop: Pin<Box<WaitForCancellationFutureOwned>>,
    _permit: OwnedSemaphorePermit,
}

impl<S: Stream<Item = Result<StreamRequest, Status>> + Unpin> Answers<S> {
    pub(super) fn new(service: SequenceService, requests: S, permit: OwnedSemaphorePermit) -> Self {
        Self {
            stop: Box::pin(service.stop.clone().cancelled_owned()),
            service,
            requests,
            held: None,
            ready: VecDeque::with_capacity(BATCH),
            waiting: FuturesUnordered::new(),
            sent: BTreeMap::new(),
            ended: None,
            _permit: permit,
        }
    }

    /// The next request that can be carried out; wrong ones are answered here.
    fn request(&mut self, cx: &mut Context<'_>) -> Poll<Option<(u64, RequestWork, Arc<SetServer>)>> {
        if let Some(held) = self.held.take() {
            return Poll::Ready(Some(held));
        }
        while self.ended.is_none() && self.ready.len() < BATCH {
            let (id, call) = match self.requests.poll_next_unpin(cx) {
                Poll::Ready(Some(Ok(StreamRequest { id, call }))) => (id, call),
                Poll::Ready(Some(Err(status))) => {
                    self.ended = Some(Some(status));
                    break;
                }
                Poll::Ready(None) => {
                    self.ended = Some(None);
                    break;
                }
                Poll::Pending => return Poll::Pending,
            };
            let work = match call {
                Some(Call::Next(request)) => RequestWork::Next(request),
                Some(Call::NextEach(request)) => RequestWork::each(request),
                Some(Call::Current(request)) => RequestWork::Current(request),
                Some(Call::Advance(request)) => RequestWork::Advance(request),
                None => {
                    let what = Denied::Refused(Refusal::Cluster("the request names no call".to_owned()));
                    self.ready.push_back(Reply::next_denied(&what).to(id));
                    continue;
                }
            };
            match work.admit(&self.service) {
                Ok(server) => {
                    let server = Arc::clone(server);
                    return Poll::Ready(Some((id, work, server)));
                }
                Err(denied) => self.ready.push_back(work.denied(&denied).to(id)),
            }
        }
        Poll::Ready(None)
    }

    /// Carries out what has arrived for one Set, at most a batch.
    fn batch(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let (id, work, server) = match self.request(cx) {
            Poll::Ready(Some(first)) => first,
            Poll::Ready(None) => return Poll::Ready(()),
            Poll::Pending if self.ready.is_empty() => return Poll::Pending,
            Poll::Pending => return Poll::Ready(()),
        };
        let view = server.view();
        let from = self.ready.len();
        self.carry_out(id, work, &server, &view);
        while self.ready.len() < BATCH {
            match self.request(cx) {
                Poll::Ready(Some((id, work, of))) if Arc::ptr_eq(&of, &server) => {
                    self.carry_out(id, work, &server, &view);
                }
                Poll::Ready(Some(other)) => {
                    self.held = Some(other);
                    break;
                }
                Poll::Ready(None) | Poll::Pending => break,
            }
        }
        if !server.may_answer(&view) {
            let denied = server.lapsed(&view);
            for reply in self.ready.range_mut(from..) {
                server.count(&denied);
                take_back(reply, &denied);
            }
        }
        Poll::Ready(())
    }

    #[inline]
    fn carry_out(&mut self, id: u64, mut work: RequestWork, server: &Arc<SetServer>, view: &ServedView) {
        let denied = match work.attempt(view) {
            Ok(mut reply) => {
                self.attach(&mut reply, server, view, &work);
                return self.ready.push_back(reply.to(id));
            }
            Err(Denied::Later(_)) if self.waiting.len() < self.service.limits.waiting => {
                let server = Arc::clone(server);
                let finish = async move { (server.set, work.finish(&server).await.to(id)) };
                return self.waiting.push(finish.boxed());
            }
            Err(Denied::Later(_)) => Denied::Unavailable(Cause::Crowded),
            Err(denied) => denied,
        };
        server.count(&denied);
        let mut reply = work.denied(&denied);
        self.attach(&mut reply, server, view, &work);
        self.ready.push_back(reply.to(id));
    }

    /// Adds the table of `view` if the caller goes by an older one and was not sent it before.
    #[inline]
    fn attach(&mut self, reply: &mut Reply, server: &SetServer, view: &ServedView, work: &RequestWork) {
        let Some(table) = view.table() else { return };
        if self.sent.get(&server.set).is_none_or(|sent| *sent < table.version)
            && reply.attach(view, work.address().0)
        {
            self.sent.insert(server.set, table.version);
        }
    }

    /// Takes the table out of a reply if it was sent meanwhile.
    fn once(&mut self, set: u32, mut reply: StreamReply) -> StreamReply {
        let Some(table) = replies::table(&mut reply) else { return reply };
        let Some(version) = table.as_ref().map(|table| table.version.unwrap_or_default().into()) else {
            return reply;
        };
        if self.sent.get(&set).is_some_and(|sent| *sent >= version) {
            *table = None;
        } else {
            self.sent.insert(set, version);
        }
        reply
    }
}

impl<S: Stream<Item = Result<StreamRequest, Status>> + Unpin> Stream for Answers<S> {
    type Item = Result<v1::StreamReply, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        loop {
            if let Some(reply) = this.ready.pop_front() {
                return Poll::Ready(Some(Ok(reply)));
            }
            if let Poll::Ready(Some((set, reply))) = this.waiting.poll_next_unpin(cx) {
                return Poll::Ready(Some(Ok(this.once(set, reply))));
            }
            if this.held.is_none() && this.ended.is_some() {
                if !this.waiting.is_empty() {
                    return Poll::Pending;
                }
                let error = this.ended.as_mut().and_then(Option::take);
                return Poll::Ready(error.map(Err));
            }
            if this.batch(cx).is_pending() {
                // Nothing has arrived that is not answered: the moment to end, if the process does.
                match this.stop.as_mut().poll(cx) {
                    Poll::Ready(()) => this.ended = Some(None),
                    Poll::Pending => return Poll::Pending,
                }
            }
        }
    }
}
