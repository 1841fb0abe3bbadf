//! `tidemark export FILE`: everything into one file, also beside a serving process.

use std::path::PathBuf;

use clap::Args;
use indicatif::ProgressBar;

use super::{ExitError, progress};
use crate::boot;
use crate::config::Config;
use crate::domain::Clock;
use crate::transfer::{self, Begin, Exported};

const EXAMPLES: &str = "\
Examples:
  tidemark export /var/backups/tidemark/today.jsonl --config /etc/tidemark/tidemark.toml
  tidemark export /var/backups/tidemark/today.jsonl --resume      continues an export that was interrupted
  tidemark export /var/backups/tidemark/rows.jsonl --without-files";

/// Where to.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Export {
    /// A new file; only its owner may read it, since it holds every message and the passwords' hashes
    #[arg(value_parser = file)]
    file: PathBuf,
    /// Finish an export that was interrupted; if something has changed since, the file is written again from the start
    #[arg(long)]
    resume: bool,
    /// Leave out the bytes of files; their directory or bucket is then copied in another way, or kept
    #[arg(long)]
    without_files: bool,
}

/// A file by its name.
fn file(name: &str) -> Result<PathBuf, &'static str> {
    match name {
        "-" => Err("an export can be written only to a regular file; name one, and copy it from there"),
        name => Ok(name.into()),
    }
}

pub(super) async fn run(what: Export, config: &Config) -> Result<(), ExitError> {
    let mut snapshot = boot::export_snapshot(config).await?;
    let files = if what.without_files { None } else { Some(boot::files_place(config)?) };
    let begin = if what.resume { Begin::Resume } else { Begin::New };
    let bar: ProgressBar = progress::bar();
    let now = Clock::system().now();
    let done = transfer::export(&mut *snapshot, &what.file, begin, files.as_ref(), now, &bar).await;
    bar.finish_and_clear();
    let Exported { records, gone, is_begun_anew } = done.map_err(ExitError::failed)?;
    let anew = match is_begun_anew {
        true => "; nothing of the interrupted export was kept, since the installation has changed",
        false => "",
    };
    let gone = match gone {
        0 => String::new(),
        gone => format!("; of {gone} files the bytes were not in `[files] store`"),
    };
    println!("{records} records in {}{gone}{anew}", what.file.display());
    Ok(())
}
