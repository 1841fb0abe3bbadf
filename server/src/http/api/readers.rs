//! Which members of a group have read a message.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::Serialize;
use utoipa::ToSchema;

use super::json;
use super::people::Person;
use crate::app::Conversations;
use crate::domain::{GroupId, MessageId};
use crate::http::error::Problem;
use crate::http::extract::{Segments, Session};
use crate::http::limits::Rates;

/// The readers of a message.
#[derive(Serialize, ToSchema)]
struct Readers {
    /// By uid, without the author.
    #[schema(max_items = 49)]
    readers: Vec<Person>,
}

/// Ask which members of a group have read a message of the caller.
///
/// In groups of at most 50 members. Members that do not tell others how far they have read (`quiet` of the setting `privacy`) are left
/// out; a caller that does not tell gets an empty list.
#[utoipa::path(
    get, path = "/api/v1/groups/{gid}/messages/{message_id}/readers", operation_id = "readers", tag = "Groups",
    params(
        ("gid" = u64, Path, description = "The group's number"),
        ("message_id" = u64, Path, description = "The message: its row in the caller's inbox"),
    ),
    responses((status = 200, body = Readers, description = "The readers")),
    extensions(("x-codes" = json!(["rate_limited", "unknown_group", "no_message", "not_yours", "too_many_members"]))),
)]
pub(in crate::http) async fn readers(
    State(conversations): State<Conversations>,
    State(rates): State<Arc<Rates>>,
    Session(session): Session,
    Segments((gid, message_id)): Segments<(u64, u64)>,
) -> Result<Response, Problem> {
    rates.look_up(session.uid, 1)?;
    let message_id = MessageId::new(message_id)
        .ok_or_else(|| Problem::invalid_query("message_id is larger than the id of any row"))?;
    let readers = conversations.readers(session.uid, GroupId(gid), message_id).await?;
    let readers = readers.into_iter().map(|(uid, name)| Person { uid: uid.0, name }).collect();
    Ok(json(StatusCode::OK, &Readers { readers }))
}
