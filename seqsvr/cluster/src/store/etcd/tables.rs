//! The routing table: read with everything that a reading tells in one transaction, and waited for by a watch.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::timeout;

use super::agreement::bounds;
use super::{EtcdStore, keys, lock};
use seqsvr_core::clock;
use seqsvr_core::routing::Table;
use seqsvr_core::store::StoreError;
use seqsvr_core::store::configuration::Bounds;
use seqsvr_core::store::tables::{Reading, Revisions, RoutingTableStore, WriteError};
use seqsvr_core::store::tables::{StoreHealth, StoreState};
use seqsvr_etcd::v3::{Compare, TxnRequest, WatchCreateRequest};
use seqsvr_etcd::{Cell, EtcdError, prefix_end, put, unchanged};

/// How often a change is tried anew because other arbiters changed the same meanwhile.
const TRIES: usize = 10;

/// All keys that a reading is made of, at one moment.
struct EtcdState {
    table: Option<Arc<Table>>,
    table_revision: i64,
    promised: u64,
    term_revision: i64,
    /// The revision of the last change that wakes readers.
    woken: i64,
    /// The revision of the last sign of life of the promised term's arbiter; 0: none.
    alive: i64,
    /// That arbiter has told of itself under a lease, which is not over.
    leased: bool,
    /// The bounds of the reading; `None`: nothing is stored.
    bounds: Option<Bounds>,
    /// The revision at which all this was read.
    at: i64,
}

#[async_trait]
impl RoutingTableStore for EtcdStore {
    async fn read(&self, known: &Revisions, wait: Duration) -> Result<Reading, StoreError> {
        let watched = self.keys.watched.clone().into_bytes();
        let range_end = prefix_end(&watched);
        self.read_until(known, wait, watched, range_end).await
    }

    async fn read_table(&self, known: &Revisions, wait: Duration) -> Result<Reading, StoreError> {
        self.read_until(known, wait, self.keys.table.clone().into_bytes(), Vec::new()).await
    }

    async fn promise(&self, term: u64) -> Result<Option<Arc<Table>>, WriteError> {
        for _ in 0..TRIES {
            let state = self.state().await.map_err(unknown)?;
            // Each term is promised once.
            if state.promised >= term {
                return Err(WriteError::Outranked(state.promised));
            }
            let success = vec![put(self.keys.term.as_str(), term.to_be_bytes())];
            let transaction = TxnRequest { compare: self.as_seen(&state), success, failure: vec![] };
            if self.members.transact(&transaction).await.map_err(unknown)?.succeeded {
                return Ok(state.table);
            }
        }
        Err(contended())
    }

    async fn write(&self, table: &Arc<Table>) -> Result<(), WriteError> {
        let term = table.version.term;
        for _ in 0..TRIES {
            let state = self.state().await.map_err(unknown)?;
            if state.promised > term {
                return Err(WriteError::Outranked(state.promised));
            }
            match &state.table {
                Some(stored) if stored == table => return Ok(()),
                Some(stored) if stored.version >= table.version => {
                    return Err(WriteError::Older(stored.version));
                }
                _ => {}
            }
            let mut success = vec![put(self.keys.table.as_str(), keys::from_table(table))];
            if state.promised < term {
                success.push(put(self.keys.term.as_str(), term.to_be_bytes()));
            }
            let transaction = TxnRequest { compare: self.as_seen(&state), success, failure: vec![] };
            if self.members.transact(&transaction).await.map_err(unknown)?.succeeded {
                return Ok(());
            }
        }
        Err(contended())
    }

    async fn acting(&self, term: u64) -> Result<u64, StoreError> {
        self.act(term).await
    }

    async fn survey(&self) -> Vec<StoreHealth> {
        // Each member answers from its own copy, so one that was cut off shows how far it is behind.
        let names = [&self.keys.table, &self.keys.term];
        let seen = self.members.look_at_each(&names.map(|name| name.clone().into_bytes())).await;
        let newest = seen.iter().filter_map(|(_, seen)| seen.as_ref().ok()).map(|(at, _)| *at).max();
        let state = |(at, found): (i64, Vec<Cell>)| {
            let [table, term] = &found[..] else { unreachable!("one answer for each key") };
            let error = |error: StoreError| error.to_string();
            Ok(StoreState {
                promised: term.value().map(keys::number).transpose().map_err(error)?.unwrap_or_default(),
                table: table.value().map(keys::table).transpose().map_err(error)?.map(Arc::new),
                sections_behind: 0,
                revisions_behind: newest.unwrap_or(at).abs_diff(at),
            })
        };
        let health = |(addr, seen): (String, Result<_, EtcdError>)| StoreHealth {
            addr,
            state: seen.map_err(|error| error.to_string()).and_then(state),
        };
        seen.into_iter().map(health).collect()
    }
}

impl EtcdStore {
    async fn state(&self) -> Result<EtcdState, StoreError> {
        let keys = &self.keys;
        let names = [&keys.table, &keys.term, &keys.released, &keys.acting, &keys.configuration];
        let (at, found) = self.members.look(&names.map(|name| name.clone().into_bytes())).await?;
        let [table, term, released, acting, configuration] = &found[..] else {
            unreachable!("one answer for each key")
        };
        let number = |cell: &Cell| cell.value().map_or(Ok(0), keys::number);
        let plain = table.value().map(keys::table).transpose()?.map(Arc::new);
        let promised = number(term)?;
        let wrote = plain.as_ref().is_some_and(|table| table.version.term == promised);
        let mut alive = term.revision;
        if wrote {
            alive = alive.max(table.revision);
        }
        let reported = number(acting)? == promised;
        if reported {
            alive = alive.max(acting.revision);
        }
        Ok(EtcdState {
            table: plain,
            table_revision: table.revision,
            promised,
            term_revision: term.revision,
            woken: table.revision.max(released.revision),
            alive,
            leased: reported && acting.lease != 0,
            bounds: configuration.value().map(keys::terms).transpose()?.map(bounds),
            at,
        })
    }

    /// Holds while the keys by which a promise or a table is decided are unchanged.
    fn as_seen(&self, state: &EtcdState) -> Vec<Compare> {
        vec![
            unchanged(self.keys.term.as_str(), state.term_revision),
            unchanged(self.keys.table.as_str(), state.table_revision),
        ]
    }

    fn reading(&self, state: &EtcdState) -> Reading {
        let silent = lock(&self.last_activity).note(clock::now(), state.alive, state.leased);
        Reading {
            table: state.table.clone(),
            revisions: Revisions(vec![state.woken.cast_unsigned()]),
            promised: state.promised,
            acting: (state.alive > 0).then_some(silent),
            bounds: state.bounds.clone(),
        }
    }

    /// A read whose wait ends with a change of these keys.
    async fn read_until(
        &self,
        known: &Revisions,
        wait: Duration,
        key: Vec<u8>,
        range_end: Vec<u8>,
    ) -> Result<Reading, StoreError> {
        let state = self.state().await?;
        if known.0 != [state.woken.cast_unsigned()] || wait.is_zero() {
            return Ok(self.reading(&state));
        }
        let watched = WatchCreateRequest { key, range_end, start_revision: state.at + 1 };
        if timeout(wait, self.change(watched)).await.is_ok() {
            return Ok(self.reading(&self.state().await?));
        }
        // The state that counted when the question was asked is an answer to it.
        Ok(self.reading(&state))
    }

    /// Ends with the first change of the watched keys; never when the member that is asked falls silent.
    async fn change(&self, watched: WatchCreateRequest) {
        let Ok(mut changes) = self.members.watch(watched).await else { return std::future::pending().await };
        loop {
            match changes.message().await {
                Ok(Some(change)) if change.canceled || !change.events.is_empty() => return,
                Ok(Some(_)) => {}
                Ok(None) | Err(_) => return std::future::pending().await,
            }
        }
    }
}

fn unknown(error: impl std::fmt::Display) -> WriteError {
    WriteError::Unknown(error.to_string())
}

fn contended() -> WriteError {
    WriteError::Unknown(format!("other arbiters changed the same {TRIES} times in between"))
}
