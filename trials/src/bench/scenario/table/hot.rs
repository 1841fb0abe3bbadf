//! `table-hot`: all clients put under one value of the first key column, whose numbers follow one another, or under many.

use tidemark_test_support::servers::postgres;

use super::{KEYS, World, puts};
use crate::Result;
use crate::bench::Context;
use crate::bench::report::Sample;
use crate::bench::scenario::Measured;
use crate::bench::scenario::postgres::database;

/// Clients, one row in flight each.
const CLIENTS: usize = 64;
/// Rows of a client in a run, on SQLite and on PostgreSQL.
const EACH: (usize, usize) = (2_000, 500);

pub(in crate::bench::scenario) struct TableHot {
    on_sqlite: World,
    on_postgres: World,
    _database: postgres::Server,
}

impl Measured for TableHot {
    const NAME: &'static str = "table-hot";
    const ABOUT: &'static str =
        "rows with the placeholder under one first key and under 10,000, on both databases";

    async fn prepare(context: &Context) -> Result<Self> {
        let on_sqlite = World::new(context, None).await?;
        let database = database().await?;
        let on_postgres = World::new(context, Some(&database.new_database().await)).await?;
        Ok(TableHot { on_sqlite, on_postgres, _database: database })
    }

    async fn measure(&mut self, context: &Context) -> Result<Vec<Sample>> {
        let worlds = [("SQLite", &self.on_sqlite, EACH.0), ("PostgreSQL", &self.on_postgres, EACH.1)];
        let mut samples = Vec::new();
        for (database, world, each) in worlds {
            let each = context.scaled(each);
            let server = world.start().await?;
            let many = world.rate("PutRow", puts(CLIENTS, KEYS), each).await?;
            let one = world.rate("PutRow", puts(CLIENTS, 1), each).await?;
            server.stop().await?;
            let all = format!("{database}: 10,000 first keys");
            samples.push(Sample::new(all.clone(), many, "rows/s"));
            samples.push(Sample::new(format!("{database}: one first key"), one, "rows/s").against(all, many));
        }
        Ok(samples)
    }
}
