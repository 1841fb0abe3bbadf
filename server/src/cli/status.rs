//! `tidemark status`: the database, the servers on it, and the one that this configuration starts.

use std::time::Duration;

use axum::body::{Body, to_bytes};
use clap::Args;
use hyper::Request;
use hyper::client::conn::http1;
use hyper::header::HOST;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tidemark_process::Version;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::ExitError;
use crate::boot;
use crate::config::Config;
use crate::store::Facts;

const EXAMPLES: &str = "\
Examples:
  tidemark status --config /etc/tidemark/tidemark.toml
  tidemark status --json | jq .server.ready

Exit codes: 0 the database answers, 1 it does not.";

/// How long a server may take to answer.
const PATIENCE: Duration = Duration::from_secs(3);

/// Bytes of an answer that are read.
const MOST_BYTES: usize = 64 << 10;

/// How it is said.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Status {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(what: Status, config: &Config, version: Version) -> Result<(), ExitError> {
    let mut facts: Facts = vec![("program", version.to_string().into())];
    facts.extend(boot::status(config).await?);
    facts.push(("server", server(&config.server.listen.to_string()).await));
    if what.json {
        let object: serde_json::Map<_, _> =
            facts.into_iter().map(|(name, fact)| (name.to_owned(), fact)).collect();
        println!("{}", Value::Object(object));
    } else {
        facts.iter().for_each(|(name, fact)| print_lines(name, fact));
    }
    Ok(())
}

/// Lists have a line for each part.
fn print_lines(name: &str, fact: &Value) {
    let name = name.replace('_', " ");
    match fact {
        Value::Array(parts) if !parts.is_empty() => {
            parts.iter().for_each(|part| println!("{name:26} {}", line(part)));
        }
        fact => println!("{name:26} {}", line(fact)),
    }
}

fn line(fact: &Value) -> String {
    match fact {
        Value::Null => "unknown".to_owned(),
        Value::String(text) if text.is_empty() => "none".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(_) => "none".to_owned(),
        Value::Object(parts) => {
            let parts = parts.iter().filter(|(_, part)| !part.is_null());
            parts
                .map(|(name, part)| format!("{} {}", name.replace('_', " "), line(part)))
                .collect::<Vec<_>>()
                .join(", ")
        }
        fact => fact.to_string(),
    }
}

/// The answers of the server at the address of this configuration.
async fn server(listen: &str) -> Value {
    let address = listen.replace("0.0.0.0:", "127.0.0.1:").replace("[::]:", "[::1]:");
    let address = address.as_str();
    let asked = async {
        let (_, health) = ask(address, "/health").await?;
        Some((health, ask(address, "/ready").await?))
    };
    match timeout(PATIENCE, asked).await.ok().flatten() {
        None => json!({"address": address, "answers": false}),
        Some((health, (status, ready))) => json!({
            "address": address, "answers": true, "version": health["version"], "commit": health["commit"],
            "ready": status == 200, "trouble": ready["detail"], "damaged": ready["damaged"],
        }),
    }
}

/// The status and the JSON that a server answers; `None`: it does not, or with something else.
async fn ask(address: &str, path: &str) -> Option<(u16, Value)> {
    let stream = TcpStream::connect(address).await.ok()?;
    let (mut requests, connection) = http1::handshake(TokioIo::new(stream)).await.ok()?;
    // A failure of the connection fails the request on it.
    tokio::spawn(connection);
    let request = Request::get(path).header(HOST, address).body(Body::empty()).ok()?;
    let answer = requests.send_request(request).await.ok()?;
    let status = answer.status().as_u16();
    let body = to_bytes(Body::new(answer.into_body()), MOST_BYTES).await.ok()?;
    Some((status, serde_json::from_slice(&body).ok()?))
}
