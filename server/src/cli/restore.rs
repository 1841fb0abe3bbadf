//! `tidemark restore DIR`: makes an installation from a backup, and does what `tidemark restored` does.

use std::io;
use std::path::{Path, PathBuf};

use clap::Args;

use super::{ExitError, backup::time, progress, restored};
use crate::boot;
use crate::config::Config;
use crate::config::SequenceSource;
use crate::domain::{Clock, Timestamp};
use crate::store::sqlite::note_backup;
use crate::transfer::{self, backup};

const EXAMPLES: &str = "\
Examples:
  tidemark restore /var/backups/tidemark --data-dir new      the newest one, into an empty directory
  tidemark restore /var/backups/tidemark --data-dir new --at 2026-11-28T20:00:00Z
  ssh HOST 'cat tidemark-backup' | tidemark restore - --data-dir new";

/// From where, and which.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Restore {
    /// A directory of backups, or one of its files; `-` is standard input
    #[arg(value_name = "DIR|FILE")]
    from: PathBuf,
    /// The newest one that is not later than this time, such as 2026-11-28T23:18:30Z
    #[arg(long, value_name = "TIME", value_parser = time)]
    at: Option<Timestamp>,
    /// How many numbers of users, groups and invitations to skip: more than were given since the backup
    #[arg(long, value_name = "NUMBERS", default_value_t = transfer::AHEAD,
          value_parser = clap::value_parser!(u32).range(1..=transfer::MOST_AHEAD))]
    ahead: u32,
}

pub(super) async fn run(what: Restore, config: &Config) -> Result<(), ExitError> {
    let is_stream = what.from == Path::new("-");
    if is_stream && what.at.is_some() {
        return Err(ExitError::usage("`-` is one backup; leave out --at"));
    }
    let place = boot::place_to_restore(config)?;
    let bar = progress::bar();
    let moment = if is_stream {
        backup::restore_stream(io::stdin().lock(), &place, &bar)
    } else {
        backup::chosen(&what.from, what.at).and_then(|mut whole| backup::restore(&mut whole, &place, &bar))
    };
    bar.finish_and_clear();
    let moment = moment.map_err(ExitError::failed)?;
    // The files say what assigns the ids of messages.
    let config = boot::as_installed(config)?;
    // Ceilings are in no backup: those of a cluster are still there, those of a file begin anew.
    let least = match config.sequence.source {
        SequenceSource::Embedded => transfer::without_ceilings(Clock::system().now()),
        SequenceSource::Cluster => 0,
    };
    let backups = match what.from.is_dir() {
        true => Some(&*what.from),
        false if is_stream => None,
        false => what.from.parent(),
    };
    let done = restored::renew_files(&config, what.ahead, least, backups).await?;
    note_backup(&place.main, moment).map_err(|why| {
        ExitError::failed(format!(
            "the time of the backup cannot be noted beside {}: {why}",
            place.main.display()
        ))
    })?;
    println!("restored as of {}: {done}", moment.to_rfc3339());
    Ok(())
}
