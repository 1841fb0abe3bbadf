//! The HTTP interface, one method per call.
//!
//! Thin on purpose: no retries, no state but the address and the token. [`crate::Client`] repeats what may be
//! repeated; whoever calls these methods decides for themselves by [`Error::is_retryable`].

use std::time::Duration;

use reqwest::{Method, RequestBuilder, Url};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::Error;
use crate::wire::{
    Account, BatchAnswer, BatchOutcome, BatchRequest, Conversation, ConversationPage, ConversationSummary,
    Credentials, Direction, Draft, Group, GroupMade, Me, MemberRequest, NewGroup, Person, RangePage,
    RangeQuery, ReadMarker, Sent, Seq, Ticket,
};

/// How long one call may take before it counts as failed.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Calls of one server, with or without a token. Cheap to clone; clones share their connections.
#[derive(Clone, Debug)]
pub struct Http {
    client: reqwest::Client,
    base: Url,
    token: Option<Token>,
}

#[derive(Clone)]
struct Token(String);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("…")
    }
}

impl Http {
    /// Calls to the server at `base`, for example `http://127.0.0.1:8080`, without a token.
    ///
    /// # Errors
    /// [`Error::Usage`] when `base` is not an address of HTTP.
    pub fn new(base: &str) -> Result<Http, Error> {
        let client = reqwest::Client::builder().timeout(TIMEOUT).build()?;
        let mut base: Url =
            base.parse().map_err(|e| Error::Usage(format!("{base:?} is not an address: {e}")))?;
        if !matches!(base.scheme(), "http" | "https") || base.cannot_be_a_base() {
            return Err(Error::Usage(format!("{base} is not an address of HTTP: begin it with http://")));
        }
        if !base.path().ends_with('/') {
            let path = format!("{}/", base.path());
            base.set_path(&path);
        }
        Ok(Http { client, base, token: None })
    }

    /// The same server, as the owner of `token`.
    pub fn with_token(&self, token: &str) -> Http {
        Http { token: Some(Token(token.to_owned())), ..self.clone() }
    }

    /// The token, if there is one.
    pub fn token(&self) -> Option<&str> {
        self.token.as_ref().map(|token| token.0.as_str())
    }

    /// Where the WebSocket is: the same server's `/ws`.
    pub fn socket_url(&self) -> String {
        let mut url = self.at("ws");
        let scheme = if url.scheme() == "https" { "wss" } else { "ws" };
        url.set_scheme(scheme).expect("http and ws are both special schemes, so one may follow the other");
        url.into()
    }

    /// Makes an account and logs in. Refused with 409 when the name is taken.
    pub async fn sign_up(&self, name: &str, password: &str) -> Result<Account, Error> {
        self.json(Method::POST, "accounts", &Credentials { name, password }).await
    }

    /// Logs in.
    pub async fn log_in(&self, name: &str, password: &str) -> Result<Account, Error> {
        self.json(Method::POST, "sessions", &Credentials { name, password }).await
    }

    /// Ends this session; its sockets close.
    pub async fn log_out(&self) -> Result<(), Error> {
        self.done(self.call(Method::DELETE, "sessions/current")).await
    }

    /// Ends all sessions of the user; their sockets close.
    pub async fn log_out_everywhere(&self) -> Result<(), Error> {
        self.done(self.call(Method::DELETE, "sessions")).await
    }

    /// A ticket that opens `/ws?ticket=` once, within 30 seconds.
    pub async fn ticket(&self) -> Result<String, Error> {
        let answer: Ticket = self.read(self.call(Method::POST, "sessions/current/ticket")).await?;
        Ok(answer.ticket)
    }

    /// Who one is.
    pub async fn me(&self) -> Result<Me, Error> {
        self.read(self.call(Method::GET, "me")).await
    }

    /// People whose name begins with `prefix`.
    pub async fn users(&self, prefix: &str) -> Result<Vec<Person>, Error> {
        self.read(self.call(Method::GET, "users").query(&[("name", prefix)])).await
    }

    /// Sends a message. The same draft again gets the first answer (I4).
    pub async fn send(&self, draft: &Draft) -> Result<Sent, Error> {
        self.json(Method::POST, "messages", draft).await
    }

    /// Sends 1 to 200 messages; the outcomes stand in the same order.
    pub async fn send_batch(&self, drafts: &[Draft]) -> Result<Vec<BatchOutcome>, Error> {
        let answer: BatchAnswer =
            self.json(Method::POST, "messages/batch", &BatchRequest { messages: drafts }).await?;
        Ok(answer.results)
    }

    /// A page of the caller's own rows (S20).
    pub async fn range(&self, query: &RangeQuery) -> Result<RangePage, Error> {
        let direction = match query.direction {
            Direction::Forward => "forward",
            Direction::Backward => "backward",
        };
        let mut call = self.call(Method::GET, "range").query(&[
            ("start", query.start.to_string().as_str()),
            ("end", query.end.to_string().as_str()),
            ("direction", direction),
        ]);
        if let Some(limit) = query.limit {
            call = call.query(&[("limit", limit)]);
        }
        self.read(call).await
    }

    /// The caller's latest committed id; answered from memory (S2).
    pub async fn seq(&self) -> Result<Seq, Error> {
        self.read(self.call(Method::GET, "seq")).await
    }

    /// The conversation list, newest first.
    pub async fn conversations(&self) -> Result<Vec<ConversationSummary>, Error> {
        self.read(self.call(Method::GET, "conversations")).await
    }

    /// A page of one conversation, newest first, from before the id `before` (`None` = from the newest).
    pub async fn conversation_messages(
        &self,
        conversation: Conversation,
        before: Option<u64>,
        limit: Option<u32>,
    ) -> Result<ConversationPage, Error> {
        let mut call = self.call(Method::GET, &format!("conversations/{conversation}/messages"));
        if let Some(before) = before {
            call = call.query(&[("before", before)]);
        }
        if let Some(limit) = limit {
            call = call.query(&[("limit", limit)]);
        }
        self.read(call).await
    }

    /// Moves the read marker of a conversation up to the row `message_id`; a smaller one changes nothing.
    pub async fn mark_read(&self, conversation: Conversation, message_id: u64) -> Result<(), Error> {
        let path = format!("conversations/{conversation}/read");
        self.done(self.call(Method::PUT, &path).json(&ReadMarker { message_id })).await
    }

    /// Makes a group of the caller and `members`, and answers its number.
    pub async fn create_group(&self, name: &str, members: &[u32]) -> Result<u64, Error> {
        let made: GroupMade = self.json(Method::POST, "groups", &NewGroup { name, members }).await?;
        Ok(made.gid)
    }

    /// A group and its members.
    pub async fn group(&self, gid: u64) -> Result<Group, Error> {
        self.read(self.call(Method::GET, &format!("groups/{gid}"))).await
    }

    /// Adds somebody to a group.
    pub async fn add_member(&self, gid: u64, uid: u32) -> Result<(), Error> {
        let path = format!("groups/{gid}/members");
        self.done(self.call(Method::POST, &path).json(&MemberRequest { uid })).await
    }

    /// Removes somebody from a group, or leaves it.
    pub async fn remove_member(&self, gid: u64, uid: u32) -> Result<(), Error> {
        self.done(self.call(Method::DELETE, &format!("groups/{gid}/members/{uid}"))).await
    }

    /// Whether the process is up.
    pub async fn health(&self) -> Result<(), Error> {
        self.done(self.client.get(self.at("health"))).await
    }

    /// Whether it can serve now.
    pub async fn ready(&self) -> Result<(), Error> {
        self.done(self.client.get(self.at("ready"))).await
    }

    /// The metrics, as Prometheus text.
    pub async fn metrics(&self) -> Result<String, Error> {
        let response = accepted(self.client.get(self.at("metrics"))).await?;
        Ok(response.text().await?)
    }

    fn at(&self, path: &str) -> Url {
        self.base.join(path).expect("a fixed path, or numbers in one, always joins")
    }

    fn call(&self, method: Method, path: &str) -> RequestBuilder {
        let call = self.client.request(method, self.at(&format!("api/v1/{path}")));
        match &self.token {
            Some(token) => call.bearer_auth(&token.0),
            None => call,
        }
    }

    async fn json<A: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: &impl Serialize,
    ) -> Result<A, Error> {
        self.read(self.call(method, path).json(body)).await
    }

    async fn read<A: DeserializeOwned>(&self, call: RequestBuilder) -> Result<A, Error> {
        let bytes = accepted(call).await?.bytes().await?;
        serde_json::from_slice(&bytes).map_err(|e| Error::Protocol(e.to_string()))
    }

    async fn done(&self, call: RequestBuilder) -> Result<(), Error> {
        accepted(call).await.map(drop)
    }
}

async fn accepted(call: RequestBuilder) -> Result<reqwest::Response, Error> {
    let response = call.send().await?;
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    Err(Error::from_response(status.as_u16(), &response.bytes().await?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_socket_is_beside_the_interface_also_under_a_path() {
        let at = |base| Http::new(base).expect("an address").socket_url();
        assert_eq!(at("http://127.0.0.1:8080"), "ws://127.0.0.1:8080/ws");
        assert_eq!(at("http://example.org/chat"), "ws://example.org/chat/ws");
        assert_eq!(at("https://example.org/chat/"), "wss://example.org/chat/ws");
    }

    #[test]
    fn an_address_of_something_else_is_refused_with_advice() {
        for wrong in ["", "127.0.0.1:8080", "ftp://x/", "mailto:ann"] {
            assert!(matches!(Http::new(wrong), Err(Error::Usage(_))), "{wrong}");
        }
    }
}
