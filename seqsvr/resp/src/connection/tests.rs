//! One client over a pipe, by the clock of the tests' runtime: what it gets, and when it is given up.

use std::collections::HashMap;
use std::sync::Mutex;

use async_trait::async_trait;
use seqsvr_rpc::security::{Listen, ListenConfig};
use tokio::io::{DuplexStream, duplex};
use tokio::task::JoinHandle;

use super::*;

/// Counters in memory. Those whose names begin with `slow` make callers wait once.
#[derive(Default)]
struct InMemory {
    numbers: Mutex<HashMap<Vec<u8>, u64>>,
    expected: AtomicUsize,
}

#[async_trait]
impl KeyCounters for InMemory {
    fn try_take(&self, key: &[u8], count: u64) -> Result<u64, TryTake> {
        if key.starts_with(b"slow") {
            return Err(TryTake::Later);
        }
        let mut numbers = self.numbers.lock().unwrap();
        let number = numbers.entry(key.to_vec()).or_default();
        *number += count;
        Ok(*number)
    }

    async fn take(&self, key: &[u8], count: u64) -> Result<u64, Refused> {
        let mut numbers = self.numbers.lock().unwrap();
        let number = numbers.entry(key.to_vec()).or_default();
        *number += count;
        Ok(*number)
    }

    fn expect(&self, _: &[u8], _: u64) {
        self.expected.fetch_add(1, Ordering::Relaxed);
    }

    async fn last(&self, key: &[u8]) -> Result<Option<u64>, Refused> {
        Ok(self.numbers.lock().unwrap().get(key).copied())
    }

    async fn advance(&self, key: &[u8], at_least: u64) -> Result<(), Refused> {
        self.numbers.lock().unwrap().insert(key.to_vec(), at_least);
        Ok(())
    }
}

/// A client's end of the pipe, the other end at work, the counters, and what ends the process.
struct Stage {
    client: DuplexStream,
    served: JoinHandle<io::Result<()>>,
    counters: Arc<InMemory>,
    stop: CancellationToken,
}

fn stage(pipe: usize, security: &ListenConfig) -> Stage {
    let (client, server) = duplex(pipe);
    let guard = Listen::load(security, "127.0.0.1:0".parse().unwrap(), false).unwrap().guard();
    let (counters, stop) = (Arc::new(InMemory::default()), CancellationToken::new());
    let shared = Shared {
        counters: Arc::clone(&counters) as _,
        guard,
        clients: AtomicUsize::new(1),
        stop: stop.clone(),
    };
    let served = tokio::spawn(async move { serve(server, 1, &shared).await });
    Stage { client, served, counters, stop }
}

/// What comes until the other end is closed.
async fn rest(client: &mut DuplexStream) -> String {
    let mut text = String::new();
    client.read_to_string(&mut text).await.unwrap();
    text
}

#[tokio::test]
async fn a_pipeline_is_answered_in_its_order_whatever_waits() {
    let mut stage = stage(1 << 20, &ListenConfig::default());
    let lines = "INCR a\r\nINCR slow\r\nINCR a\r\nGET slow\r\nMGET a none\r\nINCR slow\r\nINCR b\r\nQUIT\r\n";
    stage.client.write_all(lines.as_bytes()).await.unwrap();
    let answers = rest(&mut stage.client).await;
    assert_eq!(answers, ":1\r\n:1\r\n:2\r\n$1\r\n1\r\n*2\r\n$1\r\n2\r\n$-1\r\n:2\r\n:1\r\n+OK\r\n");
    assert_eq!(
        stage.counters.expected.load(Ordering::Relaxed),
        4,
        "three behind the first, one behind the second"
    );
    stage.served.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_transaction_is_answered_as_one_and_errors_stand_in_their_places() {
    let mut stage = stage(1 << 20, &ListenConfig::default());
    let lines = "MULTI\r\nINCR a\r\nINCRBY slow 5\r\nPING\r\nEXEC\r\nQUIT\r\n";
    stage.client.write_all(lines.as_bytes()).await.unwrap();
    let queued = "+QUEUED\r\n".repeat(3);
    assert_eq!(rest(&mut stage.client).await, format!("+OK\r\n{queued}*3\r\n:1\r\n:5\r\n+PONG\r\n+OK\r\n"));
}

#[tokio::test]
async fn a_request_may_come_byte_by_byte() {
    let mut stage = stage(1 << 20, &ListenConfig::default());
    for byte in b"*2\r\n$4\r\nINCR\r\n$1\r\na\r\n*1\r\n$4\r\nQUIT\r\n" {
        stage.client.write_all(&[*byte]).await.unwrap();
        tokio::task::yield_now().await;
    }
    assert_eq!(rest(&mut stage.client).await, ":1\r\n+OK\r\n");
}

#[tokio::test]
async fn what_cannot_be_understood_ends_the_connection_after_what_came_before() {
    let mut stage = stage(1 << 20, &ListenConfig::default());
    stage.client.write_all(b"INCR a\r\n*2\r\n$4\r\nINCR\r\n$536870912\r\nINCR a\r\n").await.unwrap();
    let answers = rest(&mut stage.client).await;
    let error = "-ERR Protocol error: invalid bulk length: send words of at most 65536 bytes";
    assert_eq!(answers, format!(":1\r\n{error}\r\n"));
    stage.served.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn half_a_request_is_waited_for_ten_seconds_and_silence_for_ever() {
    let mut stage = stage(1 << 20, &ListenConfig::default());
    tokio::time::advance(Duration::from_secs(100_000)).await;
    stage.client.write_all(b"INCR a\r\nINCR").await.unwrap();
    let began = Instant::now();
    let answers = rest(&mut stage.client).await;
    assert_eq!(answers, ":1\r\n-ERR the rest of a command did not come within 10 s: connect again\r\n");
    assert_eq!(began.elapsed().as_secs(), 10);
}

#[tokio::test(start_paused = true)]
async fn who_drips_a_request_is_given_up_as_well() {
    let mut stage = stage(1 << 20, &ListenConfig::default());
    let began = Instant::now();
    let client = &mut stage.client;
    let mut written = 0;
    while client.write_all(b"x").await.is_ok() && written < 100 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        written += 1;
    }
    assert!((9..=12).contains(&written), "{written}");
    assert!(began.elapsed() < Duration::from_secs(13));
}

#[tokio::test(start_paused = true)]
async fn a_stranger_has_ten_seconds_for_the_token() {
    let token = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(token.path(), "correct-horse-battery").unwrap();
    let security = ListenConfig { token_file: Some(token.path().to_owned()), ..ListenConfig::default() };
    let mut late = stage(1 << 20, &security);
    let began = Instant::now();
    late.client.write_all(b"PING\r\n").await.unwrap();
    let answers = rest(&mut late.client).await;
    assert!(
        answers.starts_with("-NOAUTH ") && answers.contains("AUTH did not come within 10 s"),
        "{answers}"
    );
    assert_eq!(began.elapsed().as_secs(), 10);
    let mut known = stage(1 << 20, &security);
    known.client.write_all(b"AUTH correct-horse-battery\r\n").await.unwrap();
    let mut answer = [0; 5];
    known.client.read_exact(&mut answer).await.unwrap();
    tokio::time::advance(Duration::from_secs(100)).await;
    known.client.write_all(b"PING\r\nQUIT\r\n").await.unwrap();
    assert_eq!(rest(&mut known.client).await, "+PONG\r\n+OK\r\n");
}

#[tokio::test(start_paused = true)]
async fn who_reads_no_answers_is_cut_off_and_stops_being_read() {
    let mut stage = stage(1 << 10, &ListenConfig::default());
    let began = Instant::now();
    let mut written = 0;
    while stage.client.write_all(b"PING\r\n").await.is_ok() {
        written += 1;
    }
    let ended = stage.served.await.unwrap();
    assert_eq!(ended.map_err(|error| error.kind()), Err(io::ErrorKind::TimedOut));
    assert_eq!(began.elapsed().as_secs(), 10);
    assert!(written * 6 < 64 << 10, "{written} requests were taken in");
}

#[tokio::test]
async fn at_a_stop_what_has_arrived_is_answered() {
    let mut stage = stage(1 << 20, &ListenConfig::default());
    stage.client.write_all(b"INCR a\r\n").await.unwrap();
    let mut answer = [0; 4];
    stage.client.read_exact(&mut answer).await.unwrap();
    stage.client.write_all(b"INCR a\r\n").await.unwrap();
    stage.stop.cancel();
    assert_eq!(rest(&mut stage.client).await, ":2\r\n");
    stage.served.await.unwrap().unwrap();
}
