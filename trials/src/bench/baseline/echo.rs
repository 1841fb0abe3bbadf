//! A bare axum WebSocket server that answers each frame with the same text: what the network and the framework cost.
//!
//! It runs in a process of its own (`bench --serve-echo`, started by the measurement), as the server does.

use std::path::Path;

use axum::Router;
use axum::extract::WebSocketUpgrade;
use axum::extract::ws::{Message, WebSocket};
use axum::routing::get;
use tokio::net::TcpListener;

use super::process::BareProcess;
use crate::Result;

/// A running echo process. Dropping it kills it.
pub(crate) struct Echo(BareProcess);

impl Echo {
    /// Starts one: this very program, asked to echo.
    pub(crate) async fn start(program: &Path) -> Result<Echo> {
        Ok(Echo(BareProcess::start(program, &["--serve-echo"]).await?))
    }

    /// `ws://…/ws`
    pub(crate) fn socket_url(&self) -> String {
        format!("ws://{}/ws", self.0.address())
    }
}

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
