//! Invitations in the main database. Owns nothing; `app` calls it when a link is made or followed.

use async_trait::async_trait;
use sqlx::Row;
use sqlx::sqlite::SqliteRow;

use super::SqliteDirectory;
use crate::domain::{GroupId, Invite, Timestamp, Uid};
use crate::store::{Invites, StoreError};

#[async_trait]
impl Invites for SqliteDirectory {
    async fn put_invite(&self, invite: Invite) -> Result<(), StoreError> {
        let insert = sqlx::query(
            "INSERT INTO invites (number, gid, made_by, made_at, expires_at, uses_left) VALUES (?, ?, ?, ?, ?, ?)",
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
        sqlx::query("SELECT gid, made_by, made_at, expires_at, uses_left FROM invites WHERE number = ?")
            .bind(number.cast_signed())
            .fetch_optional(self.readers())
            .await?
            .map(|row| invite(number, &row))
            .transpose()
    }

    async fn use_invite(&self, number: u64, now: Timestamp) -> Result<bool, StoreError> {
        let update = sqlx::query(
            "UPDATE invites SET uses_left = uses_left - 1 WHERE number = ? AND uses_left > 0 AND expires_at > ?",
        )
        .bind(number.cast_signed())
        .bind(now.0);
        Ok(self.change(update).await? == 1)
    }

    async fn return_use(&self, number: u64) -> Result<(), StoreError> {
        let update = sqlx::query("UPDATE invites SET uses_left = uses_left + 1 WHERE number = ?")
            .bind(number.cast_signed());
        self.change(update).await.map(drop)
    }

    async fn forget_invites(&self, now: Timestamp, limit: usize) -> Result<u64, StoreError> {
        let delete = sqlx::query(
            "DELETE FROM invites WHERE number IN (SELECT number FROM invites WHERE expires_at <= ? LIMIT ?)",
        )
        .bind(now.0)
        .bind(i64::try_from(limit).unwrap_or(i64::MAX));
        self.change(delete).await
    }
}

fn invite(number: u64, row: &SqliteRow) -> Result<Invite, StoreError> {
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
