//! The members of the etcd cluster, asked one after the other until one answers. All questions of this store may be asked
//! twice, so an answer that was lost does no harm.

use std::error::Error as _;
use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use etcd_client::{Client, ConnectOptions, Error, KeyValue, Txn, TxnOp, TxnOpResponse, TxnResponse};
use tokio::sync::OnceCell;
use tokio::time::timeout;
use tonic::Code;

use crate::rpc::text;
use crate::store::StoreError;

pub(super) struct Members {
    members: Vec<(String, OnceCell<Client>)>,
    options: ConnectOptions,
    /// Who answered last, and is asked first.
    first: AtomicUsize,
    patience: Duration,
}

/// What a key holds.
#[derive(Clone, Debug, Default)]
pub(super) struct Cell {
    /// The revision of the last change; 0: the key is not there.
    pub(super) revision: i64,
    pub(super) value: Vec<u8>,
}

impl Cell {
    /// The value, if the key is there.
    pub(super) fn value(&self) -> Option<&[u8]> {
        (self.revision > 0).then_some(self.value.as_slice())
    }
}

impl From<&KeyValue> for Cell {
    fn from(stored: &KeyValue) -> Self {
        Self { revision: stored.mod_revision(), value: stored.value().to_vec() }
    }
}

impl Members {
    /// Nothing is connected before the first question.
    pub(super) fn new(endpoints: &[String], options: ConnectOptions, patience: Duration) -> Self {
        let member = |endpoint: &String| (endpoint.clone(), OnceCell::new());
        let members = endpoints.iter().map(member).collect();
        Self { members, options, first: AtomicUsize::new(0), patience }
    }

    /// The way to a member.
    async fn client(&self, index: usize) -> Result<Client, Error> {
        let (endpoint, client) = &self.members[index];
        let connect = || Client::connect([endpoint], Some(self.options.clone()));
        client.get_or_try_init(connect).await.cloned()
    }

    /// Asks the members in turn, each once, and returns the first answer.
    pub(super) async fn ask<T, F>(&self, question: impl Fn(Client) -> F) -> Result<T, StoreError>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let first = self.first.load(Ordering::Relaxed);
        let mut failure = unavailable("etcd", "no members");
        for turn in 0..self.members.len() {
            let index = (first + turn) % self.members.len();
            let endpoint = &self.members[index].0;
            let asked = async { question(self.client(index).await?).await };
            match timeout(self.patience, asked).await {
                Ok(Ok(answer)) => {
                    self.first.store(index, Ordering::Relaxed);
                    return Ok(answer);
                }
                Ok(Err(error)) => failure = unavailable(endpoint, &said(endpoint, &error)),
                Err(_) => failure = unavailable(endpoint, &format!("no answer within {:?}", self.patience)),
            }
        }
        Err(failure)
    }

    /// The member that answered last.
    pub(super) async fn best(&self) -> Result<Client, Error> {
        self.client(self.first.load(Ordering::Relaxed)).await
    }

    pub(super) async fn transact(&self, transaction: &Txn) -> Result<TxnResponse, StoreError> {
        self.ask(|client| {
            let transaction = transaction.clone();
            async move { client.kv_client().txn(transaction).await }
        })
        .await
    }

    /// What the keys hold, all at one moment that is not before the question, and the revision of that moment.
    pub(super) async fn look(&self, keys: &[Vec<u8>]) -> Result<(i64, Vec<Cell>), StoreError> {
        let gets = keys.iter().map(|key| TxnOp::get(key.clone(), None)).collect::<Vec<_>>();
        let answer = self.transact(&Txn::new().and_then(gets)).await?;
        let cell = |answer: &TxnOpResponse| match answer {
            TxnOpResponse::Get(found) => found.kvs().first().map(Cell::from).unwrap_or_default(),
            _ => Cell::default(),
        };
        let at = answer.header().map_or(0, |header| header.revision());
        let cells: Vec<_> = answer.op_responses().iter().map(cell).collect();
        match cells.len() == keys.len() {
            true => Ok((at, cells)),
            false => Err(unavailable("etcd", "answered less than was asked")),
        }
    }
}

/// What a failure of the member at `endpoint` says to people.
fn said(endpoint: &str, error: &Error) -> String {
    let status = match error {
        Error::GRpcStatus(status) => status,
        Error::TransportError(error) => return text(error),
        other => return other.to_string(),
    };
    // Who expects TLS, or another certificate, ends the connection without a word; without one it is unavailable.
    let ended = status.source().is_some() && status.code() != Code::Unavailable;
    let advice = match (ended, endpoint.starts_with("https://")) {
        (true, true) => {
            "; if it asks for a certificate, set certificate and key to one that its authority signed"
        }
        (true, false) => "; if it speaks TLS, write https:// and set authority",
        _ if status.message().contains("invalid peer certificate") => {
            "; set authority to who signed the members' certificates"
        }
        _ => "",
    };
    let said = if ended { "it ended the connection" } else { status.message() };
    format!("{said}{advice}")
}

fn unavailable(endpoint: &str, why: &str) -> StoreError {
    StoreError::Unavailable(format!("{endpoint}: {why}"))
}
