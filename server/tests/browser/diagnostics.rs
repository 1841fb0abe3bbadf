//! Diagnostics in the settings: how far this browser is, and how far the server is.

use super::installed::kept;
use super::window::Window;
use super::world::{World, connected, open_settings};

/// Waits until "Diagnostics" says this of the browser, of the server, and of the history of the data.
async fn say(window: &Window, cursor: u64, latest: &str, history: &str) {
    let facts = "['cursor', 'latest', 'history'].map((name) => document.getElementById(`fact-${name}`)?.textContent).join()";
    window.until(&format!("{facts} === '{cursor},{latest},{history}'")).await;
}

#[tokio::test]
async fn diagnostics_say_how_far_the_browser_and_the_server_are_and_which_history_it_is() {
    let world = World::start().await;
    let (ben, ada) = (world.person("Ben").await, world.person("Ada").await);
    ben.tells(&ada, "one").await;
    let window = world.visitor("Ada").await;
    open_settings(&window, "diagnostics").await;
    let before = ada.http.seq().await.expect("the latest number");
    say(&window, before.seq, &before.seq.to_string(), &before.history).await;
    let uid = "document.getElementById('fact-uid').textContent";
    assert_eq!(window.run(&format!("return {uid}")).await, ada.uid.to_string());
    // It goes on while it is open.
    ben.tells(&ada, "two").await;
    let after = ada.http.seq().await.expect("the latest number");
    assert!(after.seq > before.seq, "{after:?}");
    say(&window, after.seq, &after.seq.to_string(), &after.history).await;
    let newest = "document.querySelector('#fact-beats tr').textContent";
    window.until(&format!("{newest}.includes('{}')", after.seq)).await;

    // Without a connection it says what this browser knows by itself.
    kept(&window, "Ada").await;
    window.until("navigator.serviceWorker.controller").await;
    let gone = world.stop_server().await;
    let copy = gone.copy_files();
    window.reload().await;
    window.until("document.getElementById('app')").await;
    window.until("document.body.dataset.phase === 'waiting'").await;
    open_settings(&window, "diagnostics").await;
    say(&window, after.seq, "Not connected", &after.history).await;
    window.until("!document.querySelector('#fact-beats tr')").await;

    let mut gone = gone.restart().await.stop_server().await;
    gone.put_back(copy).await;
    let _running = gone.restart().await;
    connected(&window).await;
    let restored = ada.http.seq().await.expect("the latest number");
    assert_ne!(restored.history, after.history);
    say(&window, restored.seq, &restored.seq.to_string(), &restored.history).await;
}
