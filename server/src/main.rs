//! The program `tidemark`. Five steps; everything else is in the library of the same name.

use std::process::ExitCode;

use mimalloc::MiMalloc;
use tidemark::cli::{Cli, ExitError};
use tidemark::config::Config;
use tidemark::{lifecycle, telemetry};
use tidemark_commit::commit;
use tidemark_process::Version;

/// Half of the processor time of a large batch went into the allocator of the C library (docs/adr/0005).
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

const VERSION: Version = Version::of(commit!());

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => error.report("tidemark"),
    }
}

fn run() -> Result<(), ExitError> {
    let cli = Cli::read(std::env::args_os(), VERSION)?;
    let config = Config::load(&cli.flags, std::env::vars())?;
    telemetry::start(&config.log);
    let runtime = lifecycle::runtime()?;
    runtime.block_on(cli.run(config, VERSION))
}
