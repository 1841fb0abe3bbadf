//! Messages that the browser refuses to keep: none is lost, none arrives twice.

use serde_json::{json, value::to_raw_value};
use tidemark_client::{Conversation, Draft, Recipient};
use uuid::Uuid;

use super::window::{ENTER, Window, count};
use super::world::{Person, World, connected, stored};

/// From now on no message can be put into the outbox, until `room()`.
async fn fill(window: &Window) {
    let full = "const { add } = IDBObjectStore.prototype;
        IDBObjectStore.prototype.add = function (...what) {
          if (this.name !== 'outbox') return add.apply(this, what);
          window.refused += 1;
          throw new DOMException('no room', 'QuotaExceededError');
        };
        window.refused = 0;
        window.room = () => { IDBObjectStore.prototype.add = add; };";
    window.run(full).await;
}

async fn box_says(window: &Window, text: &str) {
    window.until(&format!("document.getElementById('text').value === {text:?}")).await;
}

/// Writes a message and presses Enter until the browser has refused it and `gone` is true; it is shown before that. While the page
/// still tells the server what was read, a message goes into the outbox first, so that it stands in the box again.
async fn send_without_room(window: &Window, text: &str, gone: &str) {
    const MOST_PRESSES: usize = 5;
    window.write("#text", text).await;
    for _ in 0..MOST_PRESSES {
        window.run("document.getElementById('counter').textContent = ''; window.refused = 0").await;
        window.write("#text", ENTER).await;
        let came_back = "document.getElementById('counter').textContent.includes('no room')";
        window.until(&format!("window.refused && ({came_back} || ({gone}))")).await;
        if window.run(&format!("return {came_back}")).await == false {
            return;
        }
        box_says(window, text).await;
    }
    panic!("{text} never goes out");
}

/// Sends a message, and opens another conversation before anything can be answered.
async fn send_and_go_on(window: &Window, text: &str, to: &str) {
    let script = format!(
        "const box = document.getElementById('text');
         box.value = {text:?};
         box.dispatchEvent(new Event('input'));
         document.getElementById('composer').requestSubmit();
         [...document.querySelectorAll('#list a')].find((row) => row.querySelector('.title').textContent === {to:?}).click();"
    );
    window.run(&script).await;
    window.until(&format!("document.getElementById('pane-title').textContent === {to:?}")).await;
}

/// Ada's window, which shows what Ben has said and keeps no message any more; Cleo has said something, too. Answers Ben, Ada and it.
async fn without_room(world: &World) -> (Person, Person, Window) {
    let (ben, ada, cleo) = (world.person("Ben").await, world.person("Ada").await, world.person("Cleo").await);
    let window = world.visitor("Ada").await;
    for (other, text) in [(&ben, "Hello"), (&cleo, "Good morning")] {
        other.tells(&ada, text).await;
        window.until(&format!("document.getElementById('list').innerText.includes({text:?})")).await;
    }
    window.pick("Ben").await;
    fill(&window).await;
    (ben, ada, window)
}

#[tokio::test]
async fn what_the_browser_refuses_to_keep_is_sent_once_or_is_a_draft_again() {
    let world = World::start().await;
    let (ben, _, window) = without_room(&world).await;
    // It was sent before it was to be kept, and the server has it.
    send_without_room(&window, "once", &count("once")).await;
    box_says(&window, "").await;
    window
        .until("['Sent', 'Delivered', 'Read'].includes(document.querySelector('.own .state')?.ariaLabel)")
        .await;
    assert_eq!(stored(&ben, "once").await, 1);
    // It was not sent: it stands in the box, also after another look elsewhere.
    window.offline(true).await;
    window.until("document.body.dataset.phase !== 'open'").await;
    window.write("#text", &format!("twice{ENTER}")).await;
    window.until("document.getElementById('counter').textContent.includes('no room')").await;
    box_says(&window, "twice").await;
    window.pick("Cleo").await;
    box_says(&window, "").await;
    window.write("#text", "half a line").await;
    window.pick("Ben").await;
    box_says(&window, "twice").await;
    // Another conversation is open before it was refused: each text stays where it was written.
    send_and_go_on(&window, "three times", "Cleo").await;
    window.until("document.getElementById('counter').textContent.includes('draft again: no room')").await;
    box_says(&window, "half a line").await;
    window.until("[...document.querySelectorAll('.last')].some((line) => line.textContent === 'Draft: three times')").await;
    window.run("room()").await;
    window.offline(false).await;
    connected(&window).await;
    window.pick("Ben").await;
    window.write("#text", ENTER).await;
    window.sees("three times").await;
    box_says(&window, "").await;
    window.until("[...document.querySelectorAll('.own .state')].at(-1).ariaLabel !== 'Waiting'").await;
    assert_eq!(stored(&ben, "three times").await, 1);
    assert_eq!(stored(&ben, "twice").await, 0);
}

/// The connection ends when the next message has gone out, and there is no other one until `back()`.
const CUT_BEHIND_THE_NEXT: &str = "const { WebSocket } = window, { send } = WebSocket.prototype;
    WebSocket.prototype.send = function (text) {
      send.call(this, text);
      if (JSON.parse(text).type !== 'send') return;
      WebSocket.prototype.send = send;
      window.WebSocket = class { close() {} };
      dispatchEvent(new Event('offline'));
    };
    window.back = () => {
      window.WebSocket = WebSocket;
      for (const event of ['offline', 'online']) dispatchEvent(new Event(event));
    };";

#[tokio::test]
async fn what_may_have_been_sent_and_was_not_kept_is_one_message_until_it_is_answered() {
    let world = World::start().await;
    let (ben, ada) = (world.person("Ben").await, world.person("Ada").await);
    let window = world.visitor("Ada").await;
    ben.tells(&ada, "Hello").await;
    window.pick("Ben").await;
    window.sees("Hello").await;
    fill(&window).await;
    window.run(CUT_BEHIND_THE_NEXT).await;
    send_without_room(&window, "once", &count("once")).await;
    window.until("document.body.dataset.phase !== 'open'").await;
    window.until("document.querySelector('.own .state')?.ariaLabel === 'Waiting'").await;
    box_says(&window, "").await;
    window.write("#text", "and another").await;
    let asks = "const leaving = new Event('beforeunload', { cancelable: true }); dispatchEvent(leaving);
        return leaving.defaultPrevented";
    assert_eq!(window.run(asks).await, true);
    window.run("back()").await;
    connected(&window).await;
    window
        .until("['Sent', 'Delivered', 'Read'].includes(document.querySelector('.own .state')?.ariaLabel)")
        .await;
    box_says(&window, "and another").await;
    assert_eq!(window.copies("once").await, 1);
    assert_eq!(stored(&ben, "once").await, 1);
    assert_eq!(window.run(asks).await, false);
}

#[tokio::test]
async fn what_was_not_kept_and_is_refused_by_the_server_is_a_draft_of_its_conversation() {
    let world = World::start().await;
    let (ben, ada, window) = without_room(&world).await;
    let blocked = to_raw_value(&json!({"blocked": true})).expect("JSON");
    ben.http.set(Uuid::from_u128(1), Conversation::User(ada.uid), "block", &blocked).await.expect("set");
    let refused = ada.http.send(&Draft::text(Recipient::User(ben.uid), "Still there?")).await;
    refused.expect_err("she is blocked");
    let refused = "document.getElementById('counter').textContent.includes('does not take messages')";
    send_without_room(&window, "Hello?", refused).await;
    box_says(&window, "Hello?").await;
    assert_eq!(window.copies("Hello?").await, 0, "it does not stand in the log");
    send_and_go_on(&window, "Are you there?", "Cleo").await;
    window.until("document.getElementById('counter').textContent.includes('for Ben')").await;
    window.until("[...document.querySelectorAll('.last')].some((line) => line.textContent === 'Draft: Are you there?')").await;
    box_says(&window, "").await;
    window.pick("Ben").await;
    box_says(&window, "Are you there?").await;
}
