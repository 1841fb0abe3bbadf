//! `seqsvr backup FILE` and `seqsvr restore FILE`: the data that must outlive the loss of all stores of a Set, for every
//! kind of store.

use std::io::{self, Write as _};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;

use clap::{ArgGroup, Args};
use serde_json::{Value, json};

use super::{ExitError, load};
use seqsvr_cluster::arbiter::config::ArbiterConfig;
use seqsvr_cluster::store::Stores;
use seqsvr_cluster::store::backup_file::BackupFile;
use seqsvr_cluster::store::quorum::{ChangedConfiguration, Moved, Quorum};
use seqsvr_core::flaws::Flaws;
use seqsvr_core::store::backup::{AHEAD, Restoring, restore};
use seqsvr_core::store::configuration::Given;
use seqsvr_core::store::sqlite::SqliteSections;
use seqsvr_core::store::tables::RoutingTableStore;
use seqsvr_core::store::{Move, SectionStore, SetTerms, StoreError};

const BACKUP: &str = "\
Examples:
  seqsvr backup set0.backup --config arbiter0.toml       of StoreSvrs or etcd, while the cluster serves
  seqsvr backup shop.backup --sqlite sequences.db        of a program that embeds the allocator and is stopped
  seqsvr backup moved.uids --uids 500000-999999 --to 1 --config set0-arbiter0.toml
The last one moves uids to Set 1. Stop all arbiters and AllocSvrs of both Sets first. Then Set 0 no longer has the \
uids, and `seqsvr restore moved.uids --config set1-arbiter0.toml` gives them to Set 1, once. If it is interrupted or \
fails, run it again.
The file is JSON Lines with a checksum, and only its owner can read it. It is written completely or not at all, and never replaces another.";

const RESTORE: &str = "\
Examples:
  seqsvr restore set0.backup --config arbiter0.toml      into new stores, all arbiters and AllocSvrs stopped
  seqsvr restore set0.backup --config arbiter0.toml --ahead 1000000000
  seqsvr restore set0.backup --config arbiter0.toml --into-used     raises what is lower, lowers nothing
  seqsvr restore moved.uids --config set1-arbiter0.toml             uids of another Set, from `backup --uids`
Numbers that were handed out after the backup do not come again, as long as fewer than --ahead were handed out to each user.";

/// The stores.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("stores").required(true).args(["config", "sqlite"]))]
struct Which {
    /// The configuration of an arbiter of the Set, which names its stores
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// A SQLite file with sections
    #[arg(long, value_name = "FILE")]
    sqlite: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The flags of `backup`.
#[derive(Debug, Args)]
#[command(after_help = BACKUP)]
pub(super) struct BackupArgs {
    /// The file to write; it must not exist
    file: PathBuf,
    /// Move these uids to another Set: whole sections at one end of the Set's range
    #[arg(long, value_name = "A-B", value_parser = range, requires = "to", requires = "config")]
    uids: Option<RangeInclusive<u32>>,
    /// The number of the Set that gets them
    #[arg(long, value_name = "SET", requires = "uids")]
    to: Option<u32>,
    #[command(flatten)]
    which: Which,
}

/// Two uids, `500000-999999`.
fn range(text: &str) -> Result<RangeInclusive<u32>, String> {
    let ends = text.split_once('-').and_then(|(first, last)| Some(first.parse().ok()?..=last.parse().ok()?));
    ends.filter(|uids| !uids.is_empty())
        .ok_or_else(|| "write the first and the last uid: 500000-999999".to_owned())
}

/// The flags of `restore`.
#[derive(Debug, Args)]
#[command(after_help = RESTORE)]
pub(super) struct RestoreArgs {
    /// A file that `seqsvr backup` wrote
    file: PathBuf,
    /// How many numbers every section skips above the backup
    #[arg(long, value_name = "N", default_value_t = AHEAD)]
    ahead: u64,
    /// Restore into stores that are in use, too: nothing is lowered
    #[arg(long)]
    into_used: bool,
    #[command(flatten)]
    which: Which,
}

/// Stores, and the names of their cluster and Set.
struct NamedStores {
    cluster: String,
    set: u32,
    sections: Arc<dyn SectionStore>,
    tables: Option<Arc<dyn RoutingTableStore>>,
    /// Of a cluster: its stores, and the terms of a new Set of them.
    new: Option<(Stores, SetTerms)>,
}

impl Which {
    async fn open(&self) -> Result<NamedStores, ExitError> {
        let alone =
            |sections| NamedStores { cluster: String::new(), set: 0, sections, tables: None, new: None };
        match self {
            Self { config: Some(config), .. } => {
                let config: ArbiterConfig = load(config)?;
                let terms = config.terms().map_err(ExitError::usage)?;
                let (cluster, set) = (config.cluster, config.set.number);
                let stores = config.stores.patient().open(&cluster, set).map_err(ExitError::usage)?;
                let (sections, tables) = (Arc::clone(&stores.sections), Some(Arc::clone(&stores.tables)));
                Ok(NamedStores { cluster, set, sections, tables, new: Some((stores, terms)) })
            }
            Self { sqlite: Some(path), .. } => {
                if !path.is_file() {
                    let path = path.display();
                    return Err(ExitError::usage(format!(
                        "{path} is not a file; name the one that the server keeps sections in"
                    )));
                }
                Ok(alone(Arc::new(SqliteSections::open(path).await.map_err(ExitError::failed)?)))
            }
            _ => Err(ExitError::usage("name the stores with --config or --sqlite")),
        }
    }

    fn answer(&self, text: &str, json: &Value) -> Result<(), ExitError> {
        let line = if self.json { json.to_string() } else { text.to_owned() };
        match writeln!(io::stdout().lock(), "{line}") {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            written => Ok(written?),
        }
    }
}

/// Writes a file with everything that a restore needs.
pub(super) async fn backup(args: BackupArgs) -> Result<(), ExitError> {
    if args.file.exists() {
        let file = args.file.display();
        return Err(ExitError::usage(format!("{file} already exists; name a new file, or move it away")));
    }
    let open = args.which.open().await?;
    if let (Some(uids), Some(to)) = (&args.uids, args.to) {
        return give(&args, &open, uids, to).await;
    }
    let backup = open.sections.backup().await.map_err(|error: StoreError| ExitError::failed(error))?;
    let sections: u64 =
        backup.ceilings.iter().map(|(run, _)| u64::from(run.end().get() - run.start().get()) + 1).sum();
    let highest = backup.ceilings.iter().map(|(_, max)| *max).max().unwrap_or(0);
    let file = BackupFile { cluster: open.cluster, set: open.set, moved: None, backup };
    file.write(&args.file).map_err(ExitError::failed)?;
    let path = args.file.display();
    let text = format!("{path}: {sections} sections with numbers, ceilings up to {highest}");
    let json = json!({"file": path.to_string(), "set": file.set, "sections": sections, "highest": highest.to_string()});
    args.which.answer(&text, &json)
}

impl NamedStores {
    /// The stores of a cluster, if they are StoreSvrs, and the terms of a new Set.
    fn quorum(&self) -> Result<(&Quorum, &SetTerms), ExitError> {
        let new = self.new.as_ref().and_then(|(stores, terms)| Some((stores.quorum.as_deref()?, terms)));
        let why = "uids can be moved only between Sets of StoreSvrs; name an arbiter's file: --config FILE";
        new.ok_or_else(|| ExitError::usage(why))
    }
}

/// Gives uids up, and writes a file with their data. If it is cut off at any moment, run it again.
async fn give(
    args: &BackupArgs,
    open: &NamedStores,
    uids: &RangeInclusive<u32>,
    to: u32,
) -> Result<(), ExitError> {
    if to == open.set {
        return Err(ExitError::usage(format!("--to {to} is the Set that has them; name another one")));
    }
    let moved = open.quorum()?.0.give(uids, open.set, to).await.map_err(ExitError::failed)?;
    let number = moved.by.number;
    let given = Given { uids: uids.clone(), to, number };
    let file =
        BackupFile { cluster: open.cluster.clone(), set: open.set, moved: Some(given), backup: moved.backup };
    file.write(&args.file).map_err(ExitError::failed)?;
    let (path, first, last) = (args.file.display(), uids.start(), uids.end());
    let text = format!(
        "{path}: uids {first} to {last}, which Set {} no longer has. Restore it into Set {to}, and correct first_uid \
         and last_uid in the files of arbiters and clients",
        open.set
    );
    let json = json!({"file": path.to_string(), "set": open.set, "to": to, "first_uid": first, "last_uid": last, "configuration": number});
    args.which.answer(&text, &json)
}

/// Takes uids in that another Set gave up. If it is cut off at any moment, run it again.
async fn take(args: &RestoreArgs, file: BackupFile, given: Given) -> Result<(), ExitError> {
    let open = args.which.open().await?;
    let path = args.file.display();
    if args.into_used || args.ahead != AHEAD {
        return Err(ExitError::usage(format!(
            "{path} holds moved uids, which are restored exactly; leave out --ahead and --into-used"
        )));
    }
    if open.cluster != file.cluster || !given.is_for(open.set, Flaws::default()) {
        return Err(ExitError::usage(format!(
            "{path} is for Set {} of cluster {}, but the configuration is of Set {} of cluster {}; use the right one",
            given.to, file.cluster, open.set, open.cluster
        )));
    }
    let by = Move { from: file.set, number: given.number };
    let moved = Moved { uids: given.uids, to: given.to, by, backup: file.backup };
    let (quorum, terms) = open.quorum()?;
    let ChangedConfiguration { configuration, .. } =
        quorum.take(&moved, terms).await.map_err(ExitError::failed)?;
    let (first, last) = (*configuration.uids.start(), *configuration.uids.end());
    let text = format!(
        "uids {} to {} are added: Set {} has {first} to {last}. Set first_uid = {first} and last_uid = {last} in the \
         files of its arbiters, and correct those of the clients",
        moved.uids.start(),
        moved.uids.end(),
        open.set
    );
    let json =
        json!({"set": open.set, "first_uid": first, "last_uid": last, "configuration": configuration.number});
    args.which.answer(&text, &json)
}

/// Puts such a file into stores.
pub(super) async fn restore_file(args: RestoreArgs) -> Result<(), ExitError> {
    let mut file = BackupFile::read(&args.file).map_err(ExitError::failed)?;
    if let Some(given) = file.moved.take() {
        return take(&args, file, given).await;
    }
    let open = args.which.open().await?;
    let mine = (open.cluster.as_str(), open.set);
    if !file.cluster.is_empty() && !open.cluster.is_empty() && mine != (file.cluster.as_str(), file.set) {
        return Err(ExitError::usage(format!(
            "{} is of Set {} of cluster {}, but the configuration is of Set {} of cluster {}; use the right one",
            args.file.display(),
            file.set,
            file.cluster,
            open.set,
            open.cluster
        )));
    }
    if let Some((stores, terms)) = &open.new {
        if let Some(table) = file.backup.table.as_ref().filter(|table| table.uids != terms.uids) {
            return Err(ExitError::usage(format!(
                "{} is of a Set with the uids {} to {}; set first_uid and last_uid in [set] of the configuration",
                args.file.display(),
                table.uids.start(),
                table.uids.end()
            )));
        }
        let terms = SetTerms { moves: file.backup.moves.clone(), ..terms.clone() };
        stores.establish(&terms).await.map_err(ExitError::failed)?;
    }
    let how = Restoring { ahead: args.ahead, into_used: args.into_used };
    let restored = restore(&*open.sections, open.tables.as_deref(), &file.backup, how, rand::random()).await;
    let restored = restored.map_err(ExitError::failed)?;
    let text = format!(
        "{} sections were raised, the highest to {}; terms begin above {}",
        restored.sections, restored.highest, restored.term
    );
    let json = json!({
        "sections": restored.sections, "highest": restored.highest.to_string(), "term": restored.term,
    });
    args.which.answer(&text, &json)
}
