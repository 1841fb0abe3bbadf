//! The ways to flood. Each is what one client does, over and over; [`flood`] does it on many connections at the same
//! time, and dials again when one is closed.

use std::fs;
use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::io::AsyncWriteExt as _;
use tokio::time::{sleep, timeout};

use super::raw::{Victim, ask, frame, repeat, swallow, word};
use crate::bench::tables;
use crate::connection::{client_id, heartbeat, send_frame};
use crate::{Failure, Result};

/// A flood ends by itself after so long, should nobody end it.
const LONGEST: Duration = Duration::from_secs(60);

/// Between two attempts of one connection that was refused or closed.
const AGAIN: Duration = Duration::from_millis(20);

/// One way to flood.
pub(super) struct FloodWay {
    pub(super) name: &'static str,
    /// Connections at the same time.
    connections: usize,
    /// The work of each until it is closed.
    act: fn(Victim) -> Act,
}

type Act = Pin<Box<dyn Future<Output = Result<()>> + Send>>;

macro_rules! way {
    ($name:literal, $connections:literal, $act:ident) => {
        FloodWay { name: $name, connections: $connections, act: |victim| Box::pin($act(victim)) }
    };
}

/// All, in the order in which they are measured.
pub(super) const WAYS: &[FloodWay] = &[
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
    way!("table ranges", 16, table_ranges),
    way!("table puts", 16, table_puts),
    way!("group requests with strangers", 8, groups_of_strangers),
    way!("moments to all friends", 4, moments),
    way!("log-ins with a known device", 16, known_log_ins),
    way!("searches", 16, searches),
    way!("exports", 8, exports),
];

/// Ten addresses at the log-in of one person.
pub(super) const AT_ONE_LOG_IN: FloodWay = way!("log-ins from ten addresses", 100, log_ins_of_one);

/// Addresses of that flood. The others come from one.
const ADDRESSES: usize = 10;

/// The last number of the first of them.
const FIRST_ADDRESS: u8 = 2;

/// Floods in the way of this name whom the file names, until it is ended or too much time has passed.
pub(crate) async fn flood(name: &str, file: &Path) -> Result<()> {
    tidemark_process::allow_many_files();
    let way = WAYS.iter().chain([&AT_ONE_LOG_IN]).find(|way| way.name == name);
    let way = way.ok_or_else(|| Failure::new(format!("there is no flood called {name}")))?;
    let victim: Victim = serde_json::from_slice(&fs::read(file)?)?;
    let addresses = if way.name == AT_ONE_LOG_IN.name { ADDRESSES } else { 1 };
    let each = (0..way.connections).map(|connection| {
        let victim = Victim { from: FIRST_ADDRESS + (connection % addresses) as u8, ..victim.clone() };
        again_and_again(way, victim)
    });
    let _: std::result::Result<Vec<()>, _> = timeout(LONGEST, join_all(each)).await;
    Ok(())
}

/// One connection after the other.
async fn again_and_again(way: &FloodWay, victim: Victim) {
    loop {
        // Being refused, cut off or closed is what is asked for.
        let _ = (way.act)(victim.clone()).await;
        sleep(AGAIN).await;
    }
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

/// Rows of each page, which is as many as one has.
const ROWS: usize = 5_000;

async fn table_ranges(victim: Victim) -> Result<()> {
    let request = victim.table_request("GetRange", &tables::range(&tables::first(0), 1, ROWS))?;
    repeat(victim.dial_tables().await?, || request.clone()).await
}

async fn table_puts(victim: Victim) -> Result<()> {
    let request = victim.table_request("PutRow", &tables::put(&tables::first(1), 200))?;
    repeat(victim.dial_tables().await?, || request.clone()).await
}

async fn groups_of_strangers(victim: Victim) -> Result<()> {
    let body = format!(r#"{{"name":"strangers","members":{:?}}}"#, victim.strangers);
    let request = victim.post_as("/api/v1/groups", &body);
    repeat(victim.dial().await?, || request.clone().into_bytes()).await
}

async fn moments(victim: Victim) -> Result<()> {
    let request = || {
        let body = format!(r#"{{"client_id":"{}","text":"low tide is at ten"}}"#, client_id());
        victim.post_as("/api/v1/moments", &body).into_bytes()
    };
    repeat(victim.dial().await?, request).await
}

async fn known_log_ins(victim: Victim) -> Result<()> {
    let body = victim.login.body(&victim.login.password);
    let request = victim.post("/api/v1/sessions", &body);
    repeat(victim.dial().await?, || request.clone().into_bytes()).await
}

async fn searches(victim: Victim) -> Result<()> {
    let request = victim.head("GET /api/v1/users?name=crowd", &victim.token, "");
    repeat(victim.dial().await?, || request.clone().into_bytes()).await
}

async fn exports(victim: Victim) -> Result<()> {
    let request = victim.head("GET /api/v1/me/data", &victim.token, "");
    repeat(victim.dial().await?, || request.clone().into_bytes()).await
}

/// Wrong passwords for one person, and for nobody by turns, on no device that is known.
async fn log_ins_of_one(victim: Victim) -> Result<()> {
    let mut stream = victim.dial().await?;
    loop {
        for name in [&victim.person.name, &word()] {
            let body = format!(r#"{{"name":"{name}","password":"a wrong password"}}"#);
            ask(&mut stream, &victim.post("/api/v1/sessions", &body)).await?;
        }
    }
}
