//! Sending, one at a time or many at once.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use futures_util::future::join_all;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use uuid::Uuid;

use super::json;
use crate::app::Messages;
use crate::app::messages::{Draft, SendAck};
use crate::domain::ClientId;
use crate::http::error::{Document, Problem};
use crate::http::extract::{Json, Session};
use crate::http::limits::Rates;
use crate::http::object::{from_text, object};
use crate::http::state::Settings;
use crate::http::wire::To;
use crate::telemetry::Metrics;

/// A message as clients write it.
#[derive(Deserialize)]
pub(in crate::http) struct NewMessage {
    client_id: Uuid,
    #[serde(deserialize_with = "object")]
    to: To,
    #[serde(deserialize_with = "object")]
    body: NewBody,
}

#[derive(Deserialize)]
struct NewBody {
    text: String,
}

impl NewMessage {
    pub(in crate::http) fn draft(self) -> Result<Draft, Problem> {
        Ok(Draft { client_id: ClientId(self.client_id), to: self.to.conversation()?, text: self.body.text })
    }
}

#[derive(Serialize)]
struct Sent {
    message_id: u64,
    sent_at: String,
}

impl From<SendAck> for Sent {
    fn from(ack: SendAck) -> Sent {
        Sent { message_id: ack.message_id.get(), sent_at: ack.sent_at.to_rfc3339() }
    }
}

/// `POST /messages`
pub(in crate::http) async fn send(
    State(messages): State<Messages>,
    State(rates): State<Arc<Rates>>,
    State(metrics): State<Arc<Metrics>>,
    Session(session): Session,
    Json(message): Json<NewMessage>,
) -> Result<Response, Problem> {
    let draft = message.draft()?;
    rates.send(session.uid, 1)?;
    let began = Instant::now();
    let ack = messages.submit(session.uid, draft).await?;
    metrics.send_seconds.observe(began.elapsed().as_secs_f64());
    if !ack.repeated {
        metrics.messages_http.inc();
    }
    let status = if ack.repeated { StatusCode::OK } else { StatusCode::CREATED };
    Ok(json(status, &Sent::from(ack)))
}

/// Messages to be sent in this order.
#[derive(Deserialize)]
pub(in crate::http) struct Batch {
    messages: Vec<Box<RawValue>>,
}

#[derive(Serialize)]
struct Results<'a> {
    results: Vec<Outcome<'a>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Outcome<'a> {
    Sent(Sent),
    Refused { error: Document<'a> },
}

/// `POST /messages/batch`: each message succeeds or fails by itself, but none overtakes an earlier one that is refused for the moment.
pub(in crate::http) async fn send_batch(
    State(messages): State<Messages>,
    State(rates): State<Arc<Rates>>,
    State(settings): State<Arc<Settings>>,
    State(metrics): State<Arc<Metrics>>,
    Session(session): Session,
    Json(Batch { messages: batch }): Json<Batch>,
) -> Result<Response, Problem> {
    let most = settings.limits.batch_messages;
    if batch.is_empty() || batch.len() > most {
        return Err(Problem::invalid_body(format!(
            "a batch has 1 to {most} messages; this one has {}",
            batch.len()
        )));
    }
    rates.send(session.uid, batch.len())?;
    let began = Instant::now();
    // All are submitted before the first answer is awaited, so they share commits and keep their order: what comes behind one that
    // is refused for the moment is refused, too.
    let pipeline = messages.pipeline();
    let submitted: Vec<_> = batch
        .iter()
        .map(|raw| {
            let message: NewMessage = from_text(raw.get()).map_err(|error| Problem::from_json(&error))?;
            Ok::<_, Problem>(messages.submit_in(&pipeline, session.uid, message.draft()?))
        })
        .collect();
    let answers = join_all(submitted.into_iter().map(async |submitted| Ok(submitted?.await?))).await;
    metrics.send_seconds.observe(began.elapsed().as_secs_f64());
    let answers: Vec<Result<SendAck, Problem>> = answers;
    let new = answers.iter().flatten().filter(|ack| !ack.repeated).count();
    metrics.messages_http.inc_by(new as u64);
    let results = answers
        .iter()
        .map(|answer| match answer {
            Ok(ack) => Outcome::Sent(Sent::from(*ack)),
            Err(problem) => Outcome::Refused { error: problem.document() },
        })
        .collect();
    Ok(json(StatusCode::OK, &Results { results }))
}
