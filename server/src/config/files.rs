//! `[files]`: where files lie, and how large they may be.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize, Serializer};

use super::{ConfigError, within};
use crate::files::FilePlace;

/// Files of messages and moments.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FilesSection {
    /// A directory, within the data directory unless it begins with a slash; or the URL of a bucket.
    pub store: FileStore,
    /// The largest file, in MiB.
    pub file_mib: u32,
    /// All files of one account, in MiB.
    pub account_mib: u32,
    /// Types that are refused: `image/gif`, `video/*`, or the end of a name, `.exe`.
    pub refused: Vec<String>,
}

impl Default for FilesSection {
    fn default() -> Self {
        FilesSection {
            store: FileStore("files".to_owned()),
            file_mib: 100,
            account_mib: 2_048,
            refused: Vec::new(),
        }
    }
}

impl FilesSection {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let refuse = |key, why| Err(ConfigError::Value { section: "files", key, why });
        within("files", "file_mib", self.file_mib, 1..=1 << 20)?;
        within("files", "account_mib", self.account_mib, 1..=1 << 30)?;
        if let Err(why) = self.store.check() {
            return refuse("store", why);
        }
        let is_type = |word: &String| {
            word.starts_with('.')
                || word.split_once('/').is_some_and(|(of, kind)| !of.is_empty() && !kind.is_empty())
        };
        match self.refused.iter().find(|word| !is_type(word) || **word != word.to_lowercase()) {
            Some(word) => refuse(
                "refused",
                format!("has {word}; write types and endings in small letters: image/gif, video/*, .exe"),
            ),
            None => Ok(()),
        }
    }
}

/// A directory or the URL of a bucket, as it was written. Printed, logged or serialised it has no secret.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct FileStore(String);

impl FileStore {
    fn is_url(&self) -> bool {
        self.0.contains("://")
    }

    fn check(&self) -> Result<(), String> {
        match () {
            () if self.is_url() => FilePlace::check_url(&self.0),
            () if self.0.trim().is_empty() => {
                Err("is empty; name a directory or the URL of a bucket".to_owned())
            }
            () => Ok(()),
        }
    }

    /// The URL of a bucket with its secret, if it is one.
    pub fn bucket(&self) -> Option<&str> {
        self.is_url().then_some(&*self.0)
    }

    /// The directory, within `data`, if it is one.
    pub fn directory(&self, data: &Path) -> Option<PathBuf> {
        (!self.is_url()).then(|| data.join(&self.0))
    }

    fn shown(&self) -> String {
        let hidden = self.0.split_once("://").and_then(|(scheme, rest)| {
            let (who, place) = rest.rsplit_once('@')?;
            let key = who.split_once(':').map_or(who, |(key, _)| key);
            Some(format!("{scheme}://{key}:***@{place}"))
        });
        hidden.unwrap_or_else(|| self.0.clone())
    }
}

impl From<&str> for FileStore {
    fn from(store: &str) -> FileStore {
        FileStore(store.to_owned())
    }
}

impl fmt::Debug for FileStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.shown())
    }
}

impl Serialize for FileStore {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.shown())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_never_shown() {
        for (store, shown) in [
            ("files", "files"),
            ("s3://key:se@cr/et@s3.example.org/b?region=eu", "s3://key:***@s3.example.org/b?region=eu"),
        ] {
            assert_eq!(FileStore::from(store).shown(), shown);
            assert_eq!(format!("{:?}", FileStore::from(store)), format!("{shown:?}"));
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused_by_name() {
        let check = |section: FilesSection| section.check().map_err(|error| error.to_string());
        assert_eq!(check(FilesSection::default()), Ok(()));
        let refused = ["image/gif", "video/*", ".exe"].map(str::to_owned).to_vec();
        assert_eq!(check(FilesSection { refused, ..FilesSection::default() }), Ok(()));
        for (section, said) in [
            (FilesSection { store: "".into(), ..FilesSection::default() }, "[files] store: is empty"),
            (
                FilesSection { store: "s3://host/b".into(), ..FilesSection::default() },
                "[files] store: has no key",
            ),
            (FilesSection { file_mib: 0, ..FilesSection::default() }, "[files] file_mib: is 0"),
            (
                FilesSection { refused: vec!["exe".to_owned()], ..FilesSection::default() },
                "[files] refused: has exe",
            ),
            (
                FilesSection { refused: vec![".EXE".to_owned()], ..FilesSection::default() },
                "[files] refused: has .EXE",
            ),
        ] {
            let reported = check(section).expect_err(said);
            assert!(reported.starts_with(said), "{reported}");
        }
        let data = Path::new("data");
        assert_eq!(FileStore::from("files").directory(data), Some(PathBuf::from("data/files")));
        assert_eq!(FileStore::from("/srv/files").directory(data), Some(PathBuf::from("/srv/files")));
        assert_eq!(FileStore::from("s3://k:s@h/b").directory(data), None);
    }
}
