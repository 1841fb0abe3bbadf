//! How a command fails: one line on standard error that says what to do, and an exit code.

use std::process::ExitCode;

use crate::rpc::security::SecurityError;

/// Why a command ended without having done what was asked.
#[derive(Debug)]
pub enum Fault {
    /// Nothing is wrong: help or the version was asked for. Exit code 0.
    Help(Box<clap::Error>),
    /// It failed. Exit code 1.
    Failed(String),
    /// The command line or the configuration is wrong. Exit code 2.
    Usage(String),
}

impl Fault {
    /// It failed, and why.
    pub fn failed(why: impl std::fmt::Display) -> Self {
        Self::Failed(why.to_string())
    }

    /// It was asked for in a wrong way, and what would be right.
    pub fn usage(why: impl std::fmt::Display) -> Self {
        Self::Usage(why.to_string())
    }

    /// Says it, and returns the exit code.
    pub fn report(&self) -> ExitCode {
        let (line, code) = match self {
            Self::Help(text) => {
                // Nobody is left to tell when standard output is closed.
                let _ = text.print();
                return ExitCode::SUCCESS;
            }
            Self::Failed(line) => (line, 1),
            Self::Usage(line) => (line, 2),
        };
        eprintln!("seqsvr: {line}");
        ExitCode::from(code)
    }
}

impl From<clap::Error> for Fault {
    fn from(error: clap::Error) -> Self {
        if !error.use_stderr() {
            return Self::Help(Box::new(error));
        }
        let text = error.to_string();
        let said = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("wrong use");
        Self::Usage(format!("{}; `seqsvr --help` shows how", said.trim_start_matches("error: ")))
    }
}

impl From<std::io::Error> for Fault {
    fn from(error: std::io::Error) -> Self {
        Self::failed(error)
    }
}

impl From<SecurityError> for Fault {
    fn from(error: SecurityError) -> Self {
        Self::usage(error)
    }
}
