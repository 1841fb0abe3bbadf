//! A rolling restart: three servers are stopped and started again, one after the other, under load. Nothing may be refused but with
//! "try again", nothing lost, nothing stored twice.
//!
//! Half of the load comes over the addresses of all servers, by the library's client, which goes on with another one when its
//! server stops. The other half are plain calls through HAProxy, each of whose refusals is looked at.

use std::collections::HashMap;
use std::fmt;
use std::path::Path;

use indicatif::ProgressBar;
use rand::SeedableRng;
use rand::rngs::StdRng;
use tidemark_client::{Account, Draft, Error, Http, Recipient};
use tidemark_test_support::servers::haproxy::Proxy;
use tidemark_test_support::until::until;
use tokio::sync::watch;

use super::crowd::{Crowd, Summary};
use super::person::everything;
use crate::servers::Servers;
use crate::{Failure, Result, users};

/// As operators copy it.
const PROXY: &str = include_str!("../../../docs/operating/haproxy.cfg");
const SERVERS: usize = 3;
const CALLERS: usize = 4;

/// See the module.
#[derive(Clone, Debug)]
pub struct RollingRun {
    /// Decides who writes to whom.
    pub seed: u64,
    /// How often each server is restarted.
    pub rounds: usize,
}

/// The counts of a run.
#[derive(Clone, Copy, Debug)]
pub struct RollingSummary {
    /// Servers that were stopped and started again.
    pub restarts: usize,
    /// Messages that were acknowledged over several addresses.
    pub acknowledged: usize,
    /// Rows of those that were compared.
    pub rows: usize,
    /// Messages that were acknowledged through the proxy.
    pub called: usize,
    /// How often one of the latter had to be sent again.
    pub again: usize,
}

impl fmt::Display for RollingSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RollingSummary { restarts, acknowledged, rows, called, again } = self;
        write!(
            f,
            "{restarts} restarts; over several addresses {acknowledged} messages, {rows} rows compared; through HAProxy {called} messages, \
             {again} of them sent again"
        )
    }
}

impl RollingRun {
    /// Carries it out; logs go into `folder`.
    ///
    /// # Errors
    /// When a promise broke, or when the run itself could not go on.
    pub async fn run(&self, binary: &Path, folder: &Path) -> Result<RollingSummary> {
        let mut random = StdRng::seed_from_u64(self.seed);
        let mut servers = Servers::start(binary, folder, SERVERS).await?;
        let first = servers.server(0)?.http()?;
        let callers = users::sign_up(&first, "caller", CALLERS).await?;
        let mut addresses = Vec::new();
        for at in 0..SERVERS {
            addresses.push(servers.server(at)?.address().replace("http://", ""));
        }
        let proxy = tokio::task::spawn_blocking(move || Proxy::before(PROXY, &addresses)).await?;
        let (stop, stopped) = watch::channel(false);
        let crowd = Crowd::begin(&first, &mut random, |_| servers.http()).await?;
        let calling: Vec<_> = callers
            .iter()
            .zip(callers.iter().cycle().skip(1))
            .map(|(from, to)| tokio::spawn(call(proxy.url(), from.clone(), to.uid, stopped.clone())))
            .collect();

        for at in (0..SERVERS).cycle().take(SERVERS * self.rounds) {
            let name = format!("chat-{}", at + 1);
            let is = async |status: &str| {
                until(&format!("{name} is {status}"), async || proxy.status(&name) == status).await;
            };
            is("UP").await;
            servers.stop(at).await?;
            is("DOWN").await;
            servers.run(at).await?;
            is("UP").await;
        }

        stop.send_replace(true);
        let mut sent = Vec::new();
        for (caller, calling) in callers.iter().zip(calling) {
            sent.push((caller, calling.await??));
        }
        compare_calls(&first, &sent).await?;
        let Summary { acknowledged, rows, .. } =
            crowd.end(SERVERS * self.rounds, &ProgressBar::hidden()).await?;
        servers.stop_all().await?;
        Ok(RollingSummary {
            restarts: SERVERS * self.rounds,
            acknowledged,
            rows,
            called: sent.iter().map(|(_, calls)| calls.acknowledged.len()).sum(),
            again: sent.iter().map(|(_, calls)| calls.again).sum(),
        })
    }
}

/// The messages of one caller.
struct Calls {
    to: u32,
    /// Text and id of each message.
    acknowledged: Vec<(String, u64)>,
    again: usize,
}

/// Sends one message after the other through the proxy, each until it is acknowledged.
async fn call(proxy: String, from: Account, to: u32, stopped: watch::Receiver<bool>) -> Result<Calls> {
    let http = Http::new(&proxy)?.with_token(&from.token);
    let mut calls = Calls { to, acknowledged: Vec::new(), again: 0 };
    while !*stopped.borrow() {
        let text = format!("{} called {}", from.uid, calls.acknowledged.len());
        let draft = Draft::text(Recipient::User(to), &text);
        loop {
            match http.send(&draft).await {
                Ok(sent) => break calls.acknowledged.push((text, sent.message_id)),
                Err(Error::Refused(problem)) if problem.status == 503 && problem.retryable => {
                    calls.again += 1
                }
                Err(other) => return Err(Failure::new(format!("{text}: not \"try again\": {other}"))),
            }
        }
    }
    Ok(calls)
}

/// Each message stands once with its sender, under the id of the answer, and once with its receiver; and nothing else does.
async fn compare_calls(server: &Http, sent: &[(&Account, Calls)]) -> Result<()> {
    for (from, calls) in sent {
        let to = sent.iter().find(|(account, _)| account.uid == calls.to);
        let (to, _) = to.ok_or_else(|| Failure::new("a receiver is missing"))?;
        for account in [from, to] {
            let rows = everything(&server.with_token(&account.token)).await?;
            let mut stored: HashMap<String, Vec<u64>> = HashMap::new();
            for row in rows.iter().filter(|row| row.sender == from.uid) {
                stored.entry(row.text().unwrap_or_default()).or_default().push(row.message_id);
            }
            for (text, id) in &calls.acknowledged {
                let is_right = match stored.remove(text).as_deref() {
                    Some([one]) => account.uid != from.uid || one == id,
                    _ => false,
                };
                if !is_right {
                    return Err(Failure::new(format!(
                        "{text}, acknowledged as {id}: wrong with {}",
                        account.uid
                    )));
                }
            }
            if let Some(text) = stored.keys().next() {
                return Err(Failure::new(format!(
                    "{text} was never acknowledged, and is with {}",
                    account.uid
                )));
            }
        }
    }
    Ok(())
}
