//! Which stores keep a Set: the section `[stores]` of AllocSvrs and arbiters, checked and opened in one place.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use thiserror::Error;

use super::SectionStore;
use super::quorum::{Link, Quorum, Remote, Sizes, SizesError};
use super::tables::TableStore;
use crate::rpc::security::{Call, CallConfig, SecurityError};

/// The section `[stores]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoresConfig {
    /// The StoreSvrs: `http://host:port` or `https://host:port`, N different ones.
    pub replicas: Vec<String>,
    /// How many must answer a read. Default: a majority.
    pub read: Option<usize>,
    /// How many must answer a write. Default: a majority.
    pub write: Option<usize>,
    /// How long one question may take, in milliseconds: 1 to 60,000. Default 500.
    #[serde(default = "default_patience")]
    pub patience_ms: u64,
    /// Whom to trust and which token to bring.
    #[serde(default)]
    pub security: CallConfig,
}

fn default_patience() -> u64 {
    500
}

/// What is wrong with the section.
#[derive(Debug, Error)]
pub enum StoresError {
    /// N, R and W do not fit together.
    #[error("[stores]: {0}")]
    Sizes(#[from] SizesError),
    /// One replica stands twice: it would have two votes.
    #[error("[stores]: replica {0} is listed twice")]
    Twice(String),
    /// The patience is out of range.
    #[error("[stores]: patience_ms = {0} is not within 1 and 60000")]
    Patience(u64),
    /// Certificates, tokens or addresses are wrong.
    #[error("[stores]: {0}")]
    Security(#[from] SecurityError),
}

/// The stores of one Set, open.
#[derive(Clone)]
pub struct Stores {
    /// Where ceilings are.
    pub sections: Arc<dyn SectionStore>,
    /// Where the routing table is.
    pub tables: Arc<dyn TableStore>,
}

impl StoresConfig {
    /// The stores of Set `set` of `cluster`. Nothing is connected yet.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong.
    pub fn open(&self, cluster: &str, set: u32) -> Result<Stores, StoresError> {
        let majority = Sizes::majority(self.replicas.len())?;
        let (read, write) = (self.read.unwrap_or(majority.r()), self.write.unwrap_or(majority.w()));
        let sizes = Sizes::new(self.replicas.len(), read, write)?;
        if !(1..=60_000).contains(&self.patience_ms) {
            return Err(StoresError::Patience(self.patience_ms));
        }
        let patience = Duration::from_millis(self.patience_ms);
        let call = Call::load(&self.security)?;
        let mut links: Vec<Arc<dyn Link>> = Vec::new();
        for (index, addr) in self.replicas.iter().enumerate() {
            if self.replicas[..index].contains(addr) {
                return Err(StoresError::Twice(addr.clone()));
            }
            links.push(Arc::new(Remote::new(addr, &call, cluster, set, patience)?));
        }
        let quorum = Arc::new(Quorum::new(links, sizes, patience)?);
        Ok(Stores { sections: Arc::clone(&quorum) as Arc<dyn SectionStore>, tables: quorum })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        let config: StoresConfig = toml::from_str(text).expect("the section can be read");
        config.open("test", 0).err().expect("it is refused").to_string()
    }

    #[tokio::test]
    async fn sizes_that_do_not_fit_are_refused() {
        let three = r#"replicas = ["http://127.0.0.1:1", "http://127.0.0.1:2", "http://127.0.0.1:3"]"#;
        let sound: StoresConfig = toml::from_str(three).unwrap();
        assert!(sound.open("test", 0).is_ok());
        assert!(refusal(&format!("{three}\nread = 1\nwrite = 2")).contains("R + W must be larger than N"));
        assert!(refusal(&format!("{three}\nread = 3\nwrite = 1")).contains("W must be larger than N / 2"));
        assert!(refusal(&format!("{three}\npatience_ms = 0")).contains("patience_ms = 0"));
        assert!(refusal("replicas = []").contains("N must be 1 to 15"));
        let twice = r#"replicas = ["http://127.0.0.1:1", "http://127.0.0.1:1"]"#;
        assert!(refusal(twice).contains("listed twice"));
        assert!(refusal(r#"replicas = ["http://10.1.1.1:1"]"#).contains("not a loopback address"));
    }
}
