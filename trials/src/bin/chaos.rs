//! `chaos`: the fault runs. `cargo xtask chaos` builds what it needs and starts it.

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use tidemark_trials::{chaos, program};

/// Breaks a running server on purpose, and checks that every promise holds
#[derive(Parser)]
#[command(name = "chaos", after_help = names())]
struct ChaosArguments {
    /// Which faults; all if none is named
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Repeats a run: the same moments, the same conversations; drawn and printed if not given
    #[arg(long)]
    seed: Option<u64>,
    /// How long each fault is tried
    #[arg(long, value_name = "MINUTES", default_value_t = 2.0)]
    minutes: f64,
    /// For patroni: so many failovers, however long they take
    #[arg(long, value_name = "N", default_value_t = 10)]
    failovers: usize,
    /// For sim: so many seeds, however long they take
    #[arg(long, value_name = "N", conflicts_with = "minutes", value_parser = clap::value_parser!(u64).range(1..))]
    seeds: Option<u64>,
}

fn names() -> String {
    let lines: Vec<String> =
        chaos::NAMES.iter().map(|(name, _, about)| format!("  {name:<14} {about}")).collect();
    format!("Faults:\n{}", lines.join("\n"))
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = ChaosArguments::parse();
    match run(arguments).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("chaos: {failure}");
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: ChaosArguments) -> tidemark_trials::Result<()> {
    let seed = arguments.seed.unwrap_or_else(rand::random);
    let length = Duration::try_from_secs_f64(arguments.minutes * 60.0)?;
    let binary = program("tidemark")?;
    let folder = binary.with_file_name("trials");
    std::fs::create_dir_all(&folder)?;
    let ChaosArguments { names, failovers, seeds, .. } = arguments;
    chaos::run(&chaos::ChaosPlan { names, seed, length, failovers, seeds }, &binary, &folder).await
}
