//! The program `seqsvr`: one role of the cluster, or a command for people and scripts.

mod cli;

use std::process::ExitCode;

use cli::Cli;
use tidemark_process::Fault;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => fault.report("seqsvr"),
    }
}

fn run() -> Result<(), Fault> {
    let cli = Cli::read(std::env::args_os())?;
    cli.start_log();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(cli.run())
}
