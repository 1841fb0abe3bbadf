//! `seqsvr drain NODE`, `add NODE [ADDR]`, `remove NODE`, `rebalance`: they move sections between nodes, each by one
//! change of the routing table (S13).

use clap::Args;

use super::ExitError;
use super::caller::{CallerArgs, not_answered};
use super::route;
use seqsvr_client::Change;

/// The flags of every change.
#[derive(Debug, Args)]
pub(super) struct ChangeArgs {
    /// The Set; optional when there is only one
    #[arg(long, value_name = "NUMBER")]
    set: Option<u32>,
    #[command(flatten)]
    caller: CallerArgs,
}

const DRAIN: &str = "\
Examples:
  seqsvr drain alloc2                  its sections move to the others within milliseconds
  seqsvr add alloc2                    exactly these come back
  seqsvr remove alloc2                 it does not come back";

const ADD: &str = "\
Examples:
  seqsvr add alloc4 https://seq4.example.org:7101
  seqsvr add alloc2                                  back after a drain
  seqsvr add alloc4 https://seq4.example.org:7101 --force    it will be started later";

const REMOVE: &str = "\
Examples:
  seqsvr drain alloc2 && seqsvr remove alloc2
It refuses while the node still serves sections.";

/// The flags of `drain`.
#[derive(Debug, Args)]
#[command(after_help = DRAIN)]
pub(super) struct DrainArgs {
    /// The name of the AllocSvr
    node: String,
    #[command(flatten)]
    change: ChangeArgs,
}

/// The flags of `remove`.
#[derive(Debug, Args)]
#[command(after_help = REMOVE)]
pub(super) struct RemoveArgs {
    /// The name of the AllocSvr
    node: String,
    #[command(flatten)]
    change: ChangeArgs,
}

/// The flags of `add`.
#[derive(Debug, Args)]
#[command(after_help = ADD)]
pub(super) struct AddArgs {
    /// The name of the AllocSvr
    node: String,
    /// The address for callers, http://HOST:PORT or https://HOST:PORT; optional when it comes back after a drain
    addr: Option<String>,
    /// Add it although it does not answer the arbiter
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    change: ChangeArgs,
}

/// Moves everything away from a node.
pub(super) async fn drain(args: DrainArgs) -> Result<(), ExitError> {
    change(args.change, Change::Drain { node: args.node }).await
}

/// Takes a node in.
pub(super) async fn add(args: AddArgs) -> Result<(), ExitError> {
    change(args.change, Change::Add { node: args.node, addr: args.addr, force: args.force }).await
}

/// Forgets a node that serves nothing.
pub(super) async fn remove(args: RemoveArgs) -> Result<(), ExitError> {
    change(args.change, Change::Remove { node: args.node }).await
}

/// Spreads the sections evenly.
pub(super) async fn rebalance(args: ChangeArgs) -> Result<(), ExitError> {
    change(args, Change::Rebalance).await
}

async fn change(args: ChangeArgs, change: Change) -> Result<(), ExitError> {
    let client = args.caller.client()?;
    let set = match (args.set, client.set_numbers().as_slice()) {
        (Some(set), _) => set,
        (None, &[only]) => only,
        (None, several) => {
            let several: Vec<String> = several.iter().map(u32::to_string).collect();
            return Err(ExitError::usage(format!(
                "there are several Sets; choose one: --set {}",
                several.join(" or --set ")
            )));
        }
    };
    let table = client.change(set, change).await.map_err(not_answered)?;
    let states = route::states(&client, &table).await?;
    args.caller.answer(&route::picture(&table, &states, route::width()), &route::json(&table, &states))
}
