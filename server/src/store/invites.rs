//! Invitations into groups. Small and apart from rows: an invitation is no message.
//!
//! A guest's use of one is taken by a *claim* before the group changes. The claim holds the name under which the group
//! is to change, so that whoever finds it after a crash can tell whether that happened: then it is
//! [settled](Directory::settle_use), else taken up again or [given back](Directory::return_use). Each change of the uses
//! of an invitation locks its row first, so that servers take turns and no two of them wait for each other.

use super::sql::{SqlRow, sql};
use super::{Directory, StoreError};
use crate::domain::{ClientId, GroupId, Invite, Timestamp, Uid};

/// The columns that [`invite_of`] reads.
const INVITES: &str =
    "SELECT number, gid, made_by, made_at, expires_at, uses_left, uses, client_id FROM invites";

/// Invitations into groups.
impl Directory {
    /// Keeps an invitation under its number, which is new, and returns it. Where its maker has one of the same `client_id` already,
    /// that one stands and is returned.
    pub async fn put_invite(&self, new: Invite) -> Result<Invite, StoreError> {
        let insert = sql(
            "INSERT INTO invites (number, gid, made_by, made_at, expires_at, uses_left, uses, client_id)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (made_by, client_id) WHERE client_id IS NOT NULL DO NOTHING",
        );
        let insert = insert.bind(new.number).bind(new.gid).bind(new.made_by).bind(new.made_at);
        let insert = insert.bind(new.expires_at).bind(new.uses_left).bind(new.uses).bind(new.client_id);
        if self.db.change(insert).await? > 0 {
            return Ok(new);
        }
        let standing = sql(format!("{INVITES} WHERE made_by = $1 AND client_id = $2"));
        let standing = self.db.row(standing.bind(new.made_by).bind(new.client_id)).await?;
        let ended = || StoreError::unavailable("an invitation ended meanwhile");
        invite_of(&standing.ok_or_else(ended)?)
    }

    /// The invitation of this number.
    pub async fn invite(&self, number: u64) -> Result<Option<Invite>, StoreError> {
        let invite = sql(format!("{INVITES} WHERE number = $1")).bind(number);
        self.db.row(invite).await?.as_ref().map(invite_of).transpose()
    }

    /// The invitations into a group that are open at `now`, of one maker or of all, by their numbers: those above `after`, at most `limit`.
    pub async fn open_invites(
        &self,
        gid: GroupId,
        made_by: Option<Uid>,
        now: Timestamp,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Invite>, StoreError> {
        let open = sql(format!(
            "{INVITES} WHERE gid = $1 AND number > $2 AND ($3 IS NULL OR made_by = $3) AND expires_at > $4 AND uses_left > 0
             ORDER BY number LIMIT $5"
        ));
        let open = open.bind(gid).bind(after).bind(made_by).bind(now).bind(limit);
        self.db.rows(open).await?.iter().map(invite_of).collect()
    }

    /// Ends an invitation at `at`, if it does not end before.
    pub async fn end_invite(&self, number: u64, at: Timestamp) -> Result<(), StoreError> {
        let end = sql("UPDATE invites SET expires_at = $1 WHERE number = $2 AND expires_at > $1");
        self.db.change(end.bind(at).bind(number)).await.map(drop)
    }

    /// Ends the invitations of `made_by` at `at`, as far as they do not end before.
    pub async fn end_invites_of(&self, made_by: Uid, at: Timestamp) -> Result<(), StoreError> {
        let end = sql("UPDATE invites SET expires_at = $1 WHERE made_by = $2 AND expires_at > $1");
        self.db.change(end.bind(at).bind(made_by)).await.map(drop)
    }

    /// Forgets all invitations, for data under a new key of their codes.
    pub async fn end_all_invites(&self) -> Result<(), StoreError> {
        self.db.change(sql("DELETE FROM invites")).await.map(drop)
    }

    /// The largest number of an invitation that was ever kept; 0 without any. New ones get larger numbers.
    pub async fn largest_invite(&self) -> Result<u64, StoreError> {
        let largest = sql("SELECT number FROM invites ORDER BY number DESC LIMIT 1");
        self.db.row(largest).await?.map_or(Ok(0), |row| row.number("number"))
    }

    /// Claims one of its uses for `guest`, under `name`; where `guest` has a claim already, that one stands, and no use is taken.
    /// Returns the name under which the claim stands; `None`: no use is left, or it is over at `now`. Of several guests at the
    /// same moment no more get a claim than there are uses.
    pub async fn claim_use(
        &self,
        number: u64,
        guest: Uid,
        name: ClientId,
        now: Timestamp,
    ) -> Result<Option<ClientId>, StoreError> {
        let claim = async {
            let mut writer = self.db.writer().await?;
            let mut tx = writer.begin().await?;
            let hold = sql("SELECT uses_left FROM invites WHERE number = $1 AND expires_at > $2 FOR UPDATE");
            let Some(held) = tx.row(hold.bind(number).bind(now)).await? else {
                tx.roll_back().await?;
                return Ok(None);
            };
            // Statements of their own, which see what was committed while the first one waited.
            let mut is_new = held.number("uses_left")? > 0;
            if is_new {
                let make = sql(
                    "INSERT INTO invite_claims (number, uid, name) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
                );
                is_new = tx.change(make.bind(number).bind(guest).bind(name)).await? > 0;
            }
            let claim = if is_new {
                let take = sql("UPDATE invites SET uses_left = uses_left - 1 WHERE number = $1");
                tx.change(take.bind(number)).await?;
                Some(name)
            } else {
                claimed(tx.row(sql(CLAIM).bind(number).bind(guest)).await?)?
            };
            tx.commit().await?;
            Ok(claim)
        };
        self.db.limited(claim).await
    }

    /// The name under which `guest` has claimed a use.
    pub async fn claim(&self, number: u64, guest: Uid) -> Result<Option<ClientId>, StoreError> {
        claimed(self.db.row(sql(CLAIM).bind(number).bind(guest)).await?)
    }

    /// Ends the claim of `guest`: the use is used. Without that claim nothing changes.
    pub async fn settle_use(&self, number: u64, guest: Uid, name: ClientId) -> Result<(), StoreError> {
        self.db.change(sql(END_CLAIM).bind(number).bind(guest).bind(name)).await.map(drop)
    }

    /// Ends the claim of `guest` and gives the use back, which came to nothing. Without that claim nothing changes.
    pub async fn return_use(&self, number: u64, guest: Uid, name: ClientId) -> Result<(), StoreError> {
        let end = async {
            let mut writer = self.db.writer().await?;
            let mut tx = writer.begin().await?;
            tx.row(sql("SELECT 1 FROM invites WHERE number = $1 FOR UPDATE").bind(number)).await?;
            if tx.change(sql(END_CLAIM).bind(number).bind(guest).bind(name)).await? > 0 {
                let give = sql("UPDATE invites SET uses_left = uses_left + 1 WHERE number = $1");
                tx.change(give.bind(number)).await?;
            }
            tx.commit().await
        };
        self.db.limited(end).await
    }

    /// Forgets up to `limit` invitations that were over at `now`, with their claims, and tells how many. The one of the largest
    /// number stays, so that it is known.
    pub async fn forget_invites(&self, now: Timestamp, limit: usize) -> Result<u64, StoreError> {
        let forget =
            sql("DELETE FROM invites WHERE number IN (SELECT number FROM invites WHERE expires_at <= $1
             AND number < (SELECT max(number) FROM invites) LIMIT $2 FOR UPDATE SKIP LOCKED)");
        self.db.change(forget.bind(now).bind(limit)).await
    }
}

const CLAIM: &str = "SELECT name FROM invite_claims WHERE number = $1 AND uid = $2";

const END_CLAIM: &str = "DELETE FROM invite_claims WHERE number = $1 AND uid = $2 AND name = $3";

fn claimed(row: Option<SqlRow>) -> Result<Option<ClientId>, StoreError> {
    row.map_or(Ok(None), |row| row.client_id("name"))
}

fn invite_of(row: &SqlRow) -> Result<Invite, StoreError> {
    Ok(Invite {
        number: row.number("number")?,
        gid: GroupId(row.number("gid")?),
        made_by: Uid(row.small("made_by")?),
        made_at: row.time("made_at")?,
        expires_at: row.time("expires_at")?,
        uses: row.small("uses")?,
        uses_left: row.small("uses_left")?,
        client_id: row.client_id("client_id")?,
    })
}
