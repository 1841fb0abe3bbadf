//! The members of the etcd cluster, asked one after the other until one answers.

use std::error::Error as _;
use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::time::timeout;
use tonic::metadata::MetadataValue;
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Channel;
use tonic::{Code, Request, Response, Status, Streaming};

use super::cell::Cell;
use super::config::EtcdConfig;
use super::error::EtcdError;
use super::operations::{found, get};
use super::v3::kv_client::KvClient;
use super::v3::lease_client::LeaseClient;
use super::v3::watch_client::WatchClient;
use super::v3::watch_request::RequestUnion;
use super::v3::{
    LeaseGrantRequest, LeaseKeepAliveRequest, LeaseRevokeRequest, RangeRequest, RangeResponse, TxnRequest,
    TxnResponse, WatchCreateRequest, WatchRequest, WatchResponse,
};
use seqsvr_rpc::text;

/// The connections to all members of one cluster.
pub struct Members {
    members: Vec<EtcdEndpoint>,
    /// The index of the member to ask first, usually the one that answered last.
    first: AtomicUsize,
    patience: Duration,
}

struct EtcdEndpoint {
    address: String,
    connection: Connection,
}

type Connection = InterceptedService<Channel, OnlyWithLeader>;

/// A member that has lost the cluster's leader refuses at once, instead of keeping the caller waiting.
#[derive(Clone)]
struct OnlyWithLeader;

impl Interceptor for OnlyWithLeader {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        request.metadata_mut().insert("hasleader", MetadataValue::from_static("true"));
        Ok(request)
    }
}

impl Members {
    /// Checks the configuration and reads the certificates; nothing is connected before the first question. `patience` is how
    /// long one member may take to answer before the next is asked.
    pub fn open(config: &EtcdConfig, patience: Duration) -> Result<Self, EtcdError> {
        let member = |(address, endpoint): (String, tonic::transport::Endpoint)| EtcdEndpoint {
            address,
            connection: InterceptedService::new(endpoint.connect_lazy(), OnlyWithLeader),
        };
        let members = config.endpoints(patience)?.into_iter().map(member).collect();
        Ok(Self { members, first: AtomicUsize::new(0), patience })
    }

    /// Reads keys.
    pub async fn range(&self, range: &RangeRequest) -> Result<RangeResponse, EtcdError> {
        self.ask(|connection| {
            let range = range.clone();
            async move { KvClient::new(connection).range(range).await }
        })
        .await
    }

    /// Carries out a transaction, on the next member when the first does not answer: for those that may be carried out twice.
    pub async fn transact(&self, transaction: &TxnRequest) -> Result<TxnResponse, EtcdError> {
        self.ask(|connection| {
            let transaction = transaction.clone();
            async move { KvClient::new(connection).txn(transaction).await }
        })
        .await
    }

    /// Carries out a transaction once. After an error it may have been carried out, or may be yet.
    pub async fn transact_once(&self, transaction: TxnRequest) -> Result<TxnResponse, EtcdError> {
        let index = self.first.load(Ordering::Relaxed);
        let answer =
            self.try_one(index, |connection| async move { KvClient::new(connection).txn(transaction).await });
        let answer = answer.await;
        if answer.is_err() {
            self.first.store((index + 1) % self.members.len(), Ordering::Relaxed);
        }
        answer
    }

    /// Reads all keys at one revision, which is no older than the call, and returns that revision with them.
    pub async fn look(&self, keys: &[Vec<u8>]) -> Result<(i64, Vec<Cell>), EtcdError> {
        let success = keys.iter().map(|key| get(key.clone())).collect();
        let answer = self.transact(&TxnRequest { success, ..TxnRequest::default() }).await?;
        let cells: Vec<_> = answer.responses.iter().map(found).collect();
        match cells.len() == keys.len() {
            true => Ok((answer.header.map_or(0, |header| header.revision), cells)),
            false => Err(EtcdError("etcd: the answer is incomplete".to_owned())),
        }
    }

    /// Each member's own copy of the keys and its revision, or why it does not answer. By address.
    pub async fn look_at_each(&self, keys: &[Vec<u8>]) -> Vec<(String, Result<(i64, Vec<Cell>), EtcdError>)> {
        let looked = (0..self.members.len()).map(|index| async move {
            let (mut at, mut cells) = (0, Vec::new());
            for key in keys {
                let own = RangeRequest { key: key.clone(), serializable: true, ..RangeRequest::default() };
                let found = |connection| async move { KvClient::new(connection).range(own).await };
                match self.try_one(index, found).await {
                    Ok(found) => {
                        at = found.header.map_or(at, |header| header.revision);
                        cells.push(found.kvs.first().map(Cell::from).unwrap_or_default());
                    }
                    Err(error) => return (self.members[index].address.clone(), Err(error)),
                }
            }
            (self.members[index].address.clone(), Ok((at, cells)))
        });
        futures_util::future::join_all(looked).await
    }

    /// A new lease of `seconds`, or longer where etcd's own minimum is larger.
    pub async fn grant(&self, seconds: i64) -> Result<i64, EtcdError> {
        let grant = |connection| async move {
            LeaseClient::new(connection).lease_grant(LeaseGrantRequest { ttl: seconds }).await
        };
        Ok(self.ask(grant).await?.id)
    }

    /// Renews a lease, and answers whether it still was one. Unlike a change of a key that makes no revision.
    pub async fn keep_alive(&self, id: i64) -> Result<bool, EtcdError> {
        let keep = |connection| async move {
            let request = futures_util::stream::iter([LeaseKeepAliveRequest { id }]);
            let mut answers = LeaseClient::new(connection).lease_keep_alive(request).await?.into_inner();
            let answer = answers.message().await?;
            answer.map(Response::new).ok_or_else(|| Status::unavailable("no answer about the lease"))
        };
        Ok(self.ask(keep).await?.ttl > 0)
    }

    /// Ends a lease, and with it the keys that hang on it.
    pub async fn revoke(&self, id: i64) -> Result<(), EtcdError> {
        let revoke = |connection| async move {
            LeaseClient::new(connection).lease_revoke(LeaseRevokeRequest { id }).await
        };
        self.ask(revoke).await.map(drop)
    }

    /// The changes of a range of keys from a revision on, as the member tells them that answered last.
    pub async fn watch(&self, range: WatchCreateRequest) -> Result<Streaming<WatchResponse>, Status> {
        let member = &self.members[self.first.load(Ordering::Relaxed)];
        let create = WatchRequest { request_union: Some(RequestUnion::CreateRequest(range)) };
        // The stream of requests stays open: with its end the watch would end, too.
        let requests = futures_util::StreamExt::chain(
            futures_util::stream::iter([create]),
            futures_util::stream::pending(),
        );
        Ok(WatchClient::new(member.connection.clone()).watch(requests).await?.into_inner())
    }

    /// Asks the members in turn, each once, and returns the first answer.
    async fn ask<T, F>(&self, question: impl Fn(Connection) -> F) -> Result<T, EtcdError>
    where
        F: Future<Output = Result<Response<T>, Status>>,
    {
        let first = self.first.load(Ordering::Relaxed);
        let mut failure = EtcdError("etcd: no members".to_owned());
        for turn in 0..self.members.len() {
            let index = (first + turn) % self.members.len();
            match self.try_one(index, &question).await {
                Ok(answer) => {
                    self.first.store(index, Ordering::Relaxed);
                    return Ok(answer);
                }
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }

    async fn try_one<T, F>(
        &self,
        index: usize,
        question: impl FnOnce(Connection) -> F,
    ) -> Result<T, EtcdError>
    where
        F: Future<Output = Result<Response<T>, Status>>,
    {
        let EtcdEndpoint { address, connection } = &self.members[index];
        let why = match timeout(self.patience, question(connection.clone())).await {
            Ok(Ok(answer)) => return Ok(answer.into_inner()),
            Ok(Err(status)) => reason(address, &status),
            Err(_) => format!("no answer within {:?}", self.patience),
        };
        Err(EtcdError(format!("{address}: {why}")))
    }
}

/// Explains a failure of the member at `address` to people.
fn reason(address: &str, status: &Status) -> String {
    // A member that expects TLS, or another certificate, ends the connection; without a connection the code is `Unavailable`.
    let ended = status.source().is_some() && status.code() != Code::Unavailable;
    let reported = match (ended, status.source()) {
        (true, _) => "it ended the connection".to_owned(),
        (false, Some(cause)) => text(cause),
        (false, None) => status.message().to_owned(),
    };
    let advice = match (ended, address.starts_with("https://")) {
        (true, true) => {
            "; if it asks for a certificate, set certificate and key to one that its authority signed"
        }
        (true, false) => "; if it uses TLS, write https:// and set authority",
        _ if reported.contains("invalid peer certificate") => {
            "; set authority to the authority that signed the members' certificates"
        }
        _ => "",
    };
    format!("{reported}{advice}")
}
