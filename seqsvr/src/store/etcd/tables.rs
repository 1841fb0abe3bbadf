//! The routing table: read with everything that a reading tells in one transaction, and waited for by a watch.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use etcd_client::{Compare, CompareOp, Txn, TxnOp, TxnOpResponse, WatchOptions};
use tokio::time::timeout;

use super::members::Cell;
use super::{EtcdStore, keys, lock};
use crate::clock::{self, Moment};
use crate::routing::Table;
use crate::store::StoreError;
use crate::store::tables::{Mark, Reading, TableStore, WriteError};

/// How often a change is tried anew because other arbiters changed the same meanwhile.
const TRIES: usize = 10;

/// When this process first saw the newest sign of life of the arbiter: etcd itself tells no ages.
#[derive(Debug, Default)]
pub(super) struct Heard {
    revision: i64,
    at: Moment,
}

/// All keys that a reading is made of, at one moment.
struct State {
    table: Option<Arc<Table>>,
    table_revision: i64,
    promised: u64,
    term_revision: i64,
    /// The revision of the last change that wakes readers.
    woken: i64,
    /// The revision of the last sign of life of the promised term's arbiter; 0: none.
    alive: i64,
    /// The revision of the moment that all this is of.
    at: i64,
}

#[async_trait]
impl TableStore for EtcdStore {
    async fn read(&self, known: &Mark, wait: Duration) -> Result<Reading, StoreError> {
        let state = self.state().await?;
        if known.0 != [state.woken.cast_unsigned()] || wait.is_zero() {
            return Ok(self.reading(&state));
        }
        if timeout(wait, self.change_after(state.at)).await.is_ok() {
            return Ok(self.reading(&self.state().await?));
        }
        // What counted when the question was asked is an answer to it.
        Ok(self.reading(&state))
    }

    async fn promise(&self, term: u64) -> Result<Option<Arc<Table>>, WriteError> {
        for _ in 0..TRIES {
            let state = self.state().await.map_err(unknown)?;
            // Each term is promised once.
            if state.promised >= term {
                return Err(WriteError::Outranked(state.promised));
            }
            let same = [
                Compare::mod_revision(self.keys.term.clone(), CompareOp::Equal, state.term_revision),
                Compare::mod_revision(self.keys.table.clone(), CompareOp::Equal, state.table_revision),
            ];
            let put = [TxnOp::put(self.keys.term.clone(), term.to_be_bytes(), None)];
            let done = self.members.transact(&Txn::new().when(same).and_then(put)).await.map_err(unknown)?;
            if done.succeeded() {
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
            let same = [
                Compare::mod_revision(self.keys.term.clone(), CompareOp::Equal, state.term_revision),
                Compare::mod_revision(self.keys.table.clone(), CompareOp::Equal, state.table_revision),
            ];
            let mut puts = vec![TxnOp::put(self.keys.table.clone(), keys::from_table(table), None)];
            if state.promised < term {
                puts.push(TxnOp::put(self.keys.term.clone(), term.to_be_bytes(), None));
            }
            let done = self.members.transact(&Txn::new().when(same).and_then(puts)).await.map_err(unknown)?;
            if done.succeeded() {
                return Ok(());
            }
        }
        Err(contended())
    }

    async fn acting(&self, term: u64) -> Result<u64, StoreError> {
        let mine = [Compare::value(self.keys.term.clone(), CompareOp::Equal, term.to_be_bytes())];
        let put = [TxnOp::put(self.keys.acting.clone(), term.to_be_bytes(), None)];
        let get = [TxnOp::get(self.keys.term.clone(), None)];
        let done = self.members.transact(&Txn::new().when(mine).and_then(put).or_else(get)).await?;
        match done.op_responses().first() {
            Some(TxnOpResponse::Get(found)) => {
                found.kvs().first().map_or(Ok(0), |stored| keys::number(stored.value()))
            }
            _ => Ok(term),
        }
    }
}

impl EtcdStore {
    async fn state(&self) -> Result<State, StoreError> {
        let names = [&self.keys.table, &self.keys.term, &self.keys.released, &self.keys.acting];
        let (at, found) = self.members.look(&names.map(|name| name.clone().into_bytes())).await?;
        let [table, term, released, acting] = &found[..] else { unreachable!("one answer for each key") };
        let number = |cell: &Cell| Ok(cell.value().map(keys::number).transpose()?.unwrap_or_default());
        let plain = table.value().map(keys::table).transpose()?.map(Arc::new);
        let promised = number(term)?;
        let wrote = plain.as_ref().is_some_and(|table| table.version.term == promised);
        let mut alive = term.revision;
        if wrote {
            alive = alive.max(table.revision);
        }
        if number(acting)? == promised {
            alive = alive.max(acting.revision);
        }
        Ok(State {
            table: plain,
            table_revision: table.revision,
            promised,
            term_revision: term.revision,
            woken: table.revision.max(released.revision),
            alive,
            at,
        })
    }

    fn reading(&self, state: &State) -> Reading {
        let mut heard = lock(&self.heard);
        if state.alive > heard.revision {
            *heard = Heard { revision: state.alive, at: clock::now() };
        }
        Reading {
            table: state.table.clone(),
            mark: Mark(vec![state.woken.cast_unsigned()]),
            promised: state.promised,
            acting: (state.alive > 0).then(|| clock::now().since(heard.at)),
        }
    }

    /// Ends with the first change after `revision` that wakes readers; never when the member that is asked falls silent.
    async fn change_after(&self, revision: i64) {
        let options = WatchOptions::new().with_prefix().with_start_revision(revision + 1);
        let watch =
            async { self.members.best().await?.watch(self.keys.watched.clone(), Some(options)).await };
        let Ok(mut changes) = watch.await else { return std::future::pending().await };
        loop {
            match changes.message().await {
                Ok(Some(change)) if change.canceled() || !change.events().is_empty() => return,
                Ok(Some(_)) => {}
                Ok(None) | Err(_) => return std::future::pending().await,
            }
        }
    }
}

fn unknown(error: StoreError) -> WriteError {
    WriteError::Unknown(error.to_string())
}

fn contended() -> WriteError {
    WriteError::Unknown(format!("other arbiters changed the same {TRIES} times in between"))
}
