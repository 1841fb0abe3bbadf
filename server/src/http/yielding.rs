//! A connection's task moves all bytes that are ready in one poll. For megabytes that would keep a worker of the runtime for milliseconds,
//! so [`Yielding`] lets the other tasks go on after each 128 KiB, and cuts a longer write there. A read is no longer than the reader's
//! buffer, some kibibytes. `serve` puts it around every connection.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes that are moved without a pause; that takes about a tenth of a millisecond.
const AT_ONCE: usize = 128 << 10;

/// See the module.
#[derive(Debug)]
pub(super) struct Yielding<S> {
    stream: S,
    /// Bytes that may be moved before the next pause.
    left: usize,
}

impl<S> Yielding<S> {
    pub(super) fn new(stream: S) -> Yielding<S> {
        Yielding { stream, left: AT_ONCE }
    }

    /// A pause, if it is time for one.
    fn poll_pause(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.left > 0 {
            return Poll::Ready(());
        }
        self.left = AT_ONCE;
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn count(&mut self, bytes: usize) {
        self.left = self.left.saturating_sub(bytes);
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Yielding<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(self.poll_pause(cx));
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        self.count(buf.filled().len() - before);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Yielding<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        ready!(self.poll_pause(cx));
        let some = &buf[..buf.len().min(self.left)];
        let written = ready!(Pin::new(&mut self.stream).poll_write(cx, some))?;
        self.count(written);
        Poll::Ready(Ok(written))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut room = self.left;
        let whole = bufs.iter().take_while(|buf| {
            let fits = buf.len() <= room;
            room = room.saturating_sub(buf.len());
            fits
        });
        match whole.count() {
            // The first that is larger than the room, of which a part is written.
            0 => self.poll_write(cx, bufs.first().map_or(&[], |buf| buf)),
            count => {
                ready!(self.poll_pause(cx));
                let written = ready!(Pin::new(&mut self.stream).poll_write_vectored(cx, &bufs[..count]))?;
                self.count(written);
                Poll::Ready(Ok(written))
            }
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use std::io::IoSlice;

    use futures_util::poll;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    use super::*;

    const ALL: usize = 5 * AT_ONCE + 77;

    /// Polls `moving` to its end; how often it paused.
    async fn pauses(moving: impl Future<Output = io::Result<()>>) -> usize {
        let mut moving = std::pin::pin!(moving);
        let mut pauses = 0;
        while poll!(moving.as_mut()).map(|done| done.expect("moved")).is_pending() {
            pauses += 1;
        }
        pauses
    }

    #[tokio::test]
    async fn what_is_there_and_what_finds_room_is_moved_with_pauses() {
        let (mut near, far) = duplex(ALL);
        let mut far = Yielding::new(far);
        let sent: Vec<u8> = (0..ALL).map(|at| (at % 251) as u8).collect();
        near.write_all(&sent).await.expect("room for all");
        let mut read = vec![0; ALL];
        let reading = async {
            for some in read.chunks_mut(AT_ONCE / 4) {
                far.read_exact(some).await?;
            }
            Ok(())
        };
        assert_eq!(pauses(reading).await, 5);
        assert_eq!(read, sent);
        assert_eq!(pauses(far.write_all(&sent)).await, 5);
        near.read_exact(&mut read).await.expect("there");
        assert_eq!(read, sent);
    }

    #[tokio::test]
    async fn of_many_pieces_as_many_are_written_as_may_be() {
        let (mut near, far) = duplex(ALL);
        let mut far = Yielding::new(far);
        let small = [7; 100];
        let large = vec![8; AT_ONCE];
        let pieces = [IoSlice::new(&small), IoSlice::new(&small), IoSlice::new(&large)];
        assert!(far.is_write_vectored());
        assert_eq!(far.write_vectored(&pieces).await.expect("written"), 200);
        assert_eq!(far.write_vectored(&pieces[2..]).await.expect("written"), AT_ONCE - 200);
        assert_eq!(pauses(async { far.write_vectored(&pieces).await.map(drop) }).await, 1);
        let mut read = vec![0; AT_ONCE + 200];
        near.read_exact(&mut read).await.expect("there");
        assert_eq!(read, [vec![7; 200], vec![8; AT_ONCE - 200], vec![7; 200]].concat());
    }
}
