//! `moments`: posts to 5,000 friends, against messages to a group in the same run; and what others notice of it.

use std::time::Instant;

use futures_util::future::try_join_all;
use futures_util::stream::{self, StreamExt, TryStreamExt};
use hdrhistogram::Histogram;
use tempfile::TempDir;
use tidemark_client::{Account, Http};
use tokio::time::{Duration, MissedTickBehavior, interval};

use super::Measured;
use super::fan_out::{MEMBERS, MESSAGES, deliver_to_group};
use super::send_latency::micros;
use crate::bench::Context;
use crate::bench::report::{Sample, Target};
use crate::connection::{ClientConnection, client_id, send_frame};
use crate::server::Server;
use crate::{Failure, Result, users};

/// As many as an account may have.
const FRIENDS: usize = 5_000;
/// Posts in a run, as many rows as `fan-out` writes.
const POSTS: usize = MESSAGES * MEMBERS / FRIENDS;
/// Posts without an answer at a time, as in `fan-out`.
const IN_FLIGHT: usize = 16;
/// Between two messages of somebody else, and how many there are.
const PACE: Duration = Duration::from_millis(20);
const BESIDE: usize = 300;
/// Making friends at a time.
const AT_ONCE: usize = 16;
/// Passwords of 5,000 accounts that nobody logs into need not cost much.
const CHEAP_PASSWORDS: [(&str, &str); 2] =
    [("TIDEMARK_ACCOUNTS__PASSWORD_MEMORY_KIB", "8"), ("TIDEMARK_ACCOUNTS__PASSWORD_PASSES", "1")];

pub(super) struct Moments {
    author: Account,
    friends: Vec<Account>,
    /// They are nobody's friends.
    others: [Account; 2],
    gid: u64,
    data: TempDir,
}

impl Measured for Moments {
    const NAME: &'static str = "moments";
    const ABOUT: &'static str =
        "posts to 5,000 friends, all connected, against a group; others' sends meanwhile";

    async fn prepare(context: &Context) -> Result<Self> {
        let data = context.fresh()?;
        let settings = CHEAP_PASSWORDS.map(|(name, value)| (name, value.to_owned()));
        let server = Server::start_with(&settings, 0, &context.binary, data.path()).await?;
        let http = server.http()?;
        let mut friends = users::sign_up(&http, "friend", context.scaled(FRIENDS) + 3).await?;
        let (Some(author), Some(one), Some(other)) = (friends.pop(), friends.pop(), friends.pop()) else {
            return Err(Failure::new("three accounts more were asked for"));
        };
        let authors = http.with_token(&author.token);
        let asked = friends.iter().map(|friend| authors.befriend(client_id(), friend.uid, true));
        stream::iter(asked).buffer_unordered(AT_ONCE).try_collect::<Vec<_>>().await?;
        // Who answers has few friends to be counted, unlike who asks.
        let answered = friends.iter().map(|friend| {
            let friends = http.with_token(&friend.token);
            let author = author.uid;
            async move { friends.befriend(client_id(), author, true).await }
        });
        stream::iter(answered).buffer_unordered(AT_ONCE).try_collect::<Vec<_>>().await?;
        let members: Vec<u32> = friends[1..].iter().map(|friend| friend.uid).take(MEMBERS - 1).collect();
        let gid = http.with_token(&friends[0].token).create_group("everybody", &members).await?;
        server.stop().await?;
        Ok(Moments { author, friends, others: [one, other], gid, data })
    }

    async fn measure(&mut self, context: &Context) -> Result<Vec<Sample>> {
        let members = MEMBERS.min(self.friends.len());
        let messages = context.scaled(MESSAGES);
        // Each begins with nothing that is still to be moved into the tables.
        let server = Server::start(&context.binary, self.data.path()).await?;
        let group = deliver_to_group(&server, &self.friends[..members], self.gid, messages).await?;
        server.stop().await?;
        let server = Server::start(&context.binary, self.data.path()).await?;
        // In a quick run there are fewer friends already.
        let posts = self.post_to_all(&server, POSTS).await?;
        let quiet = self.others_send(&server, context.scaled(BESIDE).max(50)).await?;
        let beside = self.beside_posts(&server, context.scaled(BESIDE).max(50)).await?;
        let memory = server.peak_memory()?;
        server.stop().await?;
        let base = micros(&quiet, 0.99);
        Ok(vec![
            Sample::new(format!("{} friends, all connected", self.friends.len()), posts, "rows/s")
                .against(format!("a group of {members}, all connected"), group)
                .target(Target::RatioAtLeast(0.7)),
            Sample::new("others' sends beside one post after another, p99", micros(&beside, 0.99), "µs")
                .against("undisturbed", base)
                .target(Target::RatioAtMost(2.0)),
            Sample::new("peak server memory", memory as f64 / f64::from(1 << 20), "MiB"),
        ])
    }
}

impl Moments {
    /// Rows a second, from the first post until the last friend has the last one.
    async fn post_to_all(&self, server: &Server, posts: usize) -> Result<f64> {
        let http = server.http()?;
        let url = http.socket_url();
        let mut inboxes = Vec::new();
        for friend in &self.friends {
            let seq = http.with_token(&friend.token).seq().await?.seq;
            let mut inbox = ClientConnection::open(&url, &friend.token).await?;
            let seq = inbox.begin_at(seq).await?;
            inboxes.push((inbox, seq));
        }
        let began = Instant::now();
        let following = inboxes.into_iter().map(|(mut inbox, seq)| {
            tokio::spawn(async move { inbox.follow(seq, posts, |_| {}).await.map(drop) })
        });
        let following: Vec<_> = following.collect();
        let authors = http.with_token(&self.author.token);
        stream::iter((0..posts).map(|_| post(&authors)))
            .buffer_unordered(IN_FLIGHT)
            .try_collect::<()>()
            .await?;
        for done in try_join_all(following).await? {
            done?;
        }
        Ok((posts * (self.friends.len() + 1)) as f64 / began.elapsed().as_secs_f64())
    }

    /// How long 50 messages a second of somebody else take to be durable, in nanoseconds.
    async fn others_send(&self, server: &Server, count: usize) -> Result<Histogram<u64>> {
        let [one, other] = &self.others;
        let mut sender = ClientConnection::open(&server.http()?.socket_url(), &one.token).await?;
        let to = format!(r#"{{"user":{}}}"#, other.uid);
        let mut times = Histogram::new(3)?;
        let mut pace = interval(PACE);
        pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
        for _ in 0..count {
            pace.tick().await;
            let frame = send_frame(client_id(), &to, &"x".repeat(200));
            let began = Instant::now();
            sender.say(frame).await?;
            sender.expect("sent").await?;
            times.record(began.elapsed().as_nanos() as u64)?;
        }
        Ok(times)
    }

    /// The same while the author posts one moment after another. Friends are not connected: their devices would take the processor from
    /// the server, which they do nowhere else.
    async fn beside_posts(&self, server: &Server, count: usize) -> Result<Histogram<u64>> {
        let authors = server.http()?.with_token(&self.author.token);
        tokio::select! {
            times = self.others_send(server, count) => times,
            failure = post_on(&authors) => Err(failure),
        }
    }
}

/// Posts one moment after another, until one fails.
async fn post_on(author: &Http) -> Failure {
    loop {
        if let Err(failure) = post(author).await {
            return failure;
        }
    }
}

async fn post(author: &Http) -> Result<()> {
    author.post_moment(client_id(), &"x".repeat(200), &[]).await?;
    Ok(())
}
