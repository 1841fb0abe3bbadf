//! Messages that expire: from the page, from the browser's database, and for a browser that was away for longer.

use std::time::Duration;

use serde_json::{Value, json};
use tidemark_client::Recipient;
use tidemark_test_support::until::until;

use super::starred::choose;
use super::window::Window;
use super::world::{Gone, Person, World, connected, database_of, open_about, say, stored};

const A_DAY: Duration = Duration::from_secs(86_400);

/// A server that keeps messages for an hour.
async fn forgetful(gone: Gone) -> World {
    gone.restart_with(&[("TIDEMARK_RETENTION__SECONDS", "3600".to_owned())]).await
}

/// The texts of all rows in the browser's database, and the rows of another object store.
async fn kept(window: &Window, store: &str) -> (String, Value) {
    let script = "const done = arguments[0], opening = indexedDB.open('NAME');
         opening.onsuccess = () => {
           const read = opening.result.transaction(['rows', 'STORE'], 'readonly');
           const [rows, others] = [read.objectStore('rows').getAll(), read.objectStore('STORE').getAll()];
           read.oncomplete = () => {
             opening.result.close();
             done([rows.result.map((row) => row.body.text ?? '').join(' | '), others.result]);
           };
         };";
    let script = script.replace("NAME", &database_of(window).await).replace("STORE", store);
    let mut answer = window.run_async(&script).await;
    (answer[0].as_str().expect("texts").to_owned(), answer[1].take())
}

/// Waits until no row of the person has this text any more.
async fn has_expired(person: &Person, text: &str) {
    until("it is removed", async || stored(person, text).await == 0).await;
}

#[tokio::test]
async fn what_has_expired_goes_from_the_log_the_list_stars_pins_and_the_database() {
    let world = World::start().await;
    let (ben, cleo, ada) = (world.person("Ben").await, world.person("Cleo").await, world.person("Ada").await);
    let gid = ben.group("Harbour walk", &[ada.uid]).await;
    let to_all = Recipient::Group(gid);
    let gone = world.stop_server().await;
    let gone = gone
        .ago(A_DAY, async || {
            ben.tells(&ada, "Low tide was at nine").await;
            cleo.tells(&ada, "Only this").await;
            for text in ["Bring boots", "And a lamp"] {
                ben.send(to_all, text).await;
            }
        })
        .await;
    let world = gone.restart().await;
    ben.tells(&ada, "Low tide is at ten").await;
    ben.send(to_all, "No lamp").await;
    let window = world.visitor("Ada").await;
    window.pick("Ben").await;
    window.sees("Low tide was at nine").await;
    choose(&window, "Low tide was", "Star").await;
    choose(&window, "Low tide was", "Pin for everybody").await;
    window
        .until("!document.getElementById('pins').hidden && document.querySelector('.msg .icon.star')")
        .await;
    window.until("document.querySelector('.row .badge') && document.querySelectorAll('.row .badge')[0].textContent === '3'").await;
    let (_, stars) = kept(&window, "stars").await;
    assert_eq!(stars.as_array().map(Vec::len), Some(1));

    let world = forgetful(world.stop_server().await).await;
    connected(&window).await;
    window
        .until("![...document.querySelectorAll('.words')].some((it) => it.textContent.includes('at nine'))")
        .await;
    window.sees("Low tide is at ten").await;
    window
        .until("document.getElementById('pins').hidden && !document.querySelector('.msg .icon.star')")
        .await;
    window
        .until("[...document.querySelectorAll('#list .title')].map((it) => it.textContent).includes('Cleo')")
        .await;
    window.until("!document.getElementById('list').textContent.includes('Only this')").await;
    let (rows, stars) = kept(&window, "stars").await;
    assert_eq!(stars, json!([]));
    for text in ["at nine", "Only this", "Bring boots", "And a lamp"] {
        assert!(!rows.contains(text), "{text} is among {rows}");
        has_expired(&ada, text).await;
    }
    // Of what is not here the server is asked for counts.
    window.reload().await;
    window
        .until("[...document.querySelectorAll('.row .badge')].map((it) => it.textContent).join() === '1'")
        .await;
    window.click("#open-starred").await;
    window.until("!document.querySelector('#starred-list li') && document.getElementById('starred-note').textContent").await;
    // A new browser has the same.
    let phone = world.visitor("Ada").await;
    phone
        .until("[...document.querySelectorAll('.row .badge')].map((it) => it.textContent).join() === '1'")
        .await;
    phone.pick("Ben").await;
    phone.sees("Low tide is at ten").await;
    phone
        .until("document.querySelectorAll('.msg').length === 1 && document.getElementById('pins').hidden")
        .await;
}

#[tokio::test]
async fn a_browser_that_was_away_for_longer_starts_over_and_keeps_what_was_typed_and_what_waits() {
    let world = World::start().await;
    let (ben, ada) = (world.person("Ben").await, world.person("Ada").await);
    let gone = world.stop_server().await;
    let world = gone.ago(2 * A_DAY, async || ben.tells(&ada, "Before").await).await.restart().await;
    let window = world.visitor("Ada").await;
    window.pick("Ben").await;
    window.sees("Before").await;
    window.offline(true).await;
    window.until("document.body.dataset.phase === 'offline'").await;
    say(&window, "I am coming").await;
    window.write("#text", "And a dra").await;
    let begun = kept(&window, "meta").await.1;
    let gone = world.stop_server().await;
    let gone = gone.ago(A_DAY, async || ben.tells(&ada, "While she was away").await).await;
    let world = forgetful(gone).await;
    has_expired(&ada, "While she was away").await;
    ben.tells(&ada, "Now").await;
    window.offline(false).await;
    connected(&window).await;
    window.sees("Now").await;
    window
        .until("['Sent', 'Delivered', 'Read'].includes(document.querySelector('.own .state')?.ariaLabel)")
        .await;
    assert_eq!(window.copies("I am coming").await, 1);
    assert_eq!(window.run("return document.getElementById('text').value").await, "And a dra");
    let base = |meta: &Value| meta[0]["base"].as_u64().expect("a number");
    let (rows, meta) = kept(&window, "meta").await;
    assert!(base(&meta) > base(&begun), "it has started over: {meta}, after {begun}");
    assert!(!rows.contains("Before") && !rows.contains("While she was away"), "{rows}");
    assert_eq!(stored(&ben, "I am coming").await, 1);
    drop(world);
}

/// Whether the last line about a change is this one.
fn told(text: &str) -> String {
    format!("[...document.querySelectorAll('.event')].at(-1)?.textContent === '{text}'")
}

/// Chooses a time in a list, as a person does.
async fn choose_time(window: &Window, list: &str, seconds: u32) {
    let choose = format!(
        "const list = document.getElementById('{list}');
         list.value = '{seconds}';
         list.dispatchEvent(new Event('change'));"
    );
    window.run(&choose).await;
}

const HAS_GONE: &str =
    "![...document.querySelectorAll('.words')].some((it) => it.textContent.includes('at nine'))";

#[tokio::test]
async fn two_people_choose_after_which_time_their_messages_disappear() {
    let world = World::start().await;
    let (ada, ben) = (world.person("Ada").await, world.person("Ben").await);
    let gone = world.stop_server().await;
    let sent = gone.ago(A_DAY, async || ben.tells(&ada, "Low tide was at nine").await);
    let world = sent.await.restart().await;
    ben.tells(&ada, "Low tide is at ten").await;
    let (adas, bens) = (world.visitor("Ada").await, world.visitor("Ben").await);
    for (window, other) in [(&adas, "Ben"), (&bens, "Ada")] {
        window.pick(other).await;
        window.sees("Low tide was at nine").await;
    }
    open_about(&adas).await;
    adas.until("document.getElementById('about-keep').checkVisibility()").await;
    choose_time(&adas, "about-keep-time", 86_400).await;
    adas.until(
        "document.getElementById('ask-title').textContent === 'Remove messages that are older than 1 day?'",
    )
    .await;
    adas.click("#ask-no").await;
    adas.until("document.getElementById('about-keep-time').value === '0'").await;
    choose_time(&adas, "about-keep-time", 86_400).await;
    adas.until("document.getElementById('ask').open").await;
    adas.click("#ask-yes").await;
    adas.until(&told("You set messages to disappear after 1 day")).await;
    bens.until(&told("Ada set messages to disappear after 1 day")).await;
    for window in [&adas, &bens] {
        window.until(HAS_GONE).await;
        window.sees("Low tide is at ten").await;
        until("it is removed from the browser", async || !kept(window, "stars").await.0.contains("at nine"))
            .await;
    }
    for person in [&ada, &ben] {
        has_expired(person, "at nine").await;
    }
    open_about(&bens).await;
    bens.until("document.getElementById('about-keep-time').value === '86400'").await;
    choose_time(&bens, "about-keep-time", 0).await;
    adas.until(&told("Ben turned disappearing messages off")).await;
    adas.until("document.getElementById('about-keep-time').value === '0'").await;
    // A new browser learns of it, too.
    choose_time(&bens, "about-keep-time", 604_800).await;
    bens.until("document.getElementById('ask').open").await;
    bens.click("#ask-yes").await;
    adas.until(&told("Ben set messages to disappear after 1 week")).await;
    let other = world.visitor("Ada").await;
    other.pick("Ben").await;
    open_about(&other).await;
    other.until("document.getElementById('about-keep-time').value === '604800'").await;
}

#[tokio::test]
async fn an_administrator_chooses_it_for_a_group() {
    let world = World::start().await;
    let (ada, ben) = (world.person("Ada").await, world.person("Ben").await);
    let gid = ada.group("Harbour walk", &[ben.uid]).await;
    let gone = world.stop_server().await;
    let sent = gone.ago(A_DAY, async || ben.send(Recipient::Group(gid), "Low tide was at nine").await);
    let world = sent.await.restart().await;
    let (owner, bens) = (world.visitor("Ada").await, world.visitor("Ben").await);
    for window in [&owner, &bens] {
        window.pick("Harbour walk").await;
        window.sees("Low tide was at nine").await;
    }
    open_about(&owner).await;
    owner.until("!document.getElementById('describe').hidden").await;
    owner.click("#describe summary").await;
    owner.run("document.getElementById('describe-keep').value = '86400'").await;
    owner.click("#describe-form .primary").await;
    owner.until("document.getElementById('ask').open").await;
    owner.click("#ask-yes").await;
    bens.until(&told("Ada set messages to disappear after 1 day")).await;
    for window in [&owner, &bens] {
        window.until(HAS_GONE).await;
    }
    assert_eq!(ada.http.group(gid).await.expect("the group").keep_seconds, 86_400);
    has_expired(&ben, "at nine").await;
}
