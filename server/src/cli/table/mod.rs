//! `tidemark table …`: access keys of tables, and a look into tables from the command line.
//!
//! `key` works on the database, also while servers run. The others are a client of a server that serves tables, as any other program.

use clap::{Args, Subcommand};

use super::ExitError;
use crate::config::Config;

mod client;
mod key;
mod rows;
mod values;

const EXAMPLES: &str = "\
Examples:
  tidemark table key create --instance shop         an access key: its id and its secret
  export TIDEMARK_TABLE_INSTANCE=shop TIDEMARK_TABLE_ACCESS_KEY_ID=… TIDEMARK_TABLE_ACCESS_KEY_SECRET=…
  tidemark table ls                                 the tables of the instance
  tidemark table describe orders                    its key and its options
  tidemark table put orders ann + total=12.5        a row; `+` is the value that the server assigns
  tidemark table get orders ann 1                   a row by its key
  tidemark table range orders ann --limit 10        rows whose keys begin with `ann`
  tidemark table range orders --backward            all rows, from the largest key down

The server serves tables when its configuration says where: TIDEMARK_TABLE__LISTEN=127.0.0.1:8081 tidemark serve";

/// Commands for tables.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct TableArguments {
    #[command(subcommand)]
    command: TableCommand,
}

#[derive(Debug, Subcommand)]
enum TableCommand {
    /// Make, list and revoke access keys; also while the server serves
    #[command(subcommand, after_help = key::EXAMPLES)]
    Key(key::KeyCommand),
    /// List the tables of the instance
    Ls(rows::Ls),
    /// Show the key, the columns and the options of a table
    Describe(rows::Describe),
    /// Show a row by its key, as JSON
    Get(rows::Get),
    /// Show rows in the order of their keys, one JSON object a line
    Range(rows::Range),
    /// Put a row, and show its key
    Put(rows::Put),
}

pub(super) async fn run(what: TableArguments, config: &Config) -> Result<(), ExitError> {
    match what.command {
        TableCommand::Key(what) => key::run(what, config).await,
        TableCommand::Ls(what) => rows::ls(what).await,
        TableCommand::Describe(what) => rows::describe(what).await,
        TableCommand::Get(what) => rows::get(what).await,
        TableCommand::Range(what) => rows::range(what).await,
        TableCommand::Put(what) => rows::put(what).await,
    }
}
