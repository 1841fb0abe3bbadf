//! Writes into the table `inbox`: rows of the queues, in the name of the access key's user.

use std::sync::Arc;

use tidemark_table::operations::batch::RowAnswer;
use tidemark_table::rows::capacity::Consumed;
use tidemark_table::rows::write::{Decided, PutColumn, Returns, RowWrite, WriteChange, WriteRefusal, decide};
use tidemark_table::{ErrorCode, KeyValue, Row, TableError, Value};
use uuid::Uuid;

use super::definition;
use crate::app::messages::Post;
use crate::app::{Messages, SendError};
use crate::domain::{AppKind, Body, ClientId, Content, Conversation, Kind, Timestamp, Uid};
use crate::table::error::{busy, internal, timeout};

/// Bytes that a character of a text may have.
const MOST_BYTES_A_CHARACTER: usize = 4;

/// The way of rows into inboxes.
#[derive(Clone)]
pub struct Posts {
    messages: Messages,
    /// Characters of a text; the body of a program's own kind may have as many bytes as a text of so many characters.
    text_characters: usize,
    may_post: MayPost,
}

/// Takes one row out of what its sender may send now, or says no.
pub type MayPost = Arc<dyn Fn(Uid) -> bool + Send + Sync>;

impl Posts {
    /// Through these queues, at the senders' rates.
    pub fn new(messages: Messages, text_characters: usize, may_post: MayPost) -> Posts {
        Posts { messages, text_characters, may_post }
    }

    /// Writes a row of the table `inbox`, sent by `sender`, if it is one that can be put there.
    pub(in crate::table) async fn write(&self, sender: Uid, write: &RowWrite, now: Timestamp) -> RowAnswer {
        let refused = |error: TableError| {
            let write = i32::from(error.code.status() < 500);
            RowAnswer { consumed: Consumed { read: 0, write }, outcome: Err(error) }
        };
        let post = match self.post_of(sender, write) {
            Ok(post) => post,
            Err(error) => return refused(error),
        };
        match decide(&definition(), write, None, now.0) {
            Err(WriteRefusal { error, consumed }) => RowAnswer { consumed, outcome: Err(error) },
            Ok(_) if !(self.may_post)(sender) => refused(too_many()),
            Ok(Decided { consumed, .. }) => match self.send(sender, write, post).await {
                Ok(row) => RowAnswer { consumed, outcome: Ok(row) },
                Err(error) => refused(error),
            },
        }
    }

    async fn send(&self, sender: Uid, write: &RowWrite, post: Post) -> Result<Option<Row>, TableError> {
        let is_once_only = post.client_id.is_some();
        let sent = self.messages.post(sender, post).await;
        let sent = sent.map_err(|error| refusal(&error, is_once_only))?;
        let id = sent.message_id.get().cast_signed();
        Ok(match write.returns {
            Returns::Nothing => None,
            Returns::Key | Returns::AfterModify(_) => {
                Some(Row { key: write.key.with(Some(id)), cells: Vec::new() })
            }
        })
    }

    fn post_of(&self, sender: Uid, write: &RowWrite) -> Result<Post, TableError> {
        let WriteChange::Put(columns) = &write.change else {
            let message =
                "Unsupported operation: rows of the table inbox can be put, but neither updated nor deleted.";
            return Err(TableError::new(ErrorCode::UnsupportedOperation, message));
        };
        if !write.key.is_assigned() {
            return Err(TableError::invalid(
                "message_id of the table inbox is assigned: put the row with the placeholder of an auto-increment column.",
            ));
        }
        let receiver = receiver(write)?;
        let (mut kind, mut conversation, mut client_id, mut body) = (None, None, None, None);
        for PutColumn { name, value, timestamp } in columns {
            let Value::String(text) = value else {
                return Err(TableError::invalid(format!(
                    "The column {name} of the table inbox is a string."
                )));
            };
            if timestamp.is_some() {
                return Err(TableError::invalid(
                    "The table inbox takes no timestamps: the timestamp of a row is the time of its sending.",
                ));
            }
            let place = match name.as_str() {
                "kind" => &mut kind,
                "conversation" => &mut conversation,
                "client_id" => &mut client_id,
                "body" => &mut body,
                _ => {
                    return Err(TableError::invalid(format!(
                        "Invalid column name: '{name}'. In the table inbox write kind, conversation, client_id and body."
                    )));
                }
            };
            *place = Some(text.as_str());
        }
        let target = match conversation {
            None => Conversation::User(receiver),
            Some(text) => target(text, receiver, sender)?,
        };
        let client_id = client_id.map(client_id_of).transpose()?;
        let Some(body) = body else {
            return Err(TableError::invalid("A row of the table inbox needs the column body."));
        };
        let (kind, body) = self.said(kind.unwrap_or("message"), body)?;
        Ok(Post { client_id, receiver, target, kind, body })
    }

    /// The kind and the body of a row. The body of a message is `{"text": …}`, or the text itself where it is no such object.
    fn said(&self, kind: &str, body: &str) -> Result<(Kind, Body), TableError> {
        let refused = |why: &dyn std::fmt::Display| TableError::invalid(format!("Invalid body: {why}."));
        if kind == Kind::Message.as_str() {
            let text = text_of(body);
            if text.is_none() && serde_json::from_str::<serde_json::Map<_, serde_json::Value>>(body).is_ok() {
                return Err(refused(
                    &"of a message it is {\"text\": …} and nothing else, or the text itself",
                ));
            }
            let body = Body::text(text.as_deref().unwrap_or(body), self.text_characters);
            return Ok((Kind::Message, body.map_err(|error| refused(&error))?));
        }
        let Some(kind) = AppKind::new(kind) else {
            return Err(TableError::invalid(format!(
                "Invalid kind: '{kind}'. It is message, or app. and 1 to 60 of a-z, 0-9, '.', '-' and '_'."
            )));
        };
        let most = self.text_characters.saturating_mul(MOST_BYTES_A_CHARACTER);
        let body = Body::app(&kind, body, most).map_err(|error| refused(&error))?;
        Ok((Kind::App, body))
    }
}

/// The sender is over its rate. Clients of Tablestore send such a row again by themselves.
fn too_many() -> TableError {
    TableError::new(ErrorCode::NotEnoughCapacityUnit, "Remaining capacity unit is not enough.")
}

/// The text of `{"text": …}`.
fn text_of(body: &str) -> Option<String> {
    #[derive(serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct PostText {
        text: String,
    }
    serde_json::from_str::<PostText>(body).ok().map(|body| body.text)
}

fn receiver(write: &RowWrite) -> Result<Uid, TableError> {
    let key = write.key.with(None);
    let [(_, KeyValue::String(partition)), (_, KeyValue::Integer(number)), ..] = &key[..] else {
        return Err(internal());
    };
    let Ok(uid) = u32::try_from(*number).map(Uid) else {
        return Err(TableError::invalid(format!("No user has the number {number}; receiver is a uid.")));
    };
    let expected = uid.partition_key();
    if partition != expected.as_str() {
        return Err(TableError::invalid(format!(
            "The partition_key of the receiver {uid} is {expected}, the first 4 hex digits of md5 of its decimal digits; not '{}'.",
            partition.chars().take(64).collect::<String>()
        )));
    }
    Ok(uid)
}

/// The conversation as the sender sees it. `text`: as the receiver does, in the way of the column.
fn target(text: &str, receiver: Uid, sender: Uid) -> Result<Conversation, TableError> {
    match text.parse() {
        Ok(seen @ Conversation::Group(_)) => Ok(seen),
        Ok(seen) if seen == Conversation::User(sender) => Ok(Content::target_of(receiver, sender, seen)),
        _ => Err(TableError::invalid(format!(
            "Invalid conversation: it is u:{sender}, that with the sender, or g:GID, a group that both are in."
        ))),
    }
}

fn client_id_of(text: &str) -> Result<ClientId, TableError> {
    let id = Uuid::parse_str(text).map(ClientId);
    id.map_err(|_| {
        TableError::invalid(
            "Invalid client_id: it is a UUID, another one for each row that is meant to be new.",
        )
    })
}

/// Why the queues did not take a row, in the way of tables.
fn refusal(error: &SendError, is_once_only: bool) -> TableError {
    match error {
        SendError::Busy | SendError::Stopping | SendError::GroupChanged | SendError::OutOfOrder => busy(),
        // It may have been stored. A retry with the same client_id finds out.
        SendError::Unavailable if is_once_only => busy(),
        SendError::Unavailable => timeout(),
        SendError::Exhausted | SendError::Rejected => internal(),
        other => {
            let mut message = other.to_string();
            if let Some(first) = message.get(..1) {
                let first = first.to_uppercase();
                message.replace_range(..1, &first);
            }
            TableError::invalid(format!("{message}."))
        }
    }
}
