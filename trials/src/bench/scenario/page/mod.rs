//! `page`: what people wait for in the browser. Chromium, headless, with the limits that the program has by itself lifted for the
//! people who fill the inbox.

mod bare;
mod browser;

use std::time::Instant;

use futures_util::future::try_join_all;
use serde_json::json;
use tempfile::TempDir;
use tidemark_client::Account;

use self::bare::BarePage;
use self::browser::{Driver, Window};
use super::Measured;
use super::send::send;
use crate::bench::Context;
use crate::bench::report::{Sample, Target};
use crate::connection::{ClientConnection, client_id, send_frame};
use crate::server::Server;
use crate::{Failure, Result, users};

/// Messages in the browser's database before a reload.
const CACHED: [usize; 2] = [3_000, 100_000];
/// People who wrote them, the same number each.
const WRITERS: usize = 20;
/// Reloads of which the median is told.
const RELOADS: usize = 9;
/// Messages from one window to the other of which median and tail are told.
const PRESSES: usize = 60;
/// Messages that are written without a connection.
const OFFLINE: usize = 100;

const WATCH: &str = include_str!("watch.js");
const PASSWORD: &str = "a password for a trial";
const ENTER: &str = "\u{E007}";

pub(super) struct BrowserPage {
    server: Server,
    driver: Driver,
    /// Accounts made so far: each run has people of its own.
    people: usize,
    _data: TempDir,
}

impl Measured for BrowserPage {
    const NAME: &'static str = "page";
    const ABOUT: &'static str =
        "in Chromium: a reload, Enter to the other's screen, 100 messages written offline";

    async fn prepare(context: &Context) -> Result<Self> {
        let data = context.fresh()?;
        let server = Server::start(&context.binary, data.path()).await?;
        Ok(BrowserPage { server, driver: Driver::start().await?, people: 0, _data: data })
    }

    async fn measure(&mut self, context: &Context) -> Result<Vec<Sample>> {
        let mut samples = Vec::new();
        for (cached, most) in CACHED.into_iter().zip([300.0, 500.0]) {
            let times = self.reloads(context.scaled(cached)).await?;
            let metric = format!("usable after a reload, {cached} messages cached");
            samples.push(Sample::new(metric, quantile(&times, 0.5), "ms").target(Target::AtMost(most)));
        }
        let (ours, bare) = (self.presses().await?, bare_presses(&self.driver).await?);
        let sample = |what, share| {
            Sample::new(format!("Enter to the other's screen, {what}"), quantile(&ours, share), "ms")
                .against("a bare page that echoes", quantile(&bare, share))
        };
        samples.push(sample("median", 0.5).target(Target::RatioAtMost(3.0)));
        samples.push(sample("p90", 0.9));
        let (page, api) = self.back_online().await?;
        let back = Sample::new("100 messages written offline, from the connection's return", page, "ms");
        samples.push(back.against("one batch over the WebSocket", api).target(Target::AtMost(2_000.0)));
        Ok(samples)
    }
}

impl BrowserPage {
    async fn accounts(&mut self, count: usize) -> Result<Vec<Account>> {
        self.people += 1;
        users::sign_up(&self.server.http()?, &format!("page-{}", self.people), count).await
    }

    /// A window in which the person is logged in and up to date.
    async fn logged_in(&self, account: &Account) -> Result<Window> {
        let window = self.driver.window(WATCH).await?;
        window.goto(&format!("{}/login", self.server.address())).await?;
        window.until("document.getElementById('sign-in')").await?;
        window.element("#name").await?.send_keys(&account.name).await?;
        window.element("#password").await?.send_keys(&format!("{PASSWORD}{ENTER}")).await?;
        window.until("document.getElementById('app') && document.body.dataset.phase === 'open'").await?;
        Ok(window)
    }

    /// Milliseconds from a reload until the page can be used, with so many messages in the browser's database.
    async fn reloads(&mut self, cached: usize) -> Result<Vec<f64>> {
        let accounts = self.accounts(WRITERS + 1).await?;
        let (reader, writers) = accounts.split_first().ok_or_else(|| Failure::new("nobody"))?;
        let window = self.logged_in(reader).await?;
        let (to, url) = (json!({ "user": reader.uid }).to_string(), self.server.http()?.socket_url());
        let each = cached / WRITERS;
        try_join_all(writers.iter().map(|writer| async {
            let connection = ClientConnection::open(&url, &writer.token).await?;
            send(connection, to.clone(), 16, each).await
        }))
        .await?;
        let count = "const done = arguments[0];
            indexedDB.databases().then(([{ name }]) => {
              const opened = indexedDB.open(name);
              opened.onsuccess = () => {
                const counted = opened.result.transaction('rows').objectStore('rows').count();
                counted.onsuccess = () => { opened.result.close(); done(counted.result); };
              };
            });";
        let began = Instant::now();
        while window.run_async(count).await?.as_u64().unwrap_or_default() < (each * WRITERS) as u64 {
            if began.elapsed().as_secs() > 300 {
                return Err(Failure::new("the page does not keep all messages"));
            }
        }
        window.goto(&format!("{}/c/u:{}", self.server.address(), writers[0].uid)).await?;
        window.number("window.usable").await?;
        let mut times = Vec::new();
        for _ in 0..RELOADS {
            window.reload().await?;
            times.push(window.number("window.usable").await?);
        }
        Ok(times)
    }

    /// Milliseconds from Enter in one window to the next frame of the other.
    async fn presses(&mut self) -> Result<Vec<f64>> {
        let accounts = self.accounts(2).await?;
        let (ann, ben) = (self.logged_in(&accounts[0]).await?, self.logged_in(&accounts[1]).await?);
        for (window, other) in [(&ann, &accounts[1]), (&ben, &accounts[0])] {
            window.goto(&format!("{}/c/u:{}", self.server.address(), other.uid)).await?;
            window.until("document.getElementById('app') && document.body.dataset.phase === 'open'").await?;
        }
        pressed(&ann, &ben).await
    }

    /// Milliseconds until 100 messages that were written offline are stored, from the return of the connection: the page's,
    /// and those of a program that sends them in one go.
    async fn back_online(&mut self) -> Result<(f64, f64)> {
        let accounts = self.accounts(2).await?;
        let window = self.logged_in(&accounts[0]).await?;
        window.goto(&format!("{}/c/u:{}", self.server.address(), accounts[1].uid)).await?;
        window.until("document.getElementById('app') && document.body.dataset.phase === 'open'").await?;
        window.offline(true).await?;
        let box_ = window.element("#text").await?;
        for n in 0..OFFLINE {
            box_.send_keys(&format!("written offline {n}{ENTER}")).await?;
        }
        let states = "[...document.querySelectorAll('.own .state')].filter((state) => state.ariaLabel === 'Waiting').length";
        window.until(&format!("{states} > 0")).await?;
        let stored = "window.returned = null;
            const begun = performance.now();
            const look = () => {
              const waits = document.querySelector('.own [aria-label=Waiting]');
              if (waits) requestAnimationFrame(look); else window.returned = performance.now() - begun;
            };
            addEventListener('online', () => requestAnimationFrame(look), { once: true });";
        window.run(stored).await?;
        window.offline(false).await?;
        let page = window.number("window.returned").await?;
        let stored = self.server.http()?.with_token(&accounts[1].token).seq().await?.seq;
        if stored < OFFLINE as u64 {
            return Err(Failure::new(format!("{stored} of the messages written offline are stored")));
        }
        let began = Instant::now();
        let url = self.server.http()?.socket_url();
        let mut connection = ClientConnection::open(&url, &accounts[1].token).await?;
        let to = json!({ "user": accounts[0].uid }).to_string();
        for n in 0..OFFLINE {
            connection.feed(send_frame(client_id(), &to, &format!("written offline {n}"))).await?;
        }
        connection.flush().await?;
        for _ in 0..OFFLINE {
            connection.expect("sent").await?;
        }
        Ok((page, began.elapsed().as_secs_f64() * 1_000.0))
    }
}

async fn bare_presses(driver: &Driver) -> Result<Vec<f64>> {
    let bare = BarePage::start().await?;
    let (ann, ben) = (driver.window(WATCH).await?, driver.window(WATCH).await?);
    for window in [&ann, &ben] {
        window.goto(&bare.url).await?;
        window.until("window.isOpen").await?;
    }
    pressed(&ann, &ben).await
}

/// From Enter in one window to the next frame of the other, message after message. Each is typed at once and much faster than people
/// type, so Enter waits until neither window has anything else to do.
async fn pressed(from: &Window, to: &Window) -> Result<Vec<f64>> {
    let text = from.element("#text").await?;
    let mut times = Vec::new();
    for n in 0..PRESSES {
        let words = format!("message number {n}.");
        to.run(&format!("window.await({})", json!(words))).await?;
        text.send_keys(&words).await?;
        from.run_async("window.rest(arguments[0])").await?;
        to.run_async("window.rest(arguments[0])").await?;
        text.send_keys(ENTER).await?;
        times.push(to.number("window.shown").await? - from.number("window.pressed").await?);
    }
    Ok(times)
}

fn quantile(times: &[f64], share: f64) -> f64 {
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[((sorted.len() - 1) as f64 * share).round() as usize]
}
