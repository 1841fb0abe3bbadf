//! Messages that expire: from the page, from the browser's database, and for a browser that was away for longer.

use std::time::Duration;

use serde_json::{Value, json};
use tidemark_client::Recipient;
use tidemark_test_support::until::until;

use super::starred::choose;
use super::window::Window;
use super::world::{Gone, Person, World, connected, database_of, say, stored};

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
