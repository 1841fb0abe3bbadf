//! `fan-out`: one sender into a group of 500, all connected: rows a second, durable and delivered.

use futures_util::FutureExt as _;
use tempfile::TempDir;
use tidemark_client::Account;

use super::Measured;
use super::send::send;
use crate::bench::baseline::sqlite::{BareSqlite, Message};
use crate::bench::report::{Sample, Target};
use crate::bench::{Context, peak_memory, rate};
use crate::connection::ClientConnection;
use crate::server::Server;
use crate::{Result, users};

const MEMBERS: usize = 500;
const IN_FLIGHT: usize = 16;
/// Messages in a run; each becomes a row for every member.
const MESSAGES: usize = 400;

pub(super) struct FanOut {
    server: Server,
    accounts: Vec<Account>,
    gid: u64,
    data: TempDir,
}

impl Measured for FanOut {
    const NAME: &'static str = "fan-out";
    const ABOUT: &'static str = "one sender with 16 in flight, a group of 500, all connected";

    async fn prepare(context: &Context) -> Result<Self> {
        let data = context.fresh()?;
        let accounts = users::installed(&context.binary, data.path(), "fan", MEMBERS).await?;
        let server = Server::start(&context.binary, data.path()).await?;
        let http = server.http()?;
        let others: Vec<u32> = accounts[1..].iter().map(|account| account.uid).collect();
        let gid = http.with_token(&accounts[0].token).create_group("everybody", &others).await?;
        // The row that tells of the group may come after the answer (I5), and must not be counted later.
        for account in &accounts {
            ClientConnection::open(&http.socket_url(), &account.token).await?.first_row().await?;
        }
        Ok(FanOut { server, accounts, gid, data })
    }

    async fn measure(&mut self, context: &Context) -> Result<Vec<Sample>> {
        let messages = context.scaled(MESSAGES);
        let ours = self.deliver(messages).await?;
        let bare = self.bare(messages)?;
        Ok(vec![
            Sample::new("a group of 500, all connected", ours, "rows/s")
                .against("bare SQLite loop", bare)
                .target(Target::RatioAtLeast(0.5)),
            peak_memory("peak server memory", &self.server)?,
        ])
    }
}

impl FanOut {
    /// Rows a second, from the first send until the last member has the last row.
    async fn deliver(&self, messages: usize) -> Result<f64> {
        let http = self.server.http()?;
        let url = http.socket_url();
        let mut inboxes = Vec::new();
        for account in &self.accounts[1..] {
            let seq = http.with_token(&account.token).seq().await?.seq;
            let mut inbox = ClientConnection::open(&url, &account.token).await?;
            let seq = inbox.begin_at(seq).await?;
            inboxes.push((inbox, seq));
        }
        let outbox = ClientConnection::open(&url, &self.accounts[0].token).await?;
        let to = format!(r#"{{"group":{}}}"#, self.gid);
        let following = inboxes.into_iter().map(|(mut inbox, seq)| {
            async move { inbox.follow(seq, messages, |_| {}).await.map(drop) }.boxed()
        });
        let tasks = following.chain([send(outbox, to, IN_FLIGHT, messages).boxed()]);
        rate(messages * self.accounts.len(), tasks).await
    }

    fn bare(&self, messages: usize) -> Result<f64> {
        let folder = tempfile::tempdir_in(self.data.path())?;
        let receivers: Vec<u32> = self.accounts.iter().map(|account| account.uid).collect();
        let message =
            || Message { sender: receivers[0], receivers: receivers.clone(), group: Some(self.gid) };
        let messages: Vec<Message> = std::iter::repeat_with(message).take(messages).collect();
        let seconds = BareSqlite::open(folder.path())?.store(&messages, IN_FLIGHT)?;
        Ok((messages.len() * MEMBERS) as f64 / seconds)
    }
}
