//! The ways to flood. Each is what one client does, over and over; [`flood`] does it on many connections at the same
//! time, and dials again when one is closed.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::io::AsyncWriteExt as _;
use tokio::time::{sleep, timeout};

use super::raw::{Victim, ask, frame, swallow, word};
use crate::connection::{client_id, heartbeat, send_frame};
use crate::{Failure, Result};

/// A flood ends by itself after so long, should nobody end it.
const LONGEST: Duration = Duration::from_secs(60);

/// Between two attempts of one connection that was refused or closed.
const AGAIN: Duration = Duration::from_millis(20);

/// One way to flood.
pub(super) struct Way {
    pub(super) name: &'static str,
    /// Connections at the same time.
    connections: usize,
    /// What each does until it is closed.
    act: fn(Victim) -> Act,
}

type Act = Pin<Box<dyn Future<Output = Result<()>> + Send>>;

macro_rules! way {
    ($name:literal, $connections:literal, $act:ident) => {
        Way { name: $name, connections: $connections, act: |victim| Box::pin($act(victim)) }
    };
}

/// All, in the order in which they are measured.
pub(super) const WAYS: &[Way] = &[
    way!("empty fragments", 4, empty_fragments),
    way!("pings", 4, pings),
    way!("unread ranges", 300, unread_ranges),
    way!("unread sockets", 2_000, unread_sockets),
    way!("heartbeat 0", 8, heartbeats_of_zero),
    way!("sends above the rate", 8, sends_above_the_rate),
    way!("wrong log-ins", 100, wrong_log_ins),
    way!("sign-ups", 32, sign_ups),
    way!("unknown tokens", 32, unknown_tokens),
    way!("oversize bodies", 32, oversize_bodies),
    way!("slow heads", 2_000, slow_heads),
];

/// Floods the server at `address` in the way of this name, until it is ended or too much time has passed.
pub(crate) async fn flood(name: &str, address: &str, token: &str) -> Result<()> {
    tidemark_process::allow_many_files();
    let way = WAYS.iter().find(|way| way.name == name);
    let way = way.ok_or_else(|| Failure::new(format!("there is no flood called {name}")))?;
    let victim = Victim { address: address.to_owned(), token: token.to_owned() };
    let each = (0..way.connections).map(|_| async {
        loop {
            // Being refused, cut off or closed is what is asked for.
            let _ = (way.act)(victim.clone()).await;
            sleep(AGAIN).await;
        }
    });
    let _: std::result::Result<Vec<()>, _> = timeout(LONGEST, join_all(each)).await;
    Ok(())
}

/// A message that begins and never ends.
async fn empty_fragments(victim: Victim) -> Result<()> {
    let mut stream = victim.socket().await?;
    stream.write_all(&frame(0x01, b"")).await?;
    let many = frame(0x00, b"").repeat(10_000);
    loop {
        stream.write_all(&many).await?;
    }
}

async fn pings(victim: Victim) -> Result<()> {
    let (reading, mut writing) = victim.socket().await?.into_split();
    let many = frame(0x89, &[7; 125]).repeat(1_000);
    tokio::select! {
        () = swallow(reading) => Ok(()),
        done = async { loop { writing.write_all(&many).await?; } } => done,
    }
}

async fn unread_ranges(victim: Victim) -> Result<()> {
    let mut stream = victim.dial().await?;
    let request = victim.head("GET /api/v1/range?limit=5000", &victim.token, "");
    loop {
        stream.write_all(request.as_bytes()).await?;
        sleep(Duration::from_secs(1)).await;
    }
}

async fn unread_sockets(victim: Victim) -> Result<()> {
    let mut stream = victim.socket().await?;
    loop {
        stream.write_all(&frame(0x81, heartbeat(0).as_bytes())).await?;
        sleep(Duration::from_secs(1)).await;
    }
}

async fn heartbeats_of_zero(victim: Victim) -> Result<()> {
    let (reading, mut writing) = victim.socket().await?.into_split();
    let many = frame(0x81, heartbeat(0).as_bytes()).repeat(16);
    tokio::select! {
        () = swallow(reading) => Ok(()),
        done = async { loop { writing.write_all(&many).await?; } } => done,
    }
}

async fn sends_above_the_rate(victim: Victim) -> Result<()> {
    let (reading, mut writing) = victim.socket().await?.into_split();
    let sending = async {
        loop {
            let text = send_frame(client_id(), r#"{"user":10001}"#, &"x".repeat(1_000));
            writing.write_all(&frame(0x81, text.as_bytes())).await?;
        }
    };
    tokio::select! {
        () = swallow(reading) => Ok(()),
        done = sending => done,
    }
}

async fn wrong_log_ins(victim: Victim) -> Result<()> {
    let mut stream = victim.dial().await?;
    loop {
        let body = format!(r#"{{"name":"{}","password":"a wrong password"}}"#, word());
        ask(&mut stream, &victim.post("/api/v1/sessions", &body)).await?;
    }
}

async fn sign_ups(victim: Victim) -> Result<()> {
    let mut stream = victim.dial().await?;
    loop {
        let body = format!(r#"{{"name":"{}","password":"a new password"}}"#, word());
        ask(&mut stream, &victim.post("/api/v1/accounts", &body)).await?;
    }
}

async fn unknown_tokens(victim: Victim) -> Result<()> {
    let mut stream = victim.dial().await?;
    loop {
        let token = format!("{}{}", word(), word());
        ask(&mut stream, &victim.head("GET /api/v1/me", &token, "")).await?;
    }
}

async fn oversize_bodies(victim: Victim) -> Result<()> {
    let mut stream = victim.dial().await?;
    let head = victim.head("POST /api/v1/messages/batch", &victim.token, "content-length: 67108864\r\n");
    stream.write_all(head.as_bytes()).await?;
    let part = vec![b' '; 64 << 10];
    loop {
        stream.write_all(&part).await?;
    }
}

async fn slow_heads(victim: Victim) -> Result<()> {
    let mut stream = victim.dial().await?;
    stream.write_all(b"GET /health HTTP/1.1\r\n").await?;
    loop {
        stream.write_all(b"x-slow: 1\r\n").await?;
        sleep(Duration::from_secs(1)).await;
    }
}
