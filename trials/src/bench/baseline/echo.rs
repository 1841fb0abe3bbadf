//! A bare axum WebSocket server that answers each frame with the same text: what the network and the framework cost.
//!
//! It runs in a process of its own, as the server does.

use axum::Router;
use axum::extract::WebSocketUpgrade;
use axum::extract::ws::{Message, WebSocket};
use axum::routing::get;
use tokio::net::TcpListener;

use crate::Result;

/// Serves until the process is killed; prints the address first.
pub(crate) async fn serve() -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?);
    let upgrade = |socket: WebSocketUpgrade| async { socket.read_buffer_size(4 << 10).on_upgrade(echo) };
    Ok(axum::serve(listener, Router::new().route("/ws", get(upgrade))).await?)
}

async fn echo(mut socket: WebSocket) {
    while let Some(Ok(message)) = socket.recv().await {
        let answer = match message {
            Message::Text(text) => Message::Text(text),
            Message::Close(_) => return,
            _ => continue,
        };
        if socket.send(answer).await.is_err() {
            return;
        }
    }
}
