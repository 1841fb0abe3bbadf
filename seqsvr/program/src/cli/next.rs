//! `seqsvr next UID`: takes numbers of one user.

use clap::Args;
use serde_json::json;

use super::ExitError;
use super::caller::{CallerArgs, not_answered};
use seqsvr_core::ids::Uid;

const EXAMPLES: &str = "\
Examples:
  seqsvr next 42 --config client.toml
  seqsvr next 42 --count 10 --json                   the first and the last of ten
  seqsvr next 42 --within 20                         try for up to 20 seconds";

/// The flags of the command.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct NextArgs {
    /// The uid: 0 to 4294967295
    uid: u32,
    /// How many numbers
    #[arg(long, default_value_t = 1, value_name = "N")]
    count: u32,
    #[command(flatten)]
    caller: CallerArgs,
}

/// Prints the number, or the first and the last of several.
pub(super) async fn run(args: NextArgs) -> Result<(), ExitError> {
    let granted = args.caller.client()?.next(Uid::new(args.uid), args.count).await.map_err(not_answered)?;
    let text = match args.count {
        1 => granted.first.to_string(),
        _ => format!("{} {}", granted.first, granted.last),
    };
    let epoch = json!({"term": granted.epoch.term, "version": granted.epoch.version});
    let json = json!({"uid": args.uid, "first": granted.first, "last": granted.last, "epoch": epoch});
    args.caller.answer(&text, &json)
}
