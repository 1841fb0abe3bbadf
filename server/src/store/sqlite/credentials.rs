//! Recovery codes and invitations to sign up in the main database.

use async_trait::async_trait;
use sqlx::sqlite::SqliteRow;
use sqlx::{Row as _, SqliteConnection};

use super::SqliteDirectory;
use super::directory::{count, insert_account, insert_session};
use crate::domain::{Timestamp, Uid};
use crate::store::credentials::{CodeHash, CredentialStore, SignUpInvite, SignedUp};
use crate::store::directory::{beginning_with, token_hash};
use crate::store::{NewAccount, Session, StoreError};

#[async_trait]
impl CredentialStore for SqliteDirectory {
    async fn sign_up(
        &self,
        uid: Uid,
        account: NewAccount,
        first: Session,
        codes: &[CodeHash],
        invite: Option<&CodeHash>,
    ) -> Result<SignedUp, StoreError> {
        let mut tx = self.write().await?;
        if let Some(code) = invite {
            let take = sqlx::query(
                "UPDATE sign_up_invites SET uses_left = uses_left - 1 WHERE code_hash = ? AND uses_left > 0 AND expires_at > ?",
            );
            let take = take.bind(code.to_vec()).bind(account.created_at.0);
            if take.execute(&mut *tx).await?.rows_affected() == 0 {
                tx.rollback().await?;
                return Ok(SignedUp::NotInvited);
            }
        }
        if !insert_account(&mut tx, uid, &account).await? {
            tx.rollback().await?;
            return Ok(SignedUp::NameTaken);
        }
        insert_session(&first).execute(&mut *tx).await?;
        insert_codes(&mut tx, uid, codes).await?;
        tx.commit().await?;
        self.keep_name(uid, &account.name);
        Ok(SignedUp::Made)
    }

    async fn put_recovery_codes(
        &self,
        uid: Uid,
        checked: &str,
        codes: &[CodeHash],
    ) -> Result<bool, StoreError> {
        let mut tx = self.write().await?;
        let may = sqlx::query("SELECT 1 FROM accounts WHERE uid = ? AND password_hash = ? AND NOT disabled");
        let may = may.bind(i64::from(uid.0)).bind(checked.to_owned());
        if may.fetch_optional(&mut *tx).await?.is_none() {
            tx.rollback().await?;
            return Ok(false);
        }
        forget_codes(&mut tx, uid).await?;
        insert_codes(&mut tx, uid, codes).await?;
        tx.commit().await?;
        Ok(true)
    }

    async fn recovery_codes(&self, uid: Uid) -> Result<u64, StoreError> {
        let count: i64 = sqlx::query_scalar("SELECT count(*) FROM recovery_codes WHERE uid = ?")
            .bind(i64::from(uid.0))
            .fetch_one(&mut *self.reader().await?)
            .await?;
        Ok(count.unsigned_abs())
    }

    async fn has_recovery_code(&self, uid: Uid, code: &CodeHash) -> Result<bool, StoreError> {
        let code = sqlx::query("SELECT 1 FROM recovery_codes WHERE uid = ? AND code_hash = ?")
            .bind(i64::from(uid.0))
            .bind(code.to_vec());
        Ok(code.fetch_optional(&mut *self.reader().await?).await?.is_some())
    }

    async fn recover(
        &self,
        code: &CodeHash,
        password_hash: &str,
        session: Session,
    ) -> Result<bool, StoreError> {
        let uid = i64::from(session.uid.0);
        let mut tx = self.write().await?;
        let used = sqlx::query("DELETE FROM recovery_codes WHERE uid = ? AND code_hash = ?");
        let used = used.bind(uid).bind(code.to_vec()).execute(&mut *tx).await?.rows_affected();
        let update = sqlx::query("UPDATE accounts SET password_hash = ? WHERE uid = ? AND NOT disabled");
        let update = update.bind(password_hash.to_owned()).bind(uid);
        if used == 0 || update.execute(&mut *tx).await?.rows_affected() == 0 {
            tx.rollback().await?;
            return Ok(false);
        }
        sqlx::query("DELETE FROM sessions WHERE uid = ?").bind(uid).execute(&mut *tx).await?;
        insert_session(&session).execute(&mut *tx).await?;
        tx.commit().await?;
        Ok(true)
    }

    async fn put_sign_up_invite(&self, invite: SignUpInvite, most_open: usize) -> Result<bool, StoreError> {
        let made_by = number_of(invite.made_by);
        let insert = sqlx::query(
            "INSERT INTO sign_up_invites (code_hash, made_by, made_at, expires_at, uses, uses_left) \
             SELECT ?1, ?2, ?3, ?4, ?5, ?6 WHERE \
             (SELECT count(*) FROM sign_up_invites WHERE made_by = ?2 AND expires_at > ?3 AND uses_left > 0) < ?7 ON CONFLICT DO NOTHING",
        );
        let insert = insert.bind(invite.code_hash.to_vec()).bind(made_by).bind(invite.made_at.0);
        let insert = insert.bind(invite.expires_at.0).bind(invite.uses).bind(invite.uses_left);
        Ok(self.change(insert.bind(count(most_open))).await? > 0)
    }

    async fn sign_up_invite(&self, code: &CodeHash) -> Result<Option<SignUpInvite>, StoreError> {
        let invite = sqlx::query("SELECT * FROM sign_up_invites WHERE code_hash = ?").bind(code.to_vec());
        let row = invite.fetch_optional(&mut *self.reader().await?).await?;
        row.map(|row| invite_of(&row)).transpose()
    }

    async fn sign_up_invites(
        &self,
        made_by: Option<Uid>,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<SignUpInvite>, StoreError> {
        let open = sqlx::query(
            "SELECT * FROM sign_up_invites WHERE made_by = ? AND expires_at > ? AND uses_left > 0 \
             ORDER BY expires_at, code_hash LIMIT ?",
        );
        let open = open.bind(number_of(made_by)).bind(now.0).bind(count(limit));
        let rows = open.fetch_all(&mut *self.reader().await?).await?;
        rows.iter().map(invite_of).collect()
    }

    async fn end_sign_up_invite(&self, made_by: Option<Uid>, id: &[u8; 16]) -> Result<bool, StoreError> {
        let [first, last] = beginning_with(id);
        let end = sqlx::query("DELETE FROM sign_up_invites WHERE code_hash BETWEEN ? AND ? AND made_by = ?");
        let end = end.bind(first.to_vec()).bind(last.to_vec()).bind(number_of(made_by));
        Ok(self.change(end).await? > 0)
    }

    async fn forget_sign_up_invites(&self, now: Timestamp, limit: usize) -> Result<u64, StoreError> {
        let forget = sqlx::query(
            "DELETE FROM sign_up_invites WHERE code_hash IN \
             (SELECT code_hash FROM sign_up_invites WHERE expires_at <= ? LIMIT ?)",
        );
        self.change(forget.bind(now.0).bind(count(limit))).await
    }
}

/// Removes all codes of the account.
pub(super) async fn forget_codes(connection: &mut SqliteConnection, uid: Uid) -> Result<(), StoreError> {
    let forget = sqlx::query("DELETE FROM recovery_codes WHERE uid = ?").bind(i64::from(uid.0));
    forget.execute(connection).await?;
    Ok(())
}

async fn insert_codes(
    connection: &mut SqliteConnection,
    uid: Uid,
    codes: &[CodeHash],
) -> Result<(), StoreError> {
    for code in codes {
        let insert = sqlx::query("INSERT INTO recovery_codes (uid, code_hash) VALUES (?, ?)");
        insert.bind(i64::from(uid.0)).bind(code.to_vec()).execute(&mut *connection).await?;
    }
    Ok(())
}

/// The maker of an invitation, as it is stored; 0: the operator.
fn number_of(made_by: Option<Uid>) -> i64 {
    made_by.map_or(0, |uid| i64::from(uid.0))
}

fn invite_of(row: &SqliteRow) -> Result<SignUpInvite, StoreError> {
    let made_by: u32 = row.try_get("made_by")?;
    Ok(SignUpInvite {
        code_hash: token_hash(row.try_get("code_hash")?)?,
        made_by: (made_by > 0).then_some(Uid(made_by)),
        made_at: Timestamp(row.try_get("made_at")?),
        expires_at: Timestamp(row.try_get("expires_at")?),
        uses: row.try_get("uses")?,
        uses_left: row.try_get("uses_left")?,
    })
}
