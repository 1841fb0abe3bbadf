//! The Monitor service: this arbiter's view of its Set, for operators. Owns the last look at the stores, so that
//! many callers cost them no more than one; `cli::arbiter` adds it to the gRPC server.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;
use tonic::{Request, Response, Status, async_trait};

use super::health;
use super::run::Handle;
use seqsvr_core::store::tables::RoutingTableStore;
use seqsvr_core::store::tables::StoreHealth;
use seqsvr_rpc::v1::monitor_server::Monitor;
use seqsvr_rpc::v1::{self, StatusReply, StatusRequest, Trust};

/// How old a look at the stores may be that is answered with.
const FRESH: Duration = Duration::from_secs(1);

/// See the module. Cheap to clone.
#[derive(Clone)]
pub struct Lookout {
    handle: Handle,
    set: u32,
    number: u8,
    tables: Arc<dyn RoutingTableStore>,
    seen: Arc<Mutex<Option<StoreSurvey>>>,
}

/// When the stores were looked at, and how they were.
type StoreSurvey = (Instant, Arc<[StoreHealth]>);

impl Lookout {
    /// Tells of Set `set`, whose stores are `tables`, by the arbiter behind `handle`.
    pub fn new(handle: Handle, set: u32, number: u8, tables: Arc<dyn RoutingTableStore>) -> Self {
        Self { handle, set, number, tables, seen: Arc::default() }
    }

    /// How the stores are, as of at most a second ago.
    pub async fn stores(&self) -> Arc<[StoreHealth]> {
        let mut seen = self.seen.lock().await;
        match &*seen {
            Some((at, stores)) if at.elapsed() < FRESH => Arc::clone(stores),
            _ => {
                let stores: Arc<[StoreHealth]> = self.tables.survey().await.into();
                *seen = Some((Instant::now(), Arc::clone(&stores)));
                stores
            }
        }
    }
}

#[async_trait]
impl Monitor for Lookout {
    async fn status(&self, request: Request<StatusRequest>) -> Result<Response<StatusReply>, Status> {
        let set = request.into_inner().set;
        if set != self.set {
            let other = format!("this arbiter is of Set {}, not {set}", self.set);
            return Err(Status::invalid_argument(other));
        }
        let (stores, unfinished) = tokio::join!(self.stores(), self.tables.unfinished());
        let view = self.handle.view().borrow().clone();
        let stored = || {
            let tables = stores.iter().flat_map(|store| &store.state).filter_map(|state| state.table.clone());
            tables.max_by_key(|table| table.version)
        };
        let trust = |status| match status {
            health::Status::Unknown => Trust::Unknown,
            health::Status::Dead => Trust::Dead,
            health::Status::Answering(_) => Trust::Answering,
            health::Status::Live(_) => Trust::Live,
        };
        let node =
            |(name, status): (&str, _)| v1::NodeHealth { name: name.to_owned(), trust: trust(status).into() };
        Ok(Response::new(StatusReply {
            number: self.number.into(),
            acting_term: view.acting.unwrap_or_default(),
            promised_term: view.promised,
            stores_lost: view.lost.clone().unwrap_or_default(),
            nodes: view.nodes().map(node).collect(),
            table: view.table.clone().or_else(stored).as_deref().map(v1::Table::from),
            stores: stores.iter().map(v1::StoreHealth::from).collect(),
            unfinished: unfinished.unwrap_or_default(),
        }))
    }
}
