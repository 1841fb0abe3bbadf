//! A request's head that comes in small pieces over a long time costs a read for each piece. [`Unhurried`] reads such a
//! head only now and then: what has come in the meantime is taken in one read. Thousands of slow heads so cost little,
//! and because the pauses differ, their reads do not come all at once. A client that sends its head in one go, or in
//! pieces soon one after the other, is never waited for.
//!
//! Lies between the connection and hyper. The service tells by [`Phase`] when a head is whole and when the next one is
//! awaited; bodies and WebSockets are not touched.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rand::RngExt as _;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// A head is slow when it is not whole so long after its first byte.
const SLOW: Duration = Duration::from_millis(250);

/// Between two reads of a slow head, in milliseconds: a random time from this range.
const PAUSE: std::ops::Range<u64> = 1_500..4_500;

/// Whether a connection awaits a head. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(super) struct Phase(Arc<AtomicU32>);

impl Phase {
    /// The head is whole: what comes now is a body, or a WebSocket.
    pub(super) fn begin_request(&self) {
        self.0.fetch_or(1, Ordering::Relaxed);
    }

    /// The request is answered: what comes next is a head.
    pub(super) fn await_head(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// The number of the head that is awaited, if one is.
    fn awaited(&self) -> Option<u32> {
        let count = self.0.load(Ordering::Relaxed);
        count.is_multiple_of(2).then_some(count)
    }
}

/// A stream whose slow heads are read now and then.
#[derive(Debug)]
pub(super) struct Unhurried<S> {
    stream: S,
    phase: Phase,
    /// The head that is being read: its number, and when its first byte came.
    head: Option<(u32, Instant)>,
    pause: Option<Pin<Box<Sleep>>>,
}

impl<S> Unhurried<S> {
    /// `stream`, which awaits its first head.
    pub(super) fn new(stream: S, phase: Phase) -> Unhurried<S> {
        Unhurried { stream, phase, head: None, pause: None }
    }

    /// A part of head number `awaited` has been read.
    fn has_read(&mut self, awaited: u32) {
        let now = Instant::now();
        match self.head {
            Some((number, since)) if number == awaited => {
                if now - since >= SLOW {
                    let pause = rand::rng().random_range(PAUSE);
                    self.pause = Some(Box::pin(sleep(Duration::from_millis(pause))));
                }
            }
            _ => self.head = Some((awaited, now)),
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Unhurried<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let awaited = self.phase.awaited();
        if let Some(pause) = &mut self.pause {
            if awaited.is_some() {
                ready!(pause.as_mut().poll(cx));
            }
            self.pause = None;
        }
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        if let Some(awaited) = awaited {
            self.has_read(awaited);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Unhurried<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
    use tokio::time::advance;

    use super::*;

    /// Sends a byte each 100 ms, `bytes` times, and tells how many reads they took.
    async fn reads_of(
        client: &mut DuplexStream,
        server: &mut Unhurried<DuplexStream>,
        bytes: usize,
    ) -> usize {
        let sending = async {
            for _ in 0..bytes {
                client.write_all(b"x").await.expect("room");
                sleep(Duration::from_millis(100)).await;
            }
        };
        let reading = async {
            let (mut reads, mut have) = (0, 0);
            while have < bytes {
                have += server.read(&mut [0; 4_096]).await.expect("open");
                reads += 1;
            }
            reads
        };
        tokio::join!(sending, reading).1
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_head_is_read_now_and_then_and_all_else_at_once() {
        let (mut client, server) = duplex(1 << 16);
        let phase = Phase::default();
        let mut server = Unhurried::new(server, phase.clone());
        let slow = reads_of(&mut client, &mut server, 200).await;
        assert!((7..=18).contains(&slow), "{slow} reads in 20 s");
        // A body after it.
        phase.begin_request();
        let reads = reads_of(&mut client, &mut server, 50).await;
        assert_eq!(reads, 50);
        // The next head of the connection begins anew.
        phase.await_head();
        let reads = reads_of(&mut client, &mut server, 3).await;
        assert_eq!(reads, 3);
        phase.begin_request();
        phase.await_head();
        advance(Duration::from_secs(60)).await;
        assert_eq!(reads_of(&mut client, &mut server, 3).await, 3);
    }
}
