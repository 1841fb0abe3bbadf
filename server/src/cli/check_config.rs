//! `tidemark check-config`: prints what is in force. By the time that it runs, the configuration has been checked.

use std::io::Write as _;

use super::ExitError;
use crate::config::Config;

pub(super) fn run(config: &Config) -> Result<(), ExitError> {
    std::io::stdout().write_all(config.to_toml().as_bytes()).map_err(ExitError::failed)
}
