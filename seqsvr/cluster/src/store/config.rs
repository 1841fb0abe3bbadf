//! Which stores keep a Set: the section `[stores]` of AllocSvrs and arbiters, checked and opened in one place. Either
//! names StoreSvrs or an etcd cluster.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use thiserror::Error;

use super::etcd::EtcdStore;
use crate::store::quorum::{Link, Quorum, Remote, Ways};
use seqsvr_core::store::tables::RoutingTableStore;
use seqsvr_core::store::{Layout, SectionStore, SetTerms, StoreError};
use seqsvr_core::store::{Sizes, SizesError};
use seqsvr_etcd::EtcdConfig;
use seqsvr_rpc::security::{Call, CallConfig, SecurityError};

/// The section `[stores]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoresConfig {
    /// The StoreSvrs: `http://host:port` or `https://host:port`, N different ones.
    #[serde(default)]
    pub replicas: Vec<String>,
    /// W: how many must answer a call, reads too. Default: a majority.
    pub write: Option<usize>,
    /// How long one question may take, in milliseconds: 1 to 5,000. Default 500. With etcd, how long one member may take before the
    /// next is asked.
    #[serde(default = "default_patience")]
    pub patience_ms: u64,
    /// The authority to trust, and the token to bring.
    #[serde(default)]
    pub security: CallConfig,
    /// In place of StoreSvrs.
    pub etcd: Option<EtcdConfig>,
}

/// The largest patience.
pub const LONGEST_PATIENCE: Duration = Duration::from_secs(5);

fn default_patience() -> u64 {
    500
}

/// A mistake in the section.
#[derive(Debug, Error)]
pub enum StoresError {
    /// N and W do not fit together.
    #[error("[stores]: {0}")]
    Sizes(#[from] SizesError),
    /// One replica stands twice: it would have two votes.
    #[error("[stores]: replica {0} is listed twice")]
    Twice(String),
    /// The patience is out of range.
    #[error("[stores]: patience_ms = {0} is not between 1 and 5000")]
    Patience(u64),
    /// Certificates, tokens or addresses are wrong.
    #[error("[stores]: {0}")]
    Security(#[from] SecurityError),
    /// Both kinds of stores are named.
    #[error("[stores]: name either replicas or etcd, not both")]
    Both,
    /// etcd cannot be used.
    #[error("[stores.etcd]: {0}")]
    Etcd(String),
}

/// The stores of one Set, open.
#[derive(Clone)]
pub struct Stores {
    /// Where ceilings are.
    pub sections: Arc<dyn SectionStore>,
    /// Where the routing table is.
    pub tables: Arc<dyn RoutingTableStore>,
    /// Both, where they are StoreSvrs: they have a configuration.
    pub quorum: Option<Arc<Quorum>>,
    /// Both, where they are etcd.
    pub etcd: Option<Arc<EtcdStore>>,
}

impl Stores {
    /// Makes sure that this role's file says the same as the stores.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`]: one line that says what differs, or that nothing is stored yet.
    pub(crate) async fn agree(&self, layout: Layout) -> Result<(), StoreError> {
        match (&self.quorum, &self.etcd) {
            (Some(quorum), _) => quorum.agree(layout).await,
            (None, Some(etcd)) => etcd.agree(layout).await,
            (None, None) => Ok(()),
        }
    }

    /// Stores the first configuration of a new Set; where one is stored, that stays.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`]: one line that says what is missing; to be called again.
    pub async fn establish(&self, terms: &SetTerms) -> Result<(), StoreError> {
        match (&self.quorum, &self.etcd) {
            (Some(quorum), _) => quorum.establish(terms).await,
            (None, Some(etcd)) => etcd.establish(terms).await,
            (None, None) => Ok(()),
        }
    }
}

impl StoresConfig {
    /// The same for a command that asks for much at once, and whose caller may wait.
    #[must_use]
    pub fn patient(&self) -> Self {
        Self { patience_ms: LONGEST_PATIENCE.as_millis() as u64, ..self.clone() }
    }

    /// The stores of Set `set` of `cluster`. Nothing is connected yet.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong.
    pub fn open(&self, cluster: &str, set: u32) -> Result<Stores, StoresError> {
        if !(1..=LONGEST_PATIENCE.as_millis() as u64).contains(&self.patience_ms) {
            return Err(StoresError::Patience(self.patience_ms));
        }
        match &self.etcd {
            Some(_) if !self.replicas.is_empty() => Err(StoresError::Both),
            Some(etcd) => open_etcd(etcd, cluster, set, Duration::from_millis(self.patience_ms)),
            None => self.open_quorum(cluster, set),
        }
    }

    fn open_quorum(&self, cluster: &str, set: u32) -> Result<Stores, StoresError> {
        let majority = Sizes::majority(self.replicas.len())?;
        let sizes = Sizes::new(self.replicas.len(), self.write.unwrap_or(majority.w()))?;
        let patience = Duration::from_millis(self.patience_ms);
        let call = Call::load(&self.security)?;
        let mut links: Vec<(String, Arc<dyn Link>)> = Vec::new();
        for (index, addr) in self.replicas.iter().enumerate() {
            if self.replicas[..index].contains(addr) {
                return Err(StoresError::Twice(addr.clone()));
            }
            links.push((addr.clone(), Arc::new(Remote::new(addr, &call, cluster, set, patience)?)));
        }
        let cluster = cluster.to_owned();
        let dial = move |addr: &str| match Remote::new(addr, &call, &cluster, set, patience) {
            Ok(link) => Ok(Arc::new(link) as Arc<dyn Link>),
            Err(why) => Err(why.to_string()),
        };
        let quorum = Arc::new(Quorum::over(Ways::new(links, self.write, Box::new(dial)), sizes, patience));
        let (sections, tables) = (Arc::clone(&quorum) as Arc<dyn SectionStore>, Arc::clone(&quorum) as _);
        Ok(Stores { sections, tables, quorum: Some(quorum), etcd: None })
    }
}

fn open_etcd(etcd: &EtcdConfig, cluster: &str, set: u32, patience: Duration) -> Result<Stores, StoresError> {
    let store = EtcdStore::open(etcd, &format!("seqsvr/{cluster}/{set}"), patience);
    let store = Arc::new(store.map_err(|error| StoresError::Etcd(error.to_string()))?);
    let (sections, tables) = (Arc::clone(&store) as Arc<dyn SectionStore>, Arc::clone(&store) as _);
    Ok(Stores { sections, tables, quorum: None, etcd: Some(store) })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

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
        assert!(refusal(&format!("{three}\nwrite = 1")).contains("set write = 2 or more"));
        assert!(refusal(&format!("{three}\npatience_ms = 0")).contains("patience_ms = 0"));
        assert!(refusal("replicas = []").contains("N must be 1 to 15"));
        let twice = r#"replicas = ["http://127.0.0.1:1", "http://127.0.0.1:1"]"#;
        assert!(refusal(twice).contains("listed twice"));
        assert!(refusal(r#"replicas = ["http://10.1.1.1:1"]"#).contains("not a loopback address"));
        assert!(refusal(&format!("{three}\n[etcd]\nendpoints = []")).contains("either replicas or etcd"));
    }

    #[tokio::test]
    async fn what_etcd_cannot_be_reached_by_is_refused() {
        let refusal = |keys: &str| refusal(&format!("[etcd]\n{keys}"));
        assert!(refusal("endpoints = []").contains("1 to 15 endpoints"));
        assert!(refusal(r#"endpoints = ["http://10.1.1.1:2379"]"#).contains("not a loopback address"));
        assert!(refusal(r#"endpoints = ["http://127.0.0.1:1", "http://127.0.0.1:1"]"#).contains("twice"));
        let half = "endpoints = [\"http://127.0.0.1:1\"]\nkey = \"key.pem\"";
        assert!(refusal(half).contains("set both certificate and key"));
        let folder = tempfile::tempdir().unwrap();
        let certificates = tidemark_test_support::servers::certificates::issue(folder.path());
        let refusal_with = |scheme: &str, authority: &Path, key: Option<&Path>| {
            let shown = key
                .map(|key| format!("certificate = {:?}\nkey = {key:?}", certificates.certificate))
                .unwrap_or_default();
            refusal(&format!("endpoints = [\"{scheme}://127.0.0.1:1\"]\nauthority = {authority:?}\n{shown}"))
        };
        assert!(
            refusal_with("http", &certificates.authority, None)
                .contains("write https://, or leave out authority")
        );
        let wrong = refusal_with("https", &certificates.authority, Some(&certificates.authority));
        assert!(wrong.contains("the certificates cannot be used"), "{wrong}");
        let shown = format!("certificate = {:?}\nkey = {:?}", certificates.certificate, certificates.key);
        let unused = refusal(&format!("endpoints = [\"http://127.0.0.1:1\"]\n{shown}"));
        assert!(unused.contains("set authority"), "{unused}");
        let nowhere = "endpoints = [\"https://127.0.0.1:1\"]\nauthority = \"/nowhere/ca.pem\"";
        assert!(refusal(nowhere).contains("cannot read /nowhere/ca.pem"));
    }
}
