//! The program `seqsvr`: one role of the cluster, or a command for people and scripts.

mod cli;
mod counters;

use std::process::ExitCode;

use cli::Cli;
use tidemark_commit::commit;
use tidemark_process::{ExitError, Version};

const VERSION: Version = Version::of(commit!());

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => error.report("seqsvr"),
    }
}

fn run() -> Result<(), ExitError> {
    let cli = Cli::read(std::env::args_os(), VERSION)?;
    cli.start_log();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(cli.run(VERSION))
}
