//! Calls to a server, with the token of whoever calls.

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::message;
use crate::table::world::World;

/// What people are asked about, under `/api/v1`: everything that is stored, in the form in which it is answered.
pub(super) const ASKED: [&str; 10] = [
    "range",
    "conversations",
    "friends",
    "moments",
    "stars",
    "settings",
    "me",
    "me/recovery-codes",
    "groups/1",
    "conversations/g:1/pins",
];

/// Calls to the server of a [`World`].
pub(super) struct Caller<'a> {
    address: &'a str,
    http: reqwest::Client,
}

impl<'a> Caller<'a> {
    pub(super) fn new(world: &'a World) -> Caller<'a> {
        Caller { address: world.server.address(), http: reqwest::Client::new() }
    }

    /// Status and body of an answer. An empty token is that of nobody.
    pub(super) async fn call(&self, method: Method, token: &str, path: &str, body: &Value) -> (u16, Value) {
        let mut request = self.http.request(method, format!("{}/api/v1/{path}", self.address));
        if !token.is_empty() {
            request = request.bearer_auth(token);
        }
        if !body.is_null() {
            request = request.json(body);
        }
        let answer = request.send().await.expect("an answer");
        let (status, text) = (answer.status().as_u16(), answer.text().await.expect("a text"));
        (status, if text.is_empty() { Value::Null } else { serde_json::from_str(&text).expect("JSON") })
    }

    /// The body of an answer to something that must go well.
    pub(super) async fn done(&self, method: Method, token: &str, path: &str, body: Value) -> Value {
        let (status, answer) = self.call(method, token, path, &body).await;
        assert!((200..300).contains(&status), "{path} of {body}: {status} {answer}");
        answer
    }

    pub(super) async fn get(&self, token: &str, path: &str) -> Value {
        self.done(Method::GET, token, path, Value::Null).await
    }

    pub(super) async fn post(&self, token: &str, path: &str, body: Value) -> Value {
        self.done(Method::POST, token, path, body).await
    }

    pub(super) async fn put(&self, token: &str, path: &str, body: Value) -> Value {
        self.done(Method::PUT, token, path, body).await
    }

    pub(super) async fn sign_up(&self, name: &str) -> Value {
        self.post("", "accounts", json!({"name": name, "password": "correct horse"})).await
    }

    /// Sends a message under the `n`th name; the token, the request, and its answer.
    pub(super) async fn send(&self, token: &str, n: u128, to: Value, words: &str) -> Value {
        let body = message(n, to, words);
        let answer = self.post(token, "messages", body.clone()).await;
        json!({"token": token, "body": body, "answer": answer})
    }
}

pub(super) fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value[name].as_array().unwrap_or_else(|| panic!("{name} in {value}"))
}

pub(super) fn text(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap_or_else(|| panic!("{name} in {value}")).to_owned()
}
