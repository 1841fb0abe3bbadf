//! Invitations in the main database. Owns nothing; `app` calls it when a link is made or followed.

use async_trait::async_trait;
use sqlx::query::Query;
use sqlx::sqlite::{SqliteArguments, SqliteRow};
use sqlx::{Row, Sqlite};
use uuid::Uuid;

use super::{Db, SqliteDirectory};
use crate::domain::{ClientId, GroupId, Invite, Timestamp, Uid};
use crate::store::{Invites, StoreError};

/// Ends all invitations, for data under a new key of their codes.
pub async fn end_invites(db: &Db) -> Result<(), StoreError> {
    let mut tx = db.write().await?;
    sqlx::query("DELETE FROM invite_claims").execute(&mut *tx).await?;
    sqlx::query("DELETE FROM invites").execute(&mut *tx).await?;
    tx.commit().await
}

#[async_trait]
impl Invites for SqliteDirectory {
    async fn put_invite(&self, new: Invite) -> Result<Invite, StoreError> {
        let client_id = new.client_id.map(|client_id| client_id.0.as_bytes().to_vec());
        let mut tx = self.write().await?;
        let insert = sqlx::query(
            "INSERT INTO invites (number, gid, made_by, made_at, expires_at, uses_left, uses, client_id)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (made_by, client_id) WHERE client_id IS NOT NULL DO NOTHING",
        )
        .bind(new.number.cast_signed())
        .bind(new.gid.0.cast_signed())
        .bind(i64::from(new.made_by.0))
        .bind(new.made_at.0)
        .bind(new.expires_at.0)
        .bind(i64::from(new.uses_left))
        .bind(i64::from(new.uses))
        .bind(&client_id);
        let kept = match insert.execute(&mut *tx).await?.rows_affected() {
            0 => {
                let sql = sqlx::AssertSqlSafe(format!("{INVITES} WHERE made_by = ? AND client_id = ?"));
                let standing = sqlx::query(sql).bind(i64::from(new.made_by.0)).bind(&client_id);
                invite(&standing.fetch_one(&mut *tx).await?)?
            }
            _ => new,
        };
        tx.commit().await?;
        Ok(kept)
    }

    async fn invite(&self, number: u64) -> Result<Option<Invite>, StoreError> {
        sqlx::query(sqlx::AssertSqlSafe(format!("{INVITES} WHERE number = ?")))
            .bind(number.cast_signed())
            .fetch_optional(&mut *self.reader().await?)
            .await?
            .map(|row| invite(&row))
            .transpose()
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
            "{INVITES} WHERE gid = ?1 AND number > ?2 AND (?3 IS NULL OR made_by = ?3) AND expires_at > ?4 AND uses_left > 0
             ORDER BY number LIMIT ?5"
        );
        let rows = sqlx::query(sqlx::AssertSqlSafe(sql))
            .bind(gid.0.cast_signed())
            .bind(after.cast_signed())
            .bind(made_by.map(|uid| i64::from(uid.0)))
            .bind(now.0)
            .bind(i64::try_from(limit).unwrap_or(i64::MAX))
            .fetch_all(&mut *self.reader().await?)
            .await?;
        rows.iter().map(invite).collect()
    }

    async fn end_invite(&self, number: u64, at: Timestamp) -> Result<(), StoreError> {
        let end = sqlx::query("UPDATE invites SET expires_at = min(expires_at, ?) WHERE number = ?");
        self.change(end.bind(at.0).bind(number.cast_signed())).await.map(drop)
    }

    async fn end_invites_of(&self, made_by: Uid, at: Timestamp) -> Result<(), StoreError> {
        let end = sqlx::query("UPDATE invites SET expires_at = min(expires_at, ?) WHERE made_by = ?");
        self.change(end.bind(at.0).bind(i64::from(made_by.0))).await.map(drop)
    }

    async fn largest_invite(&self) -> Result<u64, StoreError> {
        let largest: Option<i64> = sqlx::query_scalar("SELECT max(number) FROM invites")
            .fetch_one(&mut *self.reader().await?)
            .await?;
        Ok(largest.map_or(0, i64::cast_unsigned))
    }

    async fn claim_use(
        &self,
        number: u64,
        guest: Uid,
        name: ClientId,
        now: Timestamp,
    ) -> Result<Option<ClientId>, StoreError> {
        let mut tx = self.write().await?;
        let standing = sqlx::query(
            "SELECT name FROM invites JOIN invite_claims USING (number) WHERE number = ? AND uid = ? AND expires_at > ?",
        )
        .bind(number.cast_signed())
        .bind(i64::from(guest.0))
        .bind(now.0)
        .fetch_optional(&mut *tx)
        .await?;
        if let Some(standing) = standing {
            tx.commit().await?;
            return claimed(&standing).map(Some);
        }
        let taken = sqlx::query(
            "UPDATE invites SET uses_left = uses_left - 1 WHERE number = ? AND uses_left > 0 AND expires_at > ?",
        )
        .bind(number.cast_signed())
        .bind(now.0)
        .execute(&mut *tx)
        .await?;
        if taken.rows_affected() == 0 {
            tx.commit().await?;
            return Ok(None);
        }
        sqlx::query("INSERT INTO invite_claims (number, uid, name) VALUES (?, ?, ?)")
            .bind(number.cast_signed())
            .bind(i64::from(guest.0))
            .bind(&name.0.as_bytes()[..])
            .execute(&mut *tx)
            .await?;
        tx.commit().await?;
        Ok(Some(name))
    }

    async fn claim(&self, number: u64, guest: Uid) -> Result<Option<ClientId>, StoreError> {
        sqlx::query("SELECT name FROM invite_claims WHERE number = ? AND uid = ?")
            .bind(number.cast_signed())
            .bind(i64::from(guest.0))
            .fetch_optional(&mut *self.reader().await?)
            .await?
            .map(|row| claimed(&row))
            .transpose()
    }

    async fn settle_use(&self, number: u64, guest: Uid, name: ClientId) -> Result<(), StoreError> {
        self.change(end_claim(number, guest, &name)).await.map(drop)
    }

    async fn return_use(&self, number: u64, guest: Uid, name: ClientId) -> Result<(), StoreError> {
        let mut tx = self.write().await?;
        if end_claim(number, guest, &name).execute(&mut *tx).await?.rows_affected() == 1 {
            sqlx::query("UPDATE invites SET uses_left = uses_left + 1 WHERE number = ?")
                .bind(number.cast_signed())
                .execute(&mut *tx)
                .await?;
        }
        tx.commit().await?;
        Ok(())
    }

    async fn forget_invites(&self, now: Timestamp, limit: usize) -> Result<u64, StoreError> {
        let mut tx = self.write().await?;
        let over = sqlx::query(
            // The newest stays: it says up to where numbers were given, should the issuer's file be lost.
            "DELETE FROM invites WHERE number IN (SELECT number FROM invites WHERE expires_at <= ? \
             AND number < (SELECT max(number) FROM invites) LIMIT ?) RETURNING number",
        )
        .bind(now.0)
        .bind(i64::try_from(limit).unwrap_or(i64::MAX))
        .fetch_all(&mut *tx)
        .await?;
        for row in &over {
            let number: i64 = row.try_get("number")?;
            sqlx::query("DELETE FROM invite_claims WHERE number = ?").bind(number).execute(&mut *tx).await?;
        }
        tx.commit().await?;
        Ok(over.len() as u64)
    }
}

fn end_claim(number: u64, guest: Uid, name: &ClientId) -> Query<'_, Sqlite, SqliteArguments> {
    sqlx::query("DELETE FROM invite_claims WHERE number = ? AND uid = ? AND name = ?")
        .bind(number.cast_signed())
        .bind(i64::from(guest.0))
        .bind(&name.0.as_bytes()[..])
}

fn claimed(row: &SqliteRow) -> Result<ClientId, StoreError> {
    let name: Vec<u8> = row.try_get("name")?;
    let name = Uuid::from_slice(&name).map_err(|_| StoreError::corrupt("a claim has a wrong name"))?;
    Ok(ClientId(name))
}

/// The columns that [`invite`] reads.
const INVITES: &str =
    "SELECT number, gid, made_by, made_at, expires_at, uses_left, uses, client_id FROM invites";

fn invite(row: &SqliteRow) -> Result<Invite, StoreError> {
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
