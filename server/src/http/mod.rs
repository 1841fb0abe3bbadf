//! HTTP and WebSocket: the way in, and nothing else. Turns requests into calls of `app`, and answers into JSON.
//!
//! [`HttpServer`] owns the listener, the sockets and the rates. `routes` is the one table of all addresses; each
//! handler lies in the file named after what it serves. Failures become answers in `error` alone.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::from_fn_with_state;
use axum::routing::{MethodRouter, delete, get, patch, post, put};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower_http::catch_panic::CatchPanicLayer;

use crate::app::PASSWORD_TURNS;
use crate::config::Config;
use crate::domain::Clock;
use crate::telemetry::Metrics;

mod api;
mod budget;
mod codes;
mod concurrency;
mod cookies;
mod device_name;
mod error;
mod extract;
mod heads;
mod health;
mod invite_pages;
mod language;
mod layers;
mod limits;
mod listen;
mod object;
mod openapi;
mod origin;
mod pages;
mod proxy;
mod refusals;
mod serve;
mod state;
mod table;
mod table_pages;
mod turns;
mod wire;
mod ws;
mod yielding;

pub use limits::Rates;
pub(crate) use listen::REFUSED_AT_A_TIME;
pub use state::{Dependencies, Fitness, NewRequestId, Readiness, UseCases};
pub use table::Tables;

use api::{
    accounts, amendments, conversations, data, friends, groups, invites, messages, moments, people, range,
    recovery, sessions, settings, sign_up_invites,
};
use budget::Budget;
use concurrency::ConcurrencyLimiter;
use error::Problem;
use listen::{FULL, LimitedListener};
use openapi::Docs;
use serve::{HalfClose, serve};
use state::{AppState, HttpState, Settings, Sockets};
use table_pages::BrowsedTables;
use turns::Turns;

/// An address, the method that it takes, and who answers.
struct Route {
    /// In small letters, as OpenAPI writes it.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "the handler knows it; the description is compared with it")
    )]
    method: &'static str,
    /// Beneath [`API`] where it begins with no slash.
    path: &'static str,
    handler: MethodRouter<HttpState>,
}

/// How long a connection may be silent, at least.
const IDLE: Duration = Duration::from_secs(120);

/// Bytes of the body of a request.
const BODY_BYTES: usize = 128 << 10;

/// Bytes of the body of a batch, the largest of all.
const BATCH_BODY_BYTES: usize = 4 << 20;

/// How long the head of a request may take, from the opening of its connection or from the answer before it.
const HEAD: Duration = Duration::from_secs(30);

/// Where the calls for programs lie.
const API: &str = "/api/v1/";

/// All addresses, grouped by who calls them.
#[rustfmt::skip]
fn routes() -> Vec<Route> {
    let route = |method, path, handler| Route { path, method, handler };
    let batch_body = DefaultBodyLimit::max(BATCH_BODY_BYTES);
    vec![
        // Programs and the page's scripts: accounts.
        route("post",   "accounts",                     post(accounts::sign_up)),
        route("post",   "sessions",                     post(accounts::log_in)),
        route("get",    "sessions",                     get(sessions::list)),
        route("delete", "sessions",                     delete(accounts::log_out_everywhere)),
        route("delete", "sessions/current",             delete(accounts::log_out)),
        route("delete", "sessions/{id}",                delete(sessions::end)),
        route("put",    "sessions/{id}",                put(sessions::rename)),
        route("post",   "sessions/current/ticket",      post(accounts::ticket)),
        route("get",    "me",                           get(people::me)),
        route("get",    "me/data",                      get(data::download)),
        route("post",   "me/delete",                    post(accounts::delete)),
        route("put",    "me/password",                  put(accounts::change_password)),
        route("post",   "recovery",                     post(recovery::recover)),
        route("get",    "me/recovery-codes",            get(recovery::left)),
        route("post",   "me/recovery-codes",            post(recovery::create)),
        route("post",   "sign-up-invites",              post(sign_up_invites::create)),
        route("get",    "sign-up-invites",              get(sign_up_invites::list)),
        route("delete", "sign-up-invites/{id}",         delete(sign_up_invites::end)),
        route("get",    "users",                        get(people::find)),
        route("get",    "users/{uid}",                  get(people::show)),
        route("get",    "profiles",                     get(people::profiles)),
        route("get",    "friends",                      get(friends::list)),
        route("put",    "friends/{uid}",                put(friends::befriend)),
        route("get",    "settings",                     get(settings::list)),
        route("put",    "settings/{name}",              put(settings::set_for_all)),
        route("get",    "stars",                        get(settings::stars)),
        route("get",    "moments",                      get(moments::feed)),
        route("post",   "moments",                      post(moments::post)),
        route("put",    "moments/{message_id}/like",    put(moments::like)),
        route("post",   "moments/{message_id}/comments", post(moments::comment)),
        route("post",   "moments/{message_id}/delete",  post(moments::delete)),
        // Messages and rows.
        route("post",   "messages",                     post(messages::send)),
        route("post",   "messages/batch",               post(messages::send_batch).layer(batch_body)),
        route("get",    "range",                        get(range::range)),
        route("get",    "seq",                          get(range::seq)),
        // Conversations and groups.
        route("get",    "conversations",                get(conversations::list)),
        route("get",    "conversations/{id}/messages",  get(conversations::messages)),
        route("post",   "conversations/{id}/messages/{message_id}/edit",     post(amendments::edit)),
        route("post",   "conversations/{id}/messages/{message_id}/recall",   post(amendments::recall)),
        route("post",   "conversations/{id}/messages/{message_id}/reaction", post(amendments::react)),
        route("post",   "conversations/{id}/messages/{message_id}/delete",   post(amendments::delete)),
        route("put",    "conversations/{id}/settings/{name}",                put(settings::set)),
        route("post",   "conversations/{id}/messages/{message_id}/pin",      post(amendments::pin)),
        route("post",   "conversations/{id}/messages/{message_id}/star",     post(amendments::star)),
        route("get",    "conversations/{id}/pins",      get(conversations::pins)),
        route("put",    "conversations/{id}/read",      put(conversations::read)),
        route("post",   "groups",                       post(groups::create)),
        route("get",    "groups/{gid}",                 get(groups::show)),
        route("patch",  "groups/{gid}",                 patch(groups::describe)),
        route("post",   "groups/{gid}/members",         post(groups::add)),
        route("delete", "groups/{gid}/members/{uid}",   delete(groups::remove)),
        route("put",    "groups/{gid}/members/{uid}/role", put(groups::set_role)),
        route("get",    "groups/{gid}/bans",            get(groups::bans)),
        route("put",    "groups/{gid}/bans/{uid}",      put(groups::ban)),
        route("delete", "groups/{gid}/bans/{uid}",      delete(groups::unban)),
        route("post",   "groups/{gid}/invites",         post(invites::create)),
        route("get",    "groups/{gid}/invites",         get(invites::list)),
        route("delete", "groups/{gid}/invites/{code}",  delete(invites::revoke)),
        route("post",   "invites/{code}",               post(invites::accept)),
        route("get",    "openapi.json",                 get(openapi::document)),
        // Sockets.
        route("get",    "/ws",                          get(ws::open)),
        // People.
        route("get",    "/",                            get(pages::shell)),
        route("get",    "/c/{conversation}",            get(pages::shell)),
        route("get",    "/moments",                     get(pages::shell)),
        route("get",    "/contacts",                    get(pages::shell)),
        route("get",    "/invites/{code}",              get(invite_pages::look)),
        route("post",   "/invites/{code}",              post(invite_pages::join)),
        route("get",    "/groups/{gid}/invite",         get(invite_pages::ask)),
        route("post",   "/groups/{gid}/invite",         post(invite_pages::make)),
        route("get",    "/login",                       get(pages::log_in)),
        route("get",    "/sign-up",                     get(pages::sign_up)),
        route("get",    "/recover",                     get(pages::recover)),
        route("post",   "/language",                    post(language::choose)),
        route("get",    "/tables",                      get(table_pages::list)),
        route("get",    "/tables/sign-in",              get(table_pages::card)),
        route("post",   "/tables/sign-in",              post(table_pages::sign_in)),
        route("post",   "/tables/sign-out",             post(table_pages::sign_out)),
        route("get",    "/tables/{table}",              get(table_pages::table)),
        route("get",    "/tables/{table}/row",          get(table_pages::row)),
        route("get",    "/docs",                        get(openapi::page)),
        route("get",    "/docs/websocket",              get(openapi::websocket)),
        route("get",    "/static/{*path}",              get(pages::asset)),
        route("get",    "/service-worker.js",           get(pages::service_worker)),
        route("get",    "/manifest.webmanifest",        get(pages::manifest)),
        // Operators.
        route("get",    "/health",                      get(health::health)),
        route("get",    "/ready",                       get(health::ready)),
        route("get",    "/metrics",                     get(health::metrics)),
    ]
}

fn router(state: HttpState) -> Router {
    let (mut api, mut pages) = (Router::new(), Router::new());
    for Route { path, handler, .. } in routes() {
        match path.starts_with('/') {
            true => pages = pages.route(path, handler),
            false => api = api.route(&format!("{API}{path}"), handler),
        }
    }
    let wrong_method = async || Problem::method_not_allowed();
    pages
        .method_not_allowed_fallback(wrong_method)
        .merge(
            api.method_not_allowed_fallback(wrong_method)
                .layer(origin::cross_origin(&state.settings.origins)),
        )
        .fallback(pages::not_found)
        .layer(DefaultBodyLimit::max(BODY_BYTES))
        .layer(CatchPanicLayer::custom(layers::panicked))
        .layer(from_fn_with_state(state.clone(), layers::own_origin))
        .layer(from_fn_with_state(state.clone(), layers::request_context))
        .with_state(state)
}

/// The HTTP side of the server, ready to serve.
pub struct HttpServer {
    listener: LimitedListener,
    router: Router,
    sockets: TaskTracker,
    stopping: CancellationToken,
    /// Where the metrics are served, if they have an address of their own.
    metrics: Option<(LimitedListener, Router)>,
    /// Where tables are served, if they are.
    tables: Option<(LimitedListener, table::Exchange)>,
}

/// Sockets that an account may have open: some for each of its sessions.
const SOCKETS_OF_AN_ACCOUNT: usize = 200;

/// Connections to the address of the metrics.
const METRICS_CONNECTIONS: usize = 64;

impl HttpServer {
    /// Puts the HTTP side together over `use_cases`, on `tcp`, and the metrics on theirs if they have one. It ends when `stopping`
    /// fires.
    pub fn new(
        (tcp, metrics_tcp): (TcpListener, Option<TcpListener>),
        config: &Config,
        use_cases: UseCases,
        metrics: Arc<Metrics>,
        clock: Clock,
        dependencies: Dependencies,
        stopping: CancellationToken,
    ) -> HttpServer {
        let Dependencies { version, new_request_id, readiness, rates, tables } = dependencies;
        let UseCases {
            accounts,
            messages,
            sync,
            conversations,
            people,
            moments,
            groups,
            invites,
            ephemerals,
            ids,
        } = use_cases;
        let limiter =
            ConcurrencyLimiter::new(config.limits.connections, config.limits.connections_per_address);
        let open = TaskTracker::new();
        let browsed = tables.as_ref().map(|Tables { service, keys, .. }| BrowsedTables {
            service: service.clone(),
            keys: Arc::clone(keys),
        });
        let tables = tables.map(|tables| {
            let (metrics, new_request_id) = (Arc::clone(&metrics), Arc::clone(&new_request_id));
            let (listener, exchange) =
                table::listener(tables, config, clock.clone(), metrics, new_request_id, stopping.clone());
            (listener, exchange)
        });
        let metrics_router = health::metrics_router(Arc::clone(&metrics));
        let state = HttpState::new(AppState {
            version,
            accounts,
            messages,
            sync,
            conversations,
            people,
            moments,
            groups,
            invites,
            ephemerals,
            ids,
            new_request_id,
            settings: Arc::new(Settings::new(config)),
            rates,
            password_turns: Turns::new(PASSWORD_TURNS, config.accounts.password_waiting),
            budget: Budget::new(config.limits.buffered_bytes, config.limits.buffered_bytes_per_address),
            metrics,
            sockets: Sockets {
                limiter: limiter.clone(),
                of_accounts: ConcurrencyLimiter::new(usize::MAX, SOCKETS_OF_AN_ACCOUNT),
                stopping: stopping.clone(),
                open: open.clone(),
            },
            clock,
            readiness,
            docs: Arc::new(Docs::new(&config.limits)),
            tables: browsed,
        });
        let trusted = config.server.trusted_proxies.clone();
        // A socket is closed with a word after three heartbeats of silence; this is for whom no word reaches.
        let patience = (config.server.heartbeat() * 4).max(IDLE);
        let writing = Duration::from_secs(config.server.write_seconds.into());
        let listener = LimitedListener { tcp, limiter, trusted, patience, writing, full: FULL.into() };
        let metrics = metrics_tcp.map(|tcp| {
            let limiter = ConcurrencyLimiter::new(METRICS_CONNECTIONS, METRICS_CONNECTIONS);
            let (trusted, full) = (Vec::new(), FULL.into());
            let listener = LimitedListener { tcp, limiter, trusted, patience, writing, full };
            (listener, metrics_router)
        });
        HttpServer { listener, router: router(state), sockets: open, stopping, metrics, tables }
    }

    /// Serves until it is told to stop, then finishes the requests and sockets that are open.
    pub async fn run(self) {
        let HttpServer { listener, router, sockets, stopping, metrics, tables } = self;
        let metrics = async {
            if let Some((listener, router)) = metrics {
                serve(listener, router, HEAD, HalfClose::Cancels, stopping.clone()).await;
            }
        };
        let tables = async {
            if let Some((listener, exchange)) = tables {
                serve(listener, exchange, table::HEAD, HalfClose::IsAnswered, stopping.clone()).await;
            }
        };
        let pages = serve(listener, router, HEAD, HalfClose::Cancels, stopping.clone());
        tokio::join!(pages, metrics, tables);
        sockets.close();
        sockets.wait().await;
    }
}
