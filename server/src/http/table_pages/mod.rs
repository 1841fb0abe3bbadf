//! Pages that show tables of other programs to people: which there are, their rows, and what reading them cost. They only read. Plain
//! forms and links, no script.
//!
//! [`mod@sign_in`] lets somebody in by an access key, which [`session`] then finds in a cookie. [`place`] reads and writes addresses,
//! [`show`] makes views, and crate `web` renders them.

mod place;
mod session;
mod show;
mod sign_in;

use std::sync::Arc;

use axum::extract::{OriginalUri, Path, Query as Decoded, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{Html, IntoResponse, Redirect, Response};
use tidemark_table::operations::range::{MAX_BYTES, Range};
use tidemark_table::rows::key::BoundValue;
use tidemark_table::rows::select::{Selection, Times};
use tidemark_table::{ErrorCode, TableError};
use tidemark_web as web;

use super::budget::Charge;
use super::cookies::TABLES;
use super::error::Problem;
use super::limits::ClientNetwork;
use super::proxy::Caller;
use super::refusals;
use super::state::HttpState;
use crate::store::AccessKey;
use crate::table::{self, Described, RangeRows, TableService};

use place::{Go, Query, RowsPlace, percent_encoded, row_address, rows_address};
use session::Token;

pub(super) use sign_in::{card, sign_in, sign_out};

/// Rows of a page.
const ROWS: usize = 50;

/// `GET /tables`: all of the instance.
pub(super) async fn list(
    State(state): State<HttpState>,
    caller: Caller,
    OriginalUri(uri): OriginalUri,
    headers: HeaderMap,
) -> Result<Response, RefusalPage> {
    let (charge, reader) = reader(&state, caller, &uri, &headers).await?;
    let tables = reader.service.tables(&reader.caller).await?;
    let tables: Vec<_> = tables.iter().map(show::table).collect();
    page(charge, web::table_list(&web::TableList { reader: reader.shown(), tables: &tables }))
}

/// `GET /tables/{table}`: what it is, and a page of its rows.
pub(super) async fn table(
    State(state): State<HttpState>,
    caller: Caller,
    Path(name): Path<String>,
    OriginalUri(uri): OriginalUri,
    headers: HeaderMap,
) -> Result<Response, RefusalPage> {
    let (charge, reader) = reader(&state, caller, &uri, &headers).await?;
    let table = reader.table(&name).await?;
    let query = query(&uri)?;
    let (rows, wrong) = match query.place(&table) {
        Ok(place) => (Some(reader.rows(&table, &query, place).await?), None),
        Err(wrong) => (None, Some(wrong)),
    };
    let field = |(at, column)| {
        let problem = wrong.as_ref().filter(|(wrong, _)| *wrong == at).map(|(_, why)| why.clone());
        web::KeyField {
            id: place::FIELDS[at],
            column: show::key_column(column),
            value: show::visible_text(query.field(at)),
            focus: problem.is_some(),
            problem,
        }
    };
    let fields: Vec<_> =
        table.definition.key.iter().take(place::FIELDS.len()).enumerate().map(field).collect();
    let status = if wrong.is_some() { StatusCode::BAD_REQUEST } else { StatusCode::OK };
    let view = web::TablePage {
        reader: reader.shown(),
        table: &show::table(&table),
        fields: &fields,
        upward: query.is_upward(),
        rows: rows.as_ref(),
    };
    Ok((status, page(charge, web::table_page(&view))?).into_response())
}

/// `GET /tables/{table}/row`: a row with all its versions.
pub(super) async fn row(
    State(state): State<HttpState>,
    caller: Caller,
    Path(name): Path<String>,
    OriginalUri(uri): OriginalUri,
    headers: HeaderMap,
) -> Result<Response, RefusalPage> {
    let (charge, reader) = reader(&state, caller, &uri, &headers).await?;
    let table = reader.table(&name).await?;
    let query = query(&uri)?;
    let key = query.key(&table.definition).map_err(|(at, why)| {
        let column = &table.definition.key[at].name;
        let detail = format!("The address does not name a key of the table: {column} is wrong. {why}");
        RefusalPage::refused(StatusCode::BAD_REQUEST, "There is no such row", detail)
            .on(&reader.address(&table), "To the table")
    })?;
    let selection = Selection { start_column: query.column.clone(), ..everything() };
    let found = reader.service.row(&reader.caller, &table.definition.name, key.clone(), &selection);
    let (found, consumed) = found.await?;
    let cells = found.as_ref().map(|row| show::cells(&row.cells));
    let rest = cells.as_ref().and_then(|(lines, left)| {
        let next = left.first()?;
        // The versions of one column are not parted: more of them than a page shows are not reached by going on.
        let before = found.as_ref()?.cells.first()?;
        let href = (before.name != next.name).then(|| {
            format!("{}&column={}", row_address(&table.definition.name, &key), percent_encoded(&next.name))
        });
        (!lines.is_empty()).then_some((left.len(), href))
    });
    let status = if found.is_some() { StatusCode::OK } else { StatusCode::NOT_FOUND };
    let view = web::RowPage {
        reader: reader.shown(),
        table: &show::table(&table),
        key: &show::key(&table, &key),
        cells: cells.as_ref().map(|(lines, _)| lines.as_slice()),
        units: consumed.read,
        rest: rest.as_ref().map(|(left, href)| (*left, href.as_deref())),
        around: &rows_address(&table.definition.name, &key, Go::At),
    };
    Ok((status, page(charge, web::row_page(&view))?).into_response())
}

/// Somebody who is signed in.
struct PageReader {
    key: Arc<AccessKey>,
    caller: table::Caller,
    service: TableService,
}

impl PageReader {
    fn shown(&self) -> web::TablesReader<'_> {
        web::TablesReader { instance: &self.key.instance, key_id: &self.key.id }
    }

    fn address(&self, table: &Described) -> String {
        format!("/tables/{}", table.definition.name)
    }

    async fn table(&self, name: &str) -> Result<Described, RefusalPage> {
        self.service.table(&self.caller, name).await.map_err(|error| match error.code {
            ErrorCode::ObjectNotExist => {
                let shown: String = name.chars().take(64).collect();
                let detail = format!(
                    "The instance {} has no table {shown:?}. It may have been deleted.",
                    self.key.instance
                );
                RefusalPage::refused(StatusCode::NOT_FOUND, "There is no such table", detail)
                    .on("/tables", "All tables")
            }
            _ => error.into(),
        })
    }

    /// The rows of a page, in the order of their keys.
    async fn rows(
        &self,
        table: &Described,
        query: &Query,
        place: RowsPlace,
    ) -> Result<web::ShownRows, RefusalPage> {
        let definition = &table.definition;
        let RowsPlace { forward, start, except } = place;
        let open = if forward { BoundValue::InfMax } else { BoundValue::InfMin };
        let range = Range {
            forward,
            start,
            end: vec![open; definition.key.len()],
            limit: ROWS + usize::from(except.is_some()),
            selection: Selection { max_versions: Some(1), ..everything() },
        };
        let found = self.service.rows(&self.caller, &definition.name, &range).await?;
        let RangeRows { mut rows, mut next, consumed } = found;
        rows.retain(|row| except.as_ref() != Some(&row.key));
        // The one that was to be left out is gone.
        if rows.len() > ROWS {
            next = rows.pop().map(|row| row.key);
        }
        if !forward {
            rows.reverse();
        }
        let address = |key, go| rows_address(&definition.name, key, go);
        // Where rows are shown they are what the next page goes on from; `next` would do as well, but rows may come between.
        let beyond = next.as_ref().map(|next| match (forward, rows.first(), rows.last()) {
            (true, _, Some(last)) => address(&last.key, Go::After),
            (true, _, None) => address(next, Go::At),
            (false, Some(first), _) => address(&first.key, Go::Before),
            (false, None, _) => address(next, Go::Until),
        });
        let back = match (query.is_open(), forward, rows.first(), rows.last()) {
            (false, true, Some(first), _) => Some(address(&first.key, Go::Before)),
            (false, false, _, Some(last)) => Some(address(&last.key, Go::After)),
            _ => None,
        };
        let (at_start, at_end) = match forward {
            true => (query.is_open(), next.is_none()),
            false => (next.is_none(), query.is_open()),
        };
        let (earlier, later) = if forward { (back, beyond) } else { (beyond, back) };
        let (columns, lines) = show::rows(table, &rows);
        Ok(web::ShownRows {
            caption: caption(query, forward, lines.len()),
            columns,
            has_more: lines.iter().any(|line| line.more > 0),
            lines,
            units: consumed.read,
            earlier,
            later,
            at_start,
            at_end,
        })
    }
}

fn caption(query: &Query, forward: bool, count: usize) -> String {
    let which = match (query.is_open(), forward) {
        (true, true) => "first rows",
        (true, false) => "last rows",
        (false, true) => "rows from there on",
        (false, false) => "rows up to there",
    };
    match count {
        0 => which[..1].to_uppercase() + &which[1..],
        1 => format!("1 row: the {which}, by key"),
        _ => format!("{count} rows: the {which}, by key"),
    }
}

/// All columns with all their versions.
fn everything() -> Selection {
    Selection {
        columns: Vec::new(),
        start_column: None,
        end_column: None,
        times: Times::All,
        max_versions: None,
        filter: None,
        entire_keys: true,
    }
}

/// The reader, and room in memory for the rows. Callers that are not signed in are sent to the card.
async fn reader(
    state: &HttpState,
    caller: Caller,
    uri: &Uri,
    headers: &HeaderMap,
) -> Result<(Charge, PageReader), RefusalPage> {
    let tables = state.tables.as_ref().ok_or_else(RefusalPage::switched_off)?;
    let Some(cookie) = TABLES.of(headers, state.settings.is_secure(caller)) else {
        return Err(RefusalPage::SignIn { next: next(uri), ended: false });
    };
    let ended = || RefusalPage::SignIn { next: next(uri), ended: true };
    let token = Token::read(cookie, state.clock.now()).ok_or_else(ended)?;
    refusals::wait_turn(state, caller.address).await;
    let key = tables.keys.access_key(token.key_id).await.map_err(Problem::from)?;
    let Some(key) = key.filter(|key| token.is_signed_by(&key.secret, key.sign_outs)) else {
        state.rates.refused(caller.address);
        return Err(ended());
    };
    let charge = state.budget.take_soon(ClientNetwork::of(caller.address), MAX_BYTES).await?;
    let (id, instance) = (key.id.clone(), key.instance.clone());
    let caller = table::Caller { key: id, instance, may_write: false, inbox: key.inbox };
    Ok((charge, PageReader { key, caller, service: tables.service.clone() }))
}

/// Where somebody wanted to go.
fn next(uri: &Uri) -> String {
    uri.path_and_query().map_or("/tables", |next| next.as_str()).to_owned()
}

fn query(uri: &Uri) -> Result<Query, RefusalPage> {
    let Decoded(query) = Decoded::<Query>::try_from_uri(uri).map_err(|_| {
        let detail = "The address does not name a place in a table. Follow the links of the table's page.";
        RefusalPage::refused(StatusCode::BAD_REQUEST, "The address is wrong", detail)
            .on("/tables", "All tables")
    })?;
    Ok(query)
}

/// A page that is charged until it has left.
fn page(charge: Charge, html: String) -> Result<Response, RefusalPage> {
    Ok(([(header::CONTENT_TYPE, "text/html; charset=utf-8")], charge.body(html)?).into_response())
}

/// The page that is shown instead of a table.
#[derive(Debug)]
pub(super) enum RefusalPage {
    /// A refusal.
    Refused { status: StatusCode, title: &'static str, detail: String, on: Option<(String, &'static str)> },
    /// The way to the card, and from there back to `next`.
    SignIn { next: String, ended: bool },
}

impl RefusalPage {
    fn refused(status: StatusCode, title: &'static str, detail: impl Into<String>) -> RefusalPage {
        RefusalPage::Refused { status, title, detail: detail.into(), on: None }
    }

    fn on(self, href: &str, name: &'static str) -> RefusalPage {
        match self {
            RefusalPage::Refused { status, title, detail, .. } => {
                RefusalPage::Refused { status, title, detail, on: Some((href.to_owned(), name)) }
            }
            RefusalPage::SignIn { .. } => self,
        }
    }

    fn switched_off() -> RefusalPage {
        let detail = "Tables are switched off on this server. Its operator switches them on by an address for `listen` in the \
                      section `[table]` of its configuration, or by `TIDEMARK_TABLE__LISTEN=127.0.0.1:8081`, and starts it again.";
        RefusalPage::refused(StatusCode::NOT_FOUND, "There are no tables here", detail)
    }
}

impl From<TableError> for RefusalPage {
    fn from(error: TableError) -> RefusalPage {
        let TableError { code, message } = error;
        let status = StatusCode::from_u16(code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        match code {
            ErrorCode::ServerBusy | ErrorCode::Timeout => {
                let detail = "The database does not answer right now. Load the page again in a moment.";
                RefusalPage::refused(status, "Not available right now", detail)
            }
            ErrorCode::ObjectNotExist => {
                let detail = "The table was deleted a moment ago.";
                RefusalPage::refused(status, "There is no such table", detail).on("/tables", "All tables")
            }
            ErrorCode::InternalServerError => {
                RefusalPage::refused(status, "Something went wrong here", "The server's log says what.")
            }
            _ => RefusalPage::refused(status, "This cannot be shown", message).on("/tables", "All tables"),
        }
    }
}

impl From<Problem> for RefusalPage {
    fn from(problem: Problem) -> RefusalPage {
        let title = problem.status.canonical_reason().unwrap_or("Refused");
        let mut detail = problem.detail.into_owned();
        if let Some(first) = detail.get_mut(..1) {
            first.make_ascii_uppercase();
        }
        RefusalPage::refused(problem.status, title, detail + ".")
    }
}

impl IntoResponse for RefusalPage {
    fn into_response(self) -> Response {
        match self {
            RefusalPage::Refused { status, title, detail, on } => {
                let on = on.as_ref().map(|(href, name)| (href.as_str(), *name));
                let view = web::CardFailure { status: status.as_u16(), title, detail: &detail, on };
                (status, Html(web::card_failure(&view))).into_response()
            }
            RefusalPage::SignIn { next, ended } => {
                let ended = if ended { "&ended=yes" } else { "" };
                Redirect::to(&format!("/tables/sign-in?next={}{ended}", percent_encoded(&next)))
                    .into_response()
            }
        }
    }
}
