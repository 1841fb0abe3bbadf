//! Which failures are the fault of the command line or the configuration; how they are told is the same for every program.

pub use tidemark_process::Fault;

use crate::boot::BootError;
use crate::config::ConfigError;

impl From<ConfigError> for Fault {
    fn from(error: ConfigError) -> Fault {
        Fault::usage(error)
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
