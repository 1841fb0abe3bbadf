//! The caller's own rows by id (S20), and how far they go.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::json;
use super::reading::Reads;
use crate::app::InboxSync;
use crate::domain::{Bound, Direction, RangeQuery};
use crate::http::error::Problem;
use crate::http::extract::{Params, Session};
use crate::http::proxy::Caller;
use crate::http::wire::{EntryForm, capacity_bytes, put, weight, write_entries};
use crate::store::Page;
use crate::workers::aside;

/// Bytes of one capacity unit (S20).
const UNIT: usize = 4_096;

/// A range as it stands in an address. Everything may be left out: then it is all rows, oldest first.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(in crate::http) struct RangeParams {
    /// Inclusive: a number, `INF_MIN` or `INF_MAX`. Left out: from the end at which the direction begins.
    #[param(pattern = "^([0-9]+|INF_MIN|INF_MAX)$", example = "INF_MIN")]
    start: Option<String>,
    /// Exclusive: a number, `INF_MIN` or `INF_MAX`. Left out: to the other end.
    #[param(pattern = "^([0-9]+|INF_MIN|INF_MAX)$", example = "INF_MAX")]
    end: Option<String>,
    /// The largest number of rows; more than 5,000 is taken as 5,000. An answer also ends at 4 MB.
    #[param(value_type = Option<u64>, minimum = 1, default = 5_000)]
    limit: Option<String>,
    /// `forward` needs a start below the end, `backward` one above it.
    #[param(inline, value_type = Option<DirectionForm>)]
    direction: Option<String>,
}

#[derive(ToSchema)]
#[schema(rename_all = "lowercase", default = "forward")]
#[expect(dead_code, reason = "describes a parameter that is read by hand")]
enum DirectionForm {
    Forward,
    Backward,
}

/// Rows of a range, in the direction that was asked for.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes what is written by hand")]
struct RangePage {
    #[schema(max_items = 5_000)]
    rows: Vec<EntryForm>,
    /// Where the next page begins; `null`: the whole range was answered.
    #[schema(required)]
    next_start: Option<u64>,
    /// The cost of the answer.
    consumed: Consumed,
}

/// The cost of an answer.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes what is written by hand")]
struct Consumed {
    /// Capacity units: the bytes of names and values of all rows (8 for an integer; `receiver`, `message_id`, `sender` and
    /// `sent_at` are integers), divided by 4,096 and rounded up once; 1 at least.
    #[schema(minimum = 1)]
    read: u64,
}

impl RangeParams {
    fn query(&self) -> Result<RangeQuery, Problem> {
        let direction = match self.direction.as_deref() {
            None | Some("forward") => Direction::Forward,
            Some("backward") => Direction::Backward,
            Some(_) => return Err(Problem::invalid_query("direction must be forward or backward")),
        };
        let (first, last) = match direction {
            Direction::Forward => (Bound::InfMin, Bound::InfMax),
            Direction::Backward => (Bound::InfMax, Bound::InfMin),
        };
        let limit = match self.limit.as_deref() {
            None => RangeQuery::MAX_ROWS,
            Some(text) => limit(text)?,
        };
        Ok(RangeQuery::new(
            bound("start", &self.start, first)?,
            bound("end", &self.end, last)?,
            direction,
            limit,
        )?)
    }
}

fn bound(name: &str, text: &Option<String>, otherwise: Bound) -> Result<Bound, Problem> {
    match text.as_deref() {
        None => Ok(otherwise),
        Some("INF_MIN") => Ok(Bound::InfMin),
        Some("INF_MAX") => Ok(Bound::InfMax),
        Some(text) => text
            .parse()
            .map(Bound::Id)
            .map_err(|_| Problem::invalid_query(format!("{name} must be a number, INF_MIN or INF_MAX"))),
    }
}

/// A limit; what is beyond the largest one is taken as that, however many digits it has.
pub(super) fn limit(text: &str) -> Result<usize, Problem> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Problem::invalid_query("limit must be a whole number of 1 or more"));
    }
    Ok(text.parse().unwrap_or(usize::MAX))
}

/// Get the caller's rows by id.
#[utoipa::path(
    get, path = "/api/v1/range", operation_id = "range", tag = "Rows",
    params(RangeParams),
    responses((status = 200, body = RangePage, description = "Rows in the direction that was asked for")),
    extensions(("x-codes" = json!(["bad_range", "rate_limited"]))),
)]
pub(in crate::http) async fn range(
    State(sync): State<InboxSync>,
    State(reads): State<Reads>,
    caller: Caller,
    Session(session): Session,
    Params(params): Params<RangeParams>,
) -> Result<Response, Problem> {
    let query = params.query()?;
    let reading = reads.begin(session.uid, caller, query.limit()).await?;
    let page = sync.range(session.uid, query).await?;
    let text = aside(weight(&page.rows), move || page_text(&page, query.direction())).await;
    reading.answer(text)
}

/// A [`RangePage`].
fn page_text(page: &Page, direction: Direction) -> String {
    let mut text = String::from("{\"rows\":");
    write_entries(&mut text, &page.rows);
    let next = page.rows.last().filter(|_| page.more).map(|last| match direction {
        Direction::Forward => last.message_id.get() + 1,
        Direction::Backward => last.message_id.get() - 1,
    });
    match next {
        Some(next) => put(&mut text, format_args!(",\"next_start\":{next}")),
        None => text.push_str(",\"next_start\":null"),
    }
    // One rounding over the whole answer; looking and finding nothing costs a unit too.
    let read = page.rows.iter().map(capacity_bytes).sum::<usize>().div_ceil(UNIT).max(1);
    put(&mut text, format_args!(",\"consumed\":{{\"read\":{read}}}}}"));
    text
}

/// How far an inbox goes.
#[derive(Serialize, ToSchema)]
struct Seq {
    /// The caller's latest committed id.
    seq: u64,
    /// Names one unbroken life of the data: when it changes, a client forgets what it has and starts over.
    #[schema(format = Uuid)]
    history: String,
}

/// Get the caller's latest committed id.
///
/// It is answered from memory, and cheap enough to be asked for often.
#[utoipa::path(
    get, path = "/api/v1/seq", operation_id = "seq", tag = "Rows",
    responses((status = 200, body = Seq, description = "The id, and the history that it belongs to")),
)]
pub(in crate::http) async fn seq(
    State(sync): State<InboxSync>,
    Session(session): Session,
) -> Result<Response, Problem> {
    let seq = sync.watermark(session.uid).await?.latest().get();
    Ok(json(StatusCode::OK, &Seq { seq, history: sync.history().to_string() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(start: &str, end: &str, limit: &str, direction: &str) -> Result<RangeQuery, &'static str> {
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        RangeParams { start: some(start), end: some(end), limit: some(limit), direction: some(direction) }
            .query()
            .map_err(|problem| problem.code)
    }

    #[test]
    fn what_is_left_out_means_everything() {
        let all = query("", "", "", "").expect("good");
        assert_eq!((all.limit(), all.direction()), (5_000, Direction::Forward));
        assert!(query("", "", "", "backward").is_ok());
        assert_eq!(query("", "", "99999999999999999999999", "").expect("capped").limit(), 5_000);
    }

    #[test]
    fn what_is_no_range_is_refused() {
        for (start, end, limit, direction, code) in [
            ("x", "", "", "", "invalid_query"),
            ("-1", "", "", "", "invalid_query"),
            ("", "inf_max", "", "", "invalid_query"),
            ("", "", "-1", "", "invalid_query"),
            ("", "", "", "up", "invalid_query"),
            ("", "", "0", "", "bad_range"),
            ("5", "5", "", "", "bad_range"),
            ("INF_MIN", "5", "", "backward", "bad_range"),
        ] {
            assert_eq!(query(start, end, limit, direction), Err(code), "{start} {end} {limit} {direction}");
        }
    }
}
