//! The command line: one file for each command, and one way in which they fail.

use std::ffi::OsString;

use clap::{Parser, Subcommand};
use futures_util::future::LocalBoxFuture;
use tidemark_process::{Manual, Version, parse};

use crate::boot;
use crate::config::{Config, Flags};

mod audit;
mod backup;
mod check_config;
mod exit_error;
mod export;
mod ids;
mod import;
mod migrate;
mod progress;
mod reports;
mod restore;
mod restored;
mod search;
mod serve;
mod status;
mod table;
mod user;
mod verify;

pub use exit_error::ExitError;

const EXAMPLES: &str = "\
Examples:
  tidemark                                          serve on http://127.0.0.1:8080, data in ./data
  tidemark serve --listen 0.0.0.0:80 --data-dir /var/lib/tidemark
  tidemark check-config --config tidemark.toml      check it, and print the values in force
  tidemark user add \"Ann Lee\"                       create an account and print its password, also while it serves
  tidemark user reset-password \"Ann Lee\"            also while it serves
  tidemark reports list                             what people have reported, also while it serves
  tidemark backup /var/backups/tidemark             also while it serves
  tidemark restore /var/backups/tidemark --data-dir new
  tidemark export backup.jsonl                      also while it serves
  tidemark import backup.jsonl --data-dir new       into an empty data directory
  tidemark status                                   the database, its servers, and what is waiting
  tidemark verify                                   check all files for damage, also while it serves
  tidemark search rebuild                           make the index of words anew, while it serves
  tidemark table key create --instance shop         an access key for tables, also while it serves

Every key of the configuration file can also be set as TIDEMARK_SECTION__KEY,
for example TIDEMARK_LIMITS__TEXT_CHARACTERS=4000.
Exit codes: 0 done, 1 failed, 2 wrong use.";

/// A chat server that keeps every device in step.
#[derive(Debug, Parser)]
#[command(name = "tidemark", about, after_help = EXAMPLES)]
pub struct Cli {
    /// The flags of every command.
    #[command(flatten)]
    pub flags: Flags,
    #[command(subcommand)]
    command: Option<Command>,
}

/// The commands; `serve` without one.
#[derive(Debug, Subcommand)]
enum Command {
    /// Serve the chat until it is told to stop; the default
    Serve,
    /// Migrate the database to this version, and exit
    Migrate,
    /// Check the configuration and print the values in force
    CheckConfig,
    /// Write a backup of the SQLite files, also while the server serves, or check one
    Backup(backup::BackupArguments),
    /// Make an installation from a backup, in an empty data directory
    Restore(restore::Restore),
    /// Write everything into one file, also while the server serves
    Export(export::Export),
    /// Fill an empty data directory from an export, or append one user's rows
    Import(import::Import),
    /// Run after restoring a backup: skips ids that may already have been used, and makes devices fetch everything again
    Restored(restored::Restored),
    /// Show the state of the installation: the database, its servers, what is waiting, and what is damaged
    Status(status::Status),
    /// Check all SQLite files for damage, also while the server serves
    Verify(verify::Verify),
    /// Change what assigns the ids of messages, while the server is stopped
    Ids(ids::IdsArguments),
    /// Create and manage accounts, also while the server serves
    #[command(after_help = user::EXAMPLES)]
    User(user::User),
    /// List and close reports of messages and people, also while the server serves
    #[command(after_help = reports::EXAMPLES)]
    Reports(reports::ReportArguments),
    /// Rebuild the index of words, while the server serves
    #[command(after_help = search::EXAMPLES)]
    Search(search::SearchArguments),
    /// Show what operators and administrators of groups have done, also while the server serves
    Audit(audit::AuditArguments),
    /// Manage tables and their access keys
    Table(table::TableArguments),
    /// Write man pages and completions into a folder
    #[command(hide = true)]
    Manual(Manual),
}

impl Cli {
    /// Understands the command line, or says in one line why not.
    pub fn read(args: impl IntoIterator<Item = OsString>, version: Version) -> Result<Cli, ExitError> {
        parse(args, version)
    }

    /// Does what was asked. Boxed, so that the library has it compiled for the program.
    pub fn run(self, config: Config, version: Version) -> LocalBoxFuture<'static, Result<(), ExitError>> {
        Box::pin(self.run_unboxed(config, version))
    }

    async fn run_unboxed(self, config: Config, version: Version) -> Result<(), ExitError> {
        let config = match self.command {
            // They go by no source of ids, or change it.
            Some(Command::CheckConfig | Command::Verify(_) | Command::Ids(_) | Command::Manual(_)) => config,
            _ => boot::as_installed(&config)?.into_owned(),
        };
        match self.command {
            None | Some(Command::Serve) => serve::run(&config, version).await,
            Some(Command::Migrate) => migrate::run(&config).await,
            Some(Command::CheckConfig) => check_config::run(&config),
            Some(Command::Backup(what)) => backup::run(what, &config, version),
            Some(Command::Restore(what)) => restore::run(what, &config).await,
            Some(Command::Export(what)) => export::run(what, &config).await,
            Some(Command::Import(what)) => import::run(what, &config).await,
            Some(Command::Restored(what)) => restored::run(what, &config).await,
            Some(Command::Status(what)) => status::run(what, &config, version).await,
            Some(Command::Verify(what)) => verify::run(what, &config),
            Some(Command::Ids(what)) => ids::run(what, &config).await,
            Some(Command::User(what)) => user::run(what, &config).await,
            Some(Command::Reports(what)) => reports::run(what, &config).await,
            Some(Command::Search(what)) => search::run(what, &config).await,
            Some(Command::Audit(what)) => audit::run(what, &config).await,
            Some(Command::Table(what)) => table::run(what, &config).await,
            Some(Command::Manual(what)) => Ok(what.write::<Cli>(version)?),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_unit_of_the_package_says_what_is_understood() {
        let unit = include_str!("../../../packaging/tidemark.service");
        let lines = unit.lines().filter(|line| line.starts_with("ExecStart"));
        let lines: Vec<&str> = lines.filter_map(|line| Some(line.split_once('=')?.1)).collect();
        // A command before this one would be started again and again on a wrong configuration.
        let [line] = lines[..] else { panic!("{lines:?}") };
        let cli = Cli::read(line.split(' ').map(Into::into), Version::default()).expect(line);
        assert_eq!(cli.flags.config.expect("a file").to_str(), Some("/etc/tidemark/tidemark.toml"));
        assert!(matches!(cli.command, Some(Command::Serve)));
    }

    #[test]
    fn wrong_use_is_reported_in_one_line() {
        let error =
            Cli::read(["tidemark".into(), "--lisen".into()], Version::default()).expect_err("unknown");
        let ExitError::Usage(line) = error else { panic!("{error:?}") };
        assert!(line.contains("--lisen") && line.contains("--help") && !line.contains('\n'), "{line}");
    }
}
