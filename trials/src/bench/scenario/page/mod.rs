//! `page`: what people wait for in the browser. Chromium, headless, with the limits that the program has by itself lifted for the
//! people who fill the inbox.

mod bare;
mod browser;
mod picture;
mod slow;

use std::time::Instant;

use futures_util::future::try_join_all;
use serde_json::json;
use tempfile::TempDir;
use tidemark_client::Account;
use tidemark_test_support::gate::Gate;

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
/// Conversations of somebody who has many.
const CONVERSATIONS: usize = 200;
/// Messages that come while somebody reads further up.
const MEANWHILE: usize = 10_000;
/// Milliseconds of two frames.
const TWO_FRAMES: f64 = 2_000.0 / 60.0;

const WATCH: &str = include_str!("watch.js");
const PASSWORD: &str = "a password for a trial";
const ENTER: &str = "\u{E007}";
/// Whether the page is connected, and in step.
const CONNECTED: &str = "document.getElementById('app') && document.body.dataset.phase === 'open'";
/// Whether somebody reads further up in the open conversation.
const FURTHER_UP: &str = "document.getElementById('jump').checkVisibility()";

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
        "in Chromium: a reload, a slow line, Enter to both screens, a picture, messages written offline";

    async fn prepare(context: &Context) -> Result<Self> {
        let data = context.fresh()?;
        let server = Server::start(&context.binary, data.path()).await?;
        Ok(BrowserPage { server, driver: Driver::start().await?, people: 0, _data: data })
    }

    async fn measure(&mut self, context: &Context) -> Result<Vec<Sample>> {
        let mut samples = Vec::new();
        for (cached, most) in CACHED.into_iter().zip([300.0, 500.0]) {
            let times = self.reloads(context.scaled(cached), false).await?;
            let metric = format!("usable after a reload, {cached} messages cached");
            samples.push(Sample::new(metric, quantile(&times, 0.5), "ms").target(Target::AtMost(most)));
        }
        let times = self.reloads(context.scaled(CACHED[0]), true).await?;
        let metric = format!("usable after a reload, {} messages cached, the server hangs", CACHED[0]);
        samples.push(Sample::new(metric, quantile(&times, 0.5), "ms").target(Target::AtMost(400.0)));
        samples.extend(slow::measure(self, context).await?);
        let ((_, ours), (_, bare)) = (self.presses(1).await?, bare_presses(&self.driver).await?);
        let sample = |what, share| {
            Sample::new(format!("Enter to the other's screen, {what}"), quantile(&ours, share), "ms")
                .against("a bare page that echoes", quantile(&bare, share))
        };
        samples.push(sample("median", 0.5).target(Target::RatioAtMost(3.0)));
        samples.push(sample("p90", 0.9));
        let (own, other) = self.presses(context.scaled(CONVERSATIONS)).await?;
        let metric = format!("Enter to the own screen, {CONVERSATIONS} conversations");
        let sample = |what, share| Sample::new(format!("{metric}, {what}"), quantile(&own, share), "ms");
        let median = sample("median", 0.5).against("the other's screen", quantile(&other, 0.5));
        samples.push(median.target(Target::RatioAtMost(1.0)));
        samples.push(sample("p90", 0.9).target(Target::AtMost(TWO_FRAMES)));
        samples.extend(picture::measure(self, context).await?);
        let rows = self.rows_in_the_document(context.scaled(MEANWHILE)).await?;
        let metric = "rows in the document, 10,000 came while further up";
        samples.push(Sample::new(metric, rows, "rows").target(Target::AtMost(300.0)).at_worst());
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

    /// A person, and so many others who have each sent the person so many messages.
    async fn told(&mut self, others: usize, each: usize) -> Result<(Account, Vec<Account>)> {
        let mut others = self.accounts(others + 1).await?;
        let reader = others.remove(0);
        self.tell(&reader, &others, each).await?;
        Ok((reader, others))
    }

    /// Each of the writers sends the reader so many messages.
    async fn tell(&self, reader: &Account, writers: &[Account], each: usize) -> Result<()> {
        let (to, url) = (json!({ "user": reader.uid }).to_string(), self.server.http()?.socket_url());
        let sends = writers.iter().map(|writer| async {
            let connection = ClientConnection::open(&url, &writer.token).await?;
            send(connection, to.clone(), 16, each).await
        });
        try_join_all(sends).await.map(drop)
    }

    /// An address of the page.
    fn at(&self, path: &str) -> String {
        format!("{}{path}", self.server.address())
    }

    /// A window in which the person is logged in and up to date.
    async fn logged_in(&self, account: &Account) -> Result<Window> {
        self.logged_in_at(self.server.address(), account).await
    }

    /// The same, where the window finds the server at another address.
    async fn logged_in_at(&self, entrance: &str, account: &Account) -> Result<Window> {
        let window = self.driver.window(WATCH).await?;
        fill_card(&window, entrance, account).await?;
        window.element("#password").await?.send_keys(ENTER).await?;
        window.until(CONNECTED).await?;
        Ok(window)
    }

    /// Milliseconds from a reload until the page can be used, with so many messages in the browser's database; with a server that is there,
    /// or that takes requests and answers none (`hangs`).
    async fn reloads(&mut self, cached: usize, hangs: bool) -> Result<Vec<f64>> {
        let accounts = self.accounts(WRITERS + 1).await?;
        let (reader, writers) = accounts.split_first().ok_or_else(|| Failure::new("nobody"))?;
        let gate = Gate::before(self.server.host()).await;
        let entrance =
            if hangs { format!("http://{}", gate.address()) } else { self.server.address().to_owned() };
        let window = self.logged_in_at(&entrance, reader).await?;
        let each = cached / WRITERS;
        self.tell(reader, writers, each).await?;
        kept(&window, each * WRITERS).await?;
        window.goto(&format!("{entrance}/c/u:{}", writers[0].uid)).await?;
        window.number("window.usable").await?;
        window.until("navigator.serviceWorker.controller").await?;
        let mut times = Vec::new();
        for _ in 0..RELOADS {
            gate.hold_answers(hangs);
            window.reload().await?;
            times.push(window.number("window.usable").await?);
            gate.hold_answers(false);
            window.until(CONNECTED).await?;
        }
        window.close().await?;
        Ok(times)
    }

    /// Milliseconds from Enter in the window of somebody with so many conversations to the next frame there, and to that of the other person.
    async fn presses(&mut self, conversations: usize) -> Result<(Vec<f64>, Vec<f64>)> {
        let (ann, others) = self.told(conversations, 1).await?;
        let windows = (self.in_talk(&ann, &others[0]).await?, self.in_talk(&others[0], &ann).await?);
        pressed(windows.0, windows.1).await
    }

    /// A window in which somebody is logged in, and in the conversation with this person.
    async fn in_talk(&self, person: &Account, other: &Account) -> Result<Window> {
        let window = self.logged_in(person).await?;
        window.goto(&self.at(&format!("/c/u:{}", other.uid))).await?;
        window.until(CONNECTED).await?;
        window.number("window.usable").await?;
        Ok(window)
    }

    /// The most rows that the document ever has while so many messages come to somebody who reads further up.
    async fn rows_in_the_document(&mut self, messages: usize) -> Result<f64> {
        let (reader, writers) = self.told(1, 150).await?;
        let window = self.logged_in(&reader).await?;
        // It opens at the first of those that are unread.
        window.goto(&self.at(&format!("/c/u:{}", writers[0].uid))).await?;
        window.until(FURTHER_UP).await?;
        window.run("document.getElementById('jump').click()").await?;
        window.until(&format!("!{FURTHER_UP}")).await?;
        window.until(&format!("(document.getElementById('log').scrollTop -= 300, {FURTHER_UP})")).await?;
        let watch = "const log = document.getElementById('log'), look = () => { window.most = Math.max(window.most, log.children.length); };
            window.most = 0;
            look();
            new MutationObserver(look).observe(log, { childList: true });";
        window.run(watch).await?;
        self.tell(&reader, &writers, messages).await?;
        kept(&window, messages).await?;
        window.run_async("window.rest(arguments[0])").await?;
        let most = window.number("window.most").await?;
        window.close().await?;
        Ok(most)
    }

    /// Milliseconds until 100 messages that were written offline are stored, from the return of the connection: the page's,
    /// and those of a program that sends them in one go.
    async fn back_online(&mut self) -> Result<(f64, f64)> {
        let accounts = self.accounts(2).await?;
        let window = self.logged_in(&accounts[0]).await?;
        window.goto(&self.at(&format!("/c/u:{}", accounts[1].uid))).await?;
        window.until(CONNECTED).await?;
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
        window.close().await?;
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

/// Types name and password into the card.
async fn fill_card(window: &Window, entrance: &str, account: &Account) -> Result<()> {
    window.goto(&format!("{entrance}/login")).await?;
    window.until("document.getElementById('sign-in')").await?;
    window.element("#name").await?.send_keys(&account.name).await?;
    window.element("#password").await?.send_keys(PASSWORD).await
}

/// Waits until the browser has stored so many rows.
async fn kept(window: &Window, rows: usize) -> Result<()> {
    let count = "const done = arguments[0];
        indexedDB.databases().then(([{ name }]) => {
          const opened = indexedDB.open(name);
          opened.onsuccess = () => {
            const counted = opened.result.transaction('rows').objectStore('rows').count();
            counted.onsuccess = () => { opened.result.close(); done(counted.result); };
          };
        });";
    let began = Instant::now();
    while window.run_async(count).await?.as_u64().unwrap_or_default() < rows as u64 {
        if began.elapsed().as_secs() > 300 {
            return Err(Failure::new("the page does not keep all messages"));
        }
    }
    Ok(())
}

async fn bare_presses(driver: &Driver) -> Result<(Vec<f64>, Vec<f64>)> {
    let bare = BarePage::start().await?;
    let (ann, ben) = (driver.window(WATCH).await?, driver.window(WATCH).await?);
    for window in [&ann, &ben] {
        window.goto(&bare.url).await?;
        window.until("window.isOpen").await?;
    }
    pressed(ann, ben).await
}

/// From Enter in one window to the next frame there, and of the other, message after message. Each is typed at once and much faster than
/// people type, so Enter waits until neither window has anything else to do.
async fn pressed(from: Window, to: Window) -> Result<(Vec<f64>, Vec<f64>)> {
    let text = from.element("#text").await?;
    let (mut own, mut other) = (Vec::new(), Vec::new());
    for n in 0..PRESSES {
        let words = format!("message number {n}.");
        for window in [&from, &to] {
            window.run(&format!("window.await({})", json!(words))).await?;
        }
        text.send_keys(&words).await?;
        from.run_async("window.rest(arguments[0])").await?;
        to.run_async("window.rest(arguments[0])").await?;
        text.send_keys(ENTER).await?;
        let at = from.number("window.pressed").await?;
        own.push(from.number("window.shown").await? - at);
        other.push(to.number("window.shown").await? - at);
    }
    from.close().await?;
    to.close().await?;
    Ok((own, other))
}

fn quantile(times: &[f64], share: f64) -> f64 {
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[((sorted.len() - 1) as f64 * share).round() as usize]
}
