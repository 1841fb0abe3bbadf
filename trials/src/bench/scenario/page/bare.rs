//! A page that does nothing else, to measure its cost: a box that has the focus, as in the chat, a log, and a WebSocket whose server
//! passes each text on to everybody.

use axum::Router;
use axum::extract::WebSocketUpgrade;
use axum::extract::ws::{Message, WebSocket};
use axum::response::Html;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::sync::broadcast;
use tokio::task::JoinHandle;

use crate::Result;

const PAGE: &str = r#"<!doctype html><meta charset="utf-8"><title>bare</title>
<div role="log" id="log"></div><textarea id="text" autofocus></textarea>
<script>
const socket = new WebSocket(`ws://${location.host}/ws`);
socket.onopen = () => { window.isOpen = true; };
socket.onmessage = ({ data }) => {
  const line = document.createElement("p");
  line.className = "words";
  line.textContent = data;
  document.getElementById("log").append(line);
};
const box = document.getElementById("text");
box.onkeydown = (event) => {
  if (event.key !== "Enter") return;
  event.preventDefault();
  socket.send(box.value);
  box.value = "";
};
</script>"#;

/// Texts that a slow window may be behind.
const BEHIND: usize = 64;

/// A running server of the bare page. Dropping it ends it.
pub(super) struct BarePage {
    pub(super) url: String,
    serving: JoinHandle<()>,
}

impl BarePage {
    pub(super) async fn start() -> Result<BarePage> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        let all = broadcast::Sender::new(BEHIND);
        let upgrade = move |socket: WebSocketUpgrade| {
            let all = all.clone();
            async move { socket.on_upgrade(|socket| pass_on(socket, all)) }
        };
        let routes = Router::new().route("/", get(async || Html(PAGE))).route("/ws", get(upgrade));
        // Ends with the scenario; a failure of the listener fails the window.
        let serving = tokio::spawn(async move { axum::serve(listener, routes).await.unwrap_or_default() });
        Ok(BarePage { url, serving })
    }
}

impl Drop for BarePage {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn pass_on(mut socket: WebSocket, all: broadcast::Sender<String>) {
    let mut others = all.subscribe();
    loop {
        tokio::select! {
            said = socket.recv() => match said {
                Some(Ok(Message::Text(text))) => _ = all.send(text.as_str().to_owned()),
                Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Binary(_))) => {}
                _ => return,
            },
            text = others.recv() => {
                let Ok(text) = text else { return };
                if socket.send(Message::Text(text.into())).await.is_err() {
                    return;
                }
            }
        }
    }
}
