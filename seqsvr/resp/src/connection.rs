//! The loop of one client: reads, carries out every request that has arrived, and writes the answers. Owns the two
//! buffers, which are bounded: while answers wait to be read, nothing more is read. Run by `server`.

use std::future::poll_fn;
use std::io;
use std::ops::Range;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use seqsvr_rpc::security::Guard;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::commands::{Command, Words, Work, understand};
use crate::counters::{KeyCounters, Refused, TryTake};
use crate::parse::{Parsed, parse};
use crate::reply::Replies;
use crate::session::{Session, Step};
use crate::told;

/// How long a client may take to show its token, and to send the rest of a request.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);
/// How long a client may leave answers unread.
const UNREAD: Duration = Duration::from_secs(10);
/// Bytes that are read at a time.
const READ: usize = 64 << 10;
/// At so many bytes answers leave before the next request is looked at.
const FULL: usize = 64 << 10;
/// How many requests behind one that waits are looked at, so that they need not wait one after the other.
const AHEAD: usize = 1_000;

/// The part that all clients of a listener share.
pub(crate) struct Shared {
    pub(crate) counters: Arc<dyn KeyCounters>,
    pub(crate) guard: Guard,
    pub(crate) clients: AtomicUsize,
    pub(crate) stop: CancellationToken,
}

/// Serves one client until it leaves, breaks a rule, or the process ends.
pub(crate) async fn serve<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    id: u64,
    shared: &Shared,
) -> io::Result<()> {
    let session = Session::new(id, shared.guard.clone());
    let mut talk = Talk { stream, shared, session, replies: Replies::default() };
    talk.run().await
}

struct Talk<'a, S> {
    stream: S,
    shared: &'a Shared,
    session: Session,
    replies: Replies,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Talk<'_, S> {
    async fn run(&mut self) -> io::Result<()> {
        let opened = Instant::now();
        let (mut input, mut places) = (Vec::with_capacity(READ), Vec::new());
        // Since when the beginning of a request waits for its rest.
        let mut half = None;
        let mut stopped = pin!(self.shared.stop.cancelled());
        loop {
            let (used, goes_on) = self.answer_all(&input, &mut places).await?;
            self.flush().await?;
            if !goes_on {
                return self.stream.shutdown().await;
            }
            input.drain(..used);
            half = match (input.is_empty(), used) {
                (true, _) => None,
                (false, 0) => half.or_else(|| Some(Instant::now())),
                (false, _) => Some(Instant::now()),
            };
            let stranger = (!self.session.is_known()).then_some(opened);
            let until = half.into_iter().chain(stranger).min().map(|since| since + PATIENCE);
            if input.is_empty() && input.capacity() > READ {
                input = Vec::with_capacity(READ);
            }
            input.reserve(READ.saturating_sub(input.len()).max(READ / 4));
            let read = async {
                match until {
                    None => self.stream.read_buf(&mut input).await,
                    Some(until) => timeout_at(until, self.stream.read_buf(&mut input)).await?,
                }
            };
            let read = tokio::select! {
                biased;
                read = read => read,
                () = &mut stopped => return self.stream.shutdown().await,
            };
            match read {
                Ok(0) => return Ok(()),
                Ok(_) => {}
                Err(late) if late.kind() == io::ErrorKind::TimedOut && until.is_some() => {
                    let seconds = PATIENCE.as_secs();
                    let what = if half.is_some() { "the rest of a command" } else { "AUTH" };
                    self.replies
                        .error("ERR", &format!("{what} did not come within {seconds} s: connect again"));
                    self.flush().await?;
                    return self.stream.shutdown().await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Carries out what has arrived whole: how many bytes that was, and whether the connection goes on.
    async fn answer_all(
        &mut self,
        input: &[u8],
        places: &mut Vec<Range<usize>>,
    ) -> io::Result<(usize, bool)> {
        let mut at = 0;
        loop {
            let rest = &input[at..];
            let end = match parse(rest, self.session.limits(), places) {
                Ok(Parsed::Whole(end)) => end,
                Ok(Parsed::Part) => return Ok((at, true)),
                Err(malformed) => {
                    self.replies.error("ERR", &format!("Protocol error: {malformed}"));
                    return Ok((at, false));
                }
            };
            if !places.is_empty() {
                let step = self.session.take(Words::new(rest, places), &mut self.replies);
                match step {
                    Step::Answered => {}
                    Step::Close => return Ok((at + end, false)),
                    Step::Run(bytes, count) => Box::pin(self.run_collected(&bytes, count)).await?,
                    step => self.carry_out(step, &rest[end..]).await?,
                }
            }
            at += end;
            if self.replies.bytes.len() >= FULL {
                self.flush().await?;
            }
        }
    }

    /// Carries out what stood between `MULTI` and `EXEC`.
    async fn run_collected(&mut self, bytes: &[u8], count: usize) -> io::Result<()> {
        self.replies.array(count);
        let (mut at, mut places) = (0, Vec::new());
        while let Ok(Parsed::Whole(end)) = parse(&bytes[at..], self.session.limits(), &mut places) {
            let step = self.session.take(Words::new(&bytes[at..], &places), &mut self.replies);
            at += end;
            self.carry_out(step, &bytes[at..]).await?;
            if self.replies.bytes.len() >= FULL {
                self.flush().await?;
            }
        }
        Ok(())
    }

    /// Asks the counters, and writes their answer; `rest` are the bytes behind the request.
    async fn carry_out(&mut self, step: Step<'_>, rest: &[u8]) -> io::Result<()> {
        match step {
            Step::Work(Work::Take { key, count }) => {
                let taken = match self.shared.counters.try_take(key, count) {
                    Ok(number) => Ok(number),
                    Err(TryTake::Refused(refused)) => Err(refused),
                    Err(TryTake::Later) => Box::pin(self.wait(key, count, rest)).await?,
                };
                self.tell(taken, |to, number| to.integer(number));
            }
            Step::Work(Work::Last { key }) => {
                let last = self.ask(self.shared.counters.last(key)).await?;
                self.tell(last, tell_last);
            }
            Step::Work(Work::LastOf(keys)) => {
                let mut all = Vec::with_capacity(keys.len());
                for key in keys.iter() {
                    match self.ask(self.shared.counters.last(key)).await? {
                        Ok(last) => all.push(last),
                        Err(refused) => {
                            self.replies.error(refused.code(), refused.text());
                            return Ok(());
                        }
                    }
                }
                self.replies.array(all.len());
                all.into_iter().for_each(|last| tell_last(&mut self.replies, last));
            }
            Step::Work(Work::Advance { key, at_least }) => {
                let advanced = self.ask(self.shared.counters.advance(key, at_least)).await?;
                self.tell(advanced, |to, ()| to.simple("OK"));
            }
            Step::Info => {
                let clients = self.shared.clients.load(Ordering::Relaxed);
                told::info(clients, &self.shared.counters.describe(), &mut self.replies);
            }
            Step::Answered | Step::Close | Step::Run(..) => {}
        }
        Ok(())
    }

    /// Waits for an answer. If it is not there at once, what is answered already leaves before.
    async fn ask<T>(&mut self, answer: impl Future<Output = T>) -> io::Result<T> {
        let mut answer = pin!(answer);
        match poll_fn(|cx| Poll::Ready(answer.as_mut().poll(cx))).await {
            Poll::Ready(answer) => Ok(answer),
            Poll::Pending => {
                self.flush().await?;
                Ok(answer.await)
            }
        }
    }

    /// Waits for numbers. Answers that are there leave before, and requests behind are told to the counters.
    async fn wait(&mut self, key: &[u8], count: u64, rest: &[u8]) -> io::Result<Result<u64, Refused>> {
        self.flush().await?;
        let (mut at, mut places) = (0, Vec::new());
        for _ in 0..AHEAD {
            let Ok(Parsed::Whole(end)) = parse(&rest[at..], self.session.limits(), &mut places) else {
                break;
            };
            let words = Words::new(&rest[at..], &places);
            if let Ok(Command::Work(Work::Take { key, count })) = understand(words) {
                self.shared.counters.expect(key, count);
            }
            at += end;
        }
        Ok(self.shared.counters.take(key, count).await)
    }

    fn tell<T>(&mut self, answer: Result<T, Refused>, tell: impl FnOnce(&mut Replies, T)) {
        match answer {
            Ok(answer) => tell(&mut self.replies, answer),
            Err(refused) => self.replies.error(refused.code(), refused.text()),
        }
    }

    async fn flush(&mut self) -> io::Result<()> {
        if self.replies.bytes.is_empty() {
            return Ok(());
        }
        let write = async {
            self.stream.write_all(&self.replies.bytes).await?;
            self.stream.flush().await
        };
        timeout(UNREAD, write).await??;
        self.replies.bytes.clear();
        self.replies.bytes.shrink_to(2 * FULL);
        Ok(())
    }
}

fn tell_last(to: &mut Replies, last: Option<u64>) {
    match last {
        Some(number) => to.number(number),
        None => to.null(),
    }
}

#[cfg(test)]
mod tests;
