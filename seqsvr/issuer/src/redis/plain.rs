//! A step of the hash without a script: numbers by one transaction that adds blindly (`cur` may then run past `max`,
//! and what lies beyond belongs to nobody), everything else by `turn` and a transaction that takes place only if the
//! hash is still what was read. Called by `hash` where scripts are forbidden.

use std::time::Duration;

use redis::RedisError;
use redis::aio::MultiplexedConnection;

use super::turn::{Ask, Claim, FIELDS, HashStep, Keys, StoredHash, Turn};
use crate::range::Range;

type HashFields = [Option<String>; 9];

#[derive(Default)]
pub(super) struct Plain {
    /// The last step found nothing: to add blindly again would only get into the way of the process that brings the next segment.
    used_up: bool,
}

impl Plain {
    #[cfg(test)]
    pub(super) fn looking() -> Self {
        Self { used_up: true }
    }

    pub(super) async fn step(
        &mut self,
        connection: &mut MultiplexedConnection,
        keys: &Keys,
        run: &str,
        ask: &Ask,
    ) -> Result<HashStep, RedisError> {
        let added = match self.used_up {
            false => add(connection, keys, run, ask).await?,
            true => None,
        };
        let (stored, life, turn) = match added {
            Some(added) => added,
            None => match look(connection, keys, run, ask).await? {
                Some(looked) => looked,
                // Another was faster: look again.
                None => return Ok(HashStep { taken: None, left: 0, ahead: 0, claim: None }),
            },
        };
        self.used_up = turn.taken.is_none();
        let claim = match turn.wants {
            true => claim(connection, keys, life, stored.lasted).await?,
            false => None,
        };
        let left = stored.max.saturating_sub(stored.cur);
        Ok(HashStep { taken: turn.taken, left, ahead: stored.ahead(ask.floor), claim })
    }
}

/// Takes numbers of a segment that has some; `None`: none that the caller may have.
async fn add(
    connection: &mut MultiplexedConnection,
    keys: &Keys,
    run: &str,
    ask: &Ask,
) -> Result<Option<(StoredHash, String, Turn)>, RedisError> {
    let (cur, fields, replication): (u64, HashFields, String) = redis::pipe()
        .atomic()
        .hincr(&keys.hash, "cur", ask.count)
        .hmget(&keys.hash, &FIELDS)
        .cmd("INFO")
        .arg("replication")
        .query_async(connection)
        .await?;
    let (stored, life) = (StoredHash::read(fields), life(run, &replication));
    let before = cur.saturating_sub(ask.count);
    if stored.life.as_ref() != Some(&life) || before < ask.floor || before >= stored.max {
        return Ok(None);
    }
    let taken = Some(Range { first: before + 1, last: cur.min(stored.max) });
    let turn = Turn { taken, wants: stored.wants(taken, ask.floor) };
    Ok(Some((stored, life, turn)))
}

/// Takes a whole step; `None`: the hash was changed meanwhile.
async fn look(
    connection: &mut MultiplexedConnection,
    keys: &Keys,
    run: &str,
    ask: &Ask,
) -> Result<Option<(StoredHash, String, Turn)>, RedisError> {
    // The connection is this hash's own and has one call under way, so the watch is not another's.
    let ((), fields, replication, (seconds, microseconds)): ((), HashFields, String, (u64, u64)) =
        redis::pipe()
            .cmd("WATCH")
            .arg(&keys.hash)
            .hmget(&keys.hash, &FIELDS)
            .cmd("INFO")
            .arg("replication")
            .cmd("TIME")
            .query_async(connection)
            .await?;
    let before = StoredHash::read(fields);
    let (mut stored, life) = (before.clone(), life(run, &replication));
    let turn = stored.turn(&life, ask, seconds * 1_000 + microseconds / 1_000);
    if stored == before {
        redis::cmd("UNWATCH").exec_async(connection).await?;
        return Ok(Some((stored, life, turn)));
    }
    if let Some(taken) = turn.taken
        && stored == (StoredHash { cur: stored.cur, ..before })
    {
        // There are numbers again: others, who take them all the time, would get into the way of a replacement.
        redis::cmd("UNWATCH").exec_async(connection).await?;
        return add(connection, keys, run, &Ask { count: taken.count(), ..*ask }).await;
    }
    let mut replace = redis::pipe();
    replace.atomic().del(&keys.hash).ignore().hset_multiple(&keys.hash, &stored.fields()).ignore();
    let replaced: Option<()> = replace.query_async(connection).await?;
    Ok(replaced.map(|()| (stored, life, turn)))
}

async fn claim(
    connection: &mut MultiplexedConnection,
    keys: &Keys,
    life: String,
    lasted: Option<u64>,
) -> Result<Option<Claim>, RedisError> {
    let mut set = redis::cmd("SET");
    set.arg(&keys.claim).arg(1).arg("NX").arg("PX").arg(keys.claim_ms);
    let claimed: Option<String> = set.query_async(connection).await?;
    if claimed.is_none() {
        return Ok(None);
    }
    // One segment changes the step once.
    redis::cmd("HDEL").arg(&keys.hash).arg("lasted").exec_async(connection).await?;
    Ok(Some(Claim { life, lasted: lasted.map(Duration::from_millis) }))
}

fn life(run: &str, replication: &str) -> String {
    format!("{run}:{}", field(replication, "master_replid"))
}

/// A field of an answer to INFO.
pub(super) fn field<'a>(info: &'a str, name: &str) -> &'a str {
    let values = info.lines().filter_map(|line| line.split_once(':'));
    values.filter(|(key, _)| *key == name).map(|(_, value)| value.trim()).next().unwrap_or_default()
}
