//! All that is kept of the caller, as one file: lines of JSON, written as they are read.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde_json::{Value, json};

use crate::app::{LiveSession, OpenSession};
use crate::domain::{Bound, Direction, Entry, FileId, MessageId, RangeQuery, Report, Uid};
use crate::http::budget::Charge;
use crate::http::error::Problem;
use crate::http::extract::Session;
use crate::http::limits::ClientNetwork;
use crate::http::proxy::Caller;
use crate::http::state::HttpState;
use crate::http::wire::{weight, write_entry};
use crate::store::FileState;
use crate::workers::aside;

/// Rows, friends or conversations that are read at a time.
const AT_ONCE: usize = 200;

/// Bytes of so many, about; what they really have is known once they are read.
const USUAL_PART: usize = 256 * 1_024;

/// The part that is written next.
enum DownloadPart {
    Head,
    Sessions,
    Friends(Option<Uid>),
    Reports(u64),
    Files(Option<FileId>),
    Conversations(Option<MessageId>),
    Rows(u64),
    Foot,
}

/// A download under way. Holds one part in memory at most.
struct Download {
    state: HttpState,
    session: Arc<LiveSession>,
    network: ClientNetwork,
    /// Of the part that is on its way.
    charge: Option<Charge>,
    lines: u64,
}

/// Why a download ends early. The connection is cut, so that nobody takes the file for whole.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Cut(&'static str);

impl From<Problem> for Cut {
    fn from(problem: Problem) -> Cut {
        Cut(problem.code)
    }
}

/// Where the files of a row are read, as a field behind others; nothing, if it names none.
fn addresses(row: &Entry) -> String {
    let files = row.content.files();
    let paths: Vec<String> =
        files.iter().map(|file| format!("/files/{}/{}", row.message_id, file.id())).collect();
    if paths.is_empty() { String::new() } else { format!(",\"files\":{}", json!(paths)) }
}

/// Download all that is kept of the caller.
///
/// Lines of JSON, described in `docs/EXPORT.md`: the account, its sessions, friends, reports, files and conversations, then every row of the
/// inbox. The last line has `"type":"end"`; without it the file is not whole. An account may ask ten times a day.
#[utoipa::path(
    get, path = "/api/v1/me/data", operation_id = "data", tag = "Accounts",
    responses((
        status = 200, body = String, content_type = "application/x-ndjson", description = "The file",
    )),
    extensions(("x-codes" = json!(["rate_limited"]))),
)]
pub(in crate::http) async fn download(
    State(state): State<HttpState>,
    caller: Caller,
    Session(session): Session,
) -> Result<Response, Problem> {
    state.rates.download(session.uid)?;
    let named = format!("attachment; filename=\"tidemark-{}.jsonl\"", session.uid);
    let network = ClientNetwork::of(caller.address);
    let download = Download { state, session, network, charge: None, lines: 0 };
    let parts = stream::unfold(Some((download, DownloadPart::Head)), |at| async move {
        let (mut download, part) = at?;
        match download.next(part).await {
            Ok((text, next)) => Some((Ok(Bytes::from(text)), next.map(|next| (download, next)))),
            Err(cut) => Some((Err(cut), None)),
        }
    });
    let about =
        [(header::CONTENT_TYPE, "application/x-ndjson".to_owned()), (header::CONTENT_DISPOSITION, named)];
    Ok((about, Body::from_stream(parts)).into_response())
}

impl Download {
    /// The text of a part, and the part after it.
    async fn next(&mut self, part: DownloadPart) -> Result<(String, Option<DownloadPart>), Cut> {
        // The part before this one has left.
        self.charge = None;
        self.wait_turn().await?;
        self.charge = Some(self.state.budget.take_soon(self.network, USUAL_PART).await?);
        let (lines, next) = self.read(part).await?;
        self.lines += lines.len() as u64;
        let join = || lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect::<String>();
        let text = aside(lines.iter().map(String::len).sum(), join).await;
        if let Some(charge) = &mut self.charge {
            charge.settle(text.len())?;
        }
        self.state.rates.has_read(self.session.uid, text.len());
        Ok((text, next))
    }

    /// Waits while the account has read too much.
    async fn wait_turn(&self) -> Result<(), Cut> {
        loop {
            if self.state.accounts.is_over(&self.session) {
                return Err(Cut("the session has ended"));
            }
            let Err(wait) = self.state.rates.may_read(self.session.uid) else { return Ok(()) };
            let stopping = self.state.sockets.stopping.cancelled();
            if tokio::time::timeout(wait.max(Duration::from_millis(1)), stopping).await.is_ok() {
                return Err(Cut("the server stops"));
            }
        }
    }

    async fn read(&self, part: DownloadPart) -> Result<(Vec<String>, Option<DownloadPart>), Problem> {
        let (state, uid) = (&self.state, self.session.uid);
        let text = |value: Value| value.to_string();
        Ok(match part {
            DownloadPart::Head => {
                let name = state.accounts.name(uid).await?.unwrap_or_default();
                let left = state.accounts.recovery_codes_left(uid).await?;
                let head = json!({
                    "type": "account", "format": "tidemark-account", "version": 1, "made_at": state.clock.now().to_rfc3339(),
                    "history": state.sync.history().to_string(), "uid": uid.0, "name": name, "recovery_codes_left": left,
                });
                (vec![text(head)], Some(DownloadPart::Sessions))
            }
            DownloadPart::Sessions => {
                let open =
                    state.accounts.sessions(&self.session, state.settings.limits.listed_sessions).await?;
                let line = |OpenSession { id, created_at, expires_at, label, .. }: OpenSession| {
                    text(json!({
                        "type": "session", "id": id.to_string(), "name": label,
                        "created_at": created_at.to_rfc3339(), "expires_at": expires_at.to_rfc3339(),
                    }))
                };
                (open.into_iter().map(line).collect(), Some(DownloadPart::Friends(None)))
            }
            DownloadPart::Friends(after) => {
                let friends = state.people.friends(uid, after, AT_ONCE).await?;
                let last = friends.last().filter(|_| friends.len() == AT_ONCE).map(|friend| friend.uid);
                let lines = friends.into_iter().map(|friend| {
                    text(json!({
                        "type": "friend", "uid": friend.uid.0, "name": friend.name, "mine": friend.friendship.mine,
                        "theirs": friend.friendship.theirs, "changed_at": friend.changed_at.to_rfc3339(),
                    }))
                });
                let next = last.map_or(DownloadPart::Reports(0), |last| DownloadPart::Friends(Some(last)));
                (lines.collect(), Some(next))
            }
            DownloadPart::Reports(after) => {
                let reports = state.reports.own(uid, after, AT_ONCE).await?;
                let last = reports.last().filter(|_| reports.len() == AT_ONCE).map(|report| report.number);
                let lines = reports.into_iter().map(|Report { complaint, .. }| {
                    text(json!({
                        "type": "report", "made_at": complaint.made_at.to_rfc3339(), "reason": complaint.reason.as_str(),
                        "text": complaint.words, "about": complaint.about.0,
                        "message": complaint.message.map(|message| message.text),
                    }))
                });
                let next = last.map_or(DownloadPart::Files(None), DownloadPart::Reports);
                (lines.collect(), Some(next))
            }
            DownloadPart::Files(after) => {
                let files = state.files.own_files(uid, after, AT_ONCE).await?;
                let last = files.last().filter(|_| files.len() == AT_ONCE).map(|file| file.facts.id);
                let lines = files.into_iter().map(|file| {
                    let mut line = json!({
                        "type": "file", "id": file.facts.id.0, "name": file.facts.name, "length": file.length,
                        "made_at": file.made_at.to_rfc3339(),
                    });
                    if file.state == FileState::Whole {
                        (line["size"], line["media_type"]) =
                            (file.facts.size.into(), file.facts.media_type.into());
                    }
                    text(line)
                });
                let next =
                    last.map_or(DownloadPart::Conversations(None), |last| DownloadPart::Files(Some(last)));
                (lines.collect(), Some(next))
            }
            DownloadPart::Conversations(before) => {
                let limit = AT_ONCE.min(state.settings.limits.conversations);
                let page = state.conversations.list(uid, before, Some(limit)).await?;
                // A page may be short, and only the last one is empty.
                let last = page.last().map(|line| line.summary.last.message_id);
                let lines = page.into_iter().map(|line| {
                    text(json!({
                        "type": "conversation", "id": line.summary.conversation.to_string(), "title": line.title,
                        "read_to": line.summary.read_to.get(),
                    }))
                });
                let next = last.map_or(DownloadPart::Rows(0), |last| DownloadPart::Conversations(Some(last)));
                (lines.collect(), Some(next))
            }
            DownloadPart::Rows(start) => {
                let query = RangeQuery::new(Bound::Id(start), Bound::InfMax, Direction::Forward, AT_ONCE)?;
                let page = state.sync.range(uid, query).await?;
                let line = |entry| {
                    let mut line = String::from("{\"type\":\"row\",\"row\":");
                    write_entry(&mut line, entry);
                    line.push_str(&addresses(entry));
                    line.push('}');
                    line
                };
                let lines = aside(weight(&page.rows), || page.rows.iter().map(line).collect()).await;
                let next = page
                    .rows
                    .last()
                    .filter(|_| page.more)
                    .map(|last| DownloadPart::Rows(last.message_id.get() + 1));
                (lines, Some(next.unwrap_or(DownloadPart::Foot)))
            }
            DownloadPart::Foot => (vec![text(json!({"type": "end", "lines": self.lines}))], None),
        })
    }
}
