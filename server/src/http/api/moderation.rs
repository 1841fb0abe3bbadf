//! Muting and unmuting members of a group.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use utoipa::ToSchema;

use super::groups::member;
use crate::app::{Audited, Groups, Operators};
use crate::http::error::Problem;
use crate::http::extract::{Json, Segments, Session};
use crate::http::limits::Rates;
use crate::http::openapi::refusals::writing;

/// Seconds for which a member may be muted, but for good: a minute to a year.
const MUTE_SECONDS: std::ops::RangeInclusive<u32> = 60..=31_536_000;

/// For how long a member is muted.
#[derive(Deserialize, ToSchema)]
pub(in crate::http) struct MuteTime {
    /// Absent: for good.
    #[schema(nullable = false, minimum = 60, maximum = 31_536_000, example = 3_600)]
    seconds: Option<u32>,
}

/// Mute a member: messages to the group and edits there are refused, for a time or for good.
///
/// The owner and administrators may. The owner is not muted, and administrators by the owner alone. It outlasts a leaving.
#[utoipa::path(
    put, path = "/api/v1/groups/{gid}/members/{uid}/mute", operation_id = "mute", tag = "Groups",
    params(
        ("gid" = u64, Path, description = "The group's number"),
        ("uid" = u32, Path, description = "The member"),
    ),
    request_body = MuteTime,
    responses((status = 204, description = "Done")),
    extensions(("x-codes" = json!(writing([
        "rate_limited", "unknown_group", "unknown_user", "not_member", "administrators_only", "owner_only",
        "owner_stays", "too_many_mutes", "group_changed",
    ])))),
)]
pub(in crate::http) async fn mute(
    State(groups): State<Groups>,
    State(operators): State<Operators>,
    State(rates): State<Arc<Rates>>,
    Session(session): Session,
    Segments(path): Segments<(String, String)>,
    Json(MuteTime { seconds }): Json<MuteTime>,
) -> Result<Response, Problem> {
    let (gid, uid) = member(&path)?;
    if seconds.is_some_and(|seconds| !MUTE_SECONDS.contains(&seconds)) {
        let (least, most) = (MUTE_SECONDS.start(), MUTE_SECONDS.end());
        return Err(Problem::invalid_body(format!("`seconds` is {least} to {most}, or absent: for good")));
    }
    rates.send(session.uid, 1)?;
    let time = seconds.map(|seconds| Duration::from_secs(seconds.into()));
    if groups.mute(session.uid, gid, uid, time).await? {
        let lasts = seconds.map_or_else(|| "for good".to_owned(), |seconds| format!("{seconds} seconds"));
        operators.audit().note_in_group(session.uid, Audited::MemberMuted, uid, gid, &lasts).await;
    }
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Lift a mute. It also ends by itself at its time.
///
/// The owner and administrators may, administrators not that of another administrator.
#[utoipa::path(
    delete, path = "/api/v1/groups/{gid}/members/{uid}/mute", operation_id = "unmute", tag = "Groups",
    params(
        ("gid" = u64, Path, description = "The group's number"),
        ("uid" = u32, Path, description = "The member"),
    ),
    responses((status = 204, description = "Done")),
    extensions(("x-codes" = json!(writing([
        "rate_limited", "unknown_group", "unknown_user", "administrators_only", "owner_only", "owner_stays",
        "group_changed",
    ])))),
)]
pub(in crate::http) async fn unmute(
    State(groups): State<Groups>,
    State(operators): State<Operators>,
    State(rates): State<Arc<Rates>>,
    Session(session): Session,
    Segments(path): Segments<(String, String)>,
) -> Result<Response, Problem> {
    let (gid, uid) = member(&path)?;
    rates.send(session.uid, 1)?;
    if groups.unmute(session.uid, gid, uid).await? {
        operators.audit().note_in_group(session.uid, Audited::MuteLifted, uid, gid, "").await;
    }
    Ok(StatusCode::NO_CONTENT.into_response())
}
