//! Groups: making one, looking at it, coming and going.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::json;
use super::people::Person;
use crate::app::Groups;
use crate::domain::{GroupId, Uid};
use crate::http::error::Problem;
use crate::http::extract::{Json, Segments, Session};
use crate::http::limits::Rates;
use crate::http::openapi::refusals::writing;

/// A group to be made.
#[derive(Deserialize, ToSchema)]
pub(in crate::http) struct NewGroup {
    /// What people call it: visible characters, and single spaces between them.
    #[schema(min_length = 1, max_length = 80, example = "Harbour walk")]
    name: String,
    /// Who is in it beside the caller, by uid.
    #[serde(default)]
    #[schema(max_items = 500)]
    members: Vec<u32>,
}

/// Which group.
#[derive(Serialize, ToSchema)]
pub(super) struct GroupNumber {
    #[schema(minimum = 1)]
    pub(super) gid: u64,
}

/// A group as its members see it.
#[derive(Serialize, ToSchema)]
struct Group {
    #[schema(minimum = 1)]
    gid: u64,
    name: String,
    /// Who is in it.
    members: Vec<Person>,
}

/// Make a group of oneself and others.
#[utoipa::path(
    post, path = "/api/v1/groups", operation_id = "createGroup", tag = "Groups",
    request_body = NewGroup,
    responses((status = 201, body = GroupNumber, description = "Made")),
    extensions(("x-codes" = json!(writing([
        "rate_limited", "group_name", "group_full", "unknown_user", "group_changed",
    ])))),
)]
pub(in crate::http) async fn create(
    State(groups): State<Groups>,
    State(rates): State<Arc<Rates>>,
    Session(session): Session,
    Json(NewGroup { name, members }): Json<NewGroup>,
) -> Result<Response, Problem> {
    rates.send(session.uid, 1)?;
    let gid = groups.create(session.uid, name, members.into_iter().map(Uid).collect()).await?;
    Ok(json(StatusCode::CREATED, &GroupNumber { gid: gid.0 }))
}

/// Get a group that one is in.
#[utoipa::path(
    get, path = "/api/v1/groups/{gid}", operation_id = "group", tag = "Groups",
    params(("gid" = u64, Path, description = "The group's number")),
    responses((status = 200, body = Group, description = "The group")),
    extensions(("x-codes" = json!(["unknown_group"]))),
)]
pub(in crate::http) async fn show(
    State(groups): State<Groups>,
    Session(session): Session,
    Segments(path): Segments<String>,
) -> Result<Response, Problem> {
    let view = groups.get(session.uid, gid(&path)?).await?;
    let members = view.members.into_iter().map(|person| Person { uid: person.uid.0, name: person.name });
    Ok(json(StatusCode::OK, &Group { gid: view.gid.0, name: view.name, members: members.collect() }))
}

/// Somebody to be taken in.
#[derive(Deserialize, ToSchema)]
pub(in crate::http) struct NewMember {
    uid: u32,
}

/// Take somebody in.
#[utoipa::path(
    post, path = "/api/v1/groups/{gid}/members", operation_id = "addMember", tag = "Groups",
    params(("gid" = u64, Path, description = "The group's number")),
    request_body = NewMember,
    responses((status = 204, description = "Taken in")),
    extensions(("x-codes" = json!(writing([
        "rate_limited", "unknown_group", "unknown_user", "already_member", "group_full", "group_changed",
    ])))),
)]
pub(in crate::http) async fn add(
    State(groups): State<Groups>,
    State(rates): State<Arc<Rates>>,
    Session(session): Session,
    Segments(path): Segments<String>,
    Json(NewMember { uid }): Json<NewMember>,
) -> Result<Response, Problem> {
    let gid = gid(&path)?;
    rates.send(session.uid, 1)?;
    groups.add(session.uid, gid, Uid(uid)).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Put somebody out; oneself: leave.
#[utoipa::path(
    delete, path = "/api/v1/groups/{gid}/members/{uid}", operation_id = "removeMember", tag = "Groups",
    params(
        ("gid" = u64, Path, description = "The group's number"),
        ("uid" = u32, Path, description = "Who; one's own uid to leave"),
    ),
    responses((status = 204, description = "Gone")),
    extensions(("x-codes" = json!(writing(["rate_limited", "unknown_group", "not_member", "group_changed"])))),
)]
pub(in crate::http) async fn remove(
    State(groups): State<Groups>,
    State(rates): State<Arc<Rates>>,
    Session(session): Session,
    Segments((group, uid)): Segments<(String, String)>,
) -> Result<Response, Problem> {
    let gid = gid(&group)?;
    let uid: Uid = uid.parse().map_err(|_| Problem::invalid_query(format!("{uid} is no uid")))?;
    rates.send(session.uid, 1)?;
    groups.remove(session.uid, gid, uid).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

pub(in crate::http) fn gid(text: &str) -> Result<GroupId, Problem> {
    text.parse().map(GroupId).map_err(|_| Problem::invalid_query(format!("{text} is no number of a group")))
}
