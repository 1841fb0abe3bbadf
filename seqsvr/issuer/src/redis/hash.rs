//! The hash of a tag in Redis, and the three things that are done to it: a step takes numbers and switches to the next
//! segment when this one is used up, `install` puts the next one there, `release` lets another process prepare it.
//! Each is short and atomic. A claim, a key beside the hash that expires by itself, settles which process may prepare.
//!
//! `life` names one unbroken life of the data: the run id of the Redis process (which a restart changes) and the id of
//! its replication history (which a promotion changes). A hash of another life may hold an old `cur`, so it counts as
//! empty, and a segment asked for in another life may be below numbers of this one, so it does not follow. A segment
//! was taken after it was asked for, so within a life what follows is above all that any process was given.

use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, RedisError, Script};
use tracing::info;

use super::plain::{Plain, field};
use super::turn::{Ask, Claim, HashStep, Keys};
use crate::range::Range;

/// The script that does the same as `turn`, inside Redis.
const STEP: &str = "
local life = ARGV[3] .. ':' .. string.match(redis.call('INFO', 'replication'), 'master_replid:(%x+)')
local hash = redis.call('HMGET', KEYS[1], 'life', 'cur', 'max', 'mark', 'next_life', 'next_cur', 'next_max')
if hash[1] ~= life then
  redis.call('DEL', KEYS[1])
  redis.call('HSET', KEYS[1], 'life', life, 'cur', 0, 'max', 0, 'mark', 0)
  hash = {life, 0, 0, 0}
end
local floor, cur, max = tonumber(ARGV[2]), tonumber(hash[2]), tonumber(hash[3])
local mark, following = tonumber(hash[4] or hash[3]), nil
if hash[5] == life then
  following = tonumber(hash[6])
  if following < max or following < floor then following = nil end
end
if following and (cur >= max or cur < floor) then
  local time = redis.call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  local since = redis.call('HGET', KEYS[1], 'since')
  cur, max, following = following, tonumber(hash[7]), nil
  mark = cur + math.floor((max - cur) * ARGV[4] / 100)
  redis.call('HDEL', KEYS[1], 'next_life', 'next_cur', 'next_max', 'lasted')
  redis.call('HSET', KEYS[1], 'cur', cur, 'max', max, 'mark', mark, 'since', now)
  if since then redis.call('HSET', KEYS[1], 'lasted', math.max(0, now - since)) end
end
local count = 0
if cur >= floor then count = math.max(0, math.min(tonumber(ARGV[1]), max - cur)) end
if count > 0 then cur = redis.call('HINCRBY', KEYS[1], 'cur', count) end
local left = math.max(0, max - cur)
if following then return {count, cur, left, hash[7] - following, 0, -1, life} end
if count > 0 and cur < mark or not redis.call('SET', KEYS[2], 1, 'NX', 'PX', ARGV[5]) then
  return {count, cur, left, 0, 0, -1, life}
end
local lasted = redis.call('HGET', KEYS[1], 'lasted')
redis.call('HDEL', KEYS[1], 'lasted')
return {count, cur, left, 0, 1, lasted or -1, life}";

/// Why a command has no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum HashError {
    /// Another script keeps Redis busy, so nothing happened; try again.
    #[error("Redis is busy with a script; end it with SCRIPT KILL")]
    Busy,
    /// No answer came in time, or the connection was lost. The command may have happened, or may happen yet; try again.
    #[error("Redis cannot be used: {0}")]
    Unanswered(String),
    #[error("Redis cannot be used: {0}")]
    Down(String),
}

pub(super) struct Hash {
    /// Where Redis may be; the primary among them is used.
    urls: Vec<String>,
    timeout: Duration,
    keys: Keys,
    link: Option<PrimaryLink>,
    step: Script,
    /// Scripts are forbidden here.
    plain: Option<Plain>,
}

/// A connection to the primary.
#[derive(Clone)]
pub(super) struct PrimaryLink {
    connection: MultiplexedConnection,
    /// Cannot change as long as the connection lives.
    run: String,
}

impl Hash {
    /// The hash at `key`; `claim`: how long one process may prepare a segment before another may.
    pub(super) fn new(urls: Vec<String>, key: String, timeout: Duration, claim: Duration) -> Self {
        let claim_ms = claim.as_millis().max(1) as u64;
        let keys = Keys { claim: format!("{{{key}}}:claim"), hash: key, claim_ms };
        Self { urls, timeout, keys, link: None, step: Script::new(STEP), plain: None }
    }

    /// Takes numbers, switches, and says whether to prepare.
    pub(super) async fn step(&mut self, ask: &Ask) -> Result<HashStep, HashError> {
        let PrimaryLink { mut connection, run } = self.link().await?;
        if self.plain.is_none() {
            let mut script = self.step.prepare_invoke();
            script.key(&self.keys.hash).key(&self.keys.claim).arg(ask.count).arg(ask.floor).arg(&run);
            script.arg(ask.prepare_at).arg(self.keys.claim_ms);
            type ScriptAnswer = (u64, u64, u64, u64, bool, i64, String);
            let answer: Result<ScriptAnswer, _> = script.invoke_async(&mut connection).await;
            match answer {
                Ok((count, last, left, ahead, claimed, lasted, life)) => {
                    let taken = (count > 0).then(|| Range { first: last - count + 1, last });
                    let lasted = u64::try_from(lasted).ok().map(Duration::from_millis);
                    let claim = claimed.then_some(Claim { life, lasted });
                    return Ok(HashStep { taken, left, ahead, claim });
                }
                Err(error) if forbidden(&error) => {
                    info!(key = %self.keys.hash, %error, "scripts are forbidden; using plain commands");
                }
                Err(error) => return Err(self.failed(&error)),
            }
        }
        let plain = self.plain.get_or_insert_default();
        let stepped = plain.step(&mut connection, &self.keys, &run, ask).await;
        stepped.map_err(|error| self.failed(&error))
    }

    /// From here on plain commands, and the next step without adding blindly.
    #[cfg(test)]
    pub(super) fn look(&mut self) {
        self.plain = Some(Plain::looking());
    }

    /// Lets a segment follow that was taken under a claim of that life. The first step that needs it finds out whether it may: a segment
    /// that is not above the present one is left out, as a gap.
    pub(super) async fn install(&mut self, segment: Range, life: &str) -> Result<(), HashError> {
        let PrimaryLink { mut connection, .. } = self.link().await?;
        let mut commands = redis::pipe();
        commands.atomic().cmd("HSET").arg(&self.keys.hash).arg("next_life").arg(life);
        commands.arg("next_cur").arg(segment.first - 1).arg("next_max").arg(segment.last);
        commands.del(&self.keys.claim);
        commands.exec_async(&mut connection).await.map_err(|error| self.failed(&error))
    }

    /// Gives a claim back. Should it be another's by now, two prepare, which leaves a gap.
    pub(super) async fn release(&mut self) -> Result<(), HashError> {
        let PrimaryLink { mut connection, .. } = self.link().await?;
        let released = redis::cmd("DEL").arg(&self.keys.claim).exec_async(&mut connection).await;
        released.map_err(|error| self.failed(&error))
    }

    /// Looks for the primary.
    pub(super) fn search(&self) -> impl Future<Output = Result<PrimaryLink, HashError>> + Send + use<> {
        search(self.urls.clone(), self.timeout)
    }

    /// Uses what a search has found.
    pub(super) fn adopt(&mut self, link: PrimaryLink) {
        self.link = Some(link);
    }

    /// Connects, unless it is connected.
    pub(super) async fn connect(&mut self) -> Result<(), HashError> {
        self.link().await.map(|_| ())
    }

    async fn link(&mut self) -> Result<PrimaryLink, HashError> {
        match &self.link {
            Some(link) => Ok(link.clone()),
            None => Ok(self.link.insert(self.search().await?).clone()),
        }
    }

    /// Gives up the connection, and with it a command that is under way.
    pub(super) fn disconnect(&mut self) {
        self.link = None;
    }

    /// After an error nobody knows which Redis will answer next: the connection is given up, unless Redis is merely busy.
    fn failed(&mut self, error: &RedisError) -> HashError {
        if error.code() == Some("BUSY") {
            return HashError::Busy;
        }
        self.disconnect();
        match error.is_io_error() {
            true => HashError::Unanswered(error.to_string()),
            false => HashError::Down(error.to_string()),
        }
    }
}

/// Whether the error means that scripts may not be used at all.
fn forbidden(error: &RedisError) -> bool {
    let unknown = || error.detail().is_some_and(|detail| detail.contains("unknown command"));
    error.code() == Some("NOPERM") || unknown()
}

async fn search(urls: Vec<String>, timeout: Duration) -> Result<PrimaryLink, HashError> {
    let mut problems = Vec::new();
    let mut unanswered = false;
    for url in &urls {
        match connect(url, timeout).await {
            Ok(Some(link)) => return Ok(link),
            Ok(None) => problems.push(format!("{} is a replica", shown(url))),
            Err(error) if error.code() == Some("BUSY") => return Err(HashError::Busy),
            Err(error) => {
                unanswered |= error.is_timeout();
                problems.push(format!("{}: {error}", shown(url)));
            }
        }
    }
    let problem = problems.join("; ");
    Err(if unanswered { HashError::Unanswered(problem) } else { HashError::Down(problem) })
}

/// A URL without what may be a password.
fn shown(url: &str) -> &str {
    url.rsplit_once('@').map_or(url, |(_, address)| address)
}

/// A connection to a primary; `None`: it is not one.
async fn connect(url: &str, timeout: Duration) -> Result<Option<PrimaryLink>, RedisError> {
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(timeout))
        .set_response_timeout(Some(timeout));
    let client = redis::Client::open(url)?;
    let mut connection = client.get_multiplexed_async_connection_with_config(&config).await?;
    let (server, replication): (String, String) = redis::pipe()
        .cmd("INFO")
        .arg("server")
        .cmd("INFO")
        .arg("replication")
        .query_async(&mut connection)
        .await?;
    if field(&replication, "role") != "master" {
        return Ok(None);
    }
    let run = field(&server, "run_id").to_owned();
    Ok(Some(PrimaryLink { connection, run }))
}
