//! The way to a StoreSvr over gRPC. Connects when first asked, and again after it broke. A question whose caller no
//! longer waits is still carried to its end: the quorum goes on with W answers, and the other replicas should not fall
//! behind for it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Channel;

use super::Link;
use seqsvr_core::routing::Table;
use seqsvr_core::store::Address;
use seqsvr_core::store::message::{Answer, Question};
use seqsvr_rpc::security::{Call, Pass, SecurityError};
use seqsvr_rpc::store::LARGEST_ANSWER;
use seqsvr_rpc::v1::store_client::StoreClient;
use seqsvr_rpc::v1::{self, StoreRequest, store_reply, store_request};

/// Questions to one replica under way at a time; more are refused at once.
const IN_FLIGHT: usize = 256;

/// One replica, reached over gRPC.
pub struct Remote {
    client: StoreClient<InterceptedService<Channel, Pass>>,
    cluster: String,
    set: u32,
    patience: Duration,
    room: Arc<Semaphore>,
    /// The newest table that the replica answered: it need not come again.
    known: Mutex<Option<Arc<Table>>>,
}

impl Remote {
    /// The replica at `addr` that belongs to `cluster` and `set`; another one's answers count as none. Nothing is connected
    /// yet. A question may take `patience` beside its own wait.
    ///
    /// # Errors
    ///
    /// An address that cannot be used, or must not be without protection.
    pub fn new(
        addr: &str,
        call: &Call,
        cluster: &str,
        set: u32,
        patience: Duration,
    ) -> Result<Self, SecurityError> {
        let channel = call.endpoint(addr)?.connect_lazy();
        let client =
            StoreClient::with_interceptor(channel, call.pass()).max_decoding_message_size(LARGEST_ANSWER);
        let room = Arc::new(Semaphore::new(IN_FLIGHT));
        Ok(Self { client, cluster: cluster.to_owned(), set, patience, room, known: Mutex::default() })
    }
}

#[async_trait]
impl Link for Remote {
    async fn ask(&self, question: Question) -> Result<Answer, String> {
        self.send(None, question).await
    }

    async fn call(&self, to: Address, question: Question) -> Result<Answer, String> {
        self.send(Some(to), question).await
    }
}

impl Remote {
    async fn send(&self, to: Option<Address>, question: Question) -> Result<Answer, String> {
        let Ok(permit) = Arc::clone(&self.room).try_acquire_owned() else {
            return Err(format!("{IN_FLIGHT} requests are waiting already"));
        };
        let wait = if let Question::Read { wait, .. } = question { wait } else { Duration::ZERO };
        let allowed = wait + self.patience;
        let known = self.known().clone();
        let mut request = store_request::Request::from(&question);
        if let store_request::Request::Read(read) = &mut request {
            // A replica keeps one table of each version: a term is promised once, and an arbiter writes no version twice.
            read.known = known.as_ref().map(|table| table.version.into());
        }
        let request = Some(request);
        let address = to.map(v1::Address::from);
        let request = StoreRequest { cluster: self.cluster.clone(), set: self.set, address, request };
        let mut client = self.client.clone();
        let asked = tokio::spawn(async move {
            let answered = timeout(allowed, client.call(request)).await;
            drop(permit);
            answered
        });
        let answered = asked.await.map_err(|_| "the runtime stops".to_owned())?;
        let reply = answered.map_err(|_| format!("no answer within {allowed:?}"))?;
        let reply = reply.map_err(|status| status.message().to_owned())?.into_inner();
        match reply.reply {
            Some(store_reply::Reply::Refused(why)) => Err(why),
            Some(store_reply::Reply::Read(read)) => self.table(read, known),
            Some(reply) => Answer::try_from(reply).map_err(|error| error.to_string()),
            None => Err("the answer is empty".to_owned()),
        }
    }

    /// The answer of a replica to a read that named `known`.
    fn table(&self, read: v1::ReadReply, known: Option<Arc<Table>>) -> Result<Answer, String> {
        let same = read.same_table;
        let answer = Answer::try_from(store_reply::Reply::Read(read)).map_err(|error| error.to_string())?;
        let Answer::Table { revision, table, promised, acting } = answer else {
            unreachable!("a reply to a read becomes one")
        };
        let table = match (same, table) {
            (false, table) => table,
            (true, None) => Some(known.ok_or("the answer leaves out a table that was not named")?),
            (true, Some(_)) => return Err("the answer leaves out a table, and has one".to_owned()),
        };
        self.known().clone_from(&table);
        Ok(Answer::Table { revision, table, promised, acting })
    }

    fn known(&self) -> MutexGuard<'_, Option<Arc<Table>>> {
        // Only ever replaced as a whole.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
