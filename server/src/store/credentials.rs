//! Credentials: passwords, recovery codes for a forgotten password, and invitations to make an account.

use super::accounts::insert_account;
use super::directory_db::SqlTx;
use super::sessions::{beginning_with, forget_sessions, insert_session};
use super::sql::{SqlRow, sql};
use super::{Directory, NewAccount, Session, StoreError};
use crate::domain::{Timestamp, Uid};

/// SHA-256 of a code that somebody holds; the code itself is never stored.
pub type CodeHash = [u8; 32];

/// An invitation to make an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignUpInvite {
    /// Of what stands in its link.
    pub code_hash: CodeHash,
    /// The user that made it; `None`: the operator.
    pub made_by: Option<Uid>,
    /// When.
    pub made_at: Timestamp,
    /// From when on nobody makes an account by it.
    pub expires_at: Timestamp,
    /// How many accounts may be made by it in all.
    pub uses: u32,
    /// How many may still be made by it.
    pub uses_left: u32,
}

impl SignUpInvite {
    /// Whether somebody can make an account by it at `now`.
    pub fn is_open(&self, now: Timestamp) -> bool {
        self.expires_at > now && self.uses_left > 0
    }
}

/// The outcome of a sign-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignedUp {
    /// The account is made.
    Made,
    /// Somebody has the name, or one that can be taken for it.
    NameTaken,
    /// The invitation is unknown, over or used up.
    NotInvited,
}

/// Of an account that is not disabled, if the hash is still the one that was checked.
const REPLACE_HASH: &str =
    "UPDATE accounts SET password_hash = $3 WHERE uid = $1 AND password_hash = $2 AND NOT disabled";

/// Passwords, recovery codes and invitations to sign up.
impl Directory {
    /// Gives the account another password. `false` when there is none, or it is deleted.
    pub async fn set_password(&self, uid: Uid, password_hash: &str) -> Result<bool, StoreError> {
        let set = async {
            let mut writer = self.db.writer().await?;
            let mut tx = writer.begin().await?;
            let update = sql("UPDATE accounts SET password_hash = $2 WHERE uid = $1 AND deleted_at IS NULL");
            let is_known = tx.change(update.bind(uid).bind(password_hash)).await? > 0;
            forget_codes(&mut tx, uid).await?;
            tx.commit().await?;
            Ok(is_known)
        };
        self.db.limited(set).await
    }

    /// Keeps another hash of the same password. `false`, and nothing changes, when the hash is not `checked` any more, or the account is
    /// disabled.
    pub async fn replace_hash(
        &self,
        uid: Uid,
        checked: &str,
        password_hash: &str,
    ) -> Result<bool, StoreError> {
        let update = sql(REPLACE_HASH).bind(uid).bind(checked).bind(password_hash);
        Ok(self.db.change(update).await? > 0)
    }

    /// Gives the account another password and ends all its sessions but the one with the hash `kept`, in one transaction. `false`, and
    /// nothing changes, when the hash of its password is not `checked` any more, or it is disabled: checking a password takes long.
    pub async fn change_password(
        &self,
        uid: Uid,
        checked: &str,
        password_hash: &str,
        kept: &[u8; 32],
    ) -> Result<bool, StoreError> {
        let change = async {
            let mut writer = self.db.writer().await?;
            let mut tx = writer.begin().await?;
            let update = sql(REPLACE_HASH).bind(uid).bind(checked).bind(password_hash);
            if tx.change(update).await? == 0 {
                tx.roll_back().await?;
                return Ok(false);
            }
            // A statement of its own, which sees the sessions that were begun while the first one waited for the account.
            let end = sql("DELETE FROM sessions WHERE uid = $1 AND token_hash <> $2");
            tx.change(end.bind(uid).bind(kept)).await?;
            forget_codes(&mut tx, uid).await?;
            tx.commit().await?;
            Ok(true)
        };
        self.db.limited(change).await
    }

    /// Makes an account under `uid`, which nobody has or had, with its `first` session and its recovery codes. With an invitation it
    /// takes a use of that one, as it is when the account is made.
    pub async fn sign_up(
        &self,
        uid: Uid,
        account: NewAccount,
        first: Session,
        codes: &[CodeHash],
        invite: Option<&CodeHash>,
    ) -> Result<SignedUp, StoreError> {
        let sign_up = async {
            let mut writer = self.db.writer().await?;
            let mut tx = writer.begin().await?;
            // The name first: of several who want it all but one wait here, and hold no invitation meanwhile.
            if !insert_account(&mut tx, uid, &account, Some(&first)).await? {
                tx.roll_back().await?;
                return Ok(SignedUp::NameTaken);
            }
            if let Some(code) = invite {
                let take = sql("UPDATE sign_up_invites SET uses_left = uses_left - 1
                     WHERE code_hash = $1 AND uses_left > 0 AND expires_at > $2");
                if tx.change(take.bind(code).bind(account.created_at)).await? == 0 {
                    tx.roll_back().await?;
                    return Ok(SignedUp::NotInvited);
                }
            }
            insert_codes(&mut tx, uid, codes).await?;
            tx.commit().await?;
            Ok(SignedUp::Made)
        };
        let done = self.db.limited(sign_up).await?;
        if done == SignedUp::Made {
            self.names.keep(uid, &account.name);
        }
        Ok(done)
    }

    /// Gives the account these recovery codes in place of those that it has. `false`, and nothing changes, when the hash of its password
    /// is not `checked` any more, or it is disabled.
    pub async fn put_recovery_codes(
        &self,
        uid: Uid,
        checked: &str,
        codes: &[CodeHash],
    ) -> Result<bool, StoreError> {
        let put = async {
            let mut writer = self.db.writer().await?;
            let mut tx = writer.begin().await?;
            let lock = sql(
                "SELECT 1 FROM accounts WHERE uid = $1 AND password_hash = $2 AND NOT disabled FOR UPDATE",
            );
            if tx.row(lock.bind(uid).bind(checked)).await?.is_none() {
                tx.roll_back().await?;
                return Ok(false);
            }
            forget_codes(&mut tx, uid).await?;
            insert_codes(&mut tx, uid, codes).await?;
            tx.commit().await?;
            Ok(true)
        };
        self.db.limited(put).await
    }

    /// How many recovery codes the account has.
    pub async fn recovery_codes(&self, uid: Uid) -> Result<u64, StoreError> {
        let count = sql("SELECT count(*) AS codes FROM recovery_codes WHERE uid = $1").bind(uid);
        self.db.row(count).await?.map_or(Ok(0), |row| row.number("codes"))
    }

    /// Whether the account has this recovery code.
    pub async fn has_recovery_code(&self, uid: Uid, code: &CodeHash) -> Result<bool, StoreError> {
        let asked =
            sql("SELECT 1 FROM recovery_codes WHERE uid = $1 AND code_hash = $2").bind(uid).bind(code);
        Ok(self.db.row(asked).await?.is_some())
    }

    /// Uses the recovery code up: its account gets another password, all its sessions end, and `session` begins. `false`, and nothing
    /// changes, when the account has no such code, or is disabled. Of several who use one code at the same moment one succeeds.
    pub async fn recover(
        &self,
        code: &CodeHash,
        password_hash: &str,
        session: Session,
    ) -> Result<bool, StoreError> {
        let recover = async {
            let uid = session.uid;
            let mut writer = self.db.writer().await?;
            let mut tx = writer.begin().await?;
            // The lock of the account first, as everywhere; then statements that see what was begun while it waited.
            let update = sql("UPDATE accounts SET password_hash = $2 WHERE uid = $1 AND NOT disabled");
            let updated = tx.change(update.bind(uid).bind(password_hash)).await?;
            let used = sql("DELETE FROM recovery_codes WHERE uid = $1 AND code_hash = $2");
            if tx.change(used.bind(uid).bind(code)).await? == 0 || updated == 0 {
                tx.roll_back().await?;
                return Ok(false);
            }
            forget_sessions(&mut tx, uid).await?;
            insert_session(&mut tx, &session).await?;
            tx.commit().await?;
            Ok(true)
        };
        self.db.limited(recover).await
    }

    /// Keeps an invitation. `false`, and nothing is kept, when its maker has `most_open` that are open when it is made, or there is one of
    /// the same code.
    pub async fn put_sign_up_invite(
        &self,
        invite: SignUpInvite,
        most_open: usize,
    ) -> Result<bool, StoreError> {
        let put = async {
            let mut writer = self.db.writer().await?;
            let mut tx = writer.begin().await?;
            // Of one maker's, which come at the same moment, one after the other is counted.
            if let Some(uid) = invite.made_by {
                tx.row(sql("SELECT 1 FROM accounts WHERE uid = $1 FOR UPDATE").bind(uid)).await?;
            }
            let insert =
                sql("INSERT INTO sign_up_invites (code_hash, made_by, made_at, expires_at, uses, uses_left)
                 SELECT $1, $2, $3, $4, $5, $6 WHERE (SELECT count(*) FROM sign_up_invites
                     WHERE made_by = $2 AND expires_at > $3 AND uses_left > 0) < $7 ON CONFLICT DO NOTHING");
            let insert = insert.bind(invite.code_hash).bind(number_of(invite.made_by)).bind(invite.made_at);
            let insert = insert.bind(invite.expires_at).bind(invite.uses).bind(invite.uses_left);
            let is_kept = tx.change(insert.bind(most_open)).await? > 0;
            tx.commit().await?;
            Ok(is_kept)
        };
        self.db.limited(put).await
    }

    /// The invitation of this code.
    pub async fn sign_up_invite(&self, code: &CodeHash) -> Result<Option<SignUpInvite>, StoreError> {
        let invite = sql("SELECT * FROM sign_up_invites WHERE code_hash = $1").bind(code);
        self.db.row(invite).await?.as_ref().map(invite_of).transpose()
    }

    /// The invitations of `made_by` (`None`: the operator) that are open at `now`, at most `limit`: the one that ends first before the
    /// others.
    pub async fn sign_up_invites(
        &self,
        made_by: Option<Uid>,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<SignUpInvite>, StoreError> {
        let open =
            sql("SELECT * FROM sign_up_invites WHERE made_by = $1 AND expires_at > $2 AND uses_left > 0
             ORDER BY expires_at, code_hash LIMIT $3");
        let open = open.bind(number_of(made_by)).bind(now).bind(limit);
        self.db.rows(open).await?.iter().map(invite_of).collect()
    }

    /// Forgets the invitation of `made_by` whose code's hash begins with `id`. `false`: there is none.
    pub async fn end_sign_up_invite(&self, made_by: Option<Uid>, id: &[u8; 16]) -> Result<bool, StoreError> {
        let [first, last] = beginning_with(id);
        let end = sql("DELETE FROM sign_up_invites WHERE code_hash BETWEEN $1 AND $2 AND made_by = $3");
        Ok(self.db.change(end.bind(first).bind(last).bind(number_of(made_by))).await? > 0)
    }

    /// Forgets up to `limit` invitations that were over at `now`, and tells how many.
    pub async fn forget_sign_up_invites(&self, now: Timestamp, limit: usize) -> Result<u64, StoreError> {
        let forget = sql("DELETE FROM sign_up_invites WHERE code_hash IN
             (SELECT code_hash FROM sign_up_invites WHERE expires_at <= $1 LIMIT $2 FOR UPDATE SKIP LOCKED)");
        self.db.change(forget.bind(now).bind(limit)).await
    }
}

/// Takes the codes of an account away.
pub(super) async fn forget_codes(tx: &mut SqlTx<'_>, uid: Uid) -> Result<(), StoreError> {
    tx.change(sql("DELETE FROM recovery_codes WHERE uid = $1").bind(uid)).await.map(drop)
}

async fn insert_codes(tx: &mut SqlTx<'_>, uid: Uid, codes: &[CodeHash]) -> Result<(), StoreError> {
    let insert = sql("INSERT INTO recovery_codes (uid, code_hash) SELECT $1, value FROM unnest($2) AS value");
    tx.change(insert.bind(uid).bind(codes)).await.map(drop)
}

/// The maker of an invitation, as it is stored; 0: the operator.
fn number_of(made_by: Option<Uid>) -> Uid {
    made_by.unwrap_or(Uid(0))
}

fn invite_of(row: &SqlRow) -> Result<SignUpInvite, StoreError> {
    let made_by = row.small("made_by")?;
    Ok(SignUpInvite {
        code_hash: row.hash("code_hash")?,
        made_by: (made_by > 0).then_some(Uid(made_by)),
        made_at: row.time("made_at")?,
        expires_at: row.time("expires_at")?,
        uses: row.small("uses")?,
        uses_left: row.small("uses_left")?,
    })
}
