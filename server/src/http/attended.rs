//! A connection that is given up when nothing is heard on it: a phone that vanished leaves nothing behind.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

/// A stream on which reading fails once nothing has come for `patience`. The timer is looked at only when there is
/// nothing to read, and set anew only when it fires. `held` is dropped with the connection.
#[derive(Debug)]
pub(super) struct Attended<S, H> {
    stream: S,
    _held: H,
    patience: Duration,
    heard: Instant,
    timer: Option<Pin<Box<Sleep>>>,
}

impl<S, H> Attended<S, H> {
    pub(super) fn new(stream: S, patience: Duration, held: H) -> Attended<S, H> {
        Attended { stream, _held: held, patience, heard: Instant::now(), timer: None }
    }

    fn poll_silence(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let end = self.heard + self.patience;
            let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(end)));
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
            return Poll::Ready(read);
        }
        ready!(self.poll_silence(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncWrite + Unpin, H: Unpin> AsyncWrite for Attended<S, H> {
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
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};
    use tokio::time::sleep;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(100);

    #[tokio::test(start_paused = true)]
    async fn silence_ends_a_connection_and_every_byte_begins_it_anew() {
        let (mut client, server) = duplex(16);
        let mut server = Attended::new(server, PATIENCE, ());
        let began = Instant::now();
        let reading = async {
            let mut heard = 0;
            loop {
                match server.read_u8().await {
                    Ok(_) => heard += 1,
                    Err(error) => break (heard, error.kind()),
                }
            }
        };
        let writing = async {
            for _ in 0..5 {
                sleep(Duration::from_secs(99)).await;
                client.write_u8(7).await.expect("open");
            }
            // Kept open, and silent.
            client
        };
        let (outcome, _client) = tokio::join!(reading, writing);
        assert_eq!(outcome, (5, io::ErrorKind::TimedOut));
        assert_eq!(began.elapsed().as_secs(), 5 * 99 + 100);
    }
}
