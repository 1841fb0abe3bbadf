//! Subscriptions to Web Push: one a session, and how far each device has been told. And the key of the installation.
//!
//! A device is told of rows by one push, and by no other until it has fetched them. `claim` says which server sends it; it holds for a
//! while, so that another one may take over from a server that has died.

use super::sql::{SqlRow, Statement, sql};
use super::{Directory, StoreError};
use crate::domain::{MessageId, Timestamp, Uid};

/// The subscription that a device hands in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewPushSubscription {
    /// The address at the push service.
    pub endpoint: String,
    /// The device's public key.
    pub p256dh: Vec<u8>,
    /// The secret that it shares with this installation.
    pub auth: Vec<u8>,
}

/// A subscription as it is looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushSubscription {
    /// SHA-256 of the session's token.
    pub token_hash: [u8; 32],
    /// Whose.
    pub uid: Uid,
    /// The subscription as the device handed it in.
    pub device: NewPushSubscription,
    /// The device has the rows up to it, or none of them is told.
    pub synced: MessageId,
    /// The push service has taken a push for rows up to it; zero: none that the device has not followed.
    pub told_to: MessageId,
    /// Since when the push service takes none.
    pub failing_since: Option<Timestamp>,
}

/// When pushes may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PushTimes {
    /// Now.
    pub now: Timestamp,
    /// A push that was taken before it, and that the device has not followed, counts as lost.
    pub lost_before: Timestamp,
}

const COLUMNS: &str =
    "p.token_hash, p.uid, p.endpoint, p.p256dh, p.auth, p.synced, p.told_to, p.failing_since";

/// Of which devices, by `$1` and `$2` ([`PushTimes`]), one may be told now.
const MAY_BE_TOLD: &str = "p.try_at <= $1 AND (p.told_to = 0 OR p.told_at < $2) AND p.live_until <= $1
    AND EXISTS (SELECT 1 FROM sessions s WHERE s.token_hash = p.token_hash AND s.expires_at > $1)";

/// Subscriptions to Web Push.
impl Directory {
    /// The key of the installation, `proposal` if it has none yet. All servers that ask get the same.
    pub async fn push_key(&self, proposal: &[u8]) -> Result<Vec<u8>, StoreError> {
        let keep = sql("INSERT INTO push_key (one, pkcs8) VALUES (1, $1) ON CONFLICT (one) DO NOTHING");
        self.db.change(keep.bind(proposal)).await?;
        let key = self.db.row(sql("SELECT pkcs8 FROM push_key WHERE one = 1")).await?;
        key.ok_or_else(|| StoreError::corrupt("push_key has no row"))?.get("pkcs8")
    }

    /// Subscribes the session with this token hash, which has the rows up to `synced`. Pushes before still count if the endpoint is
    /// the same. An endpoint belongs to the session that named it last. `false`: there is no such session.
    pub async fn subscribe_to_push(
        &self,
        token_hash: &[u8; 32],
        device: &NewPushSubscription,
        synced: MessageId,
    ) -> Result<bool, StoreError> {
        let subscribe = async {
            let mut writer = self.db.writer().await?;
            let mut tx = writer.begin().await?;
            let others = sql("DELETE FROM push_subscriptions WHERE endpoint = $1 AND token_hash <> $2");
            tx.change(others.bind(device.endpoint.as_str()).bind(token_hash)).await?;
            let changed = sql("DELETE FROM push_subscriptions WHERE token_hash = $1 AND endpoint <> $2");
            tx.change(changed.bind(token_hash).bind(device.endpoint.as_str())).await?;
            let put = sql(
                "INSERT INTO push_subscriptions
                     (token_hash, uid, endpoint, p256dh, auth, synced, told_to, told_at, try_at, failing_since, live_until)
                 SELECT token_hash, uid, $2, $3, $4, $5, 0, 0, 0, 0, 0 FROM sessions WHERE token_hash = $1
                 ON CONFLICT (token_hash) DO UPDATE SET p256dh = excluded.p256dh, auth = excluded.auth",
            );
            let put = put.bind(token_hash).bind(device.endpoint.as_str()).bind(&device.p256dh[..]);
            let is_put = tx.change(put.bind(&device.auth[..]).bind(synced.get())).await? > 0;
            tx.change(has_synced(token_hash, synced)).await?;
            tx.commit().await?;
            Ok(is_put)
        };
        self.db.limited(subscribe).await
    }

    /// The endpoint of the session with this token hash.
    pub async fn push_endpoint(&self, token_hash: &[u8; 32]) -> Result<Option<String>, StoreError> {
        let endpoint = sql("SELECT endpoint FROM push_subscriptions WHERE token_hash = $1");
        self.db.row(endpoint.bind(token_hash)).await?.map(|row| row.get("endpoint")).transpose()
    }

    /// Forgets the subscription of a session. `false`: there was none.
    pub async fn unsubscribe_from_push(&self, token_hash: &[u8; 32]) -> Result<bool, StoreError> {
        let forget = sql("DELETE FROM push_subscriptions WHERE token_hash = $1");
        Ok(self.db.change(forget.bind(token_hash)).await? > 0)
    }

    /// The push service says that this endpoint is no more, or nothing may go there.
    pub async fn forget_push_endpoint(&self, of: &PushSubscription) -> Result<(), StoreError> {
        let forget = sql("DELETE FROM push_subscriptions WHERE token_hash = $1 AND endpoint = $2");
        let forget = forget.bind(of.token_hash).bind(of.device.endpoint.as_str());
        self.db.change(forget).await.map(drop)
    }

    /// Whether anybody is subscribed.
    pub async fn has_push_subscriptions(&self) -> Result<bool, StoreError> {
        Ok(self.db.row(sql("SELECT 1 AS one FROM push_subscriptions LIMIT 1")).await?.is_some())
    }

    /// Devices of these people that may be told now, at most `limit`.
    pub async fn to_push(
        &self,
        people: &[Uid],
        times: PushTimes,
        limit: usize,
    ) -> Result<Vec<PushSubscription>, StoreError> {
        let found = sql(format!(
            "SELECT {COLUMNS} FROM push_subscriptions p WHERE p.uid = ANY($3) AND {MAY_BE_TOLD} LIMIT $4"
        ));
        self.subscriptions(found.bind(times.now).bind(times.lost_before).bind(people).bind(limit)).await
    }

    /// Devices that may be told now, of all people: those whose token hash comes after `after`, in that order, at most `limit`.
    pub async fn to_push_after(
        &self,
        after: &[u8; 32],
        times: PushTimes,
        limit: usize,
    ) -> Result<Vec<PushSubscription>, StoreError> {
        let found = sql(format!(
            "SELECT {COLUMNS} FROM push_subscriptions p WHERE p.token_hash > $3 AND {MAY_BE_TOLD} ORDER BY p.token_hash LIMIT $4"
        ));
        self.subscriptions(found.bind(times.now).bind(times.lost_before).bind(after).bind(limit)).await
    }

    /// Devices whose push has to be tried again now, at most `limit`.
    pub async fn to_push_again(
        &self,
        times: PushTimes,
        limit: usize,
    ) -> Result<Vec<PushSubscription>, StoreError> {
        let found = sql(format!(
            "SELECT {COLUMNS} FROM push_subscriptions p WHERE p.try_at > 0 AND {MAY_BE_TOLD} ORDER BY p.try_at LIMIT $3"
        ));
        self.subscriptions(found.bind(times.now).bind(times.lost_before).bind(limit)).await
    }

    async fn subscriptions(&self, found: Statement) -> Result<Vec<PushSubscription>, StoreError> {
        self.db.rows(found).await?.iter().map(subscription_of).collect()
    }

    /// Takes the push to a device upon the caller, until `until`. `false`: another server has, or the device has gone on since it was looked
    /// at.
    pub async fn claim_push(
        &self,
        of: &PushSubscription,
        times: PushTimes,
        until: Timestamp,
    ) -> Result<bool, StoreError> {
        let claim = sql(format!(
            "UPDATE push_subscriptions AS p SET try_at = $3, told_to = 0
             WHERE p.token_hash = $4 AND p.synced = $5 AND {MAY_BE_TOLD}"
        ));
        let claim = claim.bind(times.now).bind(times.lost_before).bind(until);
        Ok(self.db.change(claim.bind(of.token_hash).bind(of.synced.get())).await? > 0)
    }

    /// The push service has taken a push for rows up to `to`.
    pub async fn push_taken(
        &self,
        of: &PushSubscription,
        to: MessageId,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        // A device that has fetched them meanwhile is told of later ones by another.
        let taken = sql("UPDATE push_subscriptions SET try_at = 0, failing_since = 0, told_at = $3,
                 told_to = CASE WHEN synced < $4 THEN $4 ELSE 0 END
             WHERE token_hash = $1 AND endpoint = $2");
        let taken = taken.bind(of.token_hash).bind(of.device.endpoint.as_str());
        self.db.change(taken.bind(at).bind(to.get())).await.map(drop)
    }

    /// The push service did not take it: it is tried again at `again`.
    pub async fn push_not_taken(
        &self,
        of: &PushSubscription,
        since: Timestamp,
        again: Timestamp,
    ) -> Result<(), StoreError> {
        let failed = sql(
            "UPDATE push_subscriptions SET try_at = $3, failing_since = $4 WHERE token_hash = $1 AND endpoint = $2",
        );
        let failed = failed.bind(of.token_hash).bind(of.device.endpoint.as_str());
        self.db.change(failed.bind(again).bind(since)).await.map(drop)
    }

    /// Nothing up to `to` is told any more to a device that was at `of.synced`: no row of them is, or the push service took none for too long.
    pub async fn skip_push(&self, of: &PushSubscription, to: MessageId) -> Result<(), StoreError> {
        let skip = sql("UPDATE push_subscriptions SET synced = $3, try_at = 0, failing_since = 0
             WHERE token_hash = $1 AND synced = $2");
        let skip = skip.bind(of.token_hash).bind(of.synced.get());
        self.db.change(skip.bind(to.get())).await.map(drop)
    }

    /// Devices, by the hashes of their tokens, that have the rows up to these ids. They are connected, as far as is known, until `live_until`.
    pub async fn devices_synced(
        &self,
        devices: &[([u8; 32], MessageId)],
        live_until: Timestamp,
    ) -> Result<(), StoreError> {
        let hashes: Vec<[u8; 32]> = devices.iter().map(|(token_hash, _)| *token_hash).collect();
        let known = sql("SELECT token_hash FROM push_subscriptions WHERE token_hash = ANY($1)");
        let rows = self.db.rows(known.bind(&hashes[..])).await?;
        let subscribed: Vec<[u8; 32]> =
            rows.iter().map(|row| row.hash("token_hash")).collect::<Result<_, _>>()?;
        if subscribed.is_empty() {
            return Ok(());
        }
        let keep = async {
            let mut writer = self.db.writer().await?;
            let mut tx = writer.begin().await?;
            // In one order, whichever server does it.
            let mut devices: Vec<_> = devices.iter().filter(|(hash, _)| subscribed.contains(hash)).collect();
            devices.sort_unstable();
            for (token_hash, synced) in devices {
                tx.change(has_synced(token_hash, *synced)).await?;
            }
            let live = sql("UPDATE push_subscriptions SET live_until = $2 WHERE token_hash = ANY($1)");
            tx.change(live.bind(&subscribed[..]).bind(live_until)).await?;
            tx.commit().await
        };
        self.db.limited(keep).await
    }
}

/// A device has the rows up to `synced`; what it has is never less than before.
fn has_synced(token_hash: &[u8; 32], synced: MessageId) -> Statement {
    let update = sql("UPDATE push_subscriptions SET
             told_to = CASE WHEN told_to > $2 THEN told_to ELSE 0 END,
             try_at = CASE WHEN synced < $2 THEN 0 ELSE try_at END,
             synced = CASE WHEN synced > $2 THEN synced ELSE $2 END
         WHERE token_hash = $1");
    update.bind(token_hash).bind(synced.get())
}

fn subscription_of(row: &SqlRow) -> Result<PushSubscription, StoreError> {
    let id = |column| {
        let number = row.number(column)?;
        MessageId::new(number)
            .ok_or_else(|| StoreError::corrupt(format!("{column} is {number}, out of range")))
    };
    let device = NewPushSubscription {
        endpoint: row.get("endpoint")?,
        p256dh: row.get("p256dh")?,
        auth: row.get("auth")?,
    };
    Ok(PushSubscription {
        token_hash: row.hash("token_hash")?,
        uid: row.uid()?,
        device,
        synced: id("synced")?,
        told_to: id("told_to")?,
        failing_since: Some(row.time("failing_since")?).filter(|since| since.0 > 0),
    })
}
