//! `[storage] database_url`: which database. It may have a password in it, so it is shown and printed without.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize, Serializer};

/// Replaces a password where the URL is shown.
const HIDDEN: &str = "***";

/// A URL as it was written. Printed, logged or serialised it has no password.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct DatabaseUrl(String);

/// Which database a URL names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatabaseKind {
    /// A file of SQLite and others beside it, for one process.
    Sqlite,
    /// PostgreSQL, for any number of processes.
    Postgres,
}

impl DatabaseUrl {
    /// Whether none was given.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The URL with its password, for connecting.
    pub fn with_password(&self) -> &str {
        &self.0
    }

    /// Which database it names; SQLite when it is empty.
    pub fn kind(&self) -> DatabaseKind {
        let is_postgres = ["postgres://", "postgresql://"].iter().any(|scheme| self.0.starts_with(scheme));
        if is_postgres { DatabaseKind::Postgres } else { DatabaseKind::Sqlite }
    }

    /// The file that a URL of SQLite names; `None` when it is empty.
    ///
    /// # Errors
    /// The fault of the URL.
    pub(super) fn file(&self) -> Result<Option<PathBuf>, &'static str> {
        if self.0.is_empty() {
            return Ok(None);
        }
        match self.0.strip_prefix("sqlite:").map(|rest| rest.strip_prefix("//").unwrap_or(rest)) {
            Some("" | ":memory:") => Err("name a file, for example sqlite:data/tidemark.db"),
            Some(path) => Ok(Some(PathBuf::from(path))),
            None => Err("is not understood; write sqlite:PATH or postgres://USER:PASSWORD@HOST/DATABASE"),
        }
    }

    /// Without a password, wherever it stands: before the last @ of the authority, or as a parameter.
    fn shown(&self) -> String {
        let Some((scheme, rest)) = self.0.split_once("://").filter(|_| self.kind() == DatabaseKind::Postgres)
        else {
            return self.0.clone();
        };
        let (before, parameters) = match rest.split_once('?') {
            // A question mark that stands in a password.
            Some((before, after)) if !before.contains('@') && after.contains('@') => (rest, ""),
            Some((before, after)) => (before, after),
            None => (rest, ""),
        };
        let mut shown = format!("{scheme}://");
        match before.rsplit_once('@') {
            Some((who, place)) => match who.split_once(':') {
                Some((user, _)) => shown += &format!("{user}:{HIDDEN}@{place}"),
                None => shown += &format!("{who}@{place}"),
            },
            None => shown += before,
        }
        for (n, parameter) in parameters.split('&').filter(|parameter| !parameter.is_empty()).enumerate() {
            shown.push(if n == 0 { '?' } else { '&' });
            match parameter.split_once('=') {
                Some((key, _)) if key.contains("pass") => shown += &format!("{key}={HIDDEN}"),
                _ => shown += parameter,
            }
        }
        shown
    }
}

impl From<&str> for DatabaseUrl {
    fn from(url: &str) -> DatabaseUrl {
        DatabaseUrl(url.to_owned())
    }
}

impl From<String> for DatabaseUrl {
    fn from(url: String) -> DatabaseUrl {
        DatabaseUrl(url)
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.shown())
    }
}

impl Serialize for DatabaseUrl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.shown())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_never_shown() {
        for (url, shown) in [
            ("postgres://ann:s3cret@db/chat", "postgres://ann:***@db/chat"),
            (
                "postgres://ann:s3@cret@db:6432/chat?sslmode=require",
                "postgres://ann:***@db:6432/chat?sslmode=require",
            ),
            ("postgres://ann:s3?cret@db/chat", "postgres://ann:***@db/chat"),
            (
                "postgres://ann@db/chat?password=s3cret&sslmode=require",
                "postgres://ann@db/chat?password=***&sslmode=require",
            ),
            ("postgresql://db/chat", "postgresql://db/chat"),
            ("sqlite:data/a.db", "sqlite:data/a.db"),
            ("", ""),
        ] {
            assert_eq!(DatabaseUrl::from(url).shown(), shown);
            assert_eq!(format!("{:?}", DatabaseUrl::from(url)), format!("{shown:?}"));
        }
    }
}
