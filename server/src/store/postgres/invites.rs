//! Invitations in PostgreSQL. Each change of the uses of one locks its row first, so that servers take turns and no two
//! of them wait for each other.

use async_trait::async_trait;
use sqlx::postgres::PgRow;
use sqlx::{Connection as _, Row as _};
use uuid::Uuid;

use super::PgDirectory;
use super::directory::count;
use crate::domain::{ClientId, GroupId, Invite, Timestamp, Uid};
use crate::store::{Invites, StoreError};

#[async_trait]
impl Invites for PgDirectory {
    async fn put_invite(&self, new: Invite) -> Result<Invite, StoreError> {
        let client_id = new.client_id.map(|client_id| client_id.0.as_bytes().to_vec());
        let insert = sqlx::query(
            "INSERT INTO invites (number, gid, made_by, made_at, expires_at, uses_left, uses, client_id)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (made_by, client_id) WHERE client_id IS NOT NULL DO NOTHING",
        )
        .bind(new.number.cast_signed())
        .bind(new.gid.0.cast_signed())
        .bind(i64::from(new.made_by.0))
        .bind(new.made_at.0)
        .bind(new.expires_at.0)
        .bind(i64::from(new.uses_left))
        .bind(i64::from(new.uses))
        .bind(client_id.clone());
        if self.change(insert).await? > 0 {
            return Ok(new);
        }
        let sql = sqlx::AssertSqlSafe(format!("{INVITES} WHERE made_by = $1 AND client_id = $2"));
        let standing = sqlx::query(sql).bind(i64::from(new.made_by.0)).bind(client_id);
        let standing = self.row(standing).await?.map(|row| invite_of(&row)).transpose()?;
        standing.ok_or_else(|| StoreError::unavailable("an invitation ended meanwhile"))
    }

    async fn invite(&self, number: u64) -> Result<Option<Invite>, StoreError> {
        let invite = sqlx::query(sqlx::AssertSqlSafe(format!("{INVITES} WHERE number = $1")));
        self.row(invite.bind(number.cast_signed())).await?.map(|row| invite_of(&row)).transpose()
    }

    async fn open_invites(
        &self,
        gid: GroupId,
        made_by: Option<Uid>,
        now: Timestamp,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Invite>, StoreError> {
        let sql = format!(
            "{INVITES} WHERE gid = $1 AND number > $2 AND ($3::bigint IS NULL OR made_by = $3) AND expires_at > $4
                 AND uses_left > 0 ORDER BY number LIMIT $5"
        );
        let open = sqlx::query(sqlx::AssertSqlSafe(sql))
            .bind(gid.0.cast_signed())
            .bind(after.cast_signed())
            .bind(made_by.map(|uid| i64::from(uid.0)))
            .bind(now.0)
            .bind(count(limit));
        self.rows(open).await?.iter().map(invite_of).collect()
    }

    async fn end_invite(&self, number: u64, at: Timestamp) -> Result<(), StoreError> {
        let end = sqlx::query("UPDATE invites SET expires_at = least(expires_at, $1) WHERE number = $2");
        self.change(end.bind(at.0).bind(number.cast_signed())).await.map(drop)
    }

    async fn end_invites_of(&self, made_by: Uid, at: Timestamp) -> Result<(), StoreError> {
        let end = sqlx::query("UPDATE invites SET expires_at = least(expires_at, $1) WHERE made_by = $2");
        self.change(end.bind(at.0).bind(i64::from(made_by.0))).await.map(drop)
    }

    async fn largest_invite(&self) -> Result<u64, StoreError> {
        let largest = sqlx::query("SELECT number FROM invites ORDER BY number DESC LIMIT 1");
        let number = self.row(largest).await?.map(|row| row.try_get::<i64, _>("number")).transpose()?;
        Ok(number.map_or(0, i64::cast_unsigned))
    }

    async fn claim_use(
        &self,
        number: u64,
        guest: Uid,
        name: ClientId,
        now: Timestamp,
    ) -> Result<Option<ClientId>, StoreError> {
        let claim = async {
            let mut connection = self.db.reader().await?;
            let mut tx = connection.begin().await?;
            let held = sqlx::query("SELECT FROM invites WHERE number = $1 AND expires_at > $2 FOR UPDATE")
                .bind(number.cast_signed())
                .bind(now.0)
                .fetch_optional(&mut *tx)
                .await?;
            if held.is_none() {
                tx.rollback().await?;
                return Ok(None);
            }
            // A statement of its own, which sees what was committed while the first one waited.
            let claim = sqlx::query(
                "WITH standing AS (SELECT name FROM invite_claims WHERE number = $1 AND uid = $2), \
                 used AS (UPDATE invites SET uses_left = uses_left - 1 \
                          WHERE number = $1 AND uses_left > 0 AND NOT EXISTS (SELECT FROM standing) RETURNING number), \
                 made AS (INSERT INTO invite_claims (number, uid, name) SELECT number, $2, $3 FROM used RETURNING name) \
                 SELECT name FROM standing UNION ALL SELECT name FROM made",
            )
            .bind(number.cast_signed())
            .bind(i64::from(guest.0))
            .bind(name.0.as_bytes().to_vec())
            .fetch_optional(&mut *tx)
            .await?;
            tx.commit().await?;
            claim.map(|row| claimed(&row)).transpose()
        };
        self.db.limited(claim).await
    }

    async fn claim(&self, number: u64, guest: Uid) -> Result<Option<ClientId>, StoreError> {
        let claim = sqlx::query("SELECT name FROM invite_claims WHERE number = $1 AND uid = $2");
        let claim = claim.bind(number.cast_signed()).bind(i64::from(guest.0));
        self.row(claim).await?.map(|row| claimed(&row)).transpose()
    }

    async fn settle_use(&self, number: u64, guest: Uid, name: ClientId) -> Result<(), StoreError> {
        let end = sqlx::query("DELETE FROM invite_claims WHERE number = $1 AND uid = $2 AND name = $3");
        let end = end.bind(number.cast_signed()).bind(i64::from(guest.0)).bind(name.0.as_bytes().to_vec());
        self.change(end).await.map(drop)
    }

    async fn return_use(&self, number: u64, guest: Uid, name: ClientId) -> Result<(), StoreError> {
        let end = sqlx::query(
            "WITH held AS MATERIALIZED (SELECT number FROM invites WHERE number = $1 FOR UPDATE), \
             ended AS (DELETE FROM invite_claims c USING held \
                       WHERE c.number = held.number AND c.uid = $2 AND c.name = $3 RETURNING c.number) \
             UPDATE invites i SET uses_left = i.uses_left + 1 FROM ended WHERE i.number = ended.number",
        );
        let end = end.bind(number.cast_signed()).bind(i64::from(guest.0)).bind(name.0.as_bytes().to_vec());
        self.change(end).await.map(drop)
    }

    async fn forget_invites(&self, now: Timestamp, limit: usize) -> Result<u64, StoreError> {
        // The newest stays: it says up to where numbers were given.
        let forget = sqlx::query(
            "WITH over AS (DELETE FROM invites WHERE number IN (SELECT number FROM invites WHERE expires_at <= $1 \
                           AND number < (SELECT max(number) FROM invites) LIMIT $2 FOR UPDATE SKIP LOCKED) RETURNING number), \
             claims AS (DELETE FROM invite_claims USING over WHERE invite_claims.number = over.number) \
             SELECT count(*) AS forgotten FROM over",
        );
        let row = self.row(forget.bind(now.0).bind(count(limit))).await?;
        let forgotten = row.map(|row| row.try_get::<i64, _>("forgotten")).transpose()?;
        Ok(forgotten.map_or(0, i64::cast_unsigned))
    }
}

fn claimed(row: &PgRow) -> Result<ClientId, StoreError> {
    let name: Vec<u8> = row.try_get("name")?;
    let name = Uuid::from_slice(&name).map_err(|_| StoreError::corrupt("a claim has a wrong name"))?;
    Ok(ClientId(name))
}

/// The columns that [`invite_of`] reads.
const INVITES: &str =
    "SELECT number, gid, made_by, made_at, expires_at, uses_left, uses, client_id FROM invites";

fn invite_of(row: &PgRow) -> Result<Invite, StoreError> {
    let wrong = || StoreError::corrupt("an invitation is out of range");
    let small = |value: i64| u32::try_from(value).map_err(|_| wrong());
    let client_id = row.try_get::<Option<Vec<u8>>, _>("client_id")?;
    let client_id = client_id.map(|bytes| Uuid::from_slice(&bytes).map(ClientId)).transpose();
    Ok(Invite {
        number: row.try_get::<i64, _>("number")?.cast_unsigned(),
        gid: GroupId(row.try_get::<i64, _>("gid")?.cast_unsigned()),
        made_by: Uid(small(row.try_get("made_by")?)?),
        made_at: Timestamp(row.try_get("made_at")?),
        expires_at: Timestamp(row.try_get("expires_at")?),
        uses: small(row.try_get("uses")?)?,
        uses_left: small(row.try_get("uses_left")?)?,
        client_id: client_id.map_err(|_| wrong())?,
    })
}
