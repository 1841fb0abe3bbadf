//! HTTP and WebSocket: the way in, and nothing else. Turns requests into calls of `app`, and answers into JSON.
//!
//! [`HttpServer`] owns the listener, the sockets and the rates. `calls`, `services` and `pages` list all
//! handlers; each lies in the file named after what it serves. Failures become answers in `error` alone.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post};
use tidemark_process::Version;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower_http::catch_panic::CatchPanicLayer;
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouterExt as _};
use utoipa_axum::routes;

use crate::app::PASSWORD_TURNS;
use crate::config::Config;
use crate::domain::Clock;
use crate::telemetry::Metrics;

mod admin_pages;
mod api;
mod budget;
mod codes;
mod concurrency;
mod cookies;
mod device_name;
mod error;
mod extract;
mod files;
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
pub use state::{Fitness, NewRequestId, Readiness, UseCases};
pub use table::Tables;

use api::{
    accounts, amendments, conversations, data, friends, groups, invites, keep, messages, moderation, moments,
    people, push, range, readers, recovery, reports, search, sessions, settings, sign_up_invites,
};
use budget::Budget;
use concurrency::ConcurrencyLimiter;
use error::Problem;
use listen::{FULL, LimitedListener};
use openapi::Docs;
use serve::{HalfClose, serve};
use state::{AppState, BrowsedTables, HttpState, Settings, Sockets};
use turns::Turns;

/// How long a connection may be silent, at least.
const IDLE: Duration = Duration::from_secs(120);

/// Bytes of the body of a request.
const BODY_BYTES: usize = 128 << 10;

/// Bytes of the body of a batch, the largest of all.
const BATCH_BODY_BYTES: usize = 4 << 20;

/// Messages of one batch.
const BATCH: usize = 200;

/// How long the head of a request may take, from the opening of its connection or from the answer before it.
const HEAD: Duration = Duration::from_secs(30);

/// Where the calls for programs lie.
const API: &str = "/api/v1/";

/// The calls of programs and of the page's scripts. The address and the method of each stand at its handler, with its description.
fn calls() -> OpenApiRouter<HttpState> {
    let batch_body = DefaultBodyLimit::max(BATCH_BODY_BYTES);
    OpenApiRouter::new()
        .routes(routes!(accounts::sign_up))
        .routes(routes!(accounts::log_in, sessions::list, accounts::log_out_everywhere))
        .routes(routes!(accounts::log_out))
        .routes(routes!(sessions::end, sessions::rename))
        .routes(routes!(accounts::ticket))
        .routes(routes!(push::show, push::subscribe, push::unsubscribe))
        .routes(routes!(people::me))
        .routes(routes!(data::download))
        .routes(routes!(accounts::delete))
        .routes(routes!(accounts::change_password))
        .routes(routes!(people::rename))
        .routes(routes!(recovery::recover))
        .routes(routes!(recovery::left, recovery::create))
        .routes(routes!(sign_up_invites::create, sign_up_invites::list))
        .routes(routes!(sign_up_invites::end))
        .routes(routes!(people::find))
        .routes(routes!(people::show))
        .routes(routes!(people::last_seen))
        .routes(routes!(people::profiles))
        .routes(routes!(friends::list))
        .routes(routes!(friends::befriend))
        .routes(routes!(settings::list))
        .routes(routes!(settings::set_for_all))
        .routes(routes!(settings::stars))
        .routes(routes!(keep::list))
        .routes(routes!(moments::feed, moments::post))
        .routes(routes!(moments::like))
        .routes(routes!(moments::comment))
        .routes(routes!(moments::delete))
        .routes(routes!(messages::send))
        .routes(routes!(messages::send_batch).layer(batch_body))
        .routes(routes!(range::range))
        .routes(routes!(range::seq))
        .routes(routes!(search::search))
        .routes(routes!(conversations::list))
        .routes(routes!(conversations::messages))
        .routes(routes!(amendments::edit))
        .routes(routes!(amendments::recall))
        .routes(routes!(amendments::react))
        .routes(routes!(amendments::delete))
        .routes(routes!(settings::set))
        .routes(routes!(keep::set))
        .routes(routes!(amendments::pin))
        .routes(routes!(amendments::star))
        .routes(routes!(conversations::pins))
        .routes(routes!(conversations::read))
        .routes(routes!(groups::create))
        .routes(routes!(groups::show, groups::describe))
        .routes(routes!(groups::add))
        .routes(routes!(groups::remove))
        .routes(routes!(groups::set_role))
        .routes(routes!(moderation::mute, moderation::unmute))
        .routes(routes!(readers::readers))
        .routes(routes!(groups::bans))
        .routes(routes!(groups::ban, groups::unban))
        .routes(routes!(invites::create, invites::list))
        .routes(routes!(invites::revoke))
        .routes(routes!(invites::accept))
        .routes(routes!(reports::of_message))
        .routes(routes!(reports::of_person))
        .routes(routes!(reports::of_group))
        .routes(routes!(reports::dismiss))
        .routes(routes!(openapi::document))
}

/// Uploads and downloads of files.
fn file_calls() -> OpenApiRouter<HttpState> {
    OpenApiRouter::new()
        .routes(routes!(files::tus::begin))
        .routes(routes!(files::tus::state, files::tus::add, files::tus::end))
        .routes(routes!(files::download::whole))
        .routes(routes!(files::download::preview))
        .routes(routes!(files::picture::show))
}

/// What is described beside them: sockets, and what operators ask.
fn services() -> OpenApiRouter<HttpState> {
    OpenApiRouter::new()
        .routes(routes!(ws::open))
        .routes(routes!(health::health))
        .routes(routes!(health::ready))
        .routes(routes!(health::metrics))
}

/// Pages and files, for people.
#[rustfmt::skip]
fn pages() -> Router<HttpState> {
    Router::new()
        .route("/",                       get(pages::shell))
        .route("/c/{conversation}",       get(pages::shell))
        .route("/c/{conversation}/m/{message}", get(pages::shell))
        .route("/moments",                get(pages::shell))
        .route("/contacts",               get(pages::shell))
        .route("/invites/{code}",         get(invite_pages::look).post(invite_pages::join))
        .route("/groups/{gid}/invite",    get(invite_pages::ask).post(invite_pages::make))
        .route("/login",                  get(pages::log_in))
        .route("/sign-up",                get(pages::sign_up))
        .route("/recover",                get(pages::recover))
        .route("/language",               post(language::choose))
        .route("/tables",                 get(table_pages::list))
        .route("/tables/sign-in",         get(table_pages::card).post(table_pages::sign_in))
        .route("/tables/sign-out",        post(table_pages::sign_out))
        .route("/tables/{table}",         get(table_pages::table))
        .route("/tables/{table}/row",     get(table_pages::row))
        .route("/admin",                  get(admin_pages::people))
        .route("/admin/people/{uid}",     get(admin_pages::person).post(admin_pages::change))
        .route("/admin/reports",          get(admin_pages::reports).post(admin_pages::close_report))
        .route("/admin/audit",            get(admin_pages::audit))
        .route("/docs",                   get(openapi::page))
        .route("/docs/websocket",         get(openapi::websocket))
        .route("/static/{*path}",         get(pages::asset))
        .route("/service-worker.js",      get(pages::service_worker))
        .route("/manifest.webmanifest",   get(pages::manifest))
}

fn router(state: HttpState) -> Router {
    let (api, _) = calls().split_for_parts();
    let (of_files, _) = file_calls().split_for_parts();
    let (services, _) = services().split_for_parts();
    let wrong_method = async || Problem::method_not_allowed();
    pages()
        .merge(services)
        .method_not_allowed_fallback(wrong_method)
        .merge(
            api.method_not_allowed_fallback(wrong_method)
                .layer(origin::cross_origin(&state.settings.origins)),
        )
        .merge(
            of_files
                .method_not_allowed_fallback(wrong_method)
                .layer(origin::cross_origin_of_files(&state.settings.origins))
                .layer(from_fn_with_state(state.clone(), files::tus::version)),
        )
        .fallback(pages::not_found)
        .layer(DefaultBodyLimit::max(BODY_BYTES))
        .layer(CatchPanicLayer::custom(layers::panicked))
        .layer(from_fn_with_state(state.clone(), layers::own_origin))
        .layer(from_fn_with_state(state.clone(), layers::request_context))
        .with_state(state)
}

/// The dependencies that the HTTP side gets from the composition root.
pub struct Dependencies {
    /// Told by `/health`.
    pub version: Version,
    /// Asked for each request.
    pub new_request_id: NewRequestId,
    /// Asked by `/ready`.
    pub readiness: Readiness,
    /// Shared with everything else that sends in an account's name.
    pub rates: Arc<Rates>,
    /// Served at an address of their own, if at all.
    pub tables: Option<Tables>,
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
            search,
            people,
            moments,
            files,
            attachments,
            groups,
            pictures,
            invites,
            reports,
            ephemerals,
            operators,
            push,
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
            search,
            people,
            moments,
            files,
            attachments,
            groups,
            pictures,
            invites,
            reports,
            ephemerals,
            operators,
            push,
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
