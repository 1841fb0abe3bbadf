//! What people wait for on a slow line: the list after a log-in, a conversation that is opened for the first time, and all that a page
//! fetches before its first message.

use serde_json::{Value, json};
use tidemark_client::Account;

use super::browser::Window;
use super::{BrowserPage, CONVERSATIONS, ENTER, PASSWORD, WATCH, fill_card, quantile};
use crate::bench::Context;
use crate::bench::report::{Sample, Target};
use crate::{Failure, Result};

/// Conversations that are opened, and log-ins, of which the median is told.
const TIMES: usize = 5;
/// Unread messages of a conversation.
const UNREAD: usize = 1_500;

/// Clicks the conversation `ID` in the list, and notes when its header and its messages are there.
const OPEN: &str = "const link = document.querySelector('#list a[href=\"/c/ID\"]');
    const title = link.querySelector('.title').textContent, of = (id) => document.getElementById(id);
    window.header = window.messages = null;
    note('header', () => of('open').checkVisibility() && of('pane-title').textContent === title);
    note('messages', () => document.querySelector('#log .words'));
    window.clicked = performance.now();
    link.click()";

/// Of all that was asked for before the first message: kilobytes of scripts and styles, as they were sent; how many requests; how often
/// scripts or styles were asked for only when others had come.
const FETCHED: &str = "const before = performance.getEntriesByType('resource').filter(({ startTime }) => startTime < window.usable);
    const files = before.filter(({ name }) => /[.](js|css)$/.test(name));
    let waves = 0;
    for (let rest = files; rest.length; waves++) {
      const first = Math.min(...rest.map(({ responseEnd }) => responseEnd));
      rest = rest.filter(({ startTime }) => startTime >= first);
    }
    const bytes = files.reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0);
    // The page itself and its WebSocket are none of those.
    return [bytes / 1_000, before.filter(({ transferSize }) => transferSize).length + 2, waves]";

pub(super) async fn measure(page: &mut BrowserPage, context: &Context) -> Result<Vec<Sample>> {
    let at_most =
        |metric: &str, value, unit, most| Sample::new(metric, value, unit).target(Target::AtMost(most));
    let (header, messages) = openings(page, context.scaled(UNREAD)).await?;
    let lists = log_ins(page, context.scaled(CONVERSATIONS)).await?;
    let [kilobytes, requests, waves] = fetched(page).await?;
    Ok(vec![
        at_most("slow line, 1,500 unread: to the header", quantile(&header, 0.5), "ms", 50.0),
        at_most("slow line, 1,500 unread: to the messages", quantile(&messages, 0.5), "ms", 600.0),
        at_most("slow line, log in to the list of 200", quantile(&lists, 0.5), "ms", 1_500.0),
        at_most("before the first message: scripts and styles", kilobytes, "KB", 150.0),
        at_most("before the first message: requests", requests, "requests", 15.0),
        at_most("before the first message: waves of scripts", waves, "waves", 2.0),
    ])
}

/// Milliseconds from the click on a conversation until its header, and its messages, are there.
async fn openings(page: &mut BrowserPage, unread: usize) -> Result<(Vec<f64>, Vec<f64>)> {
    let (reader, writers) = page.told(TIMES, unread).await?;
    let window = page.logged_in(&reader).await?;
    window.until(&format!("document.querySelectorAll('#list li').length === {TIMES}")).await?;
    window.slow().await?;
    let (mut header, mut messages) = (Vec::new(), Vec::new());
    for writer in &writers {
        window.run(&OPEN.replace("ID", &format!("u:{}", writer.uid))).await?;
        let clicked = window.number("window.clicked").await?;
        header.push(window.number("window.header").await? - clicked);
        messages.push(window.number("window.messages").await? - clicked);
    }
    window.close().await?;
    Ok((header, messages))
}

/// Milliseconds from Enter in the card until the list is there, in browsers that have nothing.
async fn log_ins(page: &mut BrowserPage, conversations: usize) -> Result<Vec<f64>> {
    let (reader, _) = page.told(conversations, 1).await?;
    let list =
        format!("note('listed', () => document.querySelectorAll('#list li').length === {conversations});");
    let mut times = Vec::new();
    for _ in 0..TIMES {
        let window = page.driver.window(&format!("{WATCH}{list}")).await?;
        window.slow().await?;
        fill_card(&window, page.server.address(), &reader).await?;
        window.element("#password").await?.send_keys(ENTER).await?;
        window.number("window.listed").await?;
        times.push(window.number("performance.timeOrigin + window.listed - sessionStorage.pressed").await?);
        window.close().await?;
    }
    Ok(times)
}

/// [`FETCHED`], of a browser that has nothing but the session.
async fn fetched(page: &mut BrowserPage) -> Result<[f64; 3]> {
    let (reader, writers) = page.told(1, 100).await?;
    let window = page.driver.window(WATCH).await?;
    enter(page, &window, &reader).await?;
    window.slow().await?;
    window.goto(&page.at(&format!("/c/u:{}", writers[0].uid))).await?;
    window.number("window.usable").await?;
    let fetched = window.run(FETCHED).await?;
    window.close().await?;
    let figure = |at: usize| fetched[at].as_f64().ok_or_else(|| Failure::new("a page fetches nothing"));
    Ok([figure(0)?, figure(1)?, figure(2)?])
}

/// Logs in without the card, on a page that loads nothing.
async fn enter(page: &BrowserPage, window: &Window, account: &Account) -> Result<()> {
    window.goto(&page.at("/health")).await?;
    let body = json!({"name": account.name, "password": PASSWORD}).to_string();
    let call = format!(
        "const done = arguments[0], headers = {{ 'content-type': 'application/json' }};
         fetch('/api/v1/sessions', {{ method: 'POST', headers, body: {} }}).then((answer) => done(answer.ok));",
        json!(body)
    );
    match window.run_async(&call).await? {
        Value::Bool(true) => Ok(()),
        other => Err(Failure::new(format!("nobody is logged in: {other}"))),
    }
}
