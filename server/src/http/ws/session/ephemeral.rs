//! Frames that are never stored: who is typing, who is online, and who has another name. They go when nothing else waits to go, and are dropped
//! when they come too fast.

use std::collections::HashSet;
use std::future::pending;
use std::ops::ControlFlow::Continue;

use tokio_tungstenite::tungstenite::Utf8Bytes;

use super::{FrameAnswer, SessionStep, Socket, SocketSession};
use crate::domain::{Conversation, Uid};
use crate::http::error::Problem;
use crate::http::ws::frame;

/// People whom one connection watches, to be told who is online.
const MOST_WATCHED: usize = 200;

/// The news for the device; `None`: nothing has changed. Without a look-up under way it never resolves.
pub(super) async fn told(news: &mut Option<FrameAnswer>) -> Option<Utf8Bytes> {
    match news {
        Some(news) => news.await,
        None => pending().await,
    }
}

impl SocketSession {
    /// The person is typing. Too often is no fault: it is dropped.
    pub(super) fn typing(&mut self, conversation: Conversation) {
        let uid = self.uid();
        if !self.state.rates.may_tell_typing(uid) {
            return;
        }
        let ephemerals = self.state.ephemerals.clone();
        self.answers.push(Box::pin(async move {
            ephemerals.typing(uid, conversation).await;
            None
        }));
    }

    /// The device watches these people from now on, and is told who of them is online.
    pub(super) async fn watch(&mut self, socket: &mut impl Socket, people: HashSet<Uid>) -> SessionStep {
        if people.len() > MOST_WATCHED {
            let detail = format!("`of` names {} people; at most {MOST_WATCHED} can be watched", people.len());
            return self.refuse(socket, &Problem::invalid_body(detail), None).await;
        }
        match self.state.rates.watch_and_pause(self.uid()) {
            Ok(wait) => self.pace.sent(wait, &self.state.metrics),
            Err(problem) => return self.refuse(socket, &problem, None).await,
        }
        self.connected.watch(people);
        self.look(true);
        Continue(())
    }

    /// Passes on what has come for this connection.
    pub(super) async fn tell_ephemeral(&mut self, socket: &mut impl Socket) -> SessionStep {
        for (conversation, sender) in self.connected.ear.take_typing() {
            self.say(socket, frame::typing(conversation, sender)).await?;
        }
        for uid in self.connected.ear.take_renamed() {
            self.say(socket, frame::person(uid)).await?;
        }
        if self.news.is_none() && self.connected.ear.has_changes() {
            self.look(false);
        }
        Continue(())
    }

    /// Says who is online now, and looks again if something has changed meanwhile.
    pub(super) async fn tell_news(
        &mut self,
        socket: &mut impl Socket,
        news: Option<Utf8Bytes>,
    ) -> SessionStep {
        self.news = None;
        if let Some(text) = news {
            self.say(socket, text).await?;
        }
        if self.connected.ear.has_changes() {
            self.look(false);
        }
        Continue(())
    }

    fn look(&mut self, at_once: bool) {
        let (ephemerals, ear) = (self.state.ephemerals.clone(), self.connected.ear.clone());
        self.news = Some(Box::pin(async move {
            let online = ephemerals.news(&ear, at_once).await?;
            Some(frame::presence(&online))
        }));
    }
}
