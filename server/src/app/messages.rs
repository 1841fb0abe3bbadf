//! Sending and read markers: into the sender's queue at once, and the answer when it is durable.

use crate::domain::{ClientId, Conversation, MessageId, Timestamp, Uid};
use crate::queue::{Accepted, Order, Pipeline, Queues, SendError};

/// Something to be said.
#[derive(Clone, Debug)]
pub struct Draft {
    /// The sender's name for it; the same again gets the first answer (I4).
    pub client_id: ClientId,
    /// To whom.
    pub to: Conversation,
    /// What.
    pub text: String,
}

/// It survives a power cut (I3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendAck {
    /// The id of the sender's own copy.
    pub message_id: MessageId,
    /// When it was accepted.
    pub sent_at: Timestamp,
    /// Whether this was a repetition.
    pub repeated: bool,
}

impl From<Accepted> for SendAck {
    fn from(accepted: Accepted) -> SendAck {
        let Accepted { message_id, sent_at, repeated } = accepted;
        SendAck { message_id, sent_at, repeated }
    }
}

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

    /// Puts the draft into the sender's queue before it returns: the order of the calls is the order of acceptance (I12).
    /// The future resolves when the message is durable or refused.
    pub fn submit(
        &self,
        who: Uid,
        draft: Draft,
    ) -> impl Future<Output = Result<SendAck, SendError>> + Send + 'static {
        let Draft { client_id, to, text } = draft;
        let answer = self.queues.submit(who, Order::Message { client_id, to, text });
        async move { answer.await.map(SendAck::from) }
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
        draft: Draft,
    ) -> impl Future<Output = Result<SendAck, SendError>> + Send + 'static {
        let Draft { client_id, to, text } = draft;
        let order = Order::Message { client_id, to, text };
        let answer = self.queues.submit_in(pipeline, who, client_id, order);
        async move { answer.await.map(SendAck::from) }
    }

    /// Moves the caller's read marker of a conversation up to one of its rows. It never moves back: an older row is
    /// accepted and changes nothing.
    pub fn mark_read(
        &self,
        who: Uid,
        conversation: Conversation,
        message_id: MessageId,
    ) -> impl Future<Output = Result<(), SendError>> + Send + 'static {
        let answer = self.queues.submit(who, Order::Read { conversation, message_id });
        async move { answer.await.map(drop) }
    }
}
