//! Pictures of people and groups.

use reqwest::Method;
use serde_json::json;
use uuid::Uuid;

use super::Http;
use super::call::HttpCall;
use crate::error::Error;
use crate::wire::{Conversation, Sent, ShownPerson};

impl Http {
    /// Gives the caller this picture, a file of [`Http::upload`]; `None`: takes it away. Others see its middle.
    ///
    /// # Errors
    /// When the file is no picture of the caller's.
    pub async fn set_picture(&self, key: Uuid, file: Option<Uuid>) -> Result<Sent, Error> {
        let value = file.map(|file| json!({ "file": file }));
        let call = HttpCall::new(Method::PUT, "settings/picture");
        self.read(call.json(&json!({ "client_id": key, "value": value }))).await
    }

    /// Gives a group this picture, likewise, which its owner and administrators may.
    ///
    /// # Errors
    /// When the caller may not, or the file is no picture of the caller's.
    pub async fn set_group_picture(&self, gid: u64, file: Option<Uuid>) -> Result<(), Error> {
        let call = HttpCall::new(Method::PATCH, format!("groups/{gid}"));
        self.done(call.json(&json!({ "picture": file }))).await
    }

    /// The profiles of these people, at most 100: those that exist, in this order.
    ///
    /// # Errors
    /// When the server refuses, or does not answer.
    pub async fn profiles(&self, uids: &[u32]) -> Result<Vec<ShownPerson>, Error> {
        let uids: Vec<String> = uids.iter().map(u32::to_string).collect();
        self.read(HttpCall::new(Method::GET, "profiles").query("uids", uids.join(","))).await
    }

    /// The picture of a person or a group, by the id that [`ShownPerson`], [`crate::Group`] or a line of the list has: a square of at most
    /// 256 pixels a side.
    ///
    /// # Errors
    /// When it is not the picture any more, or the caller is not in the group.
    pub async fn picture(&self, of: Conversation, picture: Uuid) -> Result<Vec<u8>, Error> {
        self.bytes(&format!("files/pictures/{of}/{picture}")).await
    }
}
