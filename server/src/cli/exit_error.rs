//! Which failures are the fault of the command line or the configuration; every program reports them in the same way.

pub use tidemark_process::ExitError;

use crate::boot::BootError;
use crate::config::ConfigError;

impl From<ConfigError> for ExitError {
    fn from(error: ConfigError) -> ExitError {
        ExitError::usage(error)
    }
}

impl From<BootError> for ExitError {
    fn from(error: BootError) -> ExitError {
        match error {
            BootError::Config(error) => error.into(),
            error => ExitError::failed(error),
        }
    }
}
