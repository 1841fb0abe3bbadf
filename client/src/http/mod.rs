//! The HTTP interface, one method per call.
//!
//! Thin on purpose: no state but the addresses and the token, and no retries but one: a server that cannot be reached,
//! or that answers 502, 503 or 504, is passed over for the next address, where repeating the call is safe.
//! [`crate::Client`] goes on trying; whoever calls these methods decides for themselves by [`Error::is_retryable`].

mod call;
mod changes;
mod files;
mod pictures;
mod reports;

use std::cmp::Reverse;
use std::collections::HashMap;
use std::time::Duration;

use reqwest::{Method, Url};
use serde::de::DeserializeOwned;
use serde_json::json;
use uuid::Uuid;

use crate::error::Error;
use crate::servers::Servers;
use crate::wire::{
    Account, BatchAnswer, BatchOutcome, BatchRequest, Conversation, ConversationPage, ConversationPlace,
    ConversationSummary, Direction, Draft, Group, GroupMade, Me, Person, RangePage, RangeQuery, Readers,
    Role, SearchPage, SearchQuery, SeenLast, Sent, Seq, Ticket,
};
use call::HttpCall;

/// How long one call may take at one address before it counts as failed.
const TIMEOUT: Duration = Duration::from_secs(30);
/// How much of that connecting may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Calls of one server, or of several equal ones, with or without a token. Cheap to clone; clones share their
/// connections and the address in use.
///
/// With several addresses a call goes to the one in use. When that cannot be reached, breaks, takes longer than 30
/// seconds (10 to connect), or answers 502, 503 or 504, the call goes to each other address once, and the next calls
/// begin where it was answered. [`Http::sign_up`] and [`Http::create_group`] would make something twice: they go to
/// another address only if no connection to the first came about.
#[derive(Clone, Debug)]
pub struct Http {
    client: reqwest::Client,
    servers: Servers,
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
        Http::any_of(&[base])
    }

    /// Calls to any of these servers, which serve the same data, so that a token of one is good at all. Begins at a
    /// random one; the order of the others is that of `bases`.
    ///
    /// # Errors
    /// [`Error::Usage`] when `bases` is empty or holds something that is not an address of HTTP.
    pub fn any_of(bases: &[&str]) -> Result<Http, Error> {
        let client = reqwest::Client::builder().timeout(TIMEOUT).connect_timeout(CONNECT_TIMEOUT).build()?;
        Ok(Http { client, servers: Servers::new(bases)?, token: None })
    }

    /// The same servers, as the owner of `token`; of several, beginning at a random one.
    pub fn with_token(&self, token: &str) -> Http {
        let servers = self.servers.for_another_user();
        Http { token: Some(Token(token.to_owned())), servers, client: self.client.clone() }
    }

    /// The token, if there is one.
    pub fn token(&self) -> Option<&str> {
        self.token.as_ref().map(|token| token.0.as_str())
    }

    /// Where the WebSocket is: `/ws` of the server in use.
    pub fn socket_url(&self) -> String {
        self.socket_url_at(self.servers.in_use())
    }

    pub(crate) fn socket_url_at(&self, place: usize) -> String {
        let mut url = self.servers.at(place, "ws");
        let scheme = if url.scheme() == "https" { "wss" } else { "ws" };
        url.set_scheme(scheme).expect("http and ws are both special schemes, so one may follow the other");
        url.into()
    }

    pub(crate) fn servers(&self) -> &Servers {
        &self.servers
    }

    /// Makes an account and logs in. Refused with 409 when the name is taken, also by an earlier try of one's own whose
    /// answer was lost: then [`Http::log_in`].
    pub async fn sign_up(&self, name: &str, password: &str) -> Result<Account, Error> {
        let account = json!({ "name": name, "password": password });
        self.read(HttpCall::new(Method::POST, "accounts").json(&account).once()).await
    }

    /// Logs in. After a lost answer it makes a second session, and the first one expires unused.
    pub async fn log_in(&self, name: &str, password: &str) -> Result<Account, Error> {
        let account = json!({ "name": name, "password": password });
        self.read(HttpCall::new(Method::POST, "sessions").json(&account)).await
    }

    /// Ends this session; its sockets close.
    pub async fn log_out(&self) -> Result<(), Error> {
        self.done(HttpCall::new(Method::DELETE, "sessions/current").done_if("unauthorized")).await
    }

    /// Ends all sessions of the user; their sockets close.
    pub async fn log_out_everywhere(&self) -> Result<(), Error> {
        self.done(HttpCall::new(Method::DELETE, "sessions").done_if("unauthorized")).await
    }

    /// A ticket that opens `/ws?ticket=` once, within 30 seconds.
    pub async fn ticket(&self) -> Result<String, Error> {
        let answer: Ticket = self.read(HttpCall::new(Method::POST, "sessions/current/ticket")).await?;
        Ok(answer.ticket)
    }

    /// The logged-in user.
    pub async fn me(&self) -> Result<Me, Error> {
        self.read(HttpCall::new(Method::GET, "me")).await
    }

    /// People whose name begins with `prefix`.
    pub async fn users(&self, prefix: &str) -> Result<Vec<Person>, Error> {
        self.read(HttpCall::new(Method::GET, "users").query("name", prefix)).await
    }

    /// When somebody was online last: RFC 3339, a time within the last 24 hours, before that a date. `None`: it is not known, or not shown
    /// to the caller.
    pub async fn last_seen(&self, uid: u32) -> Result<Option<String>, Error> {
        let answer: SeenLast =
            self.read(HttpCall::new(Method::GET, format!("users/{uid}/last-seen"))).await?;
        Ok(answer.last_seen)
    }

    /// Sends a message. The same draft again gets the first answer (I4).
    pub async fn send(&self, draft: &Draft) -> Result<Sent, Error> {
        self.read(HttpCall::new(Method::POST, "messages").json(draft)).await
    }

    /// Sends 1 to 200 messages; the outcomes stand in the same order.
    pub async fn send_batch(&self, drafts: &[Draft]) -> Result<Vec<BatchOutcome>, Error> {
        let call = HttpCall::new(Method::POST, "messages/batch").json(&BatchRequest { messages: drafts });
        let answer: BatchAnswer = self.read(call).await?;
        Ok(answer.results)
    }

    /// A page of the caller's own rows (S20).
    pub async fn range(&self, query: &RangeQuery) -> Result<RangePage, Error> {
        let direction = match query.direction {
            Direction::Forward => "forward",
            Direction::Backward => "backward",
        };
        let mut call =
            HttpCall::new(Method::GET, "range").query("start", query.start).query("end", query.end);
        call = call.query("direction", direction);
        if let Some(limit) = query.limit {
            call = call.query("limit", limit);
        }
        self.read(call).await
    }

    /// The caller's latest committed id; answered from memory (S2).
    pub async fn seq(&self) -> Result<Seq, Error> {
        self.read(HttpCall::new(Method::GET, "seq")).await
    }

    /// The whole conversation list, newest first, page by page. A message moves its conversation to the top, past the pages that are to come,
    /// so what is newer than the top of several pages is asked for again.
    pub async fn conversations(&self) -> Result<Vec<ConversationSummary>, Error> {
        let newest = |line: &ConversationSummary| line.last.as_ref().map_or(0, |last| last.message_id);
        let mut all: HashMap<Conversation, ConversationSummary> = HashMap::new();
        let mut done = 0;
        loop {
            let (mut top, mut pages, mut after) = (0, 0, None);
            loop {
                let mut page = self.conversations_after(after, None).await?;
                page.retain(|line| done == 0 || newest(line) > done);
                let (Some(first), Some(last)) = (page.first().map(newest), page.last().map(newest)) else {
                    break;
                };
                top = top.max(first);
                pages += 1;
                after = Some(last);
                all.extend(page.into_iter().map(|line| (line.id, line)));
            }
            if pages < 2 {
                let mut lines: Vec<_> = all.into_values().collect();
                lines.sort_unstable_by_key(|line| Reverse(newest(line)));
                return Ok(lines);
            }
            done = top;
        }
    }

    /// A page of it: the conversations whose newest row has a smaller id than `after` (`None` = from the newest), at most `limit`. The last
    /// page is empty.
    pub async fn conversations_after(
        &self,
        after: Option<u64>,
        limit: Option<u32>,
    ) -> Result<Vec<ConversationSummary>, Error> {
        let mut call = HttpCall::new(Method::GET, "conversations");
        if let Some(after) = after {
            call = call.query("after", after);
        }
        if let Some(limit) = limit {
            call = call.query("limit", limit);
        }
        self.read(call).await
    }

    /// A page of one conversation, newest first, from before the id `before` (`None` = from the newest).
    pub async fn conversation_messages(
        &self,
        conversation: Conversation,
        before: Option<u64>,
        limit: Option<u32>,
    ) -> Result<ConversationPage, Error> {
        let mut call = HttpCall::new(Method::GET, format!("conversations/{conversation}/messages"));
        if let Some(before) = before {
            call = call.query("before", before);
        }
        if let Some(limit) = limit {
            call = call.query("limit", limit);
        }
        self.read(call).await
    }

    /// A page of one conversation at a place, newest first.
    pub async fn conversation_at(
        &self,
        conversation: Conversation,
        place: ConversationPlace,
        limit: Option<u32>,
    ) -> Result<ConversationPage, Error> {
        let call = HttpCall::new(Method::GET, format!("conversations/{conversation}/messages"));
        let mut call = match place {
            ConversationPlace::After(id) => call.query("after", id),
            ConversationPlace::Around(id) => call.query("around", id),
            ConversationPlace::Since(time) => call.query("since", time),
            ConversationPlace::Message { sender, client_id } => {
                call.query("sender", sender).query("client_id", client_id)
            }
        };
        if let Some(limit) = limit {
            call = call.query("limit", limit);
        }
        self.read(call).await
    }

    /// A page of what is found among the caller's own messages and moments, newest first. A page may be short, or empty, and have a next one.
    pub async fn search(&self, query: &SearchQuery) -> Result<SearchPage, Error> {
        let SearchQuery { words, conversation, sender, from, to, before, limit } = query;
        let mut call = HttpCall::new(Method::GET, "search");
        if let Some(words) = words {
            call = call.query("q", words);
        }
        if let Some(conversation) = conversation {
            call = call.query("conversation", conversation);
        }
        for (name, number) in
            [("from", *from), ("to", *to), ("before", *before), ("sender", sender.map(u64::from))]
        {
            if let Some(number) = number {
                call = call.query(name, number);
            }
        }
        if let Some(limit) = limit {
            call = call.query("limit", limit);
        }
        self.read(call).await
    }

    /// Moves the read marker of a conversation up to the row `message_id`; a smaller one changes nothing.
    pub async fn mark_read(&self, conversation: Conversation, message_id: u64) -> Result<(), Error> {
        let path = format!("conversations/{conversation}/read");
        self.done(HttpCall::new(Method::PUT, path).json(&json!({ "message_id": message_id }))).await
    }

    /// Makes a group of the caller and `members`, and answers its number.
    #[expect(
        clippy::disallowed_methods,
        reason = "chance enters here; `create_group_as` takes it as an argument"
    )]
    pub async fn create_group(&self, name: &str, members: &[u32]) -> Result<u64, Error> {
        self.create_group_as(Uuid::new_v4(), name, members).await
    }

    /// The same under an idempotency key: a repetition with the same key makes no second group and gets the same number, also after an error.
    pub async fn create_group_as(&self, key: Uuid, name: &str, members: &[u32]) -> Result<u64, Error> {
        let group = json!({ "name": name, "members": members });
        let call = HttpCall::new(Method::POST, "groups").json(&group).keyed(key);
        let made: GroupMade = self.read(call).await?;
        Ok(made.gid)
    }

    /// A group and its members.
    pub async fn group(&self, gid: u64) -> Result<Group, Error> {
        self.read(HttpCall::new(Method::GET, format!("groups/{gid}"))).await
    }

    /// The members that have read a message of the caller, in a group of at most 50. `message_id`: its row in the caller's inbox.
    pub async fn readers(&self, gid: u64, message_id: u64) -> Result<Vec<Person>, Error> {
        let call = HttpCall::new(Method::GET, format!("groups/{gid}/messages/{message_id}/readers"));
        let answer: Readers = self.read(call).await?;
        Ok(answer.readers)
    }

    /// Gives a member another role; the owner's hands the group over.
    pub async fn set_role(&self, gid: u64, uid: u32, role: Role) -> Result<(), Error> {
        let path = format!("groups/{gid}/members/{uid}/role");
        self.done(HttpCall::new(Method::PUT, path).json(&json!({ "role": role }))).await
    }

    /// Adds somebody to a group.
    pub async fn add_member(&self, gid: u64, uid: u32) -> Result<(), Error> {
        let call = HttpCall::new(Method::POST, format!("groups/{gid}/members")).json(&json!({ "uid": uid }));
        self.done(call.done_if("already_member")).await
    }

    /// Removes somebody from a group, or leaves it. With several servers, `unknown_group` may mean that the caller has
    /// left already, by a try whose answer was lost.
    pub async fn remove_member(&self, gid: u64, uid: u32) -> Result<(), Error> {
        let call = HttpCall::new(Method::DELETE, format!("groups/{gid}/members/{uid}"));
        self.done(call.done_if("not_member")).await
    }

    /// Whether the process is up. Like the two calls below, it asks the server in use and no other.
    pub async fn health(&self) -> Result<(), Error> {
        self.own("health").await.map(drop)
    }

    /// Whether it can serve now.
    pub async fn ready(&self) -> Result<(), Error> {
        self.own("ready").await.map(drop)
    }

    /// The metrics, as Prometheus text.
    pub async fn metrics(&self) -> Result<String, Error> {
        Ok(self.own("metrics").await?.text().await?)
    }

    /// The server's answer about its own process: health, readiness or metrics.
    async fn own(&self, path: &str) -> Result<reqwest::Response, Error> {
        let url: Url = self.servers.at(self.servers.in_use(), path);
        let response = self.client.get(url).send().await?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        Err(Error::from_response(status.as_u16(), &response.bytes().await?))
    }

    async fn read<A: DeserializeOwned>(&self, call: HttpCall) -> Result<A, Error> {
        let bytes = call.ask(&self.client, &self.servers, self.token()).await?;
        serde_json::from_slice(&bytes).map_err(|e| Error::Protocol(e.to_string()))
    }

    async fn done(&self, call: HttpCall) -> Result<(), Error> {
        call.ask(&self.client, &self.servers, self.token()).await.map(drop)
    }
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
}
