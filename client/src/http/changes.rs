//! Calls that change what is there: messages, settings, friends, moments and groups.
//!
//! Those that take a key store one row. The same key again gets the first answer, so that a call whose answer was lost
//! is repeated as it is.

use reqwest::Method;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use uuid::Uuid;

use super::Http;
use super::call::HttpCall;
use crate::error::Error;
use crate::wire::{Conversation, Description, History, NewValue, Person, Sent};

impl Http {
    /// Gives a message of the caller's another text. `message_id`: its row in the caller's inbox, as in the calls below.
    pub async fn edit(
        &self,
        key: Uuid,
        conversation: Conversation,
        message_id: u64,
        text: &str,
    ) -> Result<Sent, Error> {
        let edit = json!({ "client_id": key, "body": { "text": text } });
        self.amend(conversation, message_id, "edit", edit).await
    }

    /// Takes a message of the caller's back, or any message of a group that the caller owns or administrates.
    pub async fn recall(
        &self,
        key: Uuid,
        conversation: Conversation,
        message_id: u64,
    ) -> Result<Sent, Error> {
        self.amend(conversation, message_id, "recall", json!({ "client_id": key })).await
    }

    /// Reacts to a message with these emoji alone; none: takes the reaction back.
    pub async fn react(
        &self,
        key: Uuid,
        conversation: Conversation,
        message_id: u64,
        emoji: &[String],
    ) -> Result<Sent, Error> {
        let reaction = json!({ "client_id": key, "emoji": emoji });
        self.amend(conversation, message_id, "reaction", reaction).await
    }

    /// Pins a message for everybody in the conversation, or no longer.
    pub async fn pin(
        &self,
        key: Uuid,
        conversation: Conversation,
        message_id: u64,
        pinned: bool,
    ) -> Result<Sent, Error> {
        self.amend(conversation, message_id, "pin", json!({ "client_id": key, "pinned": pinned })).await
    }

    /// Stars a message for the caller alone, to be found again on all devices, or takes its star away.
    pub async fn star(
        &self,
        key: Uuid,
        conversation: Conversation,
        message_id: u64,
        starred: bool,
    ) -> Result<Sent, Error> {
        self.amend(conversation, message_id, "star", json!({ "client_id": key, "starred": starred })).await
    }

    /// Deletes a message for the caller alone.
    pub async fn delete_message(
        &self,
        key: Uuid,
        conversation: Conversation,
        message_id: u64,
    ) -> Result<Sent, Error> {
        self.amend(conversation, message_id, "delete", json!({ "client_id": key })).await
    }

    async fn amend(
        &self,
        conversation: Conversation,
        message_id: u64,
        what: &str,
        body: Value,
    ) -> Result<Sent, Error> {
        let path = format!("conversations/{conversation}/messages/{message_id}/{what}");
        self.read(HttpCall::new(Method::POST, path).json(&body)).await
    }

    /// Sets a setting of a conversation, on all devices of the caller; `null` clears it.
    pub async fn set(
        &self,
        key: Uuid,
        conversation: Conversation,
        name: &str,
        value: &RawValue,
    ) -> Result<Sent, Error> {
        let path = format!("conversations/{conversation}/settings/{name}");
        self.read(HttpCall::new(Method::PUT, path).json(&NewValue { client_id: key, value })).await
    }

    /// Sets a setting that is the same for all conversations.
    pub async fn set_for_all(&self, key: Uuid, name: &str, value: &RawValue) -> Result<Sent, Error> {
        let path = format!("settings/{name}");
        self.read(HttpCall::new(Method::PUT, path).json(&NewValue { client_id: key, value })).await
    }

    /// Gives the caller another name, at most once a week, and answers it.
    pub async fn rename(&self, name: &str) -> Result<Person, Error> {
        self.read(HttpCall::new(Method::PUT, "me/name").json(&json!({ "name": name }))).await
    }

    /// Says whether the caller wants to be a friend of `uid`; they are friends when both do.
    pub async fn befriend(&self, key: Uuid, uid: u32, wanted: bool) -> Result<Sent, Error> {
        let wish = json!({ "client_id": key, "wanted": wanted });
        self.read(HttpCall::new(Method::PUT, format!("friends/{uid}")).json(&wish)).await
    }

    /// Keeps messages with `uid` for so many seconds from now on, 60 to 31,536,000; 0: for good. What is older is removed for both.
    pub async fn keep(&self, key: Uuid, uid: u32, seconds: u32) -> Result<Sent, Error> {
        let keep = json!({ "client_id": key, "keep_seconds": seconds });
        self.read(HttpCall::new(Method::PUT, format!("conversations/u:{uid}/keep")).json(&keep)).await
    }

    /// Tells all friends something, but those in `except`.
    pub async fn post_moment(&self, key: Uuid, text: &str, except: &[u32]) -> Result<Sent, Error> {
        let moment = json!({ "client_id": key, "text": text, "except": except });
        self.read(HttpCall::new(Method::POST, "moments").json(&moment)).await
    }

    /// Likes a moment, or no longer.
    pub async fn like(&self, key: Uuid, moment: u64, liked: bool) -> Result<Sent, Error> {
        let like = json!({ "client_id": key, "liked": liked });
        self.read(HttpCall::new(Method::PUT, format!("moments/{moment}/like")).json(&like)).await
    }

    /// Says something about a moment.
    pub async fn comment(&self, key: Uuid, moment: u64, text: &str) -> Result<Sent, Error> {
        let comment = json!({ "client_id": key, "text": text });
        self.read(HttpCall::new(Method::POST, format!("moments/{moment}/comments")).json(&comment)).await
    }

    /// Deletes a moment or a comment of the caller's for everybody.
    pub async fn delete_moment(&self, key: Uuid, message_id: u64) -> Result<Sent, Error> {
        let call = HttpCall::new(Method::POST, format!("moments/{message_id}/delete"));
        self.read(call.json(&json!({ "client_id": key }))).await
    }

    /// Gives a group another name, another topic, or both.
    pub async fn describe_group(
        &self,
        gid: u64,
        name: Option<&str>,
        topic: Option<&str>,
    ) -> Result<(), Error> {
        let call = HttpCall::new(Method::PATCH, format!("groups/{gid}")).json(&Description {
            name,
            topic,
            ..Description::default()
        });
        self.done(call).await
    }

    /// Says what those see who join a group from now on.
    pub async fn set_history(&self, gid: u64, history: History) -> Result<(), Error> {
        let description = Description { history: Some(history), ..Description::default() };
        self.done(HttpCall::new(Method::PATCH, format!("groups/{gid}")).json(&description)).await
    }

    /// Sets the seconds between two messages of one member of a group, 0 to 3,600; 0: no slow mode.
    pub async fn set_slow_mode(&self, gid: u64, seconds: u16) -> Result<(), Error> {
        let description = Description { slow_seconds: Some(seconds), ..Description::default() };
        self.done(HttpCall::new(Method::PATCH, format!("groups/{gid}")).json(&description)).await
    }

    /// Keeps messages of a group for so many seconds from now on, 60 to 31,536,000; 0: for good. What is older is removed for everybody.
    pub async fn keep_in_group(&self, gid: u64, seconds: u32) -> Result<(), Error> {
        let description = Description { keep_seconds: Some(seconds), ..Description::default() };
        self.done(HttpCall::new(Method::PATCH, format!("groups/{gid}")).json(&description)).await
    }

    /// Mutes a member of a group, for 60 to 31,536,000 seconds; `None`: until [`Http::unmute`].
    pub async fn mute(&self, gid: u64, uid: u32, seconds: Option<u32>) -> Result<(), Error> {
        let time = seconds.map_or_else(|| json!({}), |seconds| json!({ "seconds": seconds }));
        self.done(HttpCall::new(Method::PUT, format!("groups/{gid}/members/{uid}/mute")).json(&time)).await
    }

    /// Takes the messages of a member again.
    pub async fn unmute(&self, gid: u64, uid: u32) -> Result<(), Error> {
        self.done(HttpCall::new(Method::DELETE, format!("groups/{gid}/members/{uid}/mute"))).await
    }

    /// Bans somebody from a group: out, and not in again until [`Http::unban`].
    pub async fn ban(&self, gid: u64, uid: u32) -> Result<(), Error> {
        self.done(HttpCall::new(Method::PUT, format!("groups/{gid}/bans/{uid}"))).await
    }

    /// Lifts a ban.
    pub async fn unban(&self, gid: u64, uid: u32) -> Result<(), Error> {
        self.done(HttpCall::new(Method::DELETE, format!("groups/{gid}/bans/{uid}"))).await
    }
}
