//! The data directory of an AllocSvr: a lock that proves the process before this one dead, and for each Set a small
//! file with the sections it was serving, so that a restart need not wait for its own old lease. Written whole, synced
//! and renamed; one that is damaged counts as none, which only costs the wait.

use std::fmt::Write as _;
use std::fs::{self, File, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::node::{Predecessor, Serving};
use seqsvr_core::file_lock::FileLock;
use seqsvr_core::ids::{Epoch, SectionId};
use seqsvr_core::store::Owner;

/// Stored, must stay.
const HEAD: &str = "seqsvr serving 1";
/// Tells this run of this machine's kernel from every other one, also of a clone of the machine.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// The directory, locked while this lives.
pub struct DataDir {
    path: PathBuf,
    _lock: FileLock,
}

impl DataDir {
    /// Makes the directory if need be, and locks it.
    ///
    /// # Errors
    ///
    /// One line: another process has it, or the system refuses.
    pub fn open(path: &Path) -> Result<Self, String> {
        let refused = |why: &dyn std::fmt::Display| format!("directory {}: {why}", path.display());
        fs::create_dir_all(path).map_err(|error| refused(&error))?;
        let lock = FileLock::take(&path.join("lock")).map_err(|error| match error {
            TryLockError::WouldBlock => {
                refused(&"another process runs in it; stop that one, or set another directory")
            }
            TryLockError::Error(error) => refused(&error),
        })?;
        Ok(Self { path: path.to_owned(), _lock: lock })
    }

    /// The record of one Set.
    pub fn record(&self, set: u32) -> ServingRecord {
        let boot = fs::read_to_string(BOOT_ID).unwrap_or_default().trim().to_owned();
        ServingRecord { path: self.path.join(format!("serving-{set}")), boot }
    }
}

/// The record of the sections of one Set that a life of this node serves.
#[derive(Clone, Debug)]
pub struct ServingRecord {
    path: PathBuf,
    /// Which kernel runs this process. The lock on the directory proves the process before this one dead only if the same kernel ran
    /// it: a volume can be detached by force from a machine on which that process lives on. Empty: unknown.
    boot: String,
}

impl ServingRecord {
    /// The record of the process before this one; `None` when there is none to rely on.
    pub(crate) fn load(&self) -> Option<Predecessor> {
        let text = match fs::read_to_string(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => {
                tracing::warn!(path = %self.path.display(), %error, "the record of serving cannot be read");
                return None;
            }
        };
        let Some((boot, read)) = parse(&text) else {
            tracing::warn!(
                path = %self.path.display(),
                "the record of serving is damaged and is ignored"
            );
            return None;
        };
        if self.boot.is_empty() || boot != self.boot {
            tracing::info!(path = %self.path.display(), "the record of serving is of an earlier start of the machine; waiting for the end of its lease");
            return None;
        }
        Some(read)
    }

    /// Makes the served sections durable, in place of the record before.
    pub(crate) fn save(&self, incarnation: u64, serving: &[Serving]) -> io::Result<()> {
        let fresh = self.path.with_extension("new");
        let mut file = File::create(&fresh)?;
        file.write_all(render(&self.boot, incarnation, serving).as_bytes())?;
        file.sync_all()?;
        fs::rename(&fresh, &self.path)?;
        let folder = self.path.parent().expect("it lies in the data directory");
        File::open(folder)?.sync_all()
    }
}

fn render(boot: &str, incarnation: u64, serving: &[Serving]) -> String {
    let mut text = format!("{HEAD}\nboot {boot}\nincarnation {incarnation}\n");
    for (owner, sections) in serving {
        for run in sections {
            let Epoch { term, version } = owner.epoch;
            writeln!(text, "{term} {version} {} {}", run.start(), run.end()).expect("strings take all");
        }
    }
    let sum = checksum(&text);
    text + &format!("sha256 {sum}\n")
}

/// The kernel that ran the process, and the sections that the process served.
fn parse(text: &str) -> Option<(String, Predecessor)> {
    let (body, sum) = text.strip_suffix('\n')?.rsplit_once("\nsha256 ")?;
    let body = format!("{body}\n");
    if checksum(&body) != sum {
        return None;
    }
    let mut lines = body.lines();
    if lines.next() != Some(HEAD) {
        return None;
    }
    let boot = lines.next()?.strip_prefix("boot ")?.to_owned();
    let incarnation = lines.next()?.strip_prefix("incarnation ")?.parse().ok()?;
    let mut serving: Vec<Serving> = Vec::new();
    for line in lines {
        let numbers: Vec<u64> = line.split(' ').map(|word| word.parse().ok()).collect::<Option<_>>()?;
        let [term, version, first, last] = numbers[..] else { return None };
        let section = |number: u64| u32::try_from(number).ok().map(SectionId::new);
        let owner = Owner { epoch: Epoch { term, version }, incarnation };
        let run = section(first)?..=section(last)?;
        match serving.last_mut() {
            Some((one, sections)) if *one == owner => sections.push(run),
            _ => serving.push((owner, vec![run])),
        }
    }
    Some((boot, Predecessor { incarnation, serving }))
}

fn checksum(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").expect("strings take all");
        hex
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn serving() -> Vec<Serving> {
        let run = |first, last| SectionId::new(first)..=SectionId::new(last);
        let owner = |version| Owner { epoch: Epoch { term: 256, version }, incarnation: u64::MAX };
        vec![(owner(1), vec![run(0, 4), run(6, 6)]), (owner(9), vec![run(42_949, 42_949)])]
    }

    #[test]
    fn a_record_survives_the_process_and_one_process_has_the_directory() {
        let folder = tempfile::tempdir().unwrap();
        let first = DataDir::open(folder.path()).unwrap();
        assert_eq!(first.record(3).load(), None);
        first.record(3).save(u64::MAX, &serving()).unwrap();
        assert!(DataDir::open(folder.path()).err().unwrap().contains("another process runs in it"));
        drop(first);
        let second = DataDir::open(folder.path()).unwrap();
        let expected = Predecessor { incarnation: u64::MAX, serving: serving() };
        assert_eq!(second.record(3).load(), Some(expected));
        assert_eq!(second.record(4).load(), None);
    }

    #[test]
    fn the_text_of_a_record_stays_as_it_is() {
        let stored = "\
seqsvr serving 1
boot b
incarnation 18446744073709551615
256 1 0 4
256 1 6 6
256 9 42949 42949
sha256 ceaed0be559850e3585b4986568385467a801d2204f7154a0e3db88c6b7232ca
";
        assert_eq!(render("b", u64::MAX, &serving()), stored);
    }

    #[test]
    fn a_record_of_another_machine_is_not_relied_on() {
        let folder = tempfile::tempdir().unwrap();
        let data = DataDir::open(folder.path()).unwrap();
        let here = data.record(0);
        // The volume was on another machine, whose process may live on there.
        let there = ServingRecord { boot: "4a1b8f2e-another".to_owned(), ..here.clone() };
        there.save(7, &serving()).unwrap();
        assert!(there.load().is_some());
        assert_eq!(here.load(), None);
        let unknown = ServingRecord { boot: String::new(), ..here.clone() };
        unknown.save(7, &serving()).unwrap();
        assert_eq!(unknown.load(), None, "no two unknown kernels are the same");
    }

    #[test]
    fn a_damaged_record_is_not_relied_on() {
        let whole = render("boot", 7, &serving());
        assert!(parse(&whole).is_some());
        for cut in 0..whole.len() {
            assert_eq!(parse(&whole[..cut]), None, "cut at {cut}");
        }
        for place in 0..whole.len() {
            let mut bytes = whole.clone().into_bytes();
            bytes[place] ^= 1;
            let changed = String::from_utf8(bytes).unwrap();
            assert_eq!(parse(&changed), None, "changed at {place}");
        }
    }
}
