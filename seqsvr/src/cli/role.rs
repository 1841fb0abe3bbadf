//! What every role does the same way: read its one configuration file, and say what is wrong with it.

use std::fs;
use std::path::Path;

use serde::de::DeserializeOwned;

use super::Fault;
use crate::rpc::security::SecurityError;

/// Reads a TOML file. Unknown keys and wrong values are refused in one line that names the place.
pub(crate) fn load<T: DeserializeOwned>(path: &Path) -> Result<T, Fault> {
    let text = fs::read_to_string(path)
        .map_err(|why| Fault::usage(format!("cannot read the configuration {}: {why}", path.display())))?;
    toml::from_str(&text).map_err(|error| {
        let line = error.span().map_or(0, |span| text[..span.start].matches('\n').count() + 1);
        let what = error.message().lines().next().unwrap_or("wrong value").to_owned();
        Fault::usage(format!("{}, line {line}: {what}", path.display()))
    })
}

impl From<SecurityError> for Fault {
    fn from(error: SecurityError) -> Self {
        Self::usage(error)
    }
}
