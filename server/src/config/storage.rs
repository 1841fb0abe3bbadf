//! `[storage]`: where the data lies and how much memory reading it may take.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{ConfigError, within};

/// Where the data lies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StorageSection {
    /// The directory of the database, unless `database_url` says otherwise.
    pub data_dir: PathBuf,
    /// `sqlite:PATH`; empty: `tidemark.db` in `data_dir`.
    pub database_url: String,
    /// Connections that read at the same time.
    pub readers: u32,
    /// Page cache of the writing connection, in MiB.
    pub cache_mib: u32,
    /// Names that are kept in memory.
    pub cached_names: usize,
}

impl Default for StorageSection {
    fn default() -> Self {
        StorageSection {
            data_dir: PathBuf::from("data"),
            database_url: String::new(),
            readers: 4,
            cache_mib: 256,
            cached_names: 100_000,
        }
    }
}

impl StorageSection {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        within("storage", "readers", self.readers, 1..=64)?;
        within("storage", "cache_mib", self.cache_mib, 1..=65_536)?;
        within("storage", "cached_names", self.cached_names, 1..=100_000_000)?;
        self.file().map(drop)
    }

    /// The database file.
    pub fn file(&self) -> Result<PathBuf, ConfigError> {
        let refuse = |why: &str| {
            Err(ConfigError::Value { section: "storage", key: "database_url", why: why.to_owned() })
        };
        let url = self.database_url.as_str();
        if url.is_empty() {
            return Ok(self.data_dir.join("tidemark.db"));
        }
        if url.starts_with("postgres://") || url.starts_with("postgresql://") {
            return refuse("chat on PostgreSQL is not supported yet; use sqlite:PATH");
        }
        match url.strip_prefix("sqlite:").map(|rest| rest.strip_prefix("//").unwrap_or(rest)) {
            Some("" | ":memory:") => refuse("name a file, for example sqlite:data/tidemark.db"),
            Some(path) => Ok(PathBuf::from(path)),
            None => refuse("is not understood; write sqlite:PATH"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_database_lies_in_the_data_directory_unless_told_otherwise() {
        let file =
            |url: &str| StorageSection { database_url: url.into(), ..StorageSection::default() }.file();
        assert_eq!(file("").expect("default"), PathBuf::from("data/tidemark.db"));
        assert_eq!(file("sqlite:/var/t.db").expect("a path"), PathBuf::from("/var/t.db"));
        assert_eq!(file("sqlite:///var/t.db").expect("a URL"), PathBuf::from("/var/t.db"));
        for bad in ["mysql://x", "sqlite:", "sqlite::memory:", "postgresql://x", "data/t.db"] {
            assert!(file(bad).is_err(), "{bad}");
        }
    }
}
