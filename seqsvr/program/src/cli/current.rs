//! `seqsvr current UID`: an upper bound of what was handed out to one user.

use clap::Args;
use serde_json::json;

use super::ExitError;
use super::caller::{CallerArgs, not_answered};
use seqsvr_core::ids::Uid;

const EXAMPLES: &str = "\
Examples:
  seqsvr current 42 --config client.toml
  seqsvr current 42 --json
It takes no number. No number above the answer was handed out.";

/// The flags of the command.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct CurrentArgs {
    /// The uid: 0 to 4294967295
    uid: u32,
    #[command(flatten)]
    caller: CallerArgs,
}

/// Prints the bound.
pub(super) async fn run(args: CurrentArgs) -> Result<(), ExitError> {
    let bounds = args
        .caller
        .client()?
        .current(&[Uid::new(args.uid)])
        .await
        .map_err(|error| not_answered(error.first))?;
    let json = json!({"uid": args.uid, "upper_bound": bounds[0]});
    args.caller.answer(&bounds[0].to_string(), &json)
}
