//! Groups: making one, looking at it, describing it; coming and going, roles and bans.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;

use super::people::Person;
use super::{json, keep};
use crate::app::{Audited, Groups, Operators, Pictures};
use crate::domain::message;
use crate::domain::{self, Clock, FileId, GroupId, GroupSetting, Keep, SLOWEST, Timestamp, Uid};
use crate::http::error::Problem;
use crate::http::extract::{IdempotencyKey, Json, Segments, Session};
use crate::http::limits::Rates;
use crate::http::openapi::refusals::writing;
use crate::http::wire::{History, Role};

/// The purpose of the header `Idempotency-Key`.
pub(super) const KEY: &str =
    "Marks repetitions: after a timeout or a lost answer, send the same request with the same key";

/// A group to be made.
#[derive(Deserialize, ToSchema)]
pub(in crate::http) struct NewGroup {
    /// The group's name: visible characters, and single spaces between them.
    #[schema(min_length = 1, max_length = 80, example = "Harbour walk")]
    name: String,
    /// The members beside the caller, by uid.
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

/// Somebody in a group.
#[derive(Serialize, ToSchema)]
struct Member {
    uid: u32,
    name: String,
    /// The member's role.
    role: Role,
    /// Their messages to the group are refused; absent: they are taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    muted: Option<Muted>,
}

/// How long a member is muted.
#[derive(Serialize, ToSchema)]
struct Muted {
    /// When it ends; absent: it is for good.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = DateTime)]
    until: Option<String>,
}

/// A group as its members see it.
#[derive(Serialize, ToSchema)]
struct Group {
    #[schema(minimum = 1)]
    gid: u64,
    name: String,
    /// The group's purpose; may be empty.
    #[schema(max_length = 300)]
    topic: String,
    /// Whether new members see earlier messages.
    history: History,
    /// Seconds between two messages of one member who is no administrator; 0: no slow mode.
    #[schema(maximum = 3_600)]
    slow_seconds: u16,
    /// Seconds for which messages are kept; 0: for good, as far as the operator keeps them.
    #[schema(maximum = 31_536_000)]
    keep_seconds: u32,
    /// The group's picture, at `/files/pictures/g:{gid}/{picture}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<uuid::Uuid>, nullable = false)]
    picture: Option<FileId>,
    /// The caller's.
    role: Role,
    /// How many are in it.
    #[schema(minimum = 1)]
    member_count: usize,
    /// The members.
    members: Vec<Member>,
}

/// Make a group of oneself and others. The caller is its owner.
///
/// A repetition with the same `Idempotency-Key` makes no second group and gets the same answer.
#[utoipa::path(
    post, path = "/api/v1/groups", operation_id = "createGroup", tag = "Groups",
    params(("Idempotency-Key" = Option<uuid::Uuid>, Header, description = KEY)),
    request_body = NewGroup,
    responses((status = 201, body = GroupNumber, description = "Made")),
    extensions(("x-codes" = json!(writing([
        "rate_limited", "group_name", "group_full", "unknown_user", "group_changed", "client_id_reused",
        "blocked", "friends_add_only", "too_many_strangers",
    ])))),
)]
pub(in crate::http) async fn create(
    State(groups): State<Groups>,
    State(rates): State<Arc<Rates>>,
    Session(session): Session,
    IdempotencyKey(key): IdempotencyKey,
    Json(NewGroup { name, members }): Json<NewGroup>,
) -> Result<Response, Problem> {
    rates.send(session.uid, 1)?;
    // Each of them is asked.
    rates.look_up(session.uid, members.len())?;
    let gid = groups.create(session.uid, name, members.into_iter().map(Uid).collect(), key).await?;
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
    State(clock): State<Clock>,
    Session(session): Session,
    Segments(path): Segments<String>,
) -> Result<Response, Problem> {
    let view = groups.get(session.uid, gid(&path)?).await?;
    let now = clock.now();
    let muted = |mute: domain::Mute| Muted { until: mute.end().map(Timestamp::to_rfc3339) };
    let member = |(person, role): (message::Person, domain::Role)| Member {
        uid: person.uid.0,
        name: person.name,
        role: role.into(),
        muted: view.settings.mute_of(person.uid, now).map(muted),
    };
    let members: Vec<Member> = view.members.into_iter().map(member).collect();
    let answer = Group {
        gid: view.gid.0,
        name: view.settings.name,
        topic: view.settings.topic,
        history: view.settings.history.into(),
        slow_seconds: view.settings.slow_seconds,
        keep_seconds: view.settings.keep.seconds,
        picture: view.settings.picture,
        role: view.role.into(),
        member_count: members.len(),
        members,
    };
    Ok(json(StatusCode::OK, &answer))
}

/// Changes to a group; a field that is not given stays as it is.
#[derive(Deserialize, ToSchema)]
pub(in crate::http) struct Description {
    /// The group's name: visible characters, and single spaces between them.
    #[schema(min_length = 1, max_length = 80)]
    name: Option<String>,
    /// The group's purpose: one line of visible characters, and single spaces between them. Empty: none.
    #[schema(max_length = 300)]
    topic: Option<String>,
    /// Whether members that join from now on see earlier messages.
    #[schema(nullable = false)]
    history: Option<History>,
    /// Seconds between two messages of one member who is no administrator; 0: no slow mode.
    #[schema(nullable = false, maximum = 3_600)]
    slow_seconds: Option<u16>,
    /// Seconds for which messages are kept, at least 60; 0: for good. What is older is removed for everybody.
    #[schema(nullable = false, maximum = 31_536_000)]
    keep_seconds: Option<u32>,
    /// The group's picture: a file that the caller has uploaded; `null`: none.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<uuid::Uuid>)]
    picture: Option<Option<FileId>>,
}

/// A field that is there, also as `null`.
fn given<'de, D: Deserializer<'de>>(field: D) -> Result<Option<Option<FileId>>, D::Error> {
    Option::deserialize(field).map(Some)
}

/// Rename a group, set its topic, picture, slow mode and for how long it keeps messages, or say what those see who join it.
///
/// Its owner and administrators may. Where several are given, the name comes first, then the topic, the history, slow mode, the time
/// for messages, and the picture.
#[utoipa::path(
    patch, path = "/api/v1/groups/{gid}", operation_id = "describeGroup", tag = "Groups",
    params(("gid" = u64, Path, description = "The group's number")),
    request_body = Description,
    responses((status = 204, description = "Done")),
    extensions(("x-codes" = json!(writing([
        "rate_limited", "unknown_group", "administrators_only", "group_name", "group_topic", "group_changed",
        "unknown_file", "no_picture", "bad_picture", "picture_too_large", "files_unavailable", "no_room",
    ])))),
)]
pub(in crate::http) async fn describe(
    State(groups): State<Groups>,
    State(pictures): State<Pictures>,
    State(rates): State<Arc<Rates>>,
    Session(session): Session,
    Segments(path): Segments<String>,
    Json(Description { name, topic, history, slow_seconds, keep_seconds, picture }): Json<Description>,
) -> Result<Response, Problem> {
    let gid = gid(&path)?;
    if slow_seconds.is_some_and(|seconds| seconds > SLOWEST) {
        return Err(Problem::invalid_body(format!("`slow_seconds` is at most {SLOWEST}")));
    }
    let keep_seconds = keep_seconds.map(keep::checked).transpose()?;
    rates.send(session.uid, 1)?;
    let settings = [
        name.map(GroupSetting::Name),
        topic.map(GroupSetting::Topic),
        history.map(|history| GroupSetting::History(history.into())),
        slow_seconds.map(GroupSetting::SlowSeconds),
        keep_seconds.map(|seconds| GroupSetting::Keep(Keep { seconds, gone_before: 0 })),
    ];
    groups.describe(session.uid, gid, settings.into_iter().flatten()).await?;
    if let Some(picture) = picture {
        pictures.set_of_group(session.uid, gid, picture).await?;
    }
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Somebody to be taken in.
#[derive(Deserialize, ToSchema)]
pub(in crate::http) struct NewMember {
    uid: u32,
}

/// Take somebody in. Any member may.
///
/// A repetition with the same `Idempotency-Key` changes nothing and gets the same answer.
#[utoipa::path(
    post, path = "/api/v1/groups/{gid}/members", operation_id = "addMember", tag = "Groups",
    params(
        ("gid" = u64, Path, description = "The group's number"),
        ("Idempotency-Key" = Option<uuid::Uuid>, Header, description = KEY),
    ),
    request_body = NewMember,
    responses((status = 204, description = "Added")),
    extensions(("x-codes" = json!(writing([
        "rate_limited", "unknown_group", "unknown_user", "already_member", "banned", "group_full", "group_changed",
        "client_id_reused", "blocked", "friends_add_only", "too_many_strangers",
    ])))),
)]
pub(in crate::http) async fn add(
    State(groups): State<Groups>,
    State(rates): State<Arc<Rates>>,
    Session(session): Session,
    Segments(path): Segments<String>,
    IdempotencyKey(key): IdempotencyKey,
    Json(NewMember { uid }): Json<NewMember>,
) -> Result<Response, Problem> {
    let gid = gid(&path)?;
    rates.send(session.uid, 1)?;
    rates.look_up(session.uid, 1)?;
    groups.add(session.uid, gid, Uid(uid), key).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Put somebody out, which the owner and administrators may; oneself: leave.
///
/// When the owner leaves, the longest-standing administrator is the owner, or else the longest-standing member. The owner is not put
/// out, and administrators are put out by the owner alone. An invitation made before the removal does not let the removed member back in.
#[utoipa::path(
    delete, path = "/api/v1/groups/{gid}/members/{uid}", operation_id = "removeMember", tag = "Groups",
    params(
        ("gid" = u64, Path, description = "The group's number"),
        ("uid" = u32, Path, description = "The member; the caller's own uid to leave"),
    ),
    responses((status = 204, description = "Gone")),
    extensions(("x-codes" = json!(writing([
        "rate_limited", "unknown_group", "not_member", "administrators_only", "owner_only", "owner_stays",
        "group_changed",
    ])))),
)]
pub(in crate::http) async fn remove(
    State(groups): State<Groups>,
    State(operators): State<Operators>,
    State(rates): State<Arc<Rates>>,
    Session(session): Session,
    Segments(path): Segments<(String, String)>,
) -> Result<Response, Problem> {
    let (gid, uid) = member(&path)?;
    rates.send(session.uid, 1)?;
    groups.remove(session.uid, gid, uid).await?;
    if uid != session.uid {
        operators.audit().note_in_group(session.uid, Audited::MemberRemoved, uid, gid, "").await;
    }
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// A member's role from now on.
#[derive(Deserialize, ToSchema)]
pub(in crate::http) struct NewRole {
    /// `owner` hands the group over.
    role: Role,
}

/// Give a member another role.
///
/// The owner may. `owner` hands the group over: the owner so far is an administrator then.
#[utoipa::path(
    put, path = "/api/v1/groups/{gid}/members/{uid}/role", operation_id = "setRole", tag = "Groups",
    params(
        ("gid" = u64, Path, description = "The group's number"),
        ("uid" = u32, Path, description = "The member"),
    ),
    request_body = NewRole,
    responses((status = 204, description = "Done")),
    extensions(("x-codes" = json!(writing([
        "rate_limited", "unknown_group", "unknown_user", "not_member", "owner_only", "owner_stays", "group_changed",
    ])))),
)]
pub(in crate::http) async fn set_role(
    State(groups): State<Groups>,
    State(operators): State<Operators>,
    State(rates): State<Arc<Rates>>,
    Session(session): Session,
    Segments(path): Segments<(String, String)>,
    Json(NewRole { role }): Json<NewRole>,
) -> Result<Response, Problem> {
    let (gid, uid) = member(&path)?;
    rates.send(session.uid, 1)?;
    let role = domain::Role::from(role);
    if groups.set_role(session.uid, gid, uid, role).await? {
        operators.audit().note_in_group(session.uid, Audited::RoleChanged, uid, gid, role.as_str()).await;
    }
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// List who is banned from a group, for its owner and administrators.
#[utoipa::path(
    get, path = "/api/v1/groups/{gid}/bans", operation_id = "bans", tag = "Groups",
    params(("gid" = u64, Path, description = "The group's number")),
    responses((status = 200, body = Vec<Person>, description = "At most 1,000")),
    extensions(("x-codes" = json!(["unknown_group", "administrators_only"]))),
)]
pub(in crate::http) async fn bans(
    State(groups): State<Groups>,
    Session(session): Session,
    Segments(path): Segments<String>,
) -> Result<Response, Problem> {
    let banned = groups.banned(session.uid, gid(&path)?).await?;
    let people = banned.into_iter().map(|person| Person { uid: person.uid.0, name: person.name });
    Ok(json(StatusCode::OK, &people.collect::<Vec<_>>()))
}

/// Ban somebody: nobody adds them and no invitation lets them in until the ban is lifted. A member is put out.
///
/// The owner and administrators may. The owner cannot be banned, and administrators by the owner alone.
#[utoipa::path(
    put, path = "/api/v1/groups/{gid}/bans/{uid}", operation_id = "ban", tag = "Groups",
    params(
        ("gid" = u64, Path, description = "The group's number"),
        ("uid" = u32, Path, description = "Who"),
    ),
    responses((status = 204, description = "Done")),
    extensions(("x-codes" = json!(writing([
        "rate_limited", "unknown_group", "unknown_user", "administrators_only", "owner_only", "owner_stays",
        "too_many_bans", "group_changed",
    ])))),
)]
pub(in crate::http) async fn ban(
    State(groups): State<Groups>,
    State(operators): State<Operators>,
    State(rates): State<Arc<Rates>>,
    Session(session): Session,
    Segments(path): Segments<(String, String)>,
) -> Result<Response, Problem> {
    let (gid, uid) = member(&path)?;
    rates.send(session.uid, 1)?;
    if groups.ban(session.uid, gid, uid).await? {
        operators.audit().note_in_group(session.uid, Audited::MemberBanned, uid, gid, "").await;
    }
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Lift a ban. The user can be added again, or follow an invitation that was made after the ban.
///
/// The owner and administrators may.
#[utoipa::path(
    delete, path = "/api/v1/groups/{gid}/bans/{uid}", operation_id = "unban", tag = "Groups",
    params(
        ("gid" = u64, Path, description = "The group's number"),
        ("uid" = u32, Path, description = "Who"),
    ),
    responses((status = 204, description = "Done")),
    extensions(("x-codes" = json!(writing([
        "rate_limited", "unknown_group", "unknown_user", "administrators_only", "group_changed",
    ])))),
)]
pub(in crate::http) async fn unban(
    State(groups): State<Groups>,
    State(operators): State<Operators>,
    State(rates): State<Arc<Rates>>,
    Session(session): Session,
    Segments(path): Segments<(String, String)>,
) -> Result<Response, Problem> {
    let (gid, uid) = member(&path)?;
    rates.send(session.uid, 1)?;
    if groups.unban(session.uid, gid, uid).await? {
        operators.audit().note_in_group(session.uid, Audited::BanLifted, uid, gid, "").await;
    }
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// A group and one of its people, of an address.
pub(super) fn member((group, uid): &(String, String)) -> Result<(GroupId, Uid), Problem> {
    let uid = uid.parse().map_err(|_| Problem::invalid_query(format!("{uid} is not a uid")))?;
    Ok((gid(group)?, uid))
}

pub(in crate::http) fn gid(text: &str) -> Result<GroupId, Problem> {
    text.parse()
        .map(GroupId)
        .map_err(|_| Problem::invalid_query(format!("{text} is not the number of a group")))
}
