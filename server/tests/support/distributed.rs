//! A database with distributed tables, on PostgreSQL alone: stand-ins for Citus check what Citus would refuse, and a
//! trigger refuses each transaction that writes to two partitions.

use sqlx::{Connection as _, Executor as _, PgConnection};
use tidemark::store::postgres::{PgDb, PgOptions};
use tidemark_test_support::servers::postgres::durable_database;
use tidemark_test_support::until::until;

/// A new one, as `distribute.sql` makes it of an empty installation.
pub(crate) async fn database() -> String {
    let url = durable_database().await;
    PgDb::open(&url, &PgOptions::default()).await.expect("migrated").close().await;
    let mut owner = PgConnection::connect(&url).await.expect("connected");
    owner.execute(include_str!("citus.sql")).await.expect("the stand-ins of Citus");
    until("the tables are distributed", async || {
        let done = owner.execute(include_str!("../../../migrations/postgres/distribute.sql")).await;
        // The session of the program that migrated may not have ended yet.
        if let Err(why) = &done {
            assert!(why.to_string().contains("in use"), "{why}");
            owner.execute("ROLLBACK").await.expect("ended");
        }
        done.is_ok()
    })
    .await;
    owner.execute(include_str!("partitions.sql")).await.expect("the trigger");
    url
}
