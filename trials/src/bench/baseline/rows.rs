//! The bare PostgreSQL loop: the same rows, heads and idempotency records straight into the same tables and indexes.
//!
//! No network but the socket, no queue, no checks, no conversation list: each connection has inboxes of its own, knows
//! their latest ids, and stores a batch by one statement. The tables come from the server's own migrations.

use std::fmt;

use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection};

use super::sqlite::{migrations, partition_key};
use crate::Result;
use crate::bench::rate;

/// How many connections, and how many messages each of them stores by a statement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct StoreWay {
    pub(crate) connections: usize,
    pub(crate) batch: usize,
}

impl fmt::Display for StoreWay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at a time, connections {}", self.batch, self.connections)
    }
}

/// The ways that are tried: on a machine of few cores more connections only wait for each other.
const WAYS: &[StoreWay] = &[
    StoreWay { connections: 1, batch: 200 },
    StoreWay { connections: 1, batch: 320 },
    StoreWay { connections: 1, batch: 1_000 },
    StoreWay { connections: 2, batch: 100 },
    StoreWay { connections: 2, batch: 160 },
    StoreWay { connections: 2, batch: 500 },
    StoreWay { connections: 4, batch: 50 },
    StoreWay { connections: 4, batch: 80 },
    StoreWay { connections: 4, batch: 500 },
];

const STORE: &str = "WITH moved AS (
         UPDATE heads SET last_id = new.last_id FROM unnest($1, $2, $3) AS new(partition_key, receiver, last_id)
         WHERE heads.partition_key = new.partition_key AND heads.receiver = new.receiver
     ), recorded AS (
         INSERT INTO sent (partition_key, sender, client_id, digest, message_id, sent_at)
         SELECT record.*, $8 FROM unnest($4, $5, $6, $7, $9) AS record(partition_key, sender, client_id, digest, message_id)
     )
     INSERT INTO entries (partition_key, receiver, message_id, kind, conversation, sender, client_id, body, sent_at)
     SELECT copy.partition_key, copy.receiver, copy.message_id, 1, copy.conversation, copy.sender, copy.client_id, copy.body, $8
     FROM unnest($10, $11, $12, $13, $14, $15, $16)
         AS copy(partition_key, receiver, message_id, conversation, sender, client_id, body)";

/// Any moment.
const SENT_AT: i64 = 1_795_261_438_042;

/// A database with all tables.
pub(crate) struct BareRows {
    url: String,
    body: String,
}

/// A user's inbox, as the loop knows it.
struct Inbox {
    key: String,
    uid: i64,
    last_id: i64,
}

impl BareRows {
    /// Makes the tables in the empty database at `url`.
    pub(crate) async fn open(url: String) -> Result<BareRows> {
        let mut connection = PgConnection::connect(&url).await?;
        for migration in migrations("postgres")? {
            connection.execute(AssertSqlSafe(migration)).await?;
        }
        Ok(BareRows { url, body: format!(r#"{{"text":"{}"}}"#, "x".repeat(200)) })
    }

    /// Stores `each` messages of each pair, one pair after the other in turn; messages a second.
    pub(crate) async fn store(&self, pairs: &[(u32, u32)], each: usize, way: StoreWay) -> Result<f64> {
        let share = pairs.len().div_ceil(way.connections).max(1);
        let mut loops = Vec::new();
        for pairs in pairs.chunks(share) {
            loops.push(Loop::open(self, pairs).await?);
        }
        let running = loops.into_iter().map(|mut one| async move { one.run(each, way.batch).await });
        rate(pairs.len() * each, running).await
    }

    /// The best of the ways with at most so many messages under way, found with `each` messages of each pair, and its rate with `full`.
    pub(crate) async fn best(
        &self,
        pairs: &[(u32, u32)],
        in_flight: usize,
        (each, full): (usize, usize),
    ) -> Result<(StoreWay, f64)> {
        let mut best = (WAYS[0], 0.0);
        for way in WAYS.iter().filter(|way| way.connections * way.batch <= in_flight) {
            let rate = self.store(pairs, each, *way).await?;
            if rate > best.1 {
                best = (*way, rate);
            }
        }
        Ok((best.0, self.store(pairs, full, best.0).await?))
    }
}

/// One connection at work.
struct Loop {
    connection: PgConnection,
    inboxes: Vec<Inbox>,
    /// Places of sender and receiver among the inboxes.
    pairs: Vec<(usize, usize)>,
    body: String,
}

impl Loop {
    async fn open(bare: &BareRows, pairs: &[(u32, u32)]) -> Result<Loop> {
        let mut connection = PgConnection::connect(&bare.url).await?;
        let mut inboxes: Vec<Inbox> = pairs
            .iter()
            .flat_map(|(sender, receiver)| [*sender, *receiver])
            .map(|uid| Inbox { key: partition_key(uid), uid: uid.into(), last_id: 0 })
            .collect();
        for inbox in &mut inboxes {
            let made = "INSERT INTO heads (partition_key, receiver, last_id) VALUES ($1, $2, 0) ON CONFLICT DO NOTHING";
            sqlx::query(made).bind(&inbox.key).bind(inbox.uid).execute(&mut connection).await?;
            let asked = "SELECT last_id FROM heads WHERE partition_key = $1 AND receiver = $2";
            let asked = sqlx::query_scalar(asked).bind(&inbox.key).bind(inbox.uid);
            inbox.last_id = asked.fetch_one(&mut connection).await?;
        }
        let pairs = (0..pairs.len()).map(|at| (2 * at, 2 * at + 1)).collect();
        Ok(Loop { connection, inboxes, pairs, body: bare.body.clone() })
    }

    async fn run(&mut self, each: usize, batch: usize) -> Result<()> {
        let turns = (0..each).flat_map(|_| self.pairs.iter().copied()).collect::<Vec<_>>();
        for messages in turns.chunks(batch) {
            self.store(messages).await?;
        }
        Ok(())
    }

    async fn store(&mut self, messages: &[(usize, usize)]) -> Result<()> {
        let (mut copies, mut records) =
            (Vec::with_capacity(messages.len() * 2), Vec::with_capacity(messages.len()));
        for &(sender, receiver) in messages {
            let client_id: [u8; 16] = rand::random();
            for (at, other) in [(sender, receiver), (receiver, sender)] {
                self.inboxes[at].last_id += 1;
                copies.push((at, self.inboxes[at].last_id, other, sender, client_id));
            }
            records.push((sender, client_id, self.inboxes[sender].last_id));
        }
        // In the order of the key, which is the order of the indexes.
        copies.sort_by_key(|(at, id, ..)| (&self.inboxes[*at].key, self.inboxes[*at].uid, *id));
        let mut moved: Vec<usize> = copies.iter().map(|(at, ..)| *at).collect();
        moved.dedup();
        let key = |at: usize| self.inboxes[at].key.as_str();
        let uid = |at: usize| self.inboxes[at].uid;
        sqlx::query(STORE)
            .bind(moved.iter().map(|at| key(*at)).collect::<Vec<_>>())
            .bind(moved.iter().map(|at| uid(*at)).collect::<Vec<_>>())
            .bind(moved.iter().map(|at| self.inboxes[*at].last_id).collect::<Vec<_>>())
            .bind(records.iter().map(|(at, ..)| key(*at)).collect::<Vec<_>>())
            .bind(records.iter().map(|(at, ..)| uid(*at)).collect::<Vec<_>>())
            .bind(records.iter().map(|(_, client_id, _)| client_id.as_slice()).collect::<Vec<_>>())
            .bind(records.iter().map(|_| [7_u8; 16].to_vec()).collect::<Vec<_>>())
            .bind(SENT_AT)
            .bind(records.iter().map(|(_, _, id)| *id).collect::<Vec<_>>())
            .bind(copies.iter().map(|(at, ..)| key(*at)).collect::<Vec<_>>())
            .bind(copies.iter().map(|(at, ..)| uid(*at)).collect::<Vec<_>>())
            .bind(copies.iter().map(|(_, id, ..)| *id).collect::<Vec<_>>())
            .bind(copies.iter().map(|(_, _, other, ..)| format!("u:{}", uid(*other))).collect::<Vec<_>>())
            .bind(copies.iter().map(|(.., sender, _)| uid(*sender)).collect::<Vec<_>>())
            .bind(copies.iter().map(|(.., client_id)| client_id.as_slice()).collect::<Vec<_>>())
            .bind(copies.iter().map(|_| self.body.as_str()).collect::<Vec<_>>())
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
    async fn the_loop_stores_what_a_message_is_made_of() {
        let bare = BareRows::open(postgres::durable_database().await).await.expect("opened");
        let way = StoreWay { connections: 2, batch: 3 };
        bare.store(&[(1, 2), (3, 4)], 5, way).await.expect("stored");
        bare.store(&[(1, 2), (3, 4)], 1, way).await.expect("stored");
        let mut connection = PgConnection::connect(&bare.url).await.expect("connected");
        let count: (i64, i64, i64) = sqlx::query_as(
            "SELECT (SELECT count(*) FROM entries), (SELECT count(*) FROM sent), (SELECT sum(last_id)::bigint FROM heads)",
        )
        .fetch_one(&mut connection)
        .await
        .expect("counted");
        assert_eq!(count, (24, 12, 24));
    }
}
