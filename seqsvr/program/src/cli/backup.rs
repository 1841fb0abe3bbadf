//! `seqsvr backup FILE` and `seqsvr restore FILE`: what must outlive the loss of all stores of a Set, for every kind of
//! store.

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::Arc;

use clap::{ArgGroup, Args};
use serde_json::{Value, json};

use super::{ExitError, load};
use seqsvr_cluster::arbiter::config::ArbiterConfig;
use seqsvr_cluster::store::backup_file::BackupFile;
use seqsvr_core::store::backup::{AHEAD, Restoring, restore};
use seqsvr_core::store::postgres::PostgresSections;
use seqsvr_core::store::sqlite::SqliteSections;
use seqsvr_core::store::tables::RoutingTableStore;
use seqsvr_core::store::{SectionStore, StoreError};

const BACKUP: &str = "\
Examples:
  seqsvr backup set0.backup --config arbiter0.toml       of StoreSvrs or etcd, while the cluster serves
  seqsvr backup shop.backup --sqlite sequences.db        of a program that embeds the allocator and is stopped
  SEQSVR_POSTGRES=postgres://seq@db/seq seqsvr backup set0.backup --schema set0
The file is JSON Lines with a checksum, readable by its owner alone. It is written whole or not at all.";

const RESTORE: &str = "\
Examples:
  seqsvr restore set0.backup --config arbiter0.toml      into new stores, all arbiters and AllocSvrs stopped
  seqsvr restore set0.backup --config arbiter0.toml --ahead 1000000000
  seqsvr restore set0.backup --config arbiter0.toml --into-used     raises what is lower, lowers nothing
Numbers that were handed out after the backup do not come again, as long as fewer than --ahead were handed out to each user.";

/// Which stores.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("stores").required(true).args(["config", "sqlite", "postgres"]))]
struct Which {
    /// The configuration of an arbiter of the Set, which names its stores
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// A SQLite file with sections
    #[arg(long, value_name = "FILE")]
    sqlite: Option<PathBuf>,
    /// A PostgreSQL database
    #[arg(long, value_name = "URL", env = "SEQSVR_POSTGRES", hide_env_values = true, requires = "schema")]
    postgres: Option<String>,
    /// The schema of the Set in it
    #[arg(long, value_name = "NAME")]
    schema: Option<String>,
    /// Answer with JSON
    #[arg(long)]
    json: bool,
}

/// The flags of `backup`.
#[derive(Debug, Args)]
#[command(after_help = BACKUP)]
pub(super) struct BackupArgs {
    /// Where to write
    file: PathBuf,
    #[command(flatten)]
    which: Which,
}

/// The flags of `restore`.
#[derive(Debug, Args)]
#[command(after_help = RESTORE)]
pub(super) struct RestoreArgs {
    /// What `seqsvr backup` wrote
    file: PathBuf,
    /// By how many numbers every section starts above the backup
    #[arg(long, value_name = "N", default_value_t = AHEAD)]
    ahead: u64,
    /// Also into stores that are in use: nothing is lowered
    #[arg(long)]
    into_used: bool,
    #[command(flatten)]
    which: Which,
}

/// Stores, and what they are called.
struct Open {
    cluster: String,
    set: u32,
    sections: Arc<dyn SectionStore>,
    tables: Option<Arc<dyn RoutingTableStore>>,
}

impl Which {
    async fn open(&self) -> Result<Open, ExitError> {
        let alone =
            |sections: Arc<dyn SectionStore>| Open { cluster: String::new(), set: 0, sections, tables: None };
        match self {
            Self { config: Some(config), .. } => {
                let config: ArbiterConfig = load(config)?;
                let (cluster, set) = (config.cluster, config.set.number);
                let stores = config.stores.open(&cluster, set).map_err(ExitError::usage)?;
                Ok(Open { cluster, set, sections: stores.sections, tables: Some(stores.tables) })
            }
            Self { sqlite: Some(path), .. } => {
                if !path.is_file() {
                    let path = path.display();
                    return Err(ExitError::usage(format!(
                        "{path} is no file; name the one that the server keeps sections in"
                    )));
                }
                Ok(alone(Arc::new(SqliteSections::open(path).await.map_err(ExitError::failed)?)))
            }
            Self { postgres: Some(url), schema: Some(schema), .. } => {
                Ok(alone(Arc::new(PostgresSections::open(url, schema).await.map_err(ExitError::failed)?)))
            }
            _ => Err(ExitError::usage("say which stores: --config, --sqlite, or --postgres with --schema")),
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
    let open = args.which.open().await?;
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

/// Puts such a file into stores.
pub(super) async fn restore_file(args: RestoreArgs) -> Result<(), ExitError> {
    let file = BackupFile::read(&args.file).map_err(ExitError::failed)?;
    if file.moved.is_some() {
        return Err(ExitError::usage(format!(
            "{} holds uids that a Set gave up; take them into another: seqsvr store take",
            args.file.display()
        )));
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
    let how = Restoring { ahead: args.ahead, into_used: args.into_used };
    let restored = restore(&*open.sections, open.tables.as_deref(), &file.backup, how, rand::random()).await;
    let restored = restored.map_err(ExitError::failed)?;
    let text = format!(
        "{} sections start higher now, the highest above {}; terms begin above {}",
        restored.sections, restored.highest, restored.term
    );
    let json = json!({
        "sections": restored.sections, "highest": restored.highest.to_string(), "term": restored.term,
    });
    args.which.answer(&text, &json)
}
