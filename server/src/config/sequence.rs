//! `[sequence]`: where numbers come from (S1) and, when this server makes them itself, how they are set aside (S3, S4).
//! The latter are compared with what is stored.

use serde::{Deserialize, Serialize};

use super::{ConfigError, within};

/// Where numbers come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SequenceSource {
    /// From this process, with ceilings in a file beside the database.
    #[default]
    Embedded,
    /// From a seqsvr cluster.
    Cluster,
}

/// Where numbers come from, and how they are set aside.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SequenceSection {
    /// The service that makes them.
    pub source: SequenceSource,
    /// For `cluster`: the client configuration, a file as docs/CLUSTER-CLIENT.md describes it.
    pub client_config: String,
    /// Adjacent uids that share one ceiling; with a cluster, the cluster's.
    pub section_size: u32,
    /// For `embedded`: by how much a ceiling is raised.
    pub step: u32,
}

impl Default for SequenceSection {
    fn default() -> Self {
        SequenceSection {
            source: SequenceSource::Embedded,
            client_config: String::new(),
            section_size: 100_000,
            step: 10_000,
        }
    }
}

impl SequenceSection {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let (cluster, named) = (self.source == SequenceSource::Cluster, !self.client_config.is_empty());
        if cluster != named {
            let why = match cluster {
                true => "is empty; with source = \"cluster\" it names the cluster's client configuration",
                false => "is only for source = \"cluster\"; set that too, or leave it empty",
            };
            return Err(ConfigError::Value {
                section: "sequence",
                key: "client_config",
                why: why.to_owned(),
            });
        }
        within("sequence", "section_size", self.section_size, 10_000..=1 << 31)?;
        within("sequence", "step", self.step, 2..=1_000_000_000)
    }
}
