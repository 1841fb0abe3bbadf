//! Calls about reports: making them, and what the administrators of a group do about those of its messages.

use reqwest::Method;
use serde_json::json;
use uuid::Uuid;

use super::Http;
use super::call::HttpCall;
use crate::error::Error;
use crate::wire::{Conversation, Reason, ReportPage};

impl Http {
    /// Reports somebody else's message. `message_id`: its row in the caller's inbox; `text`: at most 1,000 characters, may be empty.
    pub async fn report_message(
        &self,
        key: Uuid,
        conversation: Conversation,
        message_id: u64,
        reason: Reason,
        text: &str,
    ) -> Result<(), Error> {
        let path = format!("conversations/{conversation}/messages/{message_id}/report");
        let report = json!({ "client_id": key, "reason": reason, "text": text });
        self.done(HttpCall::new(Method::POST, path).json(&report)).await
    }

    /// Reports a person to the operators of the server.
    pub async fn report_person(&self, key: Uuid, uid: u32, reason: Reason, text: &str) -> Result<(), Error> {
        let report = json!({ "client_id": key, "reason": reason, "text": text });
        self.done(HttpCall::new(Method::POST, format!("users/{uid}/report")).json(&report)).await
    }

    /// The open reports of messages of a group that the caller owns or administrates: a page of those with numbers above `after`.
    pub async fn group_reports(&self, gid: u64, after: u64) -> Result<ReportPage, Error> {
        self.read(HttpCall::new(Method::GET, format!("groups/{gid}/reports?after={after}"))).await
    }

    /// Takes a report off the list of a group.
    pub async fn dismiss_report(&self, gid: u64, number: u64) -> Result<(), Error> {
        self.done(HttpCall::new(Method::DELETE, format!("groups/{gid}/reports/{number}"))).await
    }
}
