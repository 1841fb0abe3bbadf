//! How often the database is asked, counted on the wire: a question that no statement shows costs a way there and back, too.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::json;
use tidemark_test_support::servers::postgres::durable_database;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};

use crate::support::{Database, Socket};

/// Messages of the protocol that ask for an answer: Query, and Sync.
const ASKS: [u8; 2] = [b'Q', b'S'];

/// Messages that are counted. The server's own work meanwhile, such as a sign of life each second, asks less often.
const MESSAGES: u64 = 100;

/// Passes what a server says, and counts its requests.
async fn pass(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    requests: Arc<AtomicU64>,
) -> std::io::Result<()> {
    // The first message has no kind.
    let mut kind = None;
    loop {
        let length = from.read_u32().await?;
        let mut rest = vec![0; length as usize - 4];
        from.read_exact(&mut rest).await?;
        let mut message: Vec<u8> = kind.into_iter().collect();
        message.extend(length.to_be_bytes());
        message.extend(rest);
        to.write_all(&message).await?;
        let next = from.read_u8().await?;
        requests.fetch_add(ASKS.contains(&next).into(), Ordering::Relaxed);
        kind = Some(next);
    }
}

/// A socket before the database at `url`, and the number of requests that came through it.
async fn counted(url: &str) -> (tempfile::TempDir, String, Arc<AtomicU64>) {
    let folder = tempfile::tempdir().expect("a folder");
    let (before, real) = url.split_once("host=").expect("a socket");
    let (real, front) = (format!("{real}/.s.PGSQL.5432"), folder.path().join(".s.PGSQL.5432"));
    let (listener, requests) = (UnixListener::bind(&front).expect("bound"), Arc::default());
    let counter = Arc::clone(&requests);
    tokio::spawn(async move {
        while let Ok((near, _)) = listener.accept().await {
            let far = UnixStream::connect(&real).await.expect("connected");
            let ((from_near, mut to_near), (mut from_far, to_far)) = (near.into_split(), far.into_split());
            tokio::spawn(pass(from_near, to_far, Arc::clone(&counter)));
            tokio::spawn(async move { copy(&mut from_far, &mut to_near).await });
        }
    });
    // Its request for encryption has no kind, either.
    let url = format!("{before}sslmode=disable&host={}", folder.path().display());
    (folder, url, requests)
}

/// How many requests a server sends for [`MESSAGES`] messages, one after the other, to another person or to a group of the two.
async fn requests(is_group: bool) -> u64 {
    let (_folder, url, requests) = counted(&durable_database().await).await;
    let change = |config: &mut tidemark::config::Config| {
        config.storage.database_url = url.into();
        config.limits.sends_per_account_per_second = 0;
    };
    let app = Database::Postgres.start_with(change).await;
    let (ann, bob) = (app.sign_up("ann").await, app.sign_up("bob").await);
    let group = json!({"name": "walkers", "members": [bob.uid]});
    let gid = &app.post(&ann, "/api/v1/groups", group).await.ok(201)["gid"];
    let to = if is_group { json!({"group": gid}) } else { json!({"user": bob.uid}) };
    let mut device = Socket::open(&app.address, &format!("Bearer {}", ann.token)).await;
    device.begin().await;
    let mut before = 0;
    for n in 0..=MESSAGES {
        device.say(&to, n.into(), "hello").await;
        while device.next().await.expect("open")["type"] != "sent" {}
        if n == 0 {
            // The first one found out whether she may write there.
            before = requests.load(Ordering::Relaxed);
        }
    }
    requests.load(Ordering::Relaxed) - before
}

/// One call stores it, and one hint tells the other servers. After a pause the connection is tried before.
#[tokio::test(flavor = "multi_thread")]
async fn a_lone_message_costs_two_requests_and_one_after_a_pause() {
    let asked = requests(false).await;
    assert!((MESSAGES..4 * MESSAGES).contains(&asked), "{asked} requests for {MESSAGES} messages");
}

/// The group is read before: another server may have changed it.
#[tokio::test(flavor = "multi_thread")]
async fn a_lone_message_to_a_group_costs_one_request_more() {
    let asked = requests(true).await;
    assert!((2 * MESSAGES..5 * MESSAGES).contains(&asked), "{asked} requests for {MESSAGES} messages");
}
