//! The bare PostgreSQL loop of tables: the same rows and counters by multi-row inserts into the same tables.
//!
//! No network but the socket, no queue, no checks: each connection has values of the first key column of its own, knows their latest
//! numbers, and stores a batch by one statement.

use std::collections::BTreeMap;
use std::time::Instant;

use futures_util::future::try_join_all;
use sqlx::{Connection, PgConnection};

use super::{First, TABLE_ID, WRITTEN_AT};
use crate::Result;
use crate::bench::baseline::rows::{Way, best_of, make_tables};
use crate::bench::tables;

/// The ways that are tried.
const WAYS: &[Way] = &[
    Way { connections: 1, batch: 200 },
    Way { connections: 1, batch: 800 },
    Way { connections: 2, batch: 200 },
    Way { connections: 2, batch: 400 },
    Way { connections: 4, batch: 200 },
];

const STORE: &str = "WITH counted AS (
         INSERT INTO table_counters (partition_key, table_id, first, last_id)
         SELECT new.partition_key, $1, new.first, new.last_id FROM unnest($2, $3, $4) AS new(partition_key, first, last_id)
         ON CONFLICT (partition_key, table_id, first) DO UPDATE SET last_id = excluded.last_id
     )
     INSERT INTO table_rows (partition_key, table_id, key, rest, rest_digest, revision, row)
     SELECT new.partition_key, $1, new.key, '', '', $5, new.row FROM unnest($6, $7, $8) AS new(partition_key, key, row)";

/// A database with all tables.
pub(crate) struct BareTable {
    url: String,
    row: Vec<u8>,
}

impl BareTable {
    /// Makes the tables in the empty database at `url`; rows have a text of `bytes`.
    pub(crate) async fn open(url: String, bytes: usize) -> Result<BareTable> {
        make_tables(&url).await?;
        Ok(BareTable { url, row: tables::stored_row(bytes, WRITTEN_AT) })
    }

    /// Stores a row under each of `firsts`; rows a second.
    pub(crate) async fn store(&self, firsts: &[usize], way: Way) -> Result<f64> {
        let mut loops = Vec::new();
        for own in 0..way.connections {
            let firsts = firsts.iter().copied().filter(|first| first % way.connections == own);
            loops.push(Loop::open(self, firsts.collect()).await?);
        }
        let began = Instant::now();
        let running = loops.into_iter().map(|one| tokio::spawn(async move { one.run(way.batch).await }));
        for done in try_join_all(running).await? {
            done?;
        }
        Ok(firsts.len() as f64 / began.elapsed().as_secs_f64())
    }

    /// The best way with at most so many rows under way, found with a part of `firsts`, and its rate with all of them.
    pub(crate) async fn best(&self, firsts: &[usize], in_flight: usize) -> Result<(Way, f64)> {
        let some = &firsts[..firsts.len().div_ceil(5)];
        let ways = WAYS.iter().copied().filter(|way| way.in_flight() <= in_flight);
        let best = best_of(ways, async |way| self.store(some, way).await).await?;
        Ok((best, self.store(firsts, best).await?))
    }
}

/// One connection at work.
struct Loop {
    connection: PgConnection,
    firsts: BTreeMap<usize, First>,
    turns: Vec<usize>,
    row: Vec<u8>,
}

impl Loop {
    async fn open(bare: &BareTable, turns: Vec<usize>) -> Result<Loop> {
        let mut connection = PgConnection::connect(&bare.url).await?;
        let mut firsts: BTreeMap<usize, First> = turns.iter().map(|at| (*at, First::new(*at))).collect();
        let known =
            "SELECT last_id FROM table_counters WHERE partition_key = $1 AND table_id = $2 AND first = $3";
        for first in firsts.values_mut() {
            let last =
                sqlx::query_scalar(known).bind(&first.partition_key).bind(TABLE_ID).bind(&first.encoded);
            first.last_id = last.fetch_optional(&mut connection).await?.unwrap_or(0);
        }
        Ok(Loop { connection, firsts, turns, row: bare.row.clone() })
    }

    async fn run(mut self, batch: usize) -> Result<()> {
        for turns in std::mem::take(&mut self.turns).chunks(batch) {
            self.store(turns).await?;
        }
        Ok(())
    }

    async fn store(&mut self, turns: &[usize]) -> Result<()> {
        let mut keys = Vec::with_capacity(turns.len());
        for at in turns {
            let Some(first) = self.firsts.get_mut(at) else { continue };
            keys.push((first.next_key(), *at));
        }
        // In the order of the index.
        let partition = |at: &usize| self.firsts[at].partition_key.as_str();
        keys.sort_unstable_by(|(key, at), (other, of)| {
            partition(at).cmp(partition(of)).then_with(|| key.cmp(other))
        });
        let mut moved: Vec<usize> = keys.iter().map(|(_, at)| *at).collect();
        moved.dedup();
        let counters = || moved.iter().map(|at| &self.firsts[at]);
        sqlx::query(STORE)
            .bind(TABLE_ID)
            .bind(counters().map(|first| first.partition_key.as_str()).collect::<Vec<_>>())
            .bind(counters().map(|first| first.encoded.as_slice()).collect::<Vec<_>>())
            .bind(counters().map(|first| first.last_id).collect::<Vec<_>>())
            .bind(1_i64)
            .bind(keys.iter().map(|(_, at)| self.firsts[at].partition_key.as_str()).collect::<Vec<_>>())
            .bind(keys.iter().map(|(key, _)| key.as_slice()).collect::<Vec<_>>())
            .bind(keys.iter().map(|_| self.row.as_slice()).collect::<Vec<_>>())
            .execute(&mut self.connection)
            .await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tidemark_test_support::servers::postgres;

    use super::*;

    #[tokio::test]
    async fn the_loop_stores_rows_and_counters() {
        let bare = BareTable::open(postgres::durable_database().await, 10).await.expect("opened");
        let way = Way { connections: 2, batch: 3 };
        bare.store(&[1, 1, 2, 1, 4], way).await.expect("stored");
        bare.store(&[2], way).await.expect("stored");
        let mut connection = PgConnection::connect(&bare.url).await.expect("connected");
        let counts = "SELECT (SELECT count(*) FROM table_rows), count(*), max(last_id) FROM table_counters";
        let counts: (i64, i64, i64) =
            sqlx::query_as(counts).fetch_one(&mut connection).await.expect("counted");
        assert_eq!(counts, (6, 3, 3));
    }
}
