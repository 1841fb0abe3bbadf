//! `bench`: the measurements. `cargo xtask bench` builds what it needs and starts it.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use mimalloc::MiMalloc;
use tidemark_trials::bench::{self, BenchPlan, Files};

/// That of the server: what it is compared with allocates in the same way.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Measures Tidemark against baselines taken in the same run, and prints the medians
#[derive(Parser)]
#[command(name = "bench", after_help = scenarios())]
struct BenchArguments {
    /// Which to run; all that take less than an hour if none is named
    #[arg(value_name = "SCENARIO")]
    scenarios: Vec<String>,
    /// Write the rows to this file; what is not measured now keeps its rows in it
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Renew the rows of the tables in this Markdown file
    #[arg(long, value_name = "FILE")]
    tables: Option<PathBuf>,
    /// Runs of each scenario; medians are told
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..))]
    runs: u16,
    /// A tenth of the work: shows that it works, the numbers mean little
    #[arg(long)]
    quick: bool,
    /// Be the server of a baseline, or the client that floods; the measurement starts it by itself
    #[arg(long, hide = true, num_args = 1.., value_name = "PART")]
    be: Vec<String>,
}

fn scenarios() -> String {
    let line = |(name, about)| format!("  {name:<14} {about}");
    let lines: Vec<String> = bench::scenarios().map(line).collect();
    format!("Scenarios:\n{}", lines.join("\n"))
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = BenchArguments::parse();
    let done = match arguments.be.as_slice() {
        [] => measure(arguments).await,
        part => bench::be(part).await,
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("bench: {failure}");
            ExitCode::FAILURE
        }
    }
}

async fn measure(arguments: BenchArguments) -> tidemark_trials::Result<()> {
    let BenchArguments { scenarios, json, tables, runs, quick, .. } = arguments;
    let files = Files { json, tables };
    let rows = bench::run(&BenchPlan { scenarios, runs: runs.into(), quick, files }).await?;
    let missed = rows.iter().filter(|row| row.met == Some(false)).count();
    let asked = rows.iter().filter(|row| row.met.is_some()).count();
    println!("{} of {asked} targets met", asked - missed);
    Ok(())
}
