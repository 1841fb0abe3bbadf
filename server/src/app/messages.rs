//! Sending and read markers: into the sender's queue at once, and the answer when it is durable.

use crate::domain::{Conversation, MessageId, Uid};
use crate::queue::{Pipeline, Queues, SendError};

pub use crate::queue::{Amend, OutgoingMessage, Post, Request, SendAck};

/// Sends and read markers.
#[derive(Clone)]
pub struct Messages {
    queues: Queues,
}

impl Messages {
    /// Use cases that write through `queues`.
    pub fn new(queues: Queues) -> Messages {
        Messages { queues }
    }

    /// Puts it into the sender's queue before it returns: the order of the calls is the order of acceptance (I12).
    /// The future resolves when the message is durable or refused.
    pub fn submit(
        &self,
        who: Uid,
        message: OutgoingMessage,
    ) -> impl Future<Output = Result<SendAck, SendError>> + Send + 'static {
        self.queues.submit(who, Request::Message(message))
    }

    /// Puts a row into one inbox, in the name of `who` and without a copy for that user (S19).
    pub fn post(
        &self,
        who: Uid,
        post: Post,
    ) -> impl Future<Output = Result<SendAck, SendError>> + Send + 'static {
        self.queues.submit(who, Request::Post(post))
    }

    /// The sends of one connection or batch, which keep their order also when one of them is refused for the moment.
    pub fn pipeline(&self) -> Pipeline {
        self.queues.pipeline()
    }

    /// Like [`submit`](Self::submit), in its place of `pipeline` (I12).
    pub fn submit_in(
        &self,
        pipeline: &Pipeline,
        who: Uid,
        request: Request,
    ) -> impl Future<Output = Result<SendAck, SendError>> + Send + 'static {
        self.queues.submit_in(pipeline, who, request)
    }

    /// Edits or takes back a message of the caller, or reacts to one of anybody.
    pub fn amend(
        &self,
        who: Uid,
        amend: Amend,
    ) -> impl Future<Output = Result<SendAck, SendError>> + Send + 'static {
        self.queues.submit(who, Request::Amend(amend))
    }

    /// Carries out a request that nobody has named: a read marker, or word of how far messages have come.
    pub fn mark(
        &self,
        who: Uid,
        request: Request,
    ) -> impl Future<Output = Result<SendAck, SendError>> + Send + 'static {
        self.queues.submit(who, request)
    }

    /// Moves the caller's read marker of a conversation up to one of its rows. It never moves back: an older row is
    /// accepted and changes nothing.
    pub fn mark_read(
        &self,
        who: Uid,
        conversation: Conversation,
        message_id: MessageId,
    ) -> impl Future<Output = Result<(), SendError>> + Send + 'static {
        let answer = self.queues.submit(who, Request::Read { conversation, message_id });
        async move { answer.await.map(drop) }
    }
}
