//! The command lines of etcd members in the place of StoreSvrs.

use std::path::Path;

/// Votes are called early, so that a dead leader costs less than a lease.
const TIMING: [&str; 4] = ["--heartbeat-interval", "50", "--election-timeout", "500"];

/// One member, before the others are known.
#[derive(Clone, Debug)]
pub(super) struct EtcdMember {
    pub(super) name: String,
    /// Where clients find it: `host:port`.
    pub(super) addr: String,
    /// Where it listens for the other members.
    pub(super) peer: String,
    /// Where the other members find it.
    pub(super) peer_seen: String,
}

impl EtcdMember {
    /// The words that start it among `all`.
    pub(super) fn words(&self, all: &[EtcdMember], folder: &Path) -> Vec<String> {
        let url = |addr: &str| format!("http://{addr}");
        let cluster: Vec<String> =
            all.iter().map(|one| format!("{}={}", one.name, url(&one.peer_seen))).collect();
        let data = folder.join(&self.name).display().to_string();
        let options = [
            ("--name", self.name.clone()),
            ("--data-dir", data),
            ("--listen-client-urls", url(&self.addr)),
            ("--advertise-client-urls", url(&self.addr)),
            ("--listen-peer-urls", url(&self.peer)),
            ("--initial-advertise-peer-urls", url(&self.peer_seen)),
            ("--initial-cluster", cluster.join(",")),
            ("--initial-cluster-state", "new".to_owned()),
            ("--logger", "zap".to_owned()),
            ("--log-level", "warn".to_owned()),
        ];
        let words = options.into_iter().flat_map(|(option, value)| [option.to_owned(), value]);
        words.chain(TIMING.map(str::to_owned)).collect()
    }
}

/// Whether this program is in the path.
pub fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}
