//! Tickets for WebSockets on PostgreSQL: given by one server, redeemed by any, by the database's clock.

use std::sync::Arc;

use async_trait::async_trait;
use sqlx::Row as _;

use super::PgDb;
use super::clock::NOW;
use crate::store::{StoreError, Tickets};

/// Tickets whose time is over that one call forgets: more than a call adds, so that they do not pile up.
const FORGOTTEN_AT_ONCE: i64 = 8;

/// See the module.
pub struct PgTickets {
    db: Arc<PgDb>,
}

impl PgTickets {
    /// The tickets in this database.
    pub fn new(db: Arc<PgDb>) -> PgTickets {
        PgTickets { db }
    }
}

#[async_trait]
impl Tickets for PgTickets {
    async fn keep_ticket(
        &self,
        ticket_hash: &[u8; 32],
        token_hash: &[u8; 32],
        lifetime_ms: i64,
    ) -> Result<(), StoreError> {
        // Servers that forget at the same time take different ones.
        let statement = sqlx::AssertSqlSafe(format!(
            "WITH over AS (
                 SELECT ticket_hash FROM tickets WHERE expires_at <= {NOW}
                 ORDER BY expires_at LIMIT $4 FOR UPDATE SKIP LOCKED
             ), forgotten AS (
                 DELETE FROM tickets USING over WHERE tickets.ticket_hash = over.ticket_hash
             )
             INSERT INTO tickets (ticket_hash, token_hash, expires_at) VALUES ($1, $2, {NOW} + $3)"
        ));
        let keep = sqlx::query(statement).bind(ticket_hash.to_vec()).bind(token_hash.to_vec());
        let keep = keep.bind(lifetime_ms).bind(FORGOTTEN_AT_ONCE);
        self.db.limited(async { Ok(keep.execute(&mut *self.db.reader().await?).await.map(drop)?) }).await
    }

    async fn take_ticket(&self, ticket_hash: &[u8; 32]) -> Result<Option<[u8; 32]>, StoreError> {
        let statement = sqlx::AssertSqlSafe(format!(
            "DELETE FROM tickets WHERE ticket_hash = $1 RETURNING token_hash, expires_at > {NOW} AS is_good"
        ));
        let take = sqlx::query(statement).bind(ticket_hash.to_vec());
        let take = async { Ok(take.fetch_optional(&mut *self.db.reader().await?).await?) };
        let Some(row) = self.db.limited(take).await? else { return Ok(None) };
        let token_hash: Vec<u8> = row.try_get("token_hash")?;
        let token_hash =
            token_hash.try_into().map_err(|_| StoreError::corrupt("a ticket of another length"))?;
        Ok(row.try_get::<bool, _>("is_good")?.then_some(token_hash))
    }
}

#[cfg(test)]
mod tests {
    use tidemark_test_support::servers::postgres::durable_database;

    use super::super::PgOptions;
    use super::*;

    /// Two servers of one database.
    async fn servers() -> [PgTickets; 2] {
        let url = durable_database().await;
        let mut servers = Vec::new();
        for _ in 0..2 {
            servers.push(PgTickets::new(PgDb::open(&url, &PgOptions::default()).await.expect("opened")));
        }
        servers.try_into().ok().expect("two of them")
    }

    #[tokio::test]
    async fn a_ticket_of_one_server_opens_one_socket_of_whichever_server() {
        let [here, there] = servers().await;
        here.keep_ticket(&[1; 32], &[7; 32], 30_000).await.expect("kept");
        let (one, two) = tokio::join!(here.take_ticket(&[1; 32]), there.take_ticket(&[1; 32]));
        let taken = [one.expect("asked"), two.expect("asked")];
        assert_eq!(taken.iter().flatten().collect::<Vec<_>>(), [&[7; 32]], "{taken:?}");
        assert_eq!(here.take_ticket(&[2; 32]).await.expect("asked"), None);
    }

    #[tokio::test]
    async fn a_ticket_whose_time_is_over_opens_nothing_and_is_forgotten() {
        let [here, there] = servers().await;
        for n in 1..=3 {
            here.keep_ticket(&[n; 32], &[7; 32], -1).await.expect("kept");
        }
        assert_eq!(there.take_ticket(&[3; 32]).await.expect("asked"), None);
        here.keep_ticket(&[4; 32], &[7; 32], 30_000).await.expect("kept");
        let mut connection = here.db.reader().await.expect("connected");
        let left = sqlx::query_scalar::<_, i64>("SELECT count(*) FROM tickets");
        assert_eq!(left.fetch_one(&mut *connection).await.expect("counted"), 1);
    }
}
