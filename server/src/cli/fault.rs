//! How a command fails: one line on standard error that says what to do, and an exit code.

use std::process::ExitCode;

use crate::boot::BootError;
use crate::config::ConfigError;

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
    pub fn failed(why: impl std::fmt::Display) -> Fault {
        Fault::Failed(why.to_string())
    }

    /// Says it, and returns the exit code.
    pub fn report(&self) -> ExitCode {
        let (line, code) = match self {
            Fault::Help(text) => {
                // Nobody is left to tell when standard output is closed.
                let _ = text.print();
                return ExitCode::SUCCESS;
            }
            Fault::Failed(line) => (line, 1),
            Fault::Usage(line) => (line, 2),
        };
        eprintln!("tidemark: {line}");
        ExitCode::from(code)
    }
}

impl From<clap::Error> for Fault {
    fn from(error: clap::Error) -> Fault {
        if !error.use_stderr() {
            return Fault::Help(Box::new(error));
        }
        let text = error.to_string();
        let said = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("wrong use");
        Fault::Usage(format!("{}; `tidemark --help` shows how", said.trim_start_matches("error: ")))
    }
}

impl From<ConfigError> for Fault {
    fn from(error: ConfigError) -> Fault {
        Fault::Usage(error.to_string())
    }
}

impl From<std::io::Error> for Fault {
    fn from(error: std::io::Error) -> Fault {
        Fault::failed(error)
    }
}

impl From<BootError> for Fault {
    fn from(error: BootError) -> Fault {
        match error {
            BootError::Config(error) => error.into(),
            error => Fault::failed(error),
        }
    }
}
