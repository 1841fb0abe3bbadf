//! The section of one tag. Every key has a default; one that does not belong to the tag's strategy is refused.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;

use crate::error::OpenError;
use crate::range::Range;
use crate::redis::{MAX_EXACT, RedisOptions};
use crate::rejected::{FallBack, Log, Rejected};
use crate::scramble::{BASE_58, CodeKey, CodecOptions, SHORTEST_SECRET};
use crate::segment::SegmentOptions;
use crate::snowflake::Bits;
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

/// How the 63 bits of a snowflake are split.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SplitConfig {
    /// Milliseconds since the epoch.
    pub time: u32,
    /// The upper part of the machine id. Default 0.
    #[serde(default)]
    pub data_centre: u32,
    /// The lower part of the machine id.
    pub worker: u32,
    /// Numbers of one millisecond.
    pub sequence: u32,
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
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TagConfig {
    /// The strategy that makes the numbers. Default `segment`.
    pub strategy: StrategyKind,
    /// The first number of a new tag.
    pub start: Option<u64>,
    /// How many numbers the first segment holds.
    pub step: Option<u64>,
    /// The smallest step.
    pub step_min: Option<u64>,
    /// The largest step.
    pub step_max: Option<u64>,
    /// Percent of a segment that is used when the next is prepared.
    pub prepare_at: Option<u8>,
    /// Milliseconds that a call waits for numbers.
    pub wait_ms: Option<u64>,
    /// How many segments are taken ahead, to be used while the database is away. Default 0: calls are refused then.
    pub extend_segments: Option<u32>,
    /// Snowflakes: how the 63 bits are split. Default 41 time, 10 worker, 12 sequence.
    pub bits: Option<SplitConfig>,
    /// Snowflakes: milliseconds since 1970 at which their time begins. Default 2025-01-01.
    pub epoch: Option<u64>,
    /// The tag that numbers come from when none can be issued, in place of the error.
    pub fall_back_to: Option<String>,
    /// The plugins that act for it: `history`, `rate`.
    pub plugins: Vec<String>,
    /// Short codes.
    pub code: Option<CodeConfig>,
}

impl TagConfig {
    /// Looks for keys that would have no effect.
    pub(super) fn check(&self) -> Result<(), String> {
        let of_segments = [
            ("start", self.start.is_some()),
            ("step", self.step.is_some()),
            ("step_min", self.step_min.is_some()),
            ("step_max", self.step_max.is_some()),
            ("prepare_at", self.prepare_at.is_some()),
            ("extend_segments", self.extend_segments.is_some()),
        ];
        let of_snowflakes = [("bits", self.bits.is_some()), ("epoch", self.epoch.is_some())];
        let stranger = |keys: &[(&'static str, bool)]| keys.iter().find(|key| key.1).map(|key| key.0);
        let stranger = match self.strategy {
            StrategyKind::Segment | StrategyKind::Redis => stranger(&of_snowflakes),
            StrategyKind::Snowflake => stranger(&of_segments),
        };
        if let Some(key) = stranger {
            return Err(format!("{key} does not belong to the tag's strategy; leave it out"));
        }
        Ok(())
    }

    /// The segments that this describes.
    pub(super) fn segment(&self) -> SegmentOptions {
        let default = SegmentOptions::default();
        let step = self.step.unwrap_or(default.step);
        SegmentOptions {
            start: self.start,
            step,
            // A first step beyond a limit that was not given moves that limit.
            step_min: self.step_min.unwrap_or_else(|| default.step_min.min(step)),
            step_max: self.step_max.unwrap_or_else(|| default.step_max.max(step)),
            prepare_at: self.prepare_at.unwrap_or(default.prepare_at),
            ahead: self.extend_segments.unwrap_or(default.ahead),
            wait: self.wait_ms.map_or(default.wait, Duration::from_millis),
            ..default
        }
    }

    pub(super) fn redis(&self, urls: &[String]) -> RedisOptions {
        let segment = SegmentOptions { limit: MAX_EXACT, ..self.segment() };
        RedisOptions { segment, ..RedisOptions::new(urls.to_vec()) }
    }

    /// How the bits of a snowflake are split.
    pub(super) fn bits(&self) -> Bits {
        self.bits.map_or_else(Bits::default, |split| {
            let SplitConfig { time, data_centre, worker, sequence } = split;
            Bits { time, data_centre, worker, sequence }
        })
    }

    pub(super) fn rejected(&self) -> Result<Arc<dyn Rejected>, OpenError> {
        Ok(match &self.fall_back_to {
            Some(tag) => Arc::new(FallBack(Tag::new(tag)?)),
            None => Arc::new(Log),
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
            check_symbol: false,
            keys: self.key_files.iter().enumerate().map(key).collect::<Result<_, OpenError>>()?,
        })
    }
}
