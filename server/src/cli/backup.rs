//! `tidemark backup DIR`: one moment of the files of SQLite into a directory of backups, also beside a serving process.

use std::io;
use std::path::{Path, PathBuf};

use clap::Args;
use tidemark_process::Version;

use super::{ExitError, progress};
use crate::boot;
use crate::config::Config;
use crate::domain::{Clock, Timestamp};
use crate::store::sqlite::note_backup;
use crate::transfer::backup::{self, Copied, Taken, Taking};

const EXAMPLES: &str = "\
Examples:
  tidemark backup /var/backups/tidemark                  also while the server serves
  tidemark backup - | ssh HOST 'cat > tidemark-backup'   a full one, to another machine
  tidemark backup --check /var/backups/tidemark          can the newest one be restored?
  tidemark backup --check /var/backups/base              a base backup of PostgreSQL

Exit codes: 0 the backup is good, 1 it is not, or was not made, 2 wrong use.";

const MIB: f64 = 1_048_576.0;

/// Where to, or what to check.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct BackupArguments {
    /// A directory of backups, for its owner alone; `-` is standard output; to check, also a file, or a base backup of PostgreSQL
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Refer to no earlier backup
    #[arg(long, conflicts_with = "check")]
    full: bool,
    /// Make none; read the newest one, or the file that is named, and say whether it can be restored
    #[arg(long)]
    check: bool,
    /// Check the newest one that is not later than this time, such as 2026-11-28T23:18:30Z
    #[arg(long, value_name = "TIME", requires = "check", value_parser = time)]
    at: Option<Timestamp>,
}

/// A time in RFC 3339.
pub(super) fn time(text: &str) -> Result<Timestamp, &'static str> {
    Timestamp::from_rfc3339(text).ok_or("is not a time; write it as 2026-11-28T23:18:30Z")
}

pub(super) fn run(what: BackupArguments, config: &Config, version: Version) -> Result<(), ExitError> {
    if what.check {
        return check(&what.directory, what.at);
    }
    let (main, ids) = boot::files_to_back_up(config)?;
    // A server on this machine goes first.
    tidemark_process::yield_to_other_threads();
    let taking = Taking { main, ids, program: version.to_string(), clock: Clock::system() };
    let bar = progress::bar();
    if what.directory == Path::new("-") {
        let done = backup::take_stream(&taking, io::stdout().lock(), &bar);
        bar.finish_and_clear();
        return done.map(|_| ()).map_err(ExitError::failed);
    }
    let files = boot::directory_of_files(config);
    let copy = || match &files {
        Some(files) => backup::copy_files(files, &what.directory, taking.clock.now(), &bar),
        None => Ok(Copied::default()),
    };
    // Before the moment, since what a row names then may go soon after it; and after it, for what came in between.
    let done = copy().and_then(|before| {
        let taken = backup::take(&taking, &what.directory, what.full, &bar)?;
        let after = copy()?;
        backup::forget_files(&what.directory)?;
        Ok((taken, before.objects + after.objects, before.bytes + after.bytes))
    });
    bar.finish_and_clear();
    let (taken, objects, bytes) = done.map_err(ExitError::failed)?;
    let Taken { moment, file, length, written, full_because } = taken;
    note_backup(&taking.main, moment).map_err(|why| {
        ExitError::failed(format!(
            "the backup {} is good, and its time cannot be noted: {why}",
            file.display()
        ))
    })?;
    let how = full_because.map_or_else(String::new, |why| format!("; a full one, since {why}"));
    println!(
        "{} holds the moment {}, {:.1} MiB in {:.1} MiB{how}",
        file.display(),
        moment.to_rfc3339(),
        length as f64 / MIB,
        written as f64 / MIB
    );
    if objects > 0 {
        println!("files: {:.1} MiB are new", bytes as f64 / MIB);
    }
    Ok(())
}

fn check(path: &Path, at: Option<Timestamp>) -> Result<(), ExitError> {
    let bar = progress::bar();
    let checked = match (backup::is_base_backup(path), at) {
        (true, None) => backup::check_base_backup(path).map(|moment| (path.to_owned(), moment)),
        (true, Some(_)) => {
            return Err(ExitError::usage(
                "--at chooses among backups of SQLite, and this is a base backup of PostgreSQL",
            ));
        }
        (false, at) => backup::chosen(path, at).and_then(|mut whole| {
            whole.check(&bar)?;
            Ok((whole.path().to_owned(), whole.moment()))
        }),
    };
    bar.finish_and_clear();
    let (file, moment) = checked.map_err(ExitError::failed)?;
    let age = (Clock::system().now().0.saturating_sub(moment.0)) / 1_000;
    println!(
        "{} can be restored: the moment {}, {} hours {} minutes ago",
        file.display(),
        moment.to_rfc3339(),
        age / 3_600,
        age % 3_600 / 60
    );
    Ok(())
}
