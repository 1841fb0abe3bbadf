//! `[messages]`: the source of the ids of messages. The source of the data is stored with them, and compared at each start.

use serde::{Deserialize, Serialize};

use super::{Config, ConfigError, DatabaseKind, MOST_SECONDS, SequenceSource};
use crate::queue;

/// The source of the ids of messages, as it is written in the configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MessageIdsSetting {
    /// As the installation was made; a new one has `seqsvr` on SQLite and `store` on PostgreSQL.
    #[default]
    Auto,
    /// The database.
    Store,
    /// The sequence service.
    Seqsvr,
}

/// The source of the ids of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageIds {
    /// The database, in the transaction that stores the rows (S19).
    Store,
    /// The sequence service that `[sequence]` describes.
    Seqsvr,
}

impl MessageIds {
    /// Stored in the database; must stay stable.
    pub fn as_str(self) -> &'static str {
        match self {
            MessageIds::Store => "store",
            MessageIds::Seqsvr => "seqsvr",
        }
    }
}

/// How messages are made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MessagesSection {
    /// The source of their ids.
    pub ids: MessageIdsSetting,
    /// Seconds for which a message may be edited; 0: not at all.
    pub edit_seconds: u64,
    /// Seconds for which a message may be taken back; 0: not at all.
    pub recall_seconds: u64,
    /// Whether people are shown who is typing.
    pub typing: bool,
    /// Whether people are shown who is online.
    pub presence: bool,
}

impl Default for MessagesSection {
    fn default() -> MessagesSection {
        let queue = queue::Options::default();
        MessagesSection {
            ids: MessageIdsSetting::default(),
            edit_seconds: queue.edit.as_secs(),
            recall_seconds: queue.recall.as_secs(),
            typing: true,
            presence: true,
        }
    }
}

impl Config {
    /// The source of the ids of messages; where it is left open, the one of a new installation.
    pub fn message_ids(&self) -> MessageIds {
        match (self.messages.ids, self.storage.database_url.kind()) {
            (MessageIdsSetting::Seqsvr, _) | (MessageIdsSetting::Auto, DatabaseKind::Sqlite) => {
                MessageIds::Seqsvr
            }
            (MessageIdsSetting::Store, _) | (MessageIdsSetting::Auto, DatabaseKind::Postgres) => {
                MessageIds::Store
            }
        }
    }

    /// Whether the times are in range, and the source of ids fits the database and the sequence service.
    pub(super) fn check_messages(&self) -> Result<(), ConfigError> {
        let refuse = |section, key, why: &str| Err(ConfigError::Value { section, key, why: why.to_owned() });
        let MessagesSection { edit_seconds, recall_seconds, .. } = self.messages;
        for (key, seconds) in [("edit_seconds", edit_seconds), ("recall_seconds", recall_seconds)] {
            if seconds > MOST_SECONDS {
                return refuse("messages", key, &format!("is {seconds}; it may be 0 to {MOST_SECONDS}"));
            }
        }
        match self.message_ids() {
            MessageIds::Seqsvr if self.storage.database_url.kind() == DatabaseKind::Postgres => refuse(
                "messages",
                "ids",
                "is \"seqsvr\", but on PostgreSQL the database assigns the ids; set \"store\", or leave it out",
            ),
            MessageIds::Store if self.sequence.source == SequenceSource::Cluster => refuse(
                "sequence",
                "source",
                "is \"cluster\", but the database assigns the ids of messages, so no cluster is asked; remove the section [sequence]",
            ),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(url: &str, ids: MessageIdsSetting) -> Config {
        let mut config = Config::default();
        config.storage.database_url = url.into();
        config.messages.ids = ids;
        config
    }

    #[test]
    fn the_database_assigns_the_ids_on_postgres_and_the_sequence_service_on_sqlite() {
        use MessageIdsSetting::{Auto, Seqsvr, Store};
        for (url, ids, by) in [
            ("", Auto, MessageIds::Seqsvr),
            ("", Seqsvr, MessageIds::Seqsvr),
            ("sqlite:a.db", Store, MessageIds::Store),
            ("postgres://db/x", Auto, MessageIds::Store),
            ("postgresql://db/x", Store, MessageIds::Store),
        ] {
            let config = with(url, ids);
            config.check().expect("good");
            assert_eq!(config.message_ids(), by, "{url} {ids:?}");
        }
        let said = with("postgres://db/x", Seqsvr).check().expect_err("refused").to_string();
        assert!(said.starts_with("[messages] ids: is \"seqsvr\""), "{said}");
    }

    #[test]
    fn a_cluster_that_nobody_would_ask_is_refused() {
        let mut config = with("", MessageIdsSetting::Store);
        config.sequence.source = SequenceSource::Cluster;
        config.sequence.client_config = "client.toml".into();
        let said = config.check().expect_err("refused").to_string();
        assert!(said.starts_with("[sequence] source: is \"cluster\""), "{said}");
    }
}
