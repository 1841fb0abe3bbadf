//! `seqsvr verify FILE...`: whether the files of the roles fit the stores.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use serde_json::json;

use super::{ExitError, load};
use seqsvr_client::ClientConfig;
use seqsvr_cluster::alloc::config::AllocConfig;
use seqsvr_cluster::arbiter::config::ArbiterConfig;
use seqsvr_cluster::replica::StoreConfig;
use seqsvr_cluster::store::Stores;
use seqsvr_cluster::store::quorum::Quorum;
use seqsvr_core::routing::Table;
use seqsvr_core::store::tables::{Revisions, RoutingTableStore as _};
use seqsvr_core::store::{Configuration, Layout};

const EXAMPLES: &str = "\
Examples:
  seqsvr verify arbiter0.toml alloc1.toml alloc2.toml store1.toml client.toml
  seqsvr verify /etc/seqsvr/*.toml --json
Name the file of an arbiter or an AllocSvr of each Set: it says how to reach the stores. Run it where the addresses \
in the files lead to these processes. Exit codes: 0 everything matches, 1 something does not.";

/// A Set by the name of its cluster and its number.
type SetName = (String, u32);

/// The flags of the command.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct VerifyArgs {
    /// Configuration files of arbiters, AllocSvrs, stores and clients
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A file, by its role.
enum RoleFile {
    Arbiter(Box<ArbiterConfig>),
    Alloc(Box<AllocConfig>),
    Store(Box<StoreConfig>),
    Client(Box<ClientConfig>),
}

/// A Set, as its stores say.
#[derive(Clone)]
struct StoredSet {
    configuration: Option<Arc<Configuration>>,
    table: Option<Arc<Table>>,
}

type Sets = BTreeMap<SetName, StoredSet>;

/// Prints the settings that do not fit, file by file.
pub(super) async fn run(args: VerifyArgs) -> Result<(), ExitError> {
    let roles =
        args.files.iter().map(|file| Ok((file, read(file)?))).collect::<Result<Vec<_>, ExitError>>()?;
    let mut sets = Sets::new();
    for (_, role) in &roles {
        for (key, stores) in role.stores()? {
            if let (Some(quorum), false) = (stores.quorum, sets.contains_key(&key)) {
                sets.insert(key, StoredSet::look(quorum).await);
            }
        }
    }
    let mut all = Vec::new();
    for (file, role) in &roles {
        let is_compared = role.stores()?.iter().all(|(_, stores)| stores.quorum.is_some());
        all.push((file.display().to_string(), role.misfits(&sets).await?, is_compared));
    }
    let wrong = all.iter().filter(|(_, lines, _)| !lines.is_empty()).count();
    if args.json {
        let files = all.iter().map(
            |(file, lines, is_compared)| json!({"file": file, "misfits": lines, "compared": is_compared}),
        );
        println!("{}", files.collect::<serde_json::Value>());
    } else {
        for (file, lines, is_compared) in &all {
            match &lines[..] {
                [] if !is_compared => println!("{file}: not compared, since etcd keeps no configuration"),
                [] => println!("{file}: fits"),
                lines => lines.iter().for_each(|line| println!("{file}: {line}")),
            }
        }
    }
    match wrong {
        0 => Ok(()),
        _ => Err(ExitError::failed(format!("{wrong} of {} files do not match what is stored", all.len()))),
    }
}

/// Tells by the sections that only one role has.
fn read(file: &Path) -> Result<RoleFile, ExitError> {
    let text = std::fs::read_to_string(file);
    let text = text.map_err(|why| ExitError::usage(format!("cannot read {}: {why}", file.display())))?;
    let table: toml::Table =
        text.parse().map_err(|why| ExitError::usage(format!("{}: {why}", file.display())))?;
    let sets = table.get("sets").and_then(|sets| sets.as_array()?.first()?.as_table());
    Ok(match sets {
        Some(set) if set.contains_key("stores") => RoleFile::Alloc(Box::new(load(file)?)),
        Some(_) => RoleFile::Client(Box::new(ClientConfig::read(file).map_err(ExitError::usage)?)),
        None if table.contains_key("allocators") => RoleFile::Arbiter(Box::new(load(file)?)),
        None if table.contains_key("directory") => RoleFile::Store(Box::new(load(file)?)),
        None => {
            let file = file.display();
            return Err(ExitError::usage(format!(
                "{file} is not the configuration of an arbiter, AllocSvr, store or client of a cluster"
            )));
        }
    })
}

impl StoredSet {
    async fn look(quorum: Arc<Quorum>) -> Self {
        let reading = quorum.read_table(&Revisions::default(), Duration::ZERO).await.ok();
        let configuration = quorum.configuration();
        Self { configuration, table: reading.and_then(|reading| reading.table) }
    }
}

impl RoleFile {
    /// The stores that the file names, by cluster and Set.
    fn stores(&self) -> Result<Vec<(SetName, Stores)>, ExitError> {
        let open = |stores: &seqsvr_cluster::store::StoresConfig, cluster: &str, set: u32| {
            Ok(((cluster.to_owned(), set), stores.open(cluster, set).map_err(ExitError::usage)?))
        };
        match self {
            Self::Arbiter(config) => Ok(vec![open(&config.stores, &config.cluster, config.set.number)?]),
            Self::Alloc(config) => {
                config.sets.iter().map(|set| open(&set.stores, &config.cluster, set.number)).collect()
            }
            Self::Store(_) | Self::Client(_) => Ok(Vec::new()),
        }
    }

    async fn misfits(&self, sets: &Sets) -> Result<Vec<String>, ExitError> {
        let mut lines = Vec::new();
        for (_, stores) in self.stores()? {
            if let Some(quorum) = stores.quorum {
                lines.extend(quorum.misfits().await);
            }
        }
        let of = |cluster: &str, set: u32| sets.get(&(cluster.to_owned(), set));
        match self {
            Self::Arbiter(config) => {
                if let Some(stored) = of(&config.cluster, config.set.number) {
                    let terms = config.terms().map_err(ExitError::usage)?;
                    lines.extend(stored.differs(terms.layout));
                    lines.extend(stored.uids(&terms.uids));
                    lines.extend(config.allocators.iter().filter_map(|one| stored.stranger(&one.addr)));
                }
            }
            Self::Alloc(config) => {
                for settings in config.settings(0).map_err(ExitError::usage)? {
                    if let Some(stored) = of(&config.cluster, settings.set) {
                        lines.extend(stored.differs(settings.options.layout()));
                        lines.extend(stored.unknown_node(config.name()));
                    }
                }
            }
            Self::Store(config) => match of(&config.cluster, config.set) {
                Some(stored) => lines.extend(stored.store(config)),
                None => lines.push(format!(
                    "no file says how to reach Set {} of cluster {}; name the file of one of its arbiters, too",
                    config.set, config.cluster
                )),
            },
            Self::Client(config) => {
                for set in &config.sets {
                    let named = sets.iter().find(|((_, number), _)| *number == set.number);
                    match named {
                        Some((_, stored)) => {
                            lines.extend(stored.uids(&(set.first_uid..=set.last_uid)));
                            lines.extend(set.allocators.iter().filter_map(|addr| stored.stranger(addr)));
                        }
                        None => lines.push(format!(
                            "no file says how to reach Set {}; name the file of one of its arbiters, too",
                            set.number
                        )),
                    }
                }
            }
        }
        Ok(lines)
    }
}

impl StoredSet {
    fn differs(&self, layout: Layout) -> Option<String> {
        self.configuration.as_ref()?.differs(layout)
    }

    fn uids(&self, uids: &std::ops::RangeInclusive<u32>) -> Option<String> {
        let stored = &self.configuration.as_ref()?.uids;
        (stored != uids).then(|| {
            let (first, last) = (stored.start(), stored.end());
            format!(
                "first_uid and last_uid are {} and {}, but the Set has {first} and {last}",
                uids.start(),
                uids.end()
            )
        })
    }

    /// An AllocSvr that the table does not know is given nothing.
    fn stranger(&self, addr: &str) -> Option<String> {
        let table = self.table.as_ref()?;
        let known = table.nodes.iter().any(|node| node.addr == addr);
        (!known).then(|| {
            format!(
                "the routing table has no AllocSvr at {addr}; correct it, or add it: seqsvr add NAME {addr}"
            )
        })
    }

    fn unknown_node(&self, name: &str) -> Option<String> {
        let table = self.table.as_ref()?;
        let known = table.nodes.iter().any(|node| node.name == name);
        (!known)
            .then(|| format!("the routing table has no AllocSvr {name}; add it: seqsvr add {name} ADDRESS"))
    }

    fn store(&self, config: &StoreConfig) -> Vec<String> {
        let mut lines = Vec::new();
        let Some(stored) = &self.configuration else { return lines };
        let layout = Layout { section_size: config.section_size, step: config.step };
        lines.extend(stored.differs(layout));
        match stored.named(&config.name) {
            None => lines.push(format!(
                "{} is not a member of configuration {}; add it, or stop it and remove its files",
                config.name, stored.number
            )),
            Some(member) => match config.stored_id() {
                Ok(Some(id)) if id != member.id => lines.push(format!(
                    "{} does not hold the files of the member {}, but those of a store that was replaced, or that was not added yet",
                    config.directory.display(),
                    member.name
                )),
                Ok(_) => {}
                Err(why) => lines.push(why),
            },
        }
        lines
    }
}
