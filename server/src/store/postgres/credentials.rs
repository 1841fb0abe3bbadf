//! Recovery codes and invitations to sign up in PostgreSQL. Each call is one statement, or one transaction.

use async_trait::async_trait;
use sqlx::postgres::PgRow;
use sqlx::{Connection as _, PgConnection, Row as _};

use super::PgDirectory;
use super::directory::{count, insert_account, insert_session, key_of};
use crate::domain::{Timestamp, Uid};
use crate::store::credentials::{CodeHash, CredentialStore, SignUpInvite, SignedUp};
use crate::store::directory::{beginning_with, token_hash};
use crate::store::{NewAccount, Session, StoreError};

#[async_trait]
impl CredentialStore for PgDirectory {
    async fn sign_up(
        &self,
        uid: Uid,
        account: NewAccount,
        first: Session,
        codes: &[CodeHash],
        invite: Option<&CodeHash>,
    ) -> Result<SignedUp, StoreError> {
        let sign_up = async {
            let mut connection = self.db.reader().await?;
            let mut tx = connection.begin().await?;
            // The name first: of several who want it all but one wait here, and hold no invitation meanwhile.
            if !insert_account(&mut tx, uid, &account, Some(&first)).await? {
                tx.rollback().await?;
                return Ok(SignedUp::NameTaken);
            }
            if let Some(code) = invite {
                let take = sqlx::query(
                    "UPDATE sign_up_invites SET uses_left = uses_left - 1 \
                     WHERE code_hash = $1 AND uses_left > 0 AND expires_at > $2",
                );
                let take = take.bind(code.to_vec()).bind(account.created_at.0);
                if take.execute(&mut *tx).await?.rows_affected() == 0 {
                    tx.rollback().await?;
                    return Ok(SignedUp::NotInvited);
                }
            }
            insert_codes(&mut tx, uid, codes).await?;
            tx.commit().await?;
            Ok(SignedUp::Made)
        };
        let done = self.db.limited(sign_up).await?;
        if done == SignedUp::Made {
            self.keep_name(uid, &account.name);
        }
        Ok(done)
    }

    async fn put_recovery_codes(
        &self,
        uid: Uid,
        checked: &str,
        codes: &[CodeHash],
    ) -> Result<bool, StoreError> {
        let put = async {
            let mut connection = self.db.reader().await?;
            let mut tx = connection.begin().await?;
            let lock = sqlx::query(
                "SELECT FROM accounts WHERE partition_key = $1 AND uid = $2 AND password_hash = $3 AND NOT disabled \
                 FOR UPDATE",
            );
            let lock = lock.bind(key_of(uid)).bind(i64::from(uid.0)).bind(checked);
            if lock.fetch_optional(&mut *tx).await?.is_none() {
                tx.rollback().await?;
                return Ok(false);
            }
            forget_codes(&mut tx, uid).await?;
            insert_codes(&mut tx, uid, codes).await?;
            tx.commit().await?;
            Ok(true)
        };
        self.db.limited(put).await
    }

    async fn recovery_codes(&self, uid: Uid) -> Result<u64, StoreError> {
        let count =
            sqlx::query("SELECT count(*) AS codes FROM recovery_codes WHERE partition_key = $1 AND uid = $2");
        let row = self.row(count.bind(key_of(uid)).bind(i64::from(uid.0))).await?;
        let codes: Option<i64> = row.map(|row| row.try_get("codes")).transpose()?;
        Ok(codes.unwrap_or_default().unsigned_abs())
    }

    async fn has_recovery_code(&self, uid: Uid, code: &CodeHash) -> Result<bool, StoreError> {
        let code = sqlx::query(
            "SELECT FROM recovery_codes WHERE partition_key = $1 AND uid = $2 AND code_hash = $3",
        )
        .bind(key_of(uid))
        .bind(i64::from(uid.0))
        .bind(code.to_vec());
        Ok(self.row(code).await?.is_some())
    }

    async fn recover(
        &self,
        code: &CodeHash,
        password_hash: &str,
        session: Session,
    ) -> Result<bool, StoreError> {
        let recover = async {
            let (key, uid) = (key_of(session.uid), i64::from(session.uid.0));
            let mut connection = self.db.reader().await?;
            let mut tx = connection.begin().await?;
            // The lock of the account first, as everywhere; then statements that see what was begun while it waited.
            let update = sqlx::query(
                "UPDATE accounts SET password_hash = $3 WHERE partition_key = $1 AND uid = $2 AND NOT disabled",
            );
            let update = update.bind(&key).bind(uid).bind(password_hash).execute(&mut *tx).await?;
            let used = sqlx::query(
                "DELETE FROM recovery_codes WHERE partition_key = $1 AND uid = $2 AND code_hash = $3",
            );
            let used = used.bind(&key).bind(uid).bind(code.to_vec()).execute(&mut *tx).await?;
            if update.rows_affected() == 0 || used.rows_affected() == 0 {
                tx.rollback().await?;
                return Ok(false);
            }
            sqlx::query("DELETE FROM sessions WHERE uid = $1").bind(uid).execute(&mut *tx).await?;
            insert_session(&session).execute(&mut *tx).await?;
            tx.commit().await?;
            Ok(true)
        };
        self.db.limited(recover).await
    }

    async fn put_sign_up_invite(&self, invite: SignUpInvite, most_open: usize) -> Result<bool, StoreError> {
        let made_by = number_of(invite.made_by);
        let put = async {
            let mut connection = self.db.reader().await?;
            let mut tx = connection.begin().await?;
            // Of one maker's, which come at the same moment, one after the other is counted.
            if let Some(uid) = invite.made_by {
                let lock =
                    sqlx::query("SELECT FROM accounts WHERE partition_key = $1 AND uid = $2 FOR UPDATE");
                lock.bind(key_of(uid)).bind(made_by).execute(&mut *tx).await?;
            }
            let insert = sqlx::query(
                "INSERT INTO sign_up_invites (code_hash, made_by, made_at, expires_at, uses, uses_left) \
                 SELECT $1, $2, $3, $4, $5, $6 WHERE \
                 (SELECT count(*) FROM sign_up_invites WHERE made_by = $2 AND expires_at > $3 AND uses_left > 0) < $7 ON CONFLICT DO NOTHING",
            );
            let insert = insert.bind(invite.code_hash.to_vec()).bind(made_by).bind(invite.made_at.0);
            let insert = insert.bind(invite.expires_at.0).bind(i64::from(invite.uses));
            let insert = insert.bind(i64::from(invite.uses_left)).bind(count(most_open));
            let is_kept = insert.execute(&mut *tx).await?.rows_affected() > 0;
            tx.commit().await?;
            Ok(is_kept)
        };
        self.db.limited(put).await
    }

    async fn sign_up_invite(&self, code: &CodeHash) -> Result<Option<SignUpInvite>, StoreError> {
        let invite = sqlx::query("SELECT * FROM sign_up_invites WHERE code_hash = $1").bind(code.to_vec());
        self.row(invite).await?.map(|row| invite_of(&row)).transpose()
    }

    async fn sign_up_invites(
        &self,
        made_by: Option<Uid>,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<SignUpInvite>, StoreError> {
        let open = sqlx::query(
            "SELECT * FROM sign_up_invites WHERE made_by = $1 AND expires_at > $2 AND uses_left > 0 \
             ORDER BY expires_at, code_hash LIMIT $3",
        );
        let open = open.bind(number_of(made_by)).bind(now.0).bind(count(limit));
        self.rows(open).await?.iter().map(invite_of).collect()
    }

    async fn end_sign_up_invite(&self, made_by: Option<Uid>, id: &[u8; 16]) -> Result<bool, StoreError> {
        let [first, last] = beginning_with(id);
        let end =
            sqlx::query("DELETE FROM sign_up_invites WHERE code_hash BETWEEN $1 AND $2 AND made_by = $3");
        let end = end.bind(first.to_vec()).bind(last.to_vec()).bind(number_of(made_by));
        Ok(self.change(end).await? > 0)
    }

    async fn forget_sign_up_invites(&self, now: Timestamp, limit: usize) -> Result<u64, StoreError> {
        let forget = sqlx::query(
            "DELETE FROM sign_up_invites WHERE code_hash IN (SELECT code_hash FROM sign_up_invites \
             WHERE expires_at <= $1 LIMIT $2 FOR UPDATE SKIP LOCKED)",
        );
        self.change(forget.bind(now.0).bind(count(limit))).await
    }
}

/// Takes the codes of an account away.
pub(super) async fn forget_codes(connection: &mut PgConnection, uid: Uid) -> Result<(), StoreError> {
    let forget = sqlx::query("DELETE FROM recovery_codes WHERE partition_key = $1 AND uid = $2");
    forget.bind(key_of(uid)).bind(i64::from(uid.0)).execute(connection).await?;
    Ok(())
}

async fn insert_codes(connection: &mut PgConnection, uid: Uid, codes: &[CodeHash]) -> Result<(), StoreError> {
    let insert = sqlx::query(
        "INSERT INTO recovery_codes (partition_key, uid, code_hash) SELECT $1, $2, code FROM unnest($3::bytea[]) AS code",
    );
    let codes: Vec<Vec<u8>> = codes.iter().map(|code| code.to_vec()).collect();
    insert.bind(key_of(uid)).bind(i64::from(uid.0)).bind(codes).execute(connection).await?;
    Ok(())
}

/// The maker of an invitation, as it is stored; 0: the operator.
fn number_of(made_by: Option<Uid>) -> i64 {
    made_by.map_or(0, |uid| i64::from(uid.0))
}

fn invite_of(row: &PgRow) -> Result<SignUpInvite, StoreError> {
    let number = |column| -> Result<u32, StoreError> {
        let number: i64 = row.try_get(column)?;
        u32::try_from(number)
            .map_err(|_| StoreError::corrupt(format!("{column} of an invitation is {number}")))
    };
    let made_by = number("made_by")?;
    Ok(SignUpInvite {
        code_hash: token_hash(row.try_get("code_hash")?)?,
        made_by: (made_by > 0).then_some(Uid(made_by)),
        made_at: Timestamp(row.try_get("made_at")?),
        expires_at: Timestamp(row.try_get("expires_at")?),
        uses: number("uses")?,
        uses_left: number("uses_left")?,
    })
}
