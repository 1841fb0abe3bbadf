//! The section of one tag. Every key has a default; one that does not belong to the tag's strategy is refused.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;

use super::machine::SplitConfig;
use crate::builder::MAX_COUNT;
use crate::error::OpenError;
use crate::range::Range;
use crate::redis::{MAX_EXACT, RedisOptions, WhenHotDown};
use crate::rejected::{FallBack, Log, Refuse, Rejected};
use crate::scramble::{BASE_58, CodeKey, CodecOptions, SHORTEST_SECRET};
use crate::segment::SegmentOptions;
use crate::tag::Tag;

/// The strategy that makes a tag's numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StrategyKind {
    /// Segments in the memory of each process.
    #[default]
    Segment,
    /// Segments in Redis, shared by all processes.
    Redis,
    /// Time, machine and sequence.
    Snowflake,
}

/// How a tag behaves when the numbers at hand are used up while the database is away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WhenDatabaseDown {
    /// Calls are refused.
    #[default]
    Refuse,
    /// Ranges are used that were taken ahead.
    Extend,
}

/// The answer when no number can be issued.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RejectedConfig {
    /// The error, and a line in the log.
    #[default]
    Log,
    /// The error.
    Error,
}

/// Short codes of a tag's numbers: the section `[issuer.tags.NAME.code]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CodeConfig {
    /// The first number that has a code. Default 1.
    #[serde(default = "one")]
    pub first: u64,
    /// The last number that has one: the fewer, the shorter are the codes.
    pub last: u64,
    /// The symbols. Default base 58.
    #[serde(default = "base_58")]
    pub alphabet: String,
    /// Whether codes end in a symbol that shows typing errors. Default no.
    #[serde(default)]
    pub check_symbol: bool,
    /// Words that no code may hold, whatever their letters' case.
    #[serde(default)]
    pub blocked_words: Vec<String>,
    /// Files with a secret each: the first is version 1, the last one writes.
    pub key_files: Vec<PathBuf>,
}

fn one() -> u64 {
    1
}

fn base_58() -> String {
    BASE_58.to_owned()
}

/// The section `[issuer.tags.NAME]`. An absent key has the default that stands at it, or that of [`SegmentOptions`] or
/// [`RedisOptions`].
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TagConfig {
    /// The strategy that makes the numbers. Default `segment`.
    pub strategy: StrategyKind,
    /// The most numbers that one call may take. Default 10,000.
    pub max_count: u32,
    /// The first number of a new tag.
    pub start: Option<u64>,
    /// How many numbers the first segment holds.
    pub step: Option<u64>,
    /// The smallest step.
    pub step_min: Option<u64>,
    /// The largest step.
    pub step_max: Option<u64>,
    /// A segment that lasts less doubles the step.
    pub short_minutes: Option<u64>,
    /// A segment that lasts longer halves it.
    pub long_minutes: Option<u64>,
    /// Percent of a segment that is used when the next is prepared.
    pub prepare_at: Option<u8>,
    /// How long the numbers at hand last without the database.
    pub reserve_minutes: Option<u64>,
    /// The largest number.
    pub limit: Option<u64>,
    /// Milliseconds that a call waits for numbers.
    pub wait_ms: Option<u64>,
    /// How the tag behaves while the database is away. Default `refuse`.
    pub when_database_down: Option<WhenDatabaseDown>,
    /// With `extend`: how many segments are taken ahead. Default 2.
    pub extend_segments: Option<u32>,
    /// Milliseconds until a Redis that does not answer is asked again.
    pub redis_timeout_ms: Option<u64>,
    /// Whether a process goes on from its memory while Redis is away (`memory`, the default) or refuses (`refuse`).
    pub when_redis_down: Option<WhenRedisDown>,
    /// Snowflakes: how the 63 bits are split. Default 41 time, 10 worker, 12 sequence.
    pub bits: Option<SplitConfig>,
    /// Snowflakes: milliseconds since 1970 at which their time begins. Default 2025-01-01.
    pub epoch: Option<u64>,
    /// The answer when no number can be issued. Default `log`.
    pub rejected: RejectedConfig,
    /// The tag that numbers come from then, in place of the error.
    pub fall_back_to: Option<String>,
    /// The plugins that act for it: `history`, `rate`.
    pub plugins: Vec<String>,
    /// Short codes.
    pub code: Option<CodeConfig>,
}

/// How a tag behaves while Redis is away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WhenRedisDown {
    /// A durable segment in the memory of each process.
    #[default]
    Memory,
    /// Calls are refused.
    Refuse,
}

impl Default for TagConfig {
    fn default() -> Self {
        Self {
            strategy: StrategyKind::Segment,
            max_count: MAX_COUNT,
            start: None,
            step: None,
            step_min: None,
            step_max: None,
            short_minutes: None,
            long_minutes: None,
            prepare_at: None,
            reserve_minutes: None,
            limit: None,
            wait_ms: None,
            when_database_down: None,
            extend_segments: None,
            redis_timeout_ms: None,
            when_redis_down: None,
            bits: None,
            epoch: None,
            rejected: RejectedConfig::Log,
            fall_back_to: None,
            plugins: Vec::new(),
            code: None,
        }
    }
}

impl TagConfig {
    /// Looks for keys that would have no effect.
    pub(super) fn check(&self) -> Result<(), String> {
        let of_segments = [
            ("start", self.start.is_some()),
            ("step", self.step.is_some()),
            ("step_min", self.step_min.is_some()),
            ("step_max", self.step_max.is_some()),
            ("short_minutes", self.short_minutes.is_some()),
            ("long_minutes", self.long_minutes.is_some()),
            ("prepare_at", self.prepare_at.is_some()),
            ("limit", self.limit.is_some()),
            ("when_database_down", self.when_database_down.is_some()),
            ("extend_segments", self.extend_segments.is_some()),
        ];
        let of_memory = [("reserve_minutes", self.reserve_minutes.is_some())];
        let of_redis = [
            ("redis_timeout_ms", self.redis_timeout_ms.is_some()),
            ("when_redis_down", self.when_redis_down.is_some()),
        ];
        let of_snowflakes = [("bits", self.bits.is_some()), ("epoch", self.epoch.is_some())];
        let stranger = |keys: &[(&'static str, bool)]| keys.iter().find(|key| key.1).map(|key| key.0);
        let stranger = match self.strategy {
            StrategyKind::Segment => stranger(&of_redis).or(stranger(&of_snowflakes)),
            StrategyKind::Redis => stranger(&of_snowflakes).or(stranger(&of_memory)),
            StrategyKind::Snowflake => {
                stranger(&of_segments).or(stranger(&of_redis)).or(stranger(&of_memory))
            }
        };
        if let Some(key) = stranger {
            return Err(format!("{key} does not belong to the tag's strategy; leave it out"));
        }
        let extends = self.when_database_down == Some(WhenDatabaseDown::Extend);
        if self.extend_segments.is_some() && !extends {
            return Err("extend_segments goes with when_database_down = \"extend\"".to_owned());
        }
        if extends && self.extend_segments == Some(0) {
            return Err("extend_segments = 0 would extend by nothing; set 1 or more".to_owned());
        }
        Ok(())
    }

    /// The segments that this describes.
    pub(super) fn segment(&self) -> SegmentOptions {
        let default = SegmentOptions::default();
        let step = self.step.unwrap_or(default.step);
        let minutes = |given: Option<u64>, or| {
            given.map_or(or, |minutes| Duration::from_secs(minutes.saturating_mul(60)))
        };
        let ahead = match self.when_database_down.unwrap_or_default() {
            WhenDatabaseDown::Refuse => 0,
            WhenDatabaseDown::Extend => self.extend_segments.unwrap_or(2),
        };
        SegmentOptions {
            start: self.start,
            step,
            // A first step beyond a limit that was not given moves that limit.
            step_min: self.step_min.unwrap_or_else(|| default.step_min.min(step)),
            step_max: self.step_max.unwrap_or_else(|| default.step_max.max(step)),
            short: minutes(self.short_minutes, default.short),
            long: minutes(self.long_minutes, default.long),
            prepare_at: self.prepare_at.unwrap_or(default.prepare_at),
            reserve: minutes(self.reserve_minutes, default.reserve),
            ahead,
            limit: self.limit.unwrap_or(default.limit),
            wait: self.wait_ms.map_or(default.wait, Duration::from_millis),
            ..default
        }
    }

    pub(super) fn redis(&self, urls: &[String]) -> RedisOptions {
        let limit = self.limit.unwrap_or(MAX_EXACT);
        let default = RedisOptions::new(urls.to_vec());
        RedisOptions {
            timeout: self.redis_timeout_ms.map_or(default.timeout, Duration::from_millis),
            when_down: match self.when_redis_down.unwrap_or_default() {
                WhenRedisDown::Memory => WhenHotDown::Memory,
                WhenRedisDown::Refuse => WhenHotDown::Refuse,
            },
            segment: SegmentOptions { limit, ..self.segment() },
            ..default
        }
    }

    pub(super) fn rejected(&self) -> Result<Arc<dyn Rejected>, OpenError> {
        Ok(match (&self.fall_back_to, self.rejected) {
            (Some(tag), _) => Arc::new(FallBack(Tag::new(tag)?)),
            (None, RejectedConfig::Log) => Arc::new(Log),
            (None, RejectedConfig::Error) => Arc::new(Refuse),
        })
    }
}

/// The secret that a file holds: a text without the white space around it, or any other bytes, as they are.
fn secret_of(bytes: Vec<u8>) -> String {
    let bytes = match String::from_utf8(bytes) {
        Ok(text) => return text.trim().to_owned(),
        Err(other) => other.into_bytes(),
    };
    // Spelt so that no two files give the same; too few are left as few, to be refused for that.
    let spelt = bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    if bytes.len() < SHORTEST_SECRET { spelt[..bytes.len()].to_owned() } else { spelt }
}

impl CodeConfig {
    pub(super) fn options(&self) -> Result<CodecOptions, OpenError> {
        let key = |(at, path): (usize, &PathBuf)| {
            let secret = std::fs::read(path).map_err(|error| {
                OpenError::Bad(format!("cannot read the key {}: {error}", path.display()))
            })?;
            let version =
                u8::try_from(at + 1).map_err(|_| OpenError::Bad("too many key_files".to_owned()))?;
            Ok(CodeKey { version, secret: secret_of(secret) })
        };
        Ok(CodecOptions {
            range: Range { first: self.first, last: self.last },
            alphabet: self.alphabet.clone(),
            check_symbol: self.check_symbol,
            keys: self.key_files.iter().enumerate().map(key).collect::<Result<_, OpenError>>()?,
        })
    }
}
