//! `seqsvr drain NODE`, `add NODE [ADDR]`, `rebalance`: changes of who holds what, each one change of the routing table (S13).

use clap::Args;

use super::Fault;
use super::caller::CallerArgs;
use super::route;
use crate::client::Change;

/// What all changes ask for.
#[derive(Debug, Args)]
pub(super) struct ChangeArgs {
    /// The Set; may be left out when there is one only
    #[arg(long, value_name = "NUMBER")]
    set: Option<u32>,
    #[command(flatten)]
    caller: CallerArgs,
}

/// The flags of `drain`.
#[derive(Debug, Args)]
pub(super) struct DrainArgs {
    /// The name of the AllocSvr
    node: String,
    #[command(flatten)]
    change: ChangeArgs,
}

/// The flags of `add`.
#[derive(Debug, Args)]
pub(super) struct AddArgs {
    /// The name of the AllocSvr
    node: String,
    /// Where callers reach it, http://HOST:PORT or https://HOST:PORT; may be left out when it comes back after a drain
    addr: Option<String>,
    #[command(flatten)]
    change: ChangeArgs,
}

/// Moves everything away from a node.
pub(super) async fn drain(args: DrainArgs) -> Result<(), Fault> {
    change(args.change, Change::Drain { node: args.node }).await
}

/// Takes a node in.
pub(super) async fn add(args: AddArgs) -> Result<(), Fault> {
    change(args.change, Change::Add { node: args.node, addr: args.addr }).await
}

/// Spreads the sections evenly.
pub(super) async fn rebalance(args: ChangeArgs) -> Result<(), Fault> {
    change(args, Change::Rebalance).await
}

async fn change(args: ChangeArgs, change: Change) -> Result<(), Fault> {
    let client = args.caller.client()?;
    let set = match (args.set, client.set_numbers().as_slice()) {
        (Some(set), _) => set,
        (None, &[only]) => only,
        (None, several) => {
            let several: Vec<String> = several.iter().map(u32::to_string).collect();
            return Err(Fault::usage(format!(
                "there are several Sets; say which: --set {}",
                several.join(" or --set ")
            )));
        }
    };
    let table = client.change(set, change).await?;
    args.caller.answer(&route::picture(&table, route::width()), &route::json(&table))
}
