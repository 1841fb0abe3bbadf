//! Reads the one configuration file of a role, and reports mistakes in it; the same for every role.

use std::fs;
use std::path::Path;

use serde::de::DeserializeOwned;

use super::ExitError;

/// Reads a TOML file. Unknown keys and wrong values are refused in one line that names the place.
pub(crate) fn load<T: DeserializeOwned>(path: &Path) -> Result<T, ExitError> {
    let text = fs::read_to_string(path).map_err(|why| {
        ExitError::usage(format!("cannot read the configuration {}: {why}", path.display()))
    })?;
    toml::from_str(&text).map_err(|error| {
        let line = error.span().map_or(0, |span| text[..span.start].matches('\n').count() + 1);
        let what = match error.message().lines().next().unwrap_or("wrong value") {
            "invalid socket address syntax" => {
                "this is not an address with a port: write 127.0.0.1:7101, [::1]:7101 or 0.0.0.0:7101 (host names are not looked up)"
            }
            what => what,
        };
        ExitError::usage(format!("{}, line {line}: {what}", path.display()))
    })
}
