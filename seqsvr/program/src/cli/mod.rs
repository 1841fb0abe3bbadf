//! The command line of `seqsvr`: one file for each role and command, and one way in which they fail. The roles read one
//! configuration file each; the commands read the client configuration.

use std::ffi::OsString;
use std::io::IsTerminal as _;

use clap::{Parser, Subcommand};
use tracing::info;
use tracing::{Level, Metadata};
use tracing_subscriber::filter::{LevelFilter, Targets, filter_fn};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

mod alloc;
mod arbiter;
mod backup;
mod caller;
mod change;
mod current;
mod embedded;
mod issue;
mod issuer;
mod next;
mod resp;
mod role;
mod route;
mod status;
mod store;
mod verify;

pub(crate) use role::load;

use tidemark_process::{ExitError, Manual, Signals, Version, allow_many_files, parse};

const EXAMPLES: &str = "\
Examples:
  seqsvr store --config store1.toml --init     make an empty replica, then serve it
  seqsvr store --config store1.toml            serve it again
  seqsvr store replace store3 http://127.0.0.1:7004 --config arbiter0.toml
  seqsvr alloc --config alloc1.toml
  seqsvr arbiter --config arbiter1.toml
  seqsvr issuer --config issuer.toml
  seqsvr embedded counters                     durable counters alone, for clients of Redis
  seqsvr issue order --count 10
  seqsvr next 42 --count 10 --config client.toml
  seqsvr status --config client.toml           the processes, and what is not served
  seqsvr route --config client.toml            which AllocSvr holds which sections
  seqsvr backup set0.backup --config arbiter0.toml
  seqsvr verify arbiter0.toml alloc1.toml store1.toml client.toml

Exit codes: 0 done, 1 failed, 2 wrong use.";

/// A sequence service: one increasing sequence for each user, which never goes back.
#[derive(Debug, Parser)]
#[command(name = "seqsvr", about, after_help = EXAMPLES)]
pub(crate) struct Cli {
    /// The log on standard error: error, warn, info, debug, or by module (seqsvr_cluster::arbiter=debug) [default: info for
    /// roles, error for commands]
    #[arg(long, global = true, env = "SEQSVR_LOG", value_name = "FILTER")]
    log: Option<Targets>,
    #[command(subcommand)]
    command: SeqsvrCommand,
}

#[derive(Debug, Subcommand)]
enum SeqsvrCommand {
    /// Hands out numbers for the sections that the arbiters give it
    Alloc(alloc::AllocArgs),
    /// Decides which AllocSvr serves which sections of a Set, or stands by for the arbiter that does
    Arbiter(arbiter::ArbiterArgs),
    /// Keeps one replica of the durable state of a Set
    Store(store::StoreArgs),
    /// Issues numbers for business tags: order numbers, user ids, invite codes
    Issuer(issuer::IssuerArgs),
    /// Keeps durable counters in one directory, for clients of Redis: INCR, and nothing else to run
    Embedded(embedded::EmbeddedArgs),
    /// Takes numbers of a business tag from a running issuer
    Issue(issue::IssueArgs),
    /// Shows the business tags of a running issuer
    Tags(issue::TagsArgs),
    /// Takes numbers of one user, and prints the number, or the first and the last of several
    Next(next::NextArgs),
    /// Prints an upper bound of the numbers that one user was given
    Current(current::CurrentArgs),
    /// Shows the state of the cluster: its processes, how far the stores are, and what is not served and why
    Status(status::StatusArgs),
    /// Shows which AllocSvr holds which sections
    Route(route::RouteArgs),
    /// Moves all sections away from an AllocSvr, and assigns it none until it is added again
    Drain(change::DrainArgs),
    /// Adds an AllocSvr, or brings it back after a drain
    Add(change::AddArgs),
    /// Removes an AllocSvr that no longer serves anything
    Remove(change::RemoveArgs),
    /// Backs up a Set: writes what a restore needs when all stores are lost into a file
    Backup(backup::BackupArgs),
    /// Restores a backup into new stores, so far ahead that no number is handed out twice
    Restore(backup::RestoreArgs),
    /// Compares configuration files with what the stores have stored, and shows what does not match
    Verify(verify::VerifyArgs),
    /// Spreads the sections evenly over the AllocSvrs
    #[command(
        after_help = "Examples:\n  seqsvr rebalance --config client.toml\n  seqsvr rebalance --set 1 --json"
    )]
    Rebalance(change::ChangeArgs),
    /// Writes man pages and completions into a folder
    #[command(hide = true)]
    Manual(Manual),
}

impl SeqsvrCommand {
    /// A command prints one result and ends; a role runs until it is stopped.
    fn answers(&self) -> bool {
        use SeqsvrCommand::{
            Add, Backup, Current, Drain, Issue, Manual, Next, Rebalance, Remove, Restore, Route, Status,
            Tags, Verify,
        };
        let changes = matches!(self, Drain(_) | Add(_) | Remove(_) | Rebalance(_));
        let of_the_cluster = changes || matches!(self, Next(_) | Current(_) | Status(_) | Route(_));
        of_the_cluster
            || matches!(self, Issue(_) | Tags(_) | Backup(_) | Restore(_) | Verify(_) | Manual(_))
            || matches!(self, SeqsvrCommand::Store(args) if args.answers())
    }
}

impl Cli {
    /// Understands the command line, or says in one line why not.
    pub(crate) fn read(
        args: impl IntoIterator<Item = OsString>,
        version: Version,
    ) -> Result<Self, ExitError> {
        parse(args, version)
    }

    /// Starts the log on standard error; standard output is for results.
    pub(crate) fn start_log(&self) {
        let default = if self.command.answers() { LevelFilter::ERROR } else { LevelFilter::INFO };
        let chosen = self.log.clone().unwrap_or_else(|| Targets::new().with_default(default));
        let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
        let lines = lines.with_ansi(std::io::stderr().is_terminal());
        tracing_subscriber::registry().with(chosen).with(filter_fn(may_be_shown)).with(lines).init();
    }

    /// Carries out the command.
    pub(crate) async fn run(self, version: Version) -> Result<(), ExitError> {
        if !self.command.answers() {
            info!(%version, "seqsvr starts");
            allow_many_files();
        }
        match self.command {
            SeqsvrCommand::Next(args) => next::run(args).await,
            SeqsvrCommand::Current(args) => current::run(args).await,
            SeqsvrCommand::Status(args) => status::run(args).await,
            SeqsvrCommand::Route(args) => route::run(args).await,
            SeqsvrCommand::Drain(args) => change::drain(args).await,
            SeqsvrCommand::Add(args) => change::add(args).await,
            SeqsvrCommand::Backup(args) => backup::backup(args).await,
            SeqsvrCommand::Restore(args) => backup::restore_file(args).await,
            SeqsvrCommand::Verify(args) => verify::run(args).await,
            SeqsvrCommand::Remove(args) => change::remove(args).await,
            SeqsvrCommand::Rebalance(args) => change::rebalance(args).await,
            SeqsvrCommand::Alloc(args) => alloc::run(args, version).await,
            SeqsvrCommand::Arbiter(args) => arbiter::run(args, version).await,
            SeqsvrCommand::Store(args) => store::run(args, version).await,
            SeqsvrCommand::Issuer(args) => issuer::run(args, version).await,
            SeqsvrCommand::Embedded(args) => embedded::run(args).await,
            SeqsvrCommand::Issue(args) => issue::issue(args).await,
            SeqsvrCommand::Tags(args) => issue::tags(args).await,
            SeqsvrCommand::Manual(manual) => Ok(manual.write::<Self>(version)?),
        }
    }
}

/// Libraries print frames and headers below `info`, with the tokens in them: no filter shows those lines.
fn may_be_shown(line: &Metadata<'_>) -> bool {
    *line.level() <= Level::INFO
        || line.target().starts_with("seqsvr")
        || line.target().starts_with("tidemark")
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
    fn the_units_of_the_package_start_each_role() {
        let unit = include_str!("../../../../packaging/seqsvr-ROLE@.service");
        let line = unit.lines().find_map(|line| line.strip_prefix("ExecStart=")).expect("a command");
        let command = Cli::command();
        for role in ["store", "alloc", "arbiter", "issuer"] {
            let words = line.replace("ROLE", role);
            let cli = Cli::read(words.split(' ').map(Into::into), Version::default()).expect(role);
            assert!(!cli.command.answers() && command.find_subcommand(role).is_some(), "{role}");
        }
    }
}
