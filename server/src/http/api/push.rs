//! The caller's device and Web Push: whether it is told of messages while it has no connection.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::json;
use crate::app::{InboxSync, Push, SubscribeError};
use crate::domain::MessageId;
use crate::http::error::Problem;
use crate::http::extract::{Json, Session};
use crate::http::limits::Rates;
use crate::push::{DeviceKeys, Endpoint};

/// The device of a session as the server knows it, and the key that it subscribes with.
#[derive(Serialize, ToSchema)]
struct PushState {
    /// The key of the server, for `applicationServerKey`: base64url without padding. `null`: the operator has switched push off.
    #[schema(required, pattern = "^[A-Za-z0-9_-]{87}$")]
    key: Option<String>,
    /// Where pushes for the device go. `null`: it is not subscribed.
    #[schema(required)]
    endpoint: Option<String>,
    /// The caller's latest committed id.
    seq: u64,
    /// Names one unbroken life of the data, as in `GET /seq`.
    #[schema(format = Uuid)]
    history: String,
    /// Rows up to this id have expired: a device that has come less far lacks some for good, and starts over. 0: none has.
    expired_to: u64,
}

/// A subscription as `PushSubscription.toJSON()` of a browser writes it, and how far the device has come.
#[derive(Deserialize, ToSchema)]
pub(in crate::http) struct NewSubscription {
    /// An https address of a push service.
    #[schema(max_length = 1024, example = "https://updates.push.services.mozilla.com/wpush/v2/gAAAAABe")]
    endpoint: String,
    /// The keys of the device.
    keys: SubscriptionKeys,
    /// The device has the rows up to this id. Absent: all that are there.
    seq: Option<u64>,
}

/// base64url, as browsers write it.
#[derive(Deserialize, ToSchema)]
struct SubscriptionKeys {
    /// The public key: a point of P-256, 65 bytes.
    #[schema(
        example = "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"
    )]
    p256dh: String,
    /// The secret, 16 bytes.
    #[schema(example = "BTBZMqHH6r4Tts7J_aSIgg")]
    auth: String,
}

/// Get the server's key for push, whether the device is subscribed, and how far the inbox goes.
///
/// A device that a push has woken asks it before it takes rows: they must fit those that it has.
#[utoipa::path(
    get, path = "/api/v1/sessions/current/push", operation_id = "push", tag = "Accounts",
    responses((status = 200, body = PushState, description = "The key, and where pushes for this session go")),
)]
pub(in crate::http) async fn show(
    State(push): State<Push>,
    State(sync): State<InboxSync>,
    Session(session): Session,
) -> Result<Response, Problem> {
    let state = PushState {
        key: push.public_key(),
        endpoint: push.endpoint(&session).await?,
        seq: sync.watermark(session.uid).await?.latest().get(),
        history: sync.history().to_string(),
        expired_to: sync.expired_to(session.uid).await?.get(),
    };
    Ok(json(StatusCode::OK, &state))
}

/// Subscribe the device of the session to push, or say how far it has come.
///
/// A session has one subscription, which ends with it. While the session has no WebSocket, the server sends one push, `{"seq": SEQ}`, when
/// somebody else has sent a message. It sends no other until the device says, by the same call with `seq`, that it has the rows up to there, or opens a WebSocket.
#[utoipa::path(
    put, path = "/api/v1/sessions/current/push", operation_id = "subscribeToPush", tag = "Accounts",
    request_body = NewSubscription,
    responses((status = 204, description = "Subscribed")),
    extensions(("x-codes" = json!(["rate_limited", "push_off", "bad_push_endpoint", "bad_push_keys"]))),
)]
pub(in crate::http) async fn subscribe(
    State(push): State<Push>,
    State(rates): State<Arc<Rates>>,
    Session(session): Session,
    Json(NewSubscription { endpoint, keys, seq }): Json<NewSubscription>,
) -> Result<StatusCode, Problem> {
    let endpoint: Endpoint = endpoint.parse().map_err(|why| bad_endpoint(&why))?;
    let bytes = |text: &str| URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).unwrap_or_default();
    let keys = DeviceKeys::new(&bytes(&keys.p256dh), &bytes(&keys.auth)).ok_or_else(|| {
        let detail = "`p256dh` is no point of the curve P-256 in 65 bytes, or `auth` has not 16 bytes";
        Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "bad_push_keys", detail)
    })?;
    rates.send(session.uid, 1)?;
    let seq = seq.map(|seq| MessageId::new(seq).unwrap_or(MessageId::MAX));
    match push.subscribe(&session, &endpoint, &keys, seq).await {
        Ok(()) => Ok(StatusCode::NO_CONTENT),
        Err(off @ SubscribeError::Off) => {
            Err(Problem::new(StatusCode::FORBIDDEN, "push_off", off.to_string()))
        }
        Err(inside @ SubscribeError::Inside) => Err(bad_endpoint(&inside)),
        Err(SubscribeError::Ended) => Err(Problem::unauthorized()),
        Err(SubscribeError::Store(error)) => Err(error.into()),
    }
}

fn bad_endpoint(why: &dyn std::fmt::Display) -> Problem {
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "bad_push_endpoint", why.to_string())
}

/// End the subscription of the device to push.
#[utoipa::path(
    delete, path = "/api/v1/sessions/current/push", operation_id = "unsubscribeFromPush", tag = "Accounts",
    responses((status = 204, description = "It is not subscribed any more")),
)]
pub(in crate::http) async fn unsubscribe(
    State(push): State<Push>,
    Session(session): Session,
) -> Result<StatusCode, Problem> {
    push.unsubscribe(&session).await?;
    Ok(StatusCode::NO_CONTENT)
}
