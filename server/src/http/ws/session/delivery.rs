//! Rows out: what a heartbeat or a wake-up leads to, and the memory that rows take until they have left.

use std::ops::ControlFlow::{self, Continue};

use tokio::time::sleep;

use super::{SessionStep, Socket, SocketSession};
use crate::app::ENTRIES_BYTES;
use crate::app::sync::Pulled;
use crate::domain::{Kind, MessageId};
use crate::http::budget::Charge;
use crate::http::wire::ROW_BYTES;
use crate::http::ws::end::End;
use crate::http::ws::frame;

impl SocketSession {
    /// Acknowledges, sets the cursor, and says what is newer. Up to date, it reads memory only (I8). The answer also says that what was
    /// marked before it is stored.
    pub(super) async fn heartbeat(&mut self, socket: &mut impl Socket, seq: u64) -> SessionStep {
        self.settle_marks(socket).await?;
        let mut latest = self.watermark.latest();
        if seq > latest.get() {
            latest = Box::pin(self.state.sync.look_ahead(&self.watermark, seq)).await;
            self.state.metrics.cursors_ahead.inc_by(u64::from(seq > self.watermark.latest().get()));
        }
        let cursor = MessageId::new(seq).map_or(latest, |seq| seq.min(latest));
        let goes_on = self.cursor.is_some_and(|known| known <= cursor);
        (self.cursor, self.unacknowledged) = (Some(cursor), false);
        if let Some(device) = &self.device {
            device.has(cursor);
        }
        if self.watermark.may_be_after(cursor) {
            return match goes_on {
                true => self.catch_up(socket, cursor).await,
                false => self.take_up(socket, cursor).await,
            };
        }
        self.state.metrics.heartbeats_alive.inc();
        if self.alive.0 != latest {
            self.alive = (latest, frame::alive(latest, self.history));
        }
        let alive = self.alive.1.clone();
        self.say(socket, alive).await
    }

    /// Tells a device to start over, by a smaller id than its own, if rows have expired that it never got. That is not looked at again while
    /// the device goes on from what this connection sends: else one that fetches everything would be sent back again and again.
    async fn take_up(&mut self, socket: &mut impl Socket, cursor: MessageId) -> SessionStep {
        match self.state.sync.has_expired_after(self.uid(), cursor).await {
            Ok(false) => self.catch_up(socket, cursor).await,
            Ok(true) => {
                self.cursor = None;
                self.state.metrics.heartbeats_alive.inc();
                self.say(socket, frame::alive(MessageId::ZERO, self.history)).await
            }
            Err(error) => self.say(socket, frame::error(&error.into(), None)).await,
        }
    }

    async fn catch_up(&mut self, socket: &mut impl Socket, cursor: MessageId) -> SessionStep {
        // One who reads more than their share is slowed down.
        while let Err(wait) = self.state.rates.may_read(self.uid()) {
            sleep(wait).await;
        }
        let charge = self.room(socket, cursor).await?;
        match self.state.sync.pull(&self.watermark, cursor).await {
            Ok(pulled) if pulled.entries.is_empty() => {
                self.state.metrics.heartbeats_alive.inc();
                self.say(socket, frame::alive(pulled.synced, self.history)).await
            }
            Ok(pulled) => {
                self.state.metrics.heartbeats_entries.inc();
                self.say_entries(socket, &pulled, cursor, charge).await
            }
            Err(error) => self.say(socket, frame::error(&error.into(), None)).await,
        }
    }

    /// Sends, unasked, what is newer than the cursor.
    pub(super) async fn deliver(&mut self, socket: &mut impl Socket) -> SessionStep {
        match self.cursor {
            Some(cursor) if self.watermark.may_be_after(cursor) => self.push(socket, cursor).await,
            _ => Continue(()),
        }
    }

    async fn push(&mut self, socket: &mut impl Socket, cursor: MessageId) -> SessionStep {
        let charge = self.room(socket, cursor).await?;
        let Ok(pulled) = self.state.sync.pull(&self.watermark, cursor).await else {
            // Nobody asked; the next heartbeat will, and is told.
            return Continue(());
        };
        let Some(newest) = pulled.entries.last() else { return Continue(()) };
        if newest.content.kind == Kind::Message {
            let waited = self.state.clock.now().0 - newest.content.sent_at.0;
            self.state.metrics.deliver_seconds.observe(waited.max(0) as f64 / 1_000.0);
        }
        self.say_entries(socket, &pulled, cursor, charge).await
    }

    /// Room in memory for the rows after `cursor`. Rows that were put on their way before must have left: a connection that waits for
    /// room while holding some could wait for ever.
    async fn room(&mut self, socket: &mut impl Socket, cursor: MessageId) -> ControlFlow<End, Charge> {
        if self.leaving.is_some() {
            self.send_off(socket).await?;
        }
        let limits = &self.state.settings.limits;
        let rows = self.watermark.latest().get().saturating_sub(cursor.get());
        let rows = usize::try_from(rows).unwrap_or(usize::MAX).min(limits.entries_rows);
        // A character has up to six bytes in JSON. One row goes whatever it weighs.
        let row = limits.text_characters.saturating_mul(6) + ROW_BYTES;
        let bytes = rows.saturating_mul(row).min(ENTRIES_BYTES.max(row));
        Continue(self.state.budget.take(self.network, bytes).await)
    }

    /// Puts rows on their way, which are charged until they have left.
    async fn say_entries(
        &mut self,
        socket: &mut impl Socket,
        pulled: &Pulled,
        after: MessageId,
        mut charge: Charge,
    ) -> SessionStep {
        self.unacknowledged = true;
        self.state.ephemerals.rows_came(&self.connected, &pulled.entries);
        let text = frame::entries(pulled, after);
        self.state.rates.has_read(self.uid(), text.len());
        // The text exceeds the reserved room by one row at most.
        let _ = charge.settle(text.len());
        self.leaving = Some(charge);
        self.say(socket, text).await
    }
}
