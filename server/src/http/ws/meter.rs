//! Counts the raw frames that a client sends. The WebSocket library joins fragments and answers pings by itself, so a
//! flood of empty fragments or pings would never reach the session.
//!
//! [`Metered`] lies between the connection and the library. It follows the heads of frames (RFC 6455, section 5.2) in
//! the bytes that pass, and ends the reading with [`Flood`] when a limit is passed. It changes no byte.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::http::limits::Rate;

/// The most fragments of one message. Clients that fragment at all use a few kilobytes for each.
const FRAGMENTS: u32 = 1_024;

/// The longest head of a frame: two bytes, a length of eight, a mask of four.
const LONGEST_HEAD: usize = 14;

/// Reading ended because the client sent too many frames.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("too many frames, or too many fragments of one message")]
pub(super) struct Flood;

/// A stream whose incoming frames are counted.
#[derive(Debug)]
pub(super) struct Metered<S> {
    stream: S,
    heads: Heads,
    rate: Rate,
    /// When the allowance of frames is whole again.
    whole: Instant,
}

impl<S> Metered<S> {
    /// `stream`, which carries the frames of one WebSocket, from its first byte on. Frames may come as fast as `rate`.
    pub(super) fn new(stream: S, rate: Rate) -> Metered<S> {
        Metered { stream, heads: Heads::default(), rate, whole: Instant::now() }
    }

    /// The stream itself, no longer counted.
    pub(super) fn inner(&mut self) -> &mut S {
        &mut self.stream
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Metered<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        let this = &mut *self;
        let frames = this.heads.follow(&buf.filled()[before..]).map_err(io::Error::other)?;
        if frames > 0 && this.rate.take(&mut this.whole, frames, Instant::now()).is_err() {
            return Poll::Ready(Err(io::Error::other(Flood)));
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Metered<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// Follows the heads of frames in a stream of bytes, however they are cut.
#[derive(Debug, Default)]
struct Heads {
    /// Bytes of the payload that are still to come.
    payload: u64,
    /// The bytes of the next head that have come.
    head: [u8; LONGEST_HEAD],
    have: usize,
    /// Fragments of the message that is under way.
    fragments: u32,
}

impl Heads {
    /// Counts the frames whose heads end in `bytes`.
    fn follow(&mut self, mut bytes: &[u8]) -> Result<u32, Flood> {
        let mut frames = 0;
        while !bytes.is_empty() {
            if self.payload > 0 {
                let skipped = usize::try_from(self.payload).unwrap_or(usize::MAX).min(bytes.len());
                self.payload -= skipped as u64;
                bytes = &bytes[skipped..];
                continue;
            }
            self.head[self.have] = bytes[0];
            self.have += 1;
            bytes = &bytes[1..];
            if self.have == self.length() {
                frames += 1;
                self.begin_payload()?;
            }
        }
        Ok(frames)
    }

    /// The length of the head, as far as it is known by now.
    fn length(&self) -> usize {
        if self.have < 2 {
            return 2;
        }
        let mask = if self.head[1] & 0x80 == 0 { 0 } else { 4 };
        2 + mask
            + match self.head[1] & 0x7f {
                126 => 2,
                127 => 8,
                _ => 0,
            }
    }

    /// The head is whole.
    fn begin_payload(&mut self) -> Result<(), Flood> {
        let number = |bytes: &[u8]| bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
        self.payload = match self.head[1] & 0x7f {
            126 => number(&self.head[2..4]),
            127 => number(&self.head[2..10]),
            short => short.into(),
        };
        self.have = 0;
        match self.head[0] & 0x0f {
            0 => self.fragments += 1,
            // Control frames may stand between the fragments of a message.
            control if control >= 8 => {}
            _ => self.fragments = 1,
        }
        if self.fragments > FRAGMENTS { Err(Flood) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    use super::*;

    /// A masked frame of `length` bytes.
    fn frame(first: u8, length: usize) -> Vec<u8> {
        let mut bytes = vec![first];
        match length {
            0..126 => bytes.push(0x80 | length as u8),
            126..65_536 => {
                bytes.push(0x80 | 126);
                bytes.extend((length as u16).to_be_bytes());
            }
            _ => {
                bytes.push(0x80 | 127);
                bytes.extend((length as u64).to_be_bytes());
            }
        }
        bytes.extend([0x81; 4]);
        bytes.extend(vec![0x81; length]);
        bytes
    }

    #[test]
    fn frames_are_counted_however_the_bytes_are_cut() {
        let lengths = [0, 1, 125, 126, 127, 65_535, 65_536, 70_000, 0];
        let stream: Vec<u8> = lengths.iter().flat_map(|length| frame(0x81, *length)).collect();
        for cut in [1, 2, 3, 7, 64, 4_096, stream.len()] {
            let mut heads = Heads::default();
            let counted: u32 = stream.chunks(cut).map(|part| heads.follow(part).expect("few")).sum();
            assert_eq!(counted as usize, lengths.len(), "in pieces of {cut}");
        }
    }

    #[test]
    fn a_message_has_only_so_many_fragments_and_control_frames_between_do_not_begin_it_anew() {
        let mut heads = Heads::default();
        heads.follow(&frame(0x01, 5)).expect("the first");
        for _ in 1..FRAGMENTS {
            heads.follow(&frame(0x00, 0)).expect("another");
            heads.follow(&frame(0x89, 0)).expect("a ping");
        }
        assert!(heads.follow(&frame(0x00, 0)).is_err());
        let mut heads = Heads::default();
        for _ in 0..FRAGMENTS * 3 {
            heads.follow(&frame(0x81, 1)).expect("a message of its own");
        }
    }

    #[tokio::test]
    async fn a_rate_that_is_passed_ends_the_reading() {
        let (mut client, server) = duplex(1 << 16);
        let mut server = Metered::new(server, Rate::new(1, Duration::from_secs(3_600)));
        let pings: Vec<u8> = (0..10).flat_map(|_| frame(0x89, 0)).collect();
        client.write_all(&pings).await.expect("room");
        let mut heard = vec![0; pings.len()];
        server.read_exact(&mut heard).await.expect("a burst");
        assert_eq!(heard, pings);
        client.write_all(&frame(0x89, 0)).await.expect("room");
        let error = server.read_exact(&mut [0; 6]).await.expect_err("one too many");
        assert!(error.get_ref().is_some_and(|error| error.is::<Flood>()), "{error}");
    }
}
