//! The service that carries out programs' operations on tables (S19): operations in, answers out, both as bytes.
//!
//! `http` calls [`TableService::call`]. `tidemark_table` defines the meaning of operations; this module connects it with the store.
//! Inside: `catalog` knows the tables; `tables` makes and changes them; `reads`, `range` and `split` read rows; `writes` writes them:
//! those with the placeholder at once where the store groups commits (`assigned`), all others through the writers. `writer` is their
//! loop (read, decide, commit, answer) over jobs from `lanes`, `plan` its pure part. `sweeper` removes rows and versions past their
//! TTL.
//! `inbox` shows the chat's inboxes as a table beside the others. `browse` has the reads that pages make.

use std::sync::Arc;
use std::time::Duration;

use tidemark_table::operations::write::WriteKind;
use tidemark_table::operations::{Operation, no_search_indexes};
use tidemark_table::{ErrorCode, TableError};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::domain::{Clock, Uid};
use crate::store::tables::TableStore;

mod assigned;
mod browse;
mod catalog;
mod error;
mod inbox;
mod job;
mod lanes;
mod meter;
mod plan;
mod range;
mod rates;
mod reads;
mod split;
mod sweeper;
mod tables;
#[cfg(test)]
mod tests;
mod writer;
mod writes;

pub use browse::Described;
pub use inbox::{MayPost, Posts, WithInboxes};
pub use meter::Turn;
pub use range::RangeRows;

use catalog::Catalog;
use error::too_slow;
use lanes::Lanes;
use meter::{Meter, RowAccess};
use rates::OperationRates;

/// The first pause after a failure; doubled up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(50);

/// The longest pause between two tries.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// How many, how long, how much at once. Every field is a limit with its default (I9).
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Tables of an instance. Default 64.
    pub tables: usize,
    /// Operations on tables a second and instance. Default 10.
    pub table_operations: u32,
    /// KiB a second that the requests with one access key read and write; 0: any number. Default 0; the configuration has 16,384.
    pub kib_a_second: u32,
    /// Writers: how many commits may be under way. Default 4.
    pub writers: usize,
    /// Jobs that may wait for one writer; beyond it writes are refused at once. Default 1,024.
    pub length: usize,
    /// Bytes of the writes that may wait for all writers and, past them, for the store; beyond it writes are refused at once. Default
    /// 64 MiB.
    pub waiting_bytes: usize,
    /// How often what is past its TTL is looked for. Default 10 s.
    pub sweep_every: Duration,
    /// Rows of deleted tables that one transaction removes. Default 1,000.
    pub forget_rows: usize,
    /// How long an operation may take that writes nothing. Default 30 s.
    pub read_within: Duration,
    /// Bytes that ComputeSplitPointsBySize looks at; what lies behind them is one part. Default 1 GiB.
    pub split_bytes: u64,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            tables: 64,
            table_operations: 10,
            kib_a_second: 0,
            writers: 4,
            length: 1_024,
            waiting_bytes: 64 << 20,
            sweep_every: Duration::from_secs(10),
            forget_rows: 1_000,
            read_within: Duration::from_secs(30),
            split_bytes: 1 << 30,
        }
    }
}

/// The caller, as the access key says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The access key, by its id.
    pub key: String,
    /// The instance whose tables it opens.
    pub instance: String,
    /// Whether it may change tables and rows.
    pub may_write: bool,
    /// The user in whose name it may read and write the inboxes of the chat; `None`: it may not.
    pub inbox: Option<Uid>,
}

/// The service; a cheap clone is the same one.
#[derive(Clone)]
pub struct TableService {
    store: Arc<dyn TableStore>,
    clock: Clock,
    options: Options,
    catalog: Arc<Catalog>,
    rates: Arc<OperationRates>,
    meter: Arc<Meter>,
    lanes: Lanes,
    /// Writes to inboxes; `None`: nothing can be written.
    posts: Option<Posts>,
    closing: CancellationToken,
    tasks: TaskTracker,
}

impl TableService {
    /// Starts the writers and the sweeper.
    pub fn start(store: Arc<dyn TableStore>, clock: Clock, options: Options) -> TableService {
        let (closing, tasks) = (CancellationToken::new(), TaskTracker::new());
        let lanes = lanes::start(&store, &clock, options, &closing, &tasks);
        let catalog = Arc::new(Catalog::new(Arc::clone(&store)));
        let sweeper = sweeper::Sweeper::new(Arc::clone(&store), clock.clone(), lanes.clone(), options);
        tasks.spawn(closing.clone().run_until_cancelled_owned(sweeper.run()));
        let rates = Arc::new(OperationRates::new(options.table_operations));
        let meter = Arc::new(Meter::new(options.kib_a_second));
        TableService { store, clock, options, catalog, rates, meter, lanes, posts: None, closing, tasks }
    }

    /// The same service, which also puts rows into inboxes. Its store is a [`WithInboxes`].
    pub fn with_posts(self, posts: Posts) -> TableService {
        TableService { posts: Some(posts), ..self }
    }

    /// Waits until an access key may make a request of so many bytes. Its turn is kept until the request is answered.
    ///
    /// # Errors
    ///
    /// [`ErrorCode::ServerBusy`]: too many requests of the key wait.
    pub async fn enter(&self, key: &str, operation: &str, bytes: usize) -> Result<Turn, TableError> {
        let reads = Operation::named(operation).is_ok_and(|operation| !operation.writes());
        self.meter.enter(key, if reads { RowAccess::Read } else { RowAccess::Write }, bytes).await
    }

    /// Counts bytes of a request that were not known when it [entered](Self::enter).
    pub fn count(&self, key: &str, bytes: usize) {
        self.meter.count(key, bytes);
    }

    /// Carries out an operation and returns the bytes of its answer. A write is done although the future is dropped, once it waits in
    /// a writer's lane or the store has it.
    ///
    /// # Errors
    ///
    /// With the code, status and text of Tablestore. For a write, [`ErrorCode::Timeout`] alone leaves open whether it was done.
    pub async fn call(&self, caller: &Caller, operation: &str, body: &[u8]) -> Result<Vec<u8>, TableError> {
        let operation = Operation::named(operation)?;
        if operation.writes() && !caller.may_write {
            let message = "You have no permission to write: the access key is read-only.";
            return Err(TableError::new(ErrorCode::NoPermissionAccess, message));
        }
        if operation.is_of_tables() && !self.rates.allow(&caller.instance) {
            return Err(TableError::new(ErrorCode::QuotaExhausted, "Too frequent table operations."));
        }
        let answering = self.carry_out(caller, operation, body);
        match operation {
            // Its walk waits for the key's turn again and again; each step has its time.
            Operation::ComputeSplitPointsBySize => answering.await,
            _ if operation.writes() => answering.await,
            _ => self.in_time(answering).await,
        }
    }

    /// Refuses what takes too long to read.
    async fn in_time<T>(
        &self,
        reading: impl Future<Output = Result<T, TableError>>,
    ) -> Result<T, TableError> {
        tokio::time::timeout(self.options.read_within, reading).await.unwrap_or_else(|_| Err(too_slow()))
    }

    async fn carry_out(
        &self,
        caller: &Caller,
        operation: Operation,
        body: &[u8],
    ) -> Result<Vec<u8>, TableError> {
        match operation {
            Operation::CreateTable => self.create_table(caller, body).await,
            Operation::ListTable => self.list_tables(caller).await,
            Operation::DescribeTable => self.describe_table(caller, body).await,
            Operation::UpdateTable => self.update_table(caller, body).await,
            Operation::DeleteTable => self.delete_table(caller, body).await,
            Operation::ComputeSplitPointsBySize => self.compute_split_points(caller, body).await,
            Operation::PutRow => self.write_row(caller, WriteKind::Put, body).await,
            Operation::UpdateRow => self.write_row(caller, WriteKind::Update, body).await,
            Operation::DeleteRow => self.write_row(caller, WriteKind::Delete, body).await,
            Operation::GetRow => self.get_row(caller, body).await,
            Operation::BatchGetRow => self.batch_get_row(caller, body).await,
            Operation::BatchWriteRow => self.batch_write_row(caller, body).await,
            Operation::GetRange => self.get_range(caller, body).await,
            Operation::ListSearchIndex => Ok(no_search_indexes()),
        }
    }

    /// Jobs waiting for each writer.
    pub fn depths(&self) -> impl Iterator<Item = usize> + '_ {
        self.lanes.depths()
    }

    /// Takes no more writes and returns when everything accepted is answered.
    pub async fn stop(&self) {
        self.closing.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}
