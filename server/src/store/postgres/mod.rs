//! PostgreSQL: one database that several server processes use at the same time.
//!
//! [`PgDb`] is the way to it: bounded connections for the queues (`kept`) and a pool for everybody else, each connection
//! checked when it is made, and the tables brought up to date when the first one is. It owns no data in memory that
//! another process could change, but rows that were committed here (`recent`). [`PostgresStore`] keeps
//! messages in it.

mod arguments;
mod bulk;
mod check;
mod clock;
mod commit;
mod condition;
mod db;
mod deadline;
mod deletions;
mod distributed;
mod effect;
mod error;
mod expiry;
mod export_snapshot;
mod functions;
mod heads;
mod history;
mod import;
mod inbox_import;
mod kept;
mod keyed;
mod layout;
mod learnt;
mod life;
mod lookup;
mod meta;
mod more;
mod options;
mod plan;
mod protocol;
mod rates;
mod read;
mod recent;
mod revisions;
mod rights;
mod schema;
mod search;
mod setback;
mod standby;
mod status;
mod store;
mod tables;
mod tickets;

pub use check::PgRefusal;
pub use db::{PgDb, ReadConnection};
pub use error::PgOpenError;
pub use export_snapshot::PgExportSnapshot;
pub use import::PgImport;
pub use inbox_import::PgInboxImport;
pub use kept::QueueConnection;
pub use options::{PgOptions, Replication, check_url, listening};
pub use rates::PgRates;
pub use search::PgSearch;
pub use status::status;
pub use store::PostgresStore;
pub use tickets::PgTickets;

#[cfg(test)]
mod tests;
