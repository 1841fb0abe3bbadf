//! The issuer over HTTP and JSON, behind the same listener, token and TLS as the gRPC service. Numbers are strings,
//! since a browser would lose digits of large ones. Errors are problem details (RFC 9457).

use std::net::IpAddr;

use axum::extract::{Path, Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tonic::metadata::MetadataMap;
use tonic::service::Interceptor;

use crate::{IssueError, Issuer, NextError, TagInfo};
use seqsvr_rpc::grpc_server::problem;
use seqsvr_rpc::security::Guard;

/// The pages, for callers with the token; and two for monitoring, which has none and learns no names.
pub fn pages(issuer: Issuer, guard: Guard) -> Router {
    Router::new()
        .route("/v1/ids/{biz_tag}", post(next))
        .route("/v1/ids/{biz_tag}/{code}", get(decode))
        .route("/v1/tags", get(tags))
        .layer(from_fn(move |request: Request, then: Next| {
            let mut guard = guard.clone();
            async move {
                // Browsers say where a page that calls comes from, other programs do not: any page could use up numbers.
                // Without a token only this machine is served, which has no other name here.
                let is_foreign = guard.is_open() && !is_this_machine(request.headers());
                if is_foreign || request.headers().contains_key(header::ORIGIN) {
                    let detail = "browsers are not served; call this server from your own server";
                    return problem(StatusCode::FORBIDDEN, "from_a_browser", detail, false);
                }
                let mut call = tonic::Request::new(());
                *call.metadata_mut() = MetadataMap::from_headers(request.headers().clone());
                match guard.call(call) {
                    Ok(_) => then.run(request).await,
                    Err(refused) => {
                        problem(StatusCode::UNAUTHORIZED, "unauthenticated", refused.message(), false)
                    }
                }
            }
        }))
        .route("/health", get(health))
        .route("/ready", get(ready))
        .with_state(issuer)
}

/// Whether a request names this machine by its address or as `localhost`: a page of a site whose name leads here names that.
fn is_this_machine(headers: &HeaderMap) -> bool {
    let Some(host) = headers.get(header::HOST) else { return true };
    let authority = host.to_str().ok().and_then(|host| host.parse::<Authority>().ok());
    authority.is_some_and(|authority| {
        let host = authority.host();
        host == "localhost" || host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok()
    })
}

/// The process is there and answers.
async fn health() -> Response {
    Json(json!({ "status": "up", "version": env!("CARGO_PKG_VERSION") })).into_response()
}

/// Every tag can issue. One that is in trouble and lives on what it has in memory still can.
async fn ready(State(issuer): State<Issuer>) -> Response {
    let tags = issuer.tags();
    let cannot = tags.iter().filter(|tag| tag.status.cannot_issue()).count();
    if cannot == 0 {
        return Json(json!({ "status": "ready" })).into_response();
    }
    let detail =
        format!("{cannot} of {} tags cannot issue numbers; `seqsvr tags` and the log say why", tags.len());
    problem(StatusCode::SERVICE_UNAVAILABLE, "not_ready", &detail, true)
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct NextBody {
    count: Option<u32>,
    step: Option<u64>,
}

#[derive(Serialize)]
struct NextAnswer {
    /// The tag that the numbers are of.
    biz_tag: String,
    ids: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    codes: Vec<String>,
}

async fn next(State(issuer): State<Issuer>, Path(biz_tag): Path<String>, body: String) -> Response {
    let body = match body.trim() {
        "" => Ok(NextBody::default()),
        // serde takes an array for a struct, field by field.
        text if !text.starts_with('{') => Err("it is not an object".to_owned()),
        text => serde_json::from_str(text).map_err(|error| error.to_string()),
    };
    let (count, step) = match body {
        Ok(NextBody { count, step }) => (count.unwrap_or(1), step),
        Err(error) => {
            let what = format!("the body is invalid ({error}); send {{\"count\": 1}} or nothing");
            return problem(StatusCode::BAD_REQUEST, "bad_body", &what, false);
        }
    };
    let issued = match step {
        Some(step) => issuer.next_with_step(&biz_tag, count, step).await,
        None => issuer.next(&biz_tag, count).await,
    };
    match issued {
        Ok(issued) => Json(NextAnswer {
            ids: issued.numbers().map(|number| number.to_string()).collect(),
            codes: issued.codes().to_vec(),
            biz_tag: issued.instead().map_or(biz_tag, ToString::to_string),
        })
        .into_response(),
        Err(error) => refused(&error),
    }
}

async fn decode(State(issuer): State<Issuer>, Path((biz_tag, code)): Path<(String, String)>) -> Response {
    match issuer.decode(&biz_tag, &code) {
        Ok(decoded) => {
            let parts = decoded.parts.into_iter().map(|part| (part.name, part.value.into()));
            let parts: serde_json::Map<String, serde_json::Value> = parts.collect();
            Json(json!({ "biz_tag": biz_tag, "id": decoded.number.to_string(), "parts": parts }))
                .into_response()
        }
        Err(error) => refused(&error),
    }
}

async fn tags(State(issuer): State<Issuer>) -> Response {
    let tag = |info: TagInfo| {
        json!({
            "biz_tag": info.tag.as_str(),
            "strategy": info.strategy,
            "max_count": info.max_count,
            "plugins": info.plugins,
            "issued": info.status.issued.to_string(),
            "left": info.status.left.map(|left| left.to_string()),
            "lasts_seconds": info.status.lasts.map(|lasts| lasts.as_secs()),
            "trouble": info.status.trouble,
        })
    };
    Json(issuer.tags().into_iter().map(tag).collect::<Vec<_>>()).into_response()
}

fn refused(error: &NextError) -> Response {
    let (status, code) = match error {
        NextError::BadTag(_) => (StatusCode::BAD_REQUEST, "bad_tag"),
        NextError::BadCount { .. } => (StatusCode::BAD_REQUEST, "bad_count"),
        NextError::BadStep { .. } => (StatusCode::BAD_REQUEST, "bad_step"),
        NextError::BadCode { .. } => (StatusCode::BAD_REQUEST, "bad_code"),
        NextError::UnknownTag { .. } => (StatusCode::NOT_FOUND, "unknown_tag"),
        NextError::Vetoed { .. } => (StatusCode::FORBIDDEN, "vetoed"),
        NextError::Issue(IssueError::Retryable(_)) => (StatusCode::SERVICE_UNAVAILABLE, "unavailable"),
        NextError::Issue(IssueError::Final(_)) => (StatusCode::CONFLICT, "exhausted"),
    };
    problem(status, code, &error.to_string(), error.is_retryable())
}
