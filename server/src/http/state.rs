//! The state of the handlers, in parts: each handler takes the part that it needs.

use std::ops::Deref;
use std::sync::Arc;

use axum::extract::FromRef;
use tidemark_process::Version;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::budget::Budget;
use super::concurrency::ConcurrencyLimiter;
use super::limits::Rates;
use super::openapi::Docs;
use super::origin::Origins;
use super::proxy::Caller;
use super::turns::Turns;
use crate::app::{
    Accounts, Attachments, Conversations, Ephemerals, Files, Groups, Ids, InboxSync, Invites, Messages,
    Moments, Operators, People, Pictures, Push, RememberedKeys, Reports, Search, SignUp,
};
use crate::config::{Config, LimitsSection, RetentionSection, ServerSection};
use crate::domain::{Clock, Uid};
use crate::table::TableService;
use crate::telemetry::Metrics;

/// The use cases, as the composition root made them.
#[derive(Clone)]
pub struct UseCases {
    /// Signing up, logging in and out.
    pub accounts: Accounts,
    /// Sends and read markers.
    pub messages: Messages,
    /// Watermarks, pulls and ranges.
    pub sync: InboxSync,
    /// Lists and histories.
    pub conversations: Conversations,
    /// Messages and moments by their words.
    pub search: Search,
    /// Settings, friends and profiles.
    pub people: People,
    /// Moments, shared among friends.
    pub moments: Moments,
    /// Uploads and downloads.
    pub files: Files,
    /// Lets messages name files.
    pub attachments: Attachments,
    /// Groups.
    pub groups: Groups,
    /// Pictures of people and groups.
    pub pictures: Pictures,
    /// Invitations into groups.
    pub invites: Invites,
    /// Reports of messages and people.
    pub reports: Reports,
    /// Typing and presence.
    pub ephemerals: Ephemerals,
    /// The pages of operators, and the audit log.
    pub operators: Operators,
    /// Devices that are told while they have no connection.
    pub push: Push,
    /// Numbers for new accounts.
    pub ids: Ids,
}

/// Makes the ids of requests (S25).
pub type NewRequestId = Arc<dyn Fn() -> String + Send + Sync>;

/// How the server is, as `/ready` tells it.
#[derive(Debug, Default)]
pub struct Fitness {
    /// The reason why it cannot serve now, if any.
    pub trouble: Option<Arc<str>>,
    /// Damaged pages of its data. Reads of them are refused.
    pub damaged: Vec<String>,
}

/// Asked by `/ready`.
pub type Readiness = Arc<dyn Fn() -> Fitness + Send + Sync>;

/// Settings that are fixed for the life of the process.
pub(super) struct Settings {
    pub(super) server: ServerSection,
    pub(super) limits: LimitsSection,
    pub(super) retention: RetentionSection,
    /// Which pages requests may come from.
    pub(super) origins: Origins,
    /// Whether sign-up is open, by invitation or closed.
    pub(super) sign_up: SignUp,
    /// Whether everybody may read `/metrics`.
    pub(super) public_metrics: bool,
    /// Whether a caller on this machine is nobody's proxy, as far as the configuration knows.
    pub(super) no_proxy: bool,
}

impl Settings {
    pub(super) fn new(config: &Config) -> Settings {
        Settings {
            server: config.server.clone(),
            limits: config.limits.clone(),
            retention: config.retention.clone(),
            origins: Origins {
                public: config.server.public_origin(),
                allowed: config.server.allowed_origins.clone(),
            },
            sign_up: config.accounts.sign_up,
            public_metrics: config.metrics.public,
            no_proxy: config.server.public_url.is_empty() && config.server.trusted_proxies.is_empty(),
        }
    }

    /// Whether browsers reach this server by HTTPS alone.
    pub(super) fn https_alone(&self) -> bool {
        self.origins.public.as_deref().is_some_and(|origin| origin.starts_with("https://"))
    }

    /// Whether the browser of `caller` reaches this server by HTTPS.
    pub(super) fn is_secure(&self, caller: Caller) -> bool {
        self.https_alone() || (self.origins.public.is_none() && caller.https)
    }
}

/// The sockets of the process and how they end.
#[derive(Clone)]
pub(super) struct Sockets {
    pub(super) limiter: ConcurrencyLimiter,
    /// Those of each account.
    pub(super) of_accounts: ConcurrencyLimiter<Uid>,
    /// Fires when the process is to stop.
    pub(super) stopping: CancellationToken,
    /// Counts the open ones, so that a stop can wait for them.
    pub(super) open: TaskTracker,
}

/// The services behind the pages of tables.
pub(super) struct BrowsedTables {
    /// For tables and rows.
    pub(super) service: TableService,
    /// For the reader's access key; asked for each request.
    pub(super) keys: Arc<RememberedKeys>,
}

/// Everything; handlers name parts of it. Cloned for every request and kept by every socket, so it is one pointer.
#[derive(Clone)]
pub(super) struct HttpState(Arc<AppState>);

impl HttpState {
    pub(super) fn new(state: AppState) -> HttpState {
        HttpState(Arc::new(state))
    }
}

impl Deref for HttpState {
    type Target = AppState;

    fn deref(&self) -> &AppState {
        &self.0
    }
}

/// The state of the HTTP side, behind [`HttpState`].
pub(super) struct AppState {
    pub(super) version: Version,
    pub(super) accounts: Accounts,
    pub(super) messages: Messages,
    pub(super) sync: InboxSync,
    pub(super) conversations: Conversations,
    pub(super) search: Search,
    pub(super) people: People,
    pub(super) moments: Moments,
    pub(super) files: Files,
    pub(super) attachments: Attachments,
    pub(super) groups: Groups,
    pub(super) pictures: Pictures,
    pub(super) invites: Invites,
    pub(super) reports: Reports,
    pub(super) ephemerals: Ephemerals,
    pub(super) operators: Operators,
    pub(super) push: Push,
    pub(super) ids: Ids,
    pub(super) new_request_id: NewRequestId,
    pub(super) settings: Arc<Settings>,
    pub(super) rates: Arc<Rates>,
    pub(super) budget: Budget,
    /// The line for hashing passwords, in which addresses take turns.
    pub(super) password_turns: Turns,
    pub(super) metrics: Arc<Metrics>,
    pub(super) sockets: Sockets,
    pub(super) clock: Clock,
    pub(super) readiness: Readiness,
    pub(super) docs: Arc<Docs>,
    /// If tables are served.
    pub(super) tables: Option<BrowsedTables>,
}

macro_rules! parts {
    ($($part:ident: $type:ty),+ $(,)?) => {
        $(impl FromRef<HttpState> for $type {
            fn from_ref(state: &HttpState) -> $type {
                state.$part.clone()
            }
        })+
    };
}

parts! {
    version: Version,
    accounts: Accounts,
    messages: Messages,
    sync: InboxSync,
    conversations: Conversations,
    search: Search,
    people: People,
    moments: Moments,
    files: Files,
    attachments: Attachments,
    groups: Groups,
    pictures: Pictures,
    invites: Invites,
    reports: Reports,
    operators: Operators,
    push: Push,
    ids: Ids,
    settings: Arc<Settings>,
    rates: Arc<Rates>,
    budget: Budget,
    metrics: Arc<Metrics>,
    sockets: Sockets,
    clock: Clock,
    readiness: Readiness,
    docs: Arc<Docs>,
}
