//! Groups: making one, looking at it, coming and going.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};

use super::json;
use super::people::Person;
use crate::app::Groups;
use crate::domain::{GroupId, Uid};
use crate::http::error::Problem;
use crate::http::extract::{Json, Segments, Session};
use crate::http::limits::Rates;

/// A group to be made.
#[derive(Deserialize)]
pub(in crate::http) struct NewGroup {
    name: String,
    #[serde(default)]
    members: Vec<u32>,
}

#[derive(Serialize)]
struct Made {
    gid: u64,
}

#[derive(Serialize)]
struct View {
    gid: u64,
    name: String,
    members: Vec<Person>,
}

/// `POST /groups`
pub(in crate::http) async fn create(
    State(groups): State<Groups>,
    State(rates): State<Arc<Rates>>,
    Session(session): Session,
    Json(NewGroup { name, members }): Json<NewGroup>,
) -> Result<Response, Problem> {
    rates.send(session.uid, 1)?;
    let gid = groups.create(session.uid, name, members.into_iter().map(Uid).collect()).await?;
    Ok(json(StatusCode::CREATED, &Made { gid: gid.0 }))
}

/// `GET /groups/{gid}`
pub(in crate::http) async fn show(
    State(groups): State<Groups>,
    Session(session): Session,
    Segments(path): Segments<String>,
) -> Result<Response, Problem> {
    let view = groups.get(session.uid, gid(&path)?).await?;
    let members = view.members.into_iter().map(|person| Person { uid: person.uid.0, name: person.name });
    Ok(json(StatusCode::OK, &View { gid: view.gid.0, name: view.name, members: members.collect() }))
}

/// Somebody to be taken in.
#[derive(Deserialize)]
pub(in crate::http) struct NewMember {
    uid: u32,
}

/// `POST /groups/{gid}/members`
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

/// `DELETE /groups/{gid}/members/{uid}`: oneself leaves, another is put out.
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
