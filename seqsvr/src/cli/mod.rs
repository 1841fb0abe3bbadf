//! The command line of `seqsvr`: one file for each role and command, and one way in which they fail. The roles read one
//! configuration file each; the commands read the client configuration.

use std::ffi::OsString;

use clap::{Parser, Subcommand};
use tracing_subscriber::EnvFilter;

mod arbiter;
mod fault;
mod issue;
mod issuer;
mod role;
mod store;

pub use fault::Fault;
pub(crate) use role::{Signals, load};

const EXAMPLES: &str = "\
Examples:
  seqsvr store --config store1.toml --init     make an empty replica, then serve it
  seqsvr store --config store1.toml            serve it again
  seqsvr alloc --config alloc1.toml
  seqsvr arbiter --config arbiter1.toml
  seqsvr issuer --config issuer.toml
  seqsvr issue order --count 10
  seqsvr next 42 --count 10 --config client.toml
  seqsvr route --config client.toml            who holds what

Exit codes: 0 done, 1 failed, 2 wrong use.";

/// A sequence service: one growing number line for each user, which never goes back.
#[derive(Debug, Parser)]
#[command(name = "seqsvr", version, about, after_help = EXAMPLES)]
pub struct Cli {
    /// What to write to standard error: error, warn, info, debug, or by module (seqsvr::arbiter=debug)
    #[arg(long, global = true, env = "SEQSVR_LOG", default_value = "info", value_name = "FILTER")]
    log: EnvFilter,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Decides who serves which sections of a Set, or stands by for the one that does
    Arbiter(arbiter::ArbiterArgs),
    /// Keeps one replica of the durable state of a Set
    Store(store::StoreArgs),
    /// Issues numbers for business tags: order numbers, user ids, invite codes
    Issuer(issuer::IssuerArgs),
    /// Takes numbers of a business tag from a running issuer
    Issue(issue::IssueArgs),
    /// Shows the business tags of a running issuer
    Tags(issue::TagsArgs),
}

impl Cli {
    /// Understands the command line, or says in one line why not.
    pub fn read(args: impl IntoIterator<Item = OsString>) -> Result<Self, Fault> {
        Self::try_parse_from(args).map_err(Fault::from)
    }

    /// Starts the log on standard error; standard output is for results.
    pub fn start_log(&self) {
        let filter = EnvFilter::new(self.log.to_string());
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    }

    /// Does what was asked.
    pub async fn run(self) -> Result<(), Fault> {
        match self.command {
            Command::Arbiter(args) => arbiter::run(args).await,
            Command::Store(args) => store::run(args).await,
            Command::Issuer(args) => issuer::run(args).await,
            Command::Issue(args) => issue::issue(args).await,
            Command::Tags(args) => issue::tags(args).await,
        }
    }
}
