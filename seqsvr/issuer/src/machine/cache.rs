//! The local file of an instance, `sequence-client:8112:3232235742.properties`: the machine id that it holds and until
//! when, so that a start does not depend on the registry (S25), and the mark by which the registry knows it
//! again. Locked while the process runs. Called by the holder.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use seqsvr_core::file_lock::FileLock;
use sha2::{Digest, Sha256};
use thiserror::Error;

use super::Instance;
use crate::clock::Clock;

/// Why the file cannot be used.
#[derive(Debug, Error)]
pub enum CacheError {
    /// Another process of this instance runs.
    #[error("{path} is locked: stop the other process of this instance, or give this one another name")]
    InUse {
        /// The lock file.
        path: PathBuf,
    },
    /// The system refused.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// The contents of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cached {
    pub machine: u32,
    pub holder: u64,
    /// The end of the lease by the boot clock, and the start of the machine that it belongs to.
    pub boot_end: u64,
    pub boot_name: String,
    /// When the file was written and when the lease ends, by the calendar.
    pub written: u64,
    pub wall_end: u64,
    /// No id may be later than this.
    pub used_until: u64,
}

impl Cached {
    /// Until when, by the boot clock, the lease may be used with `margin` to spare; `None` if it is over. After a start of the
    /// machine only the calendar is left to judge by, and one that reads earlier than the file was written is wrong.
    pub(super) fn usable_until(&self, clock: &Clock, margin: u64) -> Option<u64> {
        let (boot, wall) = (clock.boot(), clock.wall());
        let left = if !self.boot_name.is_empty() && self.boot_name == clock.boot_name() {
            self.boot_end.saturating_sub(boot)
        } else if wall >= self.written {
            self.wall_end.saturating_sub(wall)
        } else {
            0
        };
        (left > margin).then(|| boot.saturating_add(left - margin))
    }

    fn to_text(&self, instance: &Instance) -> String {
        let Self { machine, holder, boot_end, boot_name, written, wall_end, used_until } = self;
        let lines = format!(
            "# The machine id of this instance and its lease. Written by the number issuer; do not copy it.\n\
             instance={instance}\nmachine={machine}\nholder={holder}\nboot-end={boot_end}\n\
             boot-name={boot_name}\nwritten={written}\nwall-end={wall_end}\nused-until={used_until}\n"
        );
        let check = check(&lines);
        format!("{lines}check={check}\n")
    }

    /// Reads what `to_text` wrote; `None` for anything else.
    fn from_text(text: &str, instance: &Instance) -> Option<Self> {
        let (lines, check_line) = text.trim_end().rsplit_once('\n')?;
        if check_line.strip_prefix("check=")? != check(&format!("{lines}\n")) {
            return None;
        }
        let value = |key: &str| lines.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
        let number = |key| value(key)?.parse().ok();
        (value("instance")? == instance.as_str()).then_some(())?;
        Some(Self {
            machine: value("machine")?.parse().ok()?,
            holder: number("holder")?,
            boot_end: number("boot-end")?,
            boot_name: value("boot-name")?.to_owned(),
            written: number("written")?,
            wall_end: number("wall-end")?,
            used_until: number("used-until")?,
        })
    }
}

/// 16 hex digits that a torn or edited file does not have.
fn check(lines: &str) -> String {
    Sha256::digest(lines.as_bytes())[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The file in its folder, and the lock on it.
#[derive(Debug)]
pub(super) struct Cache {
    instance: Instance,
    path: PathBuf,
    _lock: FileLock,
}

impl Cache {
    /// Locks the file of `instance` in `folder` and reads it. A damaged file is none: the registry is asked.
    pub(super) fn open(folder: &Path, instance: &Instance) -> Result<(Self, Option<Cached>), CacheError> {
        let path = folder.join(format!("{instance}.properties"));
        // Beside the file, which is replaced with each write, and never removed.
        let lock_path = folder.join(format!("{instance}.properties.lock"));
        let lock = FileLock::take(&lock_path).map_err(|error| match error {
            TryLockError::WouldBlock => CacheError::InUse { path: lock_path },
            TryLockError::Error(source) => CacheError::Io { path: lock_path, source },
        })?;
        let cached = match fs::read_to_string(&path) {
            Ok(text) => {
                let cached = Cached::from_text(&text, instance);
                if cached.is_none() {
                    tracing::warn!(path = %path.display(), "the file is damaged; asking the registry instead");
                }
                cached
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) if error.kind() == io::ErrorKind::InvalidData => None,
            Err(source) => return Err(CacheError::Io { path, source }),
        };
        Ok((Self { instance: instance.clone(), path, _lock: lock }, cached))
    }

    /// Replaces the file; durable when it returns.
    pub(super) fn write(&self, cached: &Cached) -> Result<(), CacheError> {
        let mut beside = self.path.clone().into_os_string();
        beside.push(".new");
        let io = |source| CacheError::Io { path: self.path.clone(), source };
        let replace = || {
            let mut file = File::create(&beside)?;
            file.write_all(cached.to_text(&self.instance).as_bytes())?;
            file.sync_all()?;
            fs::rename(&beside, &self.path)?;
            match self.path.parent() {
                Some(folder) if !folder.as_os_str().is_empty() => File::open(folder)?.sync_all(),
                _ => File::open(".")?.sync_all(),
            }
        };
        replace().map_err(io)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::clock::manual::Hands;

    const NOW: u64 = 1_800_000_000_000;

    fn instance() -> Instance {
        Instance::named("sequence-client:8112:3232235742").unwrap()
    }

    fn cached(hands: &Hands) -> Cached {
        let clock = hands.clock();
        Cached {
            machine: 17,
            holder: 42,
            boot_end: clock.boot() + 60_000,
            boot_name: clock.boot_name(),
            written: clock.wall(),
            wall_end: clock.wall() + 60_000,
            used_until: clock.wall() + 60_000,
        }
    }

    #[test]
    fn the_file_is_named_after_the_instance_and_reads_as_written() {
        let folder = tempfile::tempdir().unwrap();
        let (cache, none) = Cache::open(folder.path(), &instance()).unwrap();
        assert_eq!(none, None);
        let written = cached(&Hands::at(NOW));
        cache.write(&written).unwrap();
        assert!(folder.path().join("sequence-client:8112:3232235742.properties").is_file());
        let second = Cache::open(folder.path(), &instance()).unwrap_err();
        assert!(matches!(second, CacheError::InUse { .. }), "{second}");
        drop(cache);
        assert_eq!(Cache::open(folder.path(), &instance()).unwrap().1, Some(written));
    }

    #[test]
    fn the_text_of_the_file_stays_as_it_is() {
        let cached = Cached {
            machine: 17,
            holder: 42,
            boot_end: 1_060_000,
            boot_name: "start".to_owned(),
            written: 1_000_000,
            wall_end: 1_060_000,
            used_until: 1_060_000,
        };
        let stored = "\
# The machine id of this instance and its lease. Written by the number issuer; do not copy it.
instance=sequence-client:8112:3232235742
machine=17
holder=42
boot-end=1060000
boot-name=start
written=1000000
wall-end=1060000
used-until=1060000
check=fab43dd49852f423
";
        assert_eq!(cached.to_text(&instance()), stored);
    }

    #[test]
    fn a_lease_is_usable_until_its_end_less_the_margin() {
        let hands = Hands::at(NOW);
        let cached = cached(&hands);
        let end = hands.clock().boot() + 50_000;
        assert_eq!(cached.usable_until(&hands.clock(), 10_000), Some(end));
        hands.pass(49_999);
        assert_eq!(cached.usable_until(&hands.clock(), 10_000), Some(end));
        hands.pass(1);
        assert_eq!(cached.usable_until(&hands.clock(), 10_000), None);
    }

    #[test]
    fn a_calendar_that_went_back_does_not_make_a_lease_longer() {
        let hands = Hands::at(NOW);
        let cached = cached(&hands);
        hands.pass(59_000);
        hands.set(NOW + 1);
        assert_eq!(cached.usable_until(&hands.clock(), 10_000), None, "the boot clock knows better");
        hands.reboot();
        hands.set(NOW - 1);
        assert_eq!(cached.usable_until(&hands.clock(), 0), None, "earlier than it was written");
        hands.set(NOW + 20_000);
        assert_eq!(cached.usable_until(&hands.clock(), 10_000), Some(30_000));
    }

    proptest! {
        #[test]
        fn a_changed_byte_is_noticed(at: usize, to in b' '..=b'~') {
            let mut bytes = cached(&Hands::at(NOW)).to_text(&instance()).into_bytes();
            let at = at % (bytes.len() - 1);
            prop_assume!(bytes[at] != to);
            bytes[at] = to;
            prop_assert_eq!(Cached::from_text(std::str::from_utf8(&bytes).unwrap(), &instance()), None);
        }
    }

    #[test]
    fn the_file_of_another_instance_is_not_used() {
        let text = cached(&Hands::at(NOW)).to_text(&instance());
        assert_eq!(Cached::from_text(&text, &Instance::named("other").unwrap()), None);
    }
}
