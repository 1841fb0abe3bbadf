//! The behaviour of every program of the project as a process. A failure is one line that says what to do. A signal stops
//! the program in good order. The limit of open files is raised at the start. Each program reports its version and its use
//! of the machine.
//!
//! This crate receives the signals of the process. Both command lines and `main` call it.

mod command_line;
mod usage;
mod version;

pub use command_line::{Manual, parse};
pub use usage::usage;
pub use version::Version;

use std::fmt::Display;
use std::io;
use std::process::ExitCode;

use clap::error::{ContextKind, ErrorKind};
use rustix::process::{Resource, Rlimit, getrlimit, setpriority_process, setrlimit};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// How far behind: halfway between a usual thread and the last.
const BEHIND: i32 = 10;

/// Why a command ended without having done what was asked.
#[derive(Debug)]
pub enum ExitError {
    /// Nothing is wrong: help or the version was asked for. Exit code 0.
    Help(Box<clap::Error>),
    /// It failed. Exit code 1.
    Failed(String),
    /// The command line or the configuration is wrong. Exit code 2.
    Usage(String),
}

impl ExitError {
    /// It failed, and why.
    pub fn failed(why: impl Display) -> Self {
        Self::Failed(why.to_string())
    }

    /// It was asked for in a wrong way, and what would be right.
    pub fn usage(why: impl Display) -> Self {
        Self::Usage(why.to_string())
    }

    /// Says it in the name of `program`, and returns the exit code.
    pub fn report(&self, program: &str) -> ExitCode {
        let (line, code) = match self {
            Self::Help(text) => {
                // Nobody is left to tell when standard output is closed.
                let _ = text.print();
                return ExitCode::SUCCESS;
            }
            Self::Failed(line) => (line, 1),
            Self::Usage(line) => (line, 2),
        };
        eprintln!("{program}: {line}");
        ExitCode::from(code)
    }
}

impl From<clap::Error> for ExitError {
    fn from(error: clap::Error) -> Self {
        if !error.use_stderr() {
            return Self::Help(Box::new(error));
        }
        Self::Usage(format!("{}; `--help` shows how", complaint(&error)))
    }
}

/// Clap's complaint, in one line. Its own first line ends where a list begins, and for a missing command it is the help.
fn complaint(error: &clap::Error) -> String {
    let text = error.to_string();
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    match error.kind() {
        ErrorKind::MissingRequiredArgument => {
            let missing = error.get(ContextKind::InvalidArg).map(ToString::to_string).unwrap_or_default();
            format!("{missing} is missing")
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand => {
            let usage = lines.find_map(|line| line.strip_prefix("Usage: ")).unwrap_or("COMMAND");
            format!("a command is missing: {usage}")
        }
        _ => lines.next().unwrap_or("wrong use").trim_start_matches("error: ").to_owned(),
    }
}

impl From<io::Error> for ExitError {
    fn from(error: io::Error) -> Self {
        Self::failed(error)
    }
}

/// Lets the process hold as many files, and so connections, as the system allows it; the usual first limit is 1,024.
/// Says how many that are. `None`: as many as there are.
pub fn allow_many_files() -> Option<u64> {
    let limit = getrlimit(Resource::Nofile);
    let most = Rlimit { current: limit.maximum, ..limit };
    // Where it is refused the old limit stays, and connections beyond it wait.
    let _ = setrlimit(Resource::Nofile, most);
    getrlimit(Resource::Nofile).current
}

/// Lets the calling thread run behind the others of the process when processors are short. For work that may wait.
pub fn yield_to_other_threads() {
    // On Linux the priority belongs to the thread. Where it is refused, the thread runs like the others.
    let _ = setpriority_process(None, BEHIND);
}

/// SIGTERM, SIGINT and SIGHUP: each asks for a stop in good order.
#[derive(Debug)]
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
    /// A stop was asked for already: a terminal that closes sends its SIGHUP more than once, and that is no second request.
    asked: bool,
}

impl Signals {
    /// Takes the signals from the system: from now on they no longer end the process by themselves.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub fn listen() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
            asked: false,
        })
    }

    /// Waits for one of them; after the first, for SIGTERM or SIGINT.
    pub async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
            _ = self.hangup.recv(), if !self.asked => {}
        }
        self.asked = true;
    }
}
