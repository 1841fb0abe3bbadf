//! A connection that is given up when its other end does not do its part: brings no request within a time from its
//! opening, does not read the data sent to it, or falls silent, as a phone does that vanished. Owned by the servers of
//! the connections: the gRPC servers of the roles, the chat server.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

/// Told that a connection has brought a request. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Arrival(Arc<AtomicBool>);

impl Arrival {
    /// A request is here, hence a whole handshake.
    #[inline]
    pub fn tell(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn has_arrived(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A stream on which reading fails once nothing has come for `patience`, or, where one is awaited, no first request in time. The
/// timer is looked at only when there is nothing to read, and set anew only when it fires. `held` is dropped with the connection.
#[derive(Debug)]
pub struct Attended<S, H> {
    stream: S,
    held: H,
    patience: Duration,
    heard: Instant,
    /// Until when a first request is awaited.
    awaited: Option<(Instant, Arrival)>,
    timer: Option<Pin<Box<Sleep>>>,
    writing: Option<Writing>,
}

/// Bytes that the other end takes within the time for writing, unless all of them are fewer.
const PROGRESS: usize = 16 << 10;

/// How long the other end may leave written data unread.
#[derive(Debug)]
struct Writing {
    within: Duration,
    /// Set from the first write that found no room to the next one that was taken whole.
    timer: Option<Pin<Box<Sleep>>>,
    /// Bytes taken since the timer was set.
    taken: usize,
}

impl Writing {
    /// Of `wanted` bytes, `taken` were written.
    fn wrote(&mut self, wanted: usize, taken: usize) {
        self.taken += taken;
        if taken >= wanted {
            self.timer = None;
        }
    }

    /// There is no room for more.
    fn poll_stalled(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        loop {
            let timer = match &mut self.timer {
                Some(timer) => timer,
                none => {
                    self.taken = 0;
                    none.insert(Box::pin(sleep_until(Instant::now() + self.within)))
                }
            };
            ready!(timer.as_mut().poll(cx));
            if self.taken < PROGRESS {
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
            self.timer = None;
        }
    }
}

impl<S, H> Attended<S, H> {
    /// Gives `stream` up after silence of `patience`.
    pub fn new(stream: S, patience: Duration, held: H) -> Self {
        Self { stream, held, patience, heard: Instant::now(), awaited: None, timer: None, writing: None }
    }

    /// Gives it up, too, when data waits to be written and the other end takes less than 16 KiB of it, and not all, for `within`.
    #[must_use]
    pub fn writing_within(mut self, within: Duration) -> Self {
        self.writing = Some(Writing { within, timer: None, taken: 0 });
        self
    }

    /// The end of a write of `wanted` bytes.
    fn wrote(
        &mut self,
        cx: &mut Context<'_>,
        wanted: usize,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        match (&mut self.writing, written) {
            (Some(writing), Poll::Pending) => writing.poll_stalled(cx),
            (Some(writing), Poll::Ready(Ok(taken))) => {
                writing.wrote(wanted, taken);
                Poll::Ready(Ok(taken))
            }
            (_, written) => written,
        }
    }

    /// Also ends the stream when `arrival` has seen no request before `within` is over, however many other bytes have come: a
    /// client that sends a handshake byte by byte is not silent.
    #[must_use]
    pub fn awaiting(mut self, arrival: Arrival, within: Duration) -> Self {
        self.awaited = Some((Instant::now() + within, arrival));
        self
    }

    /// The value that is dropped with the connection.
    pub fn held(&self) -> &H {
        &self.held
    }

    /// Until when a first request is awaited, while it is.
    fn awaited(&mut self) -> Option<Instant> {
        if self.awaited.as_ref().is_some_and(|(_, arrival)| arrival.has_arrived()) {
            self.awaited = None;
        }
        self.awaited.as_ref().map(|(until, _)| *until)
    }

    fn poll_patience(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let silent = self.heard + self.patience;
            let end = self.awaited().map_or(silent, |until| until.min(silent));
            let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(end)));
            if timer.deadline() > end {
                timer.as_mut().reset(end);
            }
            ready!(timer.as_mut().poll(cx));
            if Instant::now() >= end {
                return Poll::Ready(());
            }
            timer.as_mut().reset(end);
        }
    }
}

impl<S: AsyncRead + Unpin, H: Unpin> AsyncRead for Attended<S, H> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Poll::Ready(read) = Pin::new(&mut self.stream).poll_read(cx, buf) {
            self.heard = Instant::now();
            return match self.awaited() {
                Some(until) if until <= self.heard => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
                _ => Poll::Ready(read),
            };
        }
        ready!(self.poll_patience(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncWrite + Unpin, H: Unpin> AsyncWrite for Attended<S, H> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.wrote(cx, buf.len(), written)
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
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.wrote(cx, bufs.iter().map(|buf| buf.len()).sum(), written)
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

    const PATIENCE: Duration = Duration::from_secs(100);

    /// Reads to the end: how many bytes came, and the error that ended it.
    async fn read(mut server: Attended<DuplexStream, ()>) -> (usize, io::ErrorKind) {
        let mut heard = 0;
        loop {
            match server.read_u8().await {
                Ok(_) => heard += 1,
                Err(error) => return (heard, error.kind()),
            }
        }
    }

    /// Sends a byte after each `pause`, `times` times; then stays, silent.
    async fn drip(client: &mut DuplexStream, pause: Duration, times: usize) {
        for _ in 0..times {
            advance(pause).await;
            if client.write_u8(7).await.is_err() {
                return;
            }
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn silence_ends_a_connection_and_every_byte_begins_it_anew() {
        let (mut client, server) = duplex(16);
        let began = Instant::now();
        let reading = tokio::spawn(read(Attended::new(server, PATIENCE, ())));
        drip(&mut client, Duration::from_secs(99), 5).await;
        assert_eq!(reading.await.expect("runs"), (5, io::ErrorKind::TimedOut));
        assert_eq!(began.elapsed().as_secs(), 5 * 99 + 100);
    }

    #[tokio::test(start_paused = true)]
    async fn a_first_request_is_awaited_for_its_time_and_no_longer() {
        for dripping in [false, true] {
            let (mut client, server) = duplex(16);
            let began = Instant::now();
            let server = Attended::new(server, PATIENCE, ());
            let reading = tokio::spawn(read(server.awaiting(Arrival::default(), Duration::from_secs(10))));
            if dripping {
                drip(&mut client, Duration::from_secs(3), 4).await;
            }
            assert_eq!(reading.await.expect("runs").1, io::ErrorKind::TimedOut);
            assert!((10..=12).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn after_a_first_request_only_silence_ends_a_connection() {
        let (mut client, server) = duplex(16);
        let (began, arrival) = (Instant::now(), Arrival::default());
        let server = Attended::new(server, PATIENCE, ()).awaiting(arrival.clone(), Duration::from_secs(10));
        let reading = tokio::spawn(read(server));
        drip(&mut client, Duration::from_secs(5), 1).await;
        arrival.tell();
        assert_eq!(reading.await.expect("runs"), (1, io::ErrorKind::TimedOut));
        assert_eq!(began.elapsed().as_secs(), 105);
    }

    #[tokio::test(start_paused = true)]
    async fn one_who_does_not_read_is_given_up_and_one_who_reads_slowly_is_not() {
        let within = Duration::from_secs(10);
        for (step, pause, written) in [(0, 1, false), (100, 1, false), (20 << 10, 5, true)] {
            let (mut client, server) = duplex(64 << 10);
            let mut server = Attended::new(server, PATIENCE, ()).writing_within(within);
            let writing = tokio::spawn(async move { server.write_all(&[7; 200 << 10]).await });
            let reading = tokio::spawn(async move {
                let mut some = vec![0; step];
                loop {
                    sleep_until(Instant::now() + Duration::from_secs(pause)).await;
                    if step > 0 && client.read_exact(&mut some).await.is_err() {
                        return;
                    }
                }
            });
            let done = writing.await.expect("runs").map_err(|error| error.kind());
            reading.abort();
            let expected = if written { Ok(()) } else { Err(io::ErrorKind::TimedOut) };
            assert_eq!(done, expected, "{step} bytes each {pause} s");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn time_in_which_nothing_is_to_be_written_does_not_count() {
        let (mut client, server) = duplex(16);
        let mut server = Attended::new(server, PATIENCE, ()).writing_within(Duration::from_secs(10));
        for _ in 0..3 {
            server.write_all(&[7; 16]).await.expect("room");
            let more = tokio::spawn(async move {
                server.write_all(&[7; 8]).await.expect("read in time");
                server
            });
            advance(Duration::from_secs(6)).await;
            client.read_exact(&mut [0; 24]).await.expect("open");
            server = more.await.expect("runs");
            advance(Duration::from_secs(60)).await;
        }
    }
}
