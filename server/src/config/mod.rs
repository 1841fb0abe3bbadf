//! Configuration: sections that check themselves. A key is what an operator turns; every other limit is a constant beside the code that
//! keeps it, or a field of its `Options`. A default stands once: in those `Options`, or in the section.
//!
//! A value comes from its default, then the TOML file, then `TIDEMARK_SECTION__KEY`, then a flag; the later
//! wins. All of it is read once, before anything starts; after that nothing looks at the environment.
//! `docs/tidemark.example.toml` lists every key with its default (a test keeps it true).

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

mod accounts;
mod cidr;
mod database_url;
mod files;
mod limits;
mod listen;
mod load;
mod log;
mod messages;
mod metrics;
mod names;
mod push;
mod queues;
mod retention;
mod search;
mod sequence;
mod server;
mod storage;
mod table;

pub use accounts::AccountsSection;
pub use cidr::Cidr;
pub use database_url::{DatabaseKind, DatabaseUrl};
pub use files::{FileStore, FilesSection};
pub use limits::LimitsSection;
pub use listen::Listen;
pub use load::Flags;
pub use log::{LogFormat, LogSection, OWN_CRATES};
pub use messages::{MessageIds, MessageIdsSetting, MessagesSection};
pub use metrics::MetricsSection;
pub use push::PushSection;
pub use queues::QueuesSection;
pub use retention::RetentionSection;
pub use search::SearchSection;
pub use sequence::{SequenceSection, SequenceSource};
pub use server::ServerSection;
pub use storage::StorageSection;
pub use table::TableSection;

/// A hundred years.
const MOST_SECONDS: u64 = 3_155_760_000;

/// Everything that can be chosen.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Where it listens and how the world sees it.
    pub server: ServerSection,
    /// Where the data lies.
    pub storage: StorageSection,
    /// How messages are made.
    pub messages: MessagesSection,
    /// Where files lie, and how large they may be.
    pub files: FilesSection,
    /// How long rows are kept.
    pub retention: RetentionSection,
    /// The index of words.
    pub search: SearchSection,
    /// How writes are queued.
    pub queues: QueuesSection,
    /// Where numbers come from.
    pub sequence: SequenceSection,
    /// Passwords and sessions.
    pub accounts: AccountsSection,
    /// The limits of one caller's requests.
    pub limits: LimitsSection,
    /// Devices that are told while no page is open.
    pub push: PushSection,
    /// Where tables are served.
    pub table: TableSection,
    /// Access to the metrics.
    pub metrics: MetricsSection,
    /// The lines on standard error.
    pub log: LogSection,
}

/// The configuration cannot be used; the text says where and what to do.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file is missing or unreadable.
    #[error("cannot read the configuration file {}: {why}", path.display())]
    File {
        /// The file asked for.
        path: PathBuf,
        /// The system's error.
        why: std::io::Error,
    },
    /// The file is not what it should be.
    #[error("{} line {line}: {why}", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// The fault there.
        why: String,
    },
    /// A variable names a key that does not exist, or its value has the wrong type.
    #[error("{name}: {why}")]
    Variable {
        /// The environment variable.
        name: String,
        /// The fault of the variable or its value.
        why: String,
    },
    /// A value is outside its range.
    #[error("[{section}] {key}: {why}")]
    Value {
        /// The section's name.
        section: &'static str,
        /// The key's name.
        key: &'static str,
        /// The value's rule.
        why: String,
    },
}

impl Config {
    /// Asks each section whether its values make sense.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.server.check()?;
        self.storage.check()?;
        self.files.check()?;
        self.retention.check()?;
        self.queues.check()?;
        self.sequence.check()?;
        self.accounts.check()?;
        self.limits.check()?;
        self.table.check()?;
        self.metrics.check()?;
        self.log.check()?;
        self.check_messages()
    }

    /// The effective configuration as TOML, without the password of the database.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("sections are plain tables of numbers and texts")
    }
}

/// Refuses a number outside `range`.
fn within<T: PartialOrd + std::fmt::Display>(
    section: &'static str,
    key: &'static str,
    value: T,
    range: std::ops::RangeInclusive<T>,
) -> Result<(), ConfigError> {
    if range.contains(&value) {
        return Ok(());
    }
    let why = format!("is {value}; choose {} to {}", range.start(), range.end());
    Err(ConfigError::Value { section, key, why })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_file_lists_every_key_with_its_default() {
        let example = include_str!("../../../docs/tidemark.example.toml");
        let written: toml::Table = toml::from_str(example).expect("the example is TOML");
        let defaults = toml::Table::try_from(Config::default()).expect("plain tables");
        for (section, keys) in &defaults {
            for (key, value) in keys.as_table().expect("a section") {
                assert_eq!(written.get(section).and_then(|s| s.get(key)), Some(value), "[{section}] {key}");
            }
        }
        let read: Config = toml::from_str(example).expect("no unknown key");
        assert_eq!(read, Config::default());
    }

    #[test]
    fn defaults_pass_their_own_check() {
        Config::default().check().expect("defaults are good");
    }

    #[test]
    fn a_cluster_needs_a_client_configuration_and_nothing_else_does() {
        let mut config = Config::default();
        config.sequence.source = SequenceSource::Cluster;
        let reported = config.check().expect_err("no file").to_string();
        assert!(reported.starts_with("[sequence] client_config: is empty"), "{reported}");
        config.sequence.client_config = "client.toml".into();
        config.check().expect("good");
        config.sequence.source = SequenceSource::Embedded;
        assert!(config.check().is_err());
    }

    #[test]
    fn a_value_out_of_range_is_refused_by_name() {
        let mut config = Config::default();
        config.limits.text_characters = 0;
        let reported = config.check().expect_err("zero").to_string();
        assert_eq!(reported, "[limits] text_characters: is 0; choose 1 to 10000");
    }
}
