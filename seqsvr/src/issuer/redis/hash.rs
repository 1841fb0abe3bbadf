//! The hash `{cur, max, life}` of a tag in Redis, and the two things that are done to it: advance `cur`, and replace
//! everything by a new segment. Each is one short atomic step.
//!
//! `life` names one unbroken life of the data: the run id of the Redis process (which a restart changes) and the id of its
//! replication history (which a promotion changes). A hash of another life may hold an old `cur`, so it counts as empty.

use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, RedisError, Script};
use tracing::info;

use crate::issuer::range::Range;

const ADVANCE: &str = "
local life = ARGV[3] .. ':' .. string.match(redis.call('INFO', 'replication'), 'master_replid:(%x+)')
local hash = redis.call('HMGET', KEYS[1], 'cur', 'max', 'life')
if hash[3] ~= life or tonumber(hash[1]) < tonumber(ARGV[2]) then return {0, 0, 0} end
local count = math.min(tonumber(ARGV[1]), tonumber(hash[2]) - tonumber(hash[1]))
if count <= 0 then return {0, 0, 0} end
return {count, redis.call('HINCRBY', KEYS[1], 'cur', count), hash[2]}";

const INSTALL: &str = "
local life = ARGV[3] .. ':' .. string.match(redis.call('INFO', 'replication'), 'master_replid:(%x+)')
local hash = redis.call('HMGET', KEYS[1], 'max', 'life')
if hash[2] == life and tonumber(hash[1]) >= tonumber(ARGV[2]) then return 0 end
redis.call('HSET', KEYS[1], 'cur', ARGV[1], 'max', ARGV[2], 'life', life)
return 1";

/// What an attempt to advance came to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Advance {
    /// These numbers are the caller's, at most as many as were asked for; `max`: the last of the segment.
    Taken { range: Range, max: u64 },
    /// The hash has none that may be used: install a segment.
    Empty,
}

/// Why nothing is known to have happened.
#[derive(Debug)]
pub(super) enum HashError {
    /// Another script keeps Redis busy: try again; SCRIPT KILL ends that one.
    Busy,
    /// Redis cannot be used.
    Down(String),
}

pub(super) struct Hash {
    /// Where Redis may be; the primary among them is used.
    urls: Vec<String>,
    key: String,
    timeout: Duration,
    link: Option<Link>,
    /// Scripts are forbidden here.
    plain: bool,
    advance: Script,
    install: Script,
}

/// A connection to the primary.
#[derive(Clone)]
pub(super) struct Link {
    connection: MultiplexedConnection,
    /// Cannot change as long as the connection lives.
    run: String,
}

impl Hash {
    pub(super) fn new(urls: Vec<String>, key: String, timeout: Duration) -> Self {
        let (advance, install) = (Script::new(ADVANCE), Script::new(INSTALL));
        Self { urls, key, timeout, link: None, plain: false, advance, install }
    }

    /// Takes up to `count` numbers, all above `floor`.
    pub(super) async fn advance(&mut self, count: u64, floor: u64) -> Result<Advance, HashError> {
        let Link { mut connection, run } = self.link().await?;
        if !self.plain {
            let mut script = self.advance.prepare_invoke();
            script.key(&self.key).arg(count).arg(floor).arg(&run);
            let taken: Result<(u64, u64, u64), _> = script.invoke_async(&mut connection).await;
            match taken {
                Ok((0, _, _)) => return Ok(Advance::Empty),
                Ok((taken, last, max)) => {
                    return Ok(Advance::Taken { range: Range { first: last - taken + 1, last }, max });
                }
                Err(error) if forbidden(&error) => self.go_plain(&error),
                Err(error) => return Err(self.failed(&error)),
            }
        }
        let advanced = advance_plainly(&mut connection, &self.key, &run, count, floor).await;
        advanced.map_err(|error| self.failed(&error))
    }

    /// Puts a new segment in place of whatever is there, unless that is newer: whether it did.
    pub(super) async fn install(&mut self, segment: Range) -> Result<bool, HashError> {
        let Link { mut connection, run } = self.link().await?;
        if !self.plain {
            let mut script = self.install.prepare_invoke();
            script.key(&self.key).arg(segment.first - 1).arg(segment.last).arg(&run);
            match script.invoke_async(&mut connection).await {
                Ok(installed) => return Ok(installed),
                Err(error) if forbidden(&error) => self.go_plain(&error),
                Err(error) => return Err(self.failed(&error)),
            }
        }
        let installed = install_plainly(&mut connection, &self.key, &run, segment).await;
        installed.map_err(|error| self.failed(&error))
    }

    /// Looks for the primary.
    pub(super) fn search(&self) -> impl Future<Output = Result<Link, HashError>> + Send + use<> {
        search(self.urls.clone(), self.timeout)
    }

    /// Uses what a search has found.
    pub(super) fn adopt(&mut self, link: Link) {
        self.link = Some(link);
    }

    async fn link(&mut self) -> Result<Link, HashError> {
        match &self.link {
            Some(link) => Ok(link.clone()),
            None => Ok(self.link.insert(self.search().await?).clone()),
        }
    }

    /// After an error nobody knows who will answer next: the connection is given up, unless Redis is merely busy.
    fn failed(&mut self, error: &RedisError) -> HashError {
        if error.code() == Some("BUSY") {
            return HashError::Busy;
        }
        self.link = None;
        HashError::Down(format!("Redis cannot be used: {error}"))
    }

    fn go_plain(&mut self, error: &RedisError) {
        info!(key = %self.key, %error, "scripts are forbidden; using plain commands");
        self.plain = true;
    }
}

/// Whether the error means that scripts may not be used at all.
fn forbidden(error: &RedisError) -> bool {
    let unknown = || error.detail().is_some_and(|detail| detail.contains("unknown command"));
    error.code() == Some("NOPERM") || unknown()
}

async fn search(urls: Vec<String>, timeout: Duration) -> Result<Link, HashError> {
    let mut problems = Vec::new();
    for url in &urls {
        match connect(url, timeout).await {
            Ok(Some(link)) => return Ok(link),
            Ok(None) => problems.push(format!("{} is a replica", shown(url))),
            Err(error) if error.code() == Some("BUSY") => return Err(HashError::Busy),
            Err(error) => problems.push(format!("{}: {error}", shown(url))),
        }
    }
    Err(HashError::Down(format!("Redis cannot be used: {}", problems.join("; "))))
}

/// A URL without what may be a password.
fn shown(url: &str) -> &str {
    url.rsplit_once('@').map_or(url, |(_, address)| address)
}

/// A connection to a primary; `None`: it is not one.
async fn connect(url: &str, timeout: Duration) -> Result<Option<Link>, RedisError> {
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
    Ok(Some(Link { connection, run }))
}

/// A field of an answer to INFO.
fn field<'a>(info: &'a str, name: &str) -> &'a str {
    let values = info.lines().filter_map(|line| line.split_once(':'));
    values.filter(|(key, _)| *key == name).map(|(_, value)| value.trim()).next().unwrap_or_default()
}

fn life(run: &str, replication: &str) -> String {
    format!("{run}:{}", field(replication, "master_replid"))
}

/// The same without a script: `cur` may run past `max`, and what lies beyond belongs to nobody.
async fn advance_plainly(
    connection: &mut MultiplexedConnection,
    key: &str,
    run: &str,
    count: u64,
    floor: u64,
) -> Result<Advance, RedisError> {
    type Answer = (u64, (Option<u64>, Option<String>), String);
    let (cur, (max, stored), replication): Answer = redis::pipe()
        .atomic()
        .hincr(key, "cur", count)
        .cmd("HMGET")
        .arg(key)
        .arg("max")
        .arg("life")
        .cmd("INFO")
        .arg("replication")
        .query_async(connection)
        .await?;
    let before = cur.saturating_sub(count);
    match max {
        Some(max) if stored == Some(life(run, &replication)) && before >= floor && before < max => {
            Ok(Advance::Taken { range: Range { first: before + 1, last: cur.min(max) }, max })
        }
        _ => Ok(Advance::Empty),
    }
}

async fn install_plainly(
    connection: &mut MultiplexedConnection,
    key: &str,
    run: &str,
    segment: Range,
) -> Result<bool, RedisError> {
    // The connection is this hash's own and has one call under way, so the watch is not another's.
    type Answer = ((), (Option<u64>, Option<String>), String);
    let ((), (max, stored), replication): Answer = redis::pipe()
        .cmd("WATCH")
        .arg(key)
        .cmd("HMGET")
        .arg(key)
        .arg("max")
        .arg("life")
        .cmd("INFO")
        .arg("replication")
        .query_async(connection)
        .await?;
    let life = life(run, &replication);
    if stored.as_ref() == Some(&life) && max.is_some_and(|max| max >= segment.last) {
        redis::cmd("UNWATCH").exec_async(connection).await?;
        return Ok(false);
    }
    let mut replace = redis::pipe();
    replace.atomic().cmd("HSET").arg(key);
    replace.arg("cur").arg(segment.first - 1).arg("max").arg(segment.last).arg("life").arg(life).ignore();
    let replaced: Option<()> = replace.query_async(connection).await?;
    Ok(replaced.is_some())
}
