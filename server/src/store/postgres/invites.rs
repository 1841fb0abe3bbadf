//! Invitations in PostgreSQL. Whatever changes the uses of one locks its row first, so that servers take turns and no
//! two of them wait for each other.

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
    async fn put_invite(&self, invite: Invite) -> Result<(), StoreError> {
        let insert = sqlx::query(
            "INSERT INTO invites (number, gid, made_by, made_at, expires_at, uses_left) VALUES ($1, $2, $3, $4, $5, $6)",
        )
        .bind(invite.number.cast_signed())
        .bind(invite.gid.0.cast_signed())
        .bind(i64::from(invite.made_by.0))
        .bind(invite.made_at.0)
        .bind(invite.expires_at.0)
        .bind(i64::from(invite.uses_left));
        self.change(insert).await.map(drop)
    }

    async fn invite(&self, number: u64) -> Result<Option<Invite>, StoreError> {
        let invite =
            sqlx::query("SELECT gid, made_by, made_at, expires_at, uses_left FROM invites WHERE number = $1");
        self.row(invite.bind(number.cast_signed())).await?.map(|row| invite_of(number, &row)).transpose()
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

fn invite_of(number: u64, row: &PgRow) -> Result<Invite, StoreError> {
    let (made_by, uses_left): (i64, i64) = (row.try_get("made_by")?, row.try_get("uses_left")?);
    let small =
        |value| u32::try_from(value).map_err(|_| StoreError::corrupt("an invitation is out of range"));
    Ok(Invite {
        number,
        gid: GroupId(row.try_get::<i64, _>("gid")?.cast_unsigned()),
        made_by: Uid(small(made_by)?),
        made_at: Timestamp(row.try_get("made_at")?),
        expires_at: Timestamp(row.try_get("expires_at")?),
        uses_left: small(uses_left)?,
    })
}
