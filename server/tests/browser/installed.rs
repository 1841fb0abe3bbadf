//! The chat without its server: what the service worker keeps, for whom, and until when.

use uuid::Uuid;

use super::pictures::take;
use super::social::{badge, press, shows, unfold};
use super::window::ENTER;
use super::world::{World, connected, find, open_settings, say, stored};

/// Answers the names of the caches, and whose page is kept.
const KEPT: &str = "const done = arguments[0]; (async () => {
    const names = await caches.keys(), page = await caches.match('/', { ignoreVary: true });
    done([names.map((name) => name.split('-')[0]).sort().join(), page ? (await page.text()).match(/data-name=\"(.*?)\"/)[1] : null]);
  })()";

/// Waits until the service worker keeps the page of `name`.
pub(super) async fn kept(window: &super::window::Window, name: &str) {
    let ask = "window.keeps = null; caches.match('/', { ignoreVary: true }).then((page) => page?.text())
        .then((text) => { window.keeps = text?.match(/data-name=\"(.*?)\"/)[1] ?? 'nobody'; })";
    loop {
        window.run(ask).await;
        window.until("window.keeps").await;
        if window.run("return window.keeps").await == name {
            return;
        }
    }
}

#[tokio::test]
async fn the_chat_opens_without_its_server_and_sends_when_that_is_back() {
    let world = World::start().await;
    let ben = world.person("Ben").await;
    let ada = world.newcomer("Ada").await;
    find(&ada, "Ben").await;
    say(&ada, "before").await;
    ada.until("['Sent', 'Delivered', 'Read'].includes(document.querySelector('.own .state')?.ariaLabel)")
        .await;
    kept(&ada, "Ada").await;
    ada.until("navigator.serviceWorker.controller").await;

    let gone = world.stop_server().await;
    ada.reload().await;
    ada.sees("before").await;
    ada.until("document.querySelector('#list .title').textContent === 'Ben'").await;
    say(&ada, "written without a server").await;
    ada.until("[...document.querySelectorAll('.own .state')].at(-1).ariaLabel === 'Waiting'").await;
    // Another address of the chat is the same page.
    ada.goto(&format!("{}/", gone.address())).await;
    ada.until("document.querySelector('.row .last')?.textContent === 'You: written without a server'").await;
    take(&ada, "without-server.png", 1280, 800).await;

    let world = gone.restart().await;
    connected(&ada).await;
    ada.pick("Ben").await;
    ada.until("[...document.querySelectorAll('.own .state')].every((it) => ['Sent', 'Delivered', 'Read'].includes(it.ariaLabel))").await;
    assert_eq!(stored(&ben, "written without a server").await, 1);
    drop(world);
}

#[tokio::test]
async fn a_reload_does_not_wait_for_a_server_that_hangs() {
    let (world, gate) = World::behind_a_gate().await;
    let (ben, ada) = (world.person("Ben").await, world.person("Ada").await);
    ben.tells(&ada, "Is the tide in?").await;
    let window = world.visitor("Ada").await;
    window.pick("Ben").await;
    window.sees("Is the tide in?").await;
    window.until("!document.querySelector('.row .badge')").await;
    kept(&window, "Ada").await;
    window.until("navigator.serviceWorker.controller").await;
    gate.hold_answers(true);
    window.reload().await;
    window.sees("Is the tide in?").await;
    let came = window.run("return performance.getEntriesByType('navigation')[0].responseStart").await;
    assert!(came.as_f64().is_some_and(|came| came < 2_000.0), "the page came after {came} ms");
    gate.hold_answers(false);
    connected(&window).await;
}

#[tokio::test]
async fn nobody_gets_the_page_of_another_one() {
    let world = World::start().await;
    world.person("Ben").await;
    let window = world.newcomer("Ada").await;
    kept(&window, "Ada").await;
    open_settings(&window, "account").await;
    window.click("#log-out").await;
    window.until("document.getElementById('sign-in')").await;
    assert_eq!(window.run_async(KEPT).await, serde_json::json!(["assets", null]));
    world.log_in(&window, "Ben").await;
    kept(&window, "Ben").await;
    // Ended by another device, with a page that is not even open.
    window.goto("about:blank").await;
    let other = world.visitor("Ben").await;
    open_settings(&other, "account").await;
    other.click("#log-out-all").await;
    other.until("document.getElementById('sign-in')").await;
    window.goto(&world.at("/")).await;
    window.until("document.getElementById('sign-in')").await;
    assert_eq!(window.run_async(KEPT).await, serde_json::json!(["assets", null]));
}

#[tokio::test]
async fn files_of_an_earlier_version_are_dropped_and_the_chat_can_be_installed() {
    let world = World::start().await;
    let window = world.window().await;
    window.goto(&world.at("/login")).await;
    let old = "const done = arguments[0]; (async () => {
        for (const name of ['assets-0', 'page-0']) (await caches.open(name)).put('/', new Response('data-name=\"Old\"'));
        done(true);
      })()";
    window.run_async(old).await;
    world.person("Ada").await;
    world.log_in(&window, "Ada").await;
    kept(&window, "Ada").await;
    assert_eq!(window.run_async(KEPT).await, serde_json::json!(["assets,page", "Ada"]));
    window.reload().await;
    connected(&window).await;
    let errors = window.devtools("Page.getInstallabilityErrors", serde_json::json!({})).await;
    assert_eq!(errors["installabilityErrors"], serde_json::json!([]));
    let manifest = window.devtools("Page.getAppManifest", serde_json::json!({})).await;
    assert_eq!(manifest["errors"], serde_json::json!([]));
}

#[tokio::test]
async fn moments_and_contacts_are_shown_without_the_server() {
    let world = World::start().await;
    let (ada, ben, cem) = (world.person("Ada").await, world.person("Ben").await, world.person("Cem").await);
    let wishes = [(&ada, &ben), (&ben, &ada), (&cem, &ada)];
    for (key, (from, to)) in (1..).zip(wishes) {
        from.http.befriend(Uuid::from_u128(key), to.uid, true).await.expect("asked");
    }
    ben.http.post_moment(Uuid::from_u128(1 << 64), "Low tide is at ten", &[]).await.expect("posted");
    let window = world.visitor("Ada").await;
    for page in ["moments", "contacts"] {
        badge(&window, page, "1").await;
    }
    kept(&window, "Ada").await;
    window.until("navigator.serviceWorker.controller").await;

    // Neither page was ever opened in this browser.
    let gone = world.stop_server().await;
    for _ in 0..2 {
        window.goto(&format!("{}/contacts", gone.address())).await;
        for text in ["Friend requests", "Cem", "Friends", "Ben"] {
            shows(&window, text).await;
        }
        window.goto(&format!("{}/moments", gone.address())).await;
        window.until("document.querySelectorAll('.moment').length === 1").await;
        window.until("document.querySelector('.moment .who').textContent.startsWith('Ben ')").await;
        shows(&window, "Low tide is at ten").await;
        window.reload().await;
        shows(&window, "Low tide is at ten").await;
    }
    // Actions without the server show at once, and are carried out later.
    unfold(&window).await;
    window.write(".moment input", &format!("Bring boots{ENTER}")).await;
    shows(&window, "Bring boots").await;
    window.goto(&format!("{}/contacts", gone.address())).await;
    press(&window, "Accept").await;
    let no_requests = "!document.getElementById('page').innerText.includes('Friend requests')";
    window.until(no_requests).await;
    window.reload().await;
    shows(&window, "Cem").await;
    window.until(no_requests).await;
    window.goto(&format!("{}/moments", gone.address())).await;
    window.until("document.querySelector('.comments .state')?.ariaLabel === 'Waiting to be sent'").await;

    let _running = gone.restart().await;
    connected(&window).await;
    window
        .until("document.querySelector('.comments li') && !document.querySelector('.comments .state')")
        .await;
    assert_eq!(stored(&ben, "Bring boots").await, 1);
    // They are friends: Cem gets what she posts now.
    window.write("#moment-text", "Both of you").await;
    press(&window, "Post").await;
    window
        .until("document.querySelectorAll('.moment').length === 2 && !document.querySelector('.feed .state')")
        .await;
    assert_eq!(stored(&cem, "Both of you").await, 1);
}
