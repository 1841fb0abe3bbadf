//! A backup as a file: JSON Lines. The first line says what it is, the last one holds the SHA-256 of all before it, so
//! a file that was cut or changed is refused. Stored, must stay readable.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use thiserror::Error;

use seqsvr_core::ids::{Epoch, SectionId};
use seqsvr_core::routing::{Assignment, Node, NodeState, Table};
use seqsvr_core::store::backup::Backup;
use seqsvr_core::store::configuration::Given;
use seqsvr_core::store::{Layout, MAX_CEILING, Move, Moves};

const FORMAT: &str = "seqsvr backup";
const VERSION: u32 = 1;
/// Larger files are not read: 429,497 sections, each on a line of its own, take 30 MiB.
const LARGEST: u64 = 256 << 20;

/// A backup, with its cluster and Set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupFile {
    /// The cluster; empty for a store that belongs to none.
    pub cluster: String,
    /// The number of the Set.
    pub set: u32,
    /// Uids that the Set gave up: the backup is of them alone, exact, for one move into one other Set.
    pub moved: Option<Given>,
    /// The contents of the stores.
    pub backup: Backup,
}

/// Why a file was not written or read.
#[derive(Debug, Error)]
pub enum FileError {
    /// The system refuses.
    #[error("{path}: {why}")]
    Io {
        /// The file.
        path: String,
        /// The error of the system.
        why: io::Error,
    },
    /// It is none, or not whole.
    #[error("{path}: {why}")]
    Damaged {
        /// The file.
        path: String,
        /// The damage.
        why: String,
    },
}

#[derive(Debug, Serialize, Deserialize)]
struct BackupHead {
    format: String,
    version: u32,
    cluster: String,
    set: u32,
    section_size: Option<u32>,
    step: Option<u32>,
    promised_term: Long,
    newest_epoch: EpochLine,
    floor: Long,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    moved: Option<MovedLine>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    given: Vec<MovedLine>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    taken: Vec<TakenLine>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct MovedLine {
    first_uid: u32,
    last_uid: u32,
    to_set: u32,
    number: Long,
}

impl From<&Given> for MovedLine {
    fn from(one: &Given) -> Self {
        let (first_uid, last_uid) = (*one.uids.start(), *one.uids.end());
        Self { first_uid, last_uid, to_set: one.to, number: Long(one.number) }
    }
}

impl From<MovedLine> for Given {
    fn from(line: MovedLine) -> Self {
        Self { uids: line.first_uid..=line.last_uid, to: line.to_set, number: line.number.0 }
    }
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct TakenLine {
    from_set: u32,
    number: Long,
}

/// Larger than the numbers of many JSON tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Long(u64);

impl Serialize for Long {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Long {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        text.parse().map(Self).map_err(|_| serde::de::Error::custom(format!("{text:?} is not a number")))
    }
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct EpochLine {
    term: Long,
    version: Long,
}

impl From<Epoch> for EpochLine {
    fn from(epoch: Epoch) -> Self {
        Self { term: Long(epoch.term), version: Long(epoch.version) }
    }
}

impl From<EpochLine> for Epoch {
    fn from(line: EpochLine) -> Self {
        Self { term: line.term.0, version: line.version.0 }
    }
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum BackupLine {
    Table(TableLine),
    Sections { first: u32, last: u32, ceiling: Long },
    Sha256(String),
}

#[derive(Debug, Serialize, Deserialize)]
struct TableLine {
    version: EpochLine,
    section_size: u32,
    first_uid: u32,
    last_uid: u32,
    nodes: Vec<NodeLine>,
    assignments: Vec<AssignmentLine>,
}

#[derive(Debug, Serialize, Deserialize)]
struct NodeLine {
    name: String,
    addr: String,
    drained: bool,
}

#[derive(Debug, Serialize, Deserialize)]
struct AssignmentLine {
    first: u32,
    last: u32,
    node: u32,
    home: u32,
    incarnation: Long,
    epoch: EpochLine,
}

impl BackupFile {
    /// Writes it to `path`, readable by its owner alone: whole or not at all.
    ///
    /// # Errors
    ///
    /// [`FileError::Io`].
    pub fn write(&self, path: &Path) -> Result<(), FileError> {
        let io = |why| FileError::Io { path: path.display().to_string(), why };
        let mut fresh = path.as_os_str().to_owned();
        fresh.push(".new");
        let fresh = Path::new(&fresh);
        let write = || {
            match fs::remove_file(fresh) {
                Err(why) if why.kind() != io::ErrorKind::NotFound => return Err(why),
                _ => {}
            }
            let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(fresh)?;
            file.write_all(self.render().as_bytes())?;
            file.sync_all()?;
            fs::rename(fresh, path)?;
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
        };
        write().map_err(io)
    }

    /// Reads a file that [`write`](Self::write) wrote.
    ///
    /// # Errors
    ///
    /// Every [`FileError`].
    pub fn read(path: &Path) -> Result<Self, FileError> {
        let io = |why| FileError::Io { path: path.display().to_string(), why };
        let damaged = |why: String| FileError::Damaged { path: path.display().to_string(), why };
        if fs::metadata(path).map_err(io)?.len() > LARGEST {
            return Err(damaged(format!(
                "it is larger than {LARGEST} bytes, so it is not a backup of seqsvr"
            )));
        }
        let text = String::from_utf8(fs::read(path).map_err(io)?);
        let text = text.map_err(|_| damaged("it is not text, so it is not a backup of seqsvr".to_owned()))?;
        parse(&text).map_err(damaged)
    }

    fn render(&self) -> String {
        let Backup { layout, promised, newest, floor, table, ceilings, moves } = &self.backup;
        let taken = |one: &Move| TakenLine { from_set: one.from, number: Long(one.number) };
        let head = BackupHead {
            format: FORMAT.to_owned(),
            version: VERSION,
            cluster: self.cluster.clone(),
            set: self.set,
            section_size: layout.map(|layout| layout.section_size),
            step: layout.map(|layout| layout.step),
            promised_term: Long(*promised),
            newest_epoch: (*newest).into(),
            floor: Long(*floor),
            moved: self.moved.as_ref().map(MovedLine::from),
            given: moves.given.iter().map(MovedLine::from).collect(),
            taken: moves.taken.iter().map(taken).collect(),
        };
        let mut text = json(&head);
        if let Some(table) = table {
            text += &json(&BackupLine::Table(line(table)));
        }
        for (run, ceiling) in ceilings {
            let (first, last) = (run.start().get(), run.end().get());
            text += &json(&BackupLine::Sections { first, last, ceiling: Long(*ceiling) });
        }
        let sum = checksum(&text);
        text + &json(&BackupLine::Sha256(sum))
    }
}

fn json(line: &impl Serialize) -> String {
    serde_json::to_string(line).expect("plain values can be written") + "\n"
}

fn checksum(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn parse(text: &str) -> Result<BackupFile, String> {
    let other = || "it is not a backup of seqsvr".to_owned();
    let head = text.lines().next().ok_or_else(other)?;
    let head: serde_json::Value = serde_json::from_str(head).map_err(|_| other())?;
    if head["format"] != FORMAT {
        return Err(other());
    }
    if head["version"] != VERSION {
        return Err(format!(
            "it has version {}, which this program does not know (it knows {VERSION}); use the one that wrote it",
            head["version"]
        ));
    }
    let cut = || "it is incomplete: its last line, the checksum, is missing; use another copy".to_owned();
    let body = text.strip_suffix('\n').ok_or_else(cut)?;
    let (body, last) = body.split_at(body.rfind('\n').ok_or_else(cut)? + 1);
    match serde_json::from_str(last) {
        Ok(BackupLine::Sha256(sum)) if sum == checksum(body) => {}
        Ok(BackupLine::Sha256(_)) => {
            return Err("its checksum is wrong: it was changed or damaged; use another copy".to_owned());
        }
        _ => return Err(cut()),
    }
    let wrong = |number: usize, why: &dyn std::fmt::Display| format!("line {number}: {why}");
    let head: BackupHead = serde_json::from_value(head).map_err(|error| wrong(1, &error))?;
    let layout = match (head.section_size, head.step) {
        (Some(section_size), Some(step)) if section_size > 0 => Some(Layout { section_size, step }),
        _ => None,
    };
    let mut backup = Backup {
        layout,
        promised: head.promised_term.0,
        newest: head.newest_epoch.into(),
        floor: head.floor.0,
        moves: Moves {
            given: head.given.into_iter().map(Given::from).collect(),
            taken: head.taken.iter().map(|one| Move { from: one.from_set, number: one.number.0 }).collect(),
        },
        ..Backup::default()
    };
    let mut next = 0;
    for (number, line) in (1..).zip(body.lines()).skip(1) {
        match serde_json::from_str(line).map_err(|error| wrong(number, &error))? {
            BackupLine::Table(line) => {
                backup.table = Some(Arc::new(table(head.set, line).map_err(|why| wrong(number, &why))?))
            }
            BackupLine::Sections { first, last, ceiling: Long(ceiling) } => {
                if u64::from(first) < next || first > last || ceiling > MAX_CEILING {
                    return Err(wrong(number, &"a section is out of order, or a ceiling is too large"));
                }
                next = u64::from(last) + 1;
                backup.ceilings.push((SectionId::new(first)..=SectionId::new(last), ceiling));
            }
            BackupLine::Sha256(_) => return Err(wrong(number, &"a checksum is not on the last line")),
        }
    }
    let moved = head.moved.map(Given::from);
    Ok(BackupFile { cluster: head.cluster, set: head.set, moved, backup })
}

fn line(table: &Table) -> TableLine {
    let node = |node: &Node| NodeLine {
        name: node.name.clone(),
        addr: node.addr.clone(),
        drained: node.state == NodeState::Drained,
    };
    let assignment = |one: &Assignment| AssignmentLine {
        first: one.sections.start().get(),
        last: one.sections.end().get(),
        node: one.node,
        home: one.home,
        incarnation: Long(one.incarnation),
        epoch: one.epoch.into(),
    };
    TableLine {
        version: table.version.into(),
        section_size: table.section_size,
        first_uid: *table.uids.start(),
        last_uid: *table.uids.end(),
        nodes: table.nodes.iter().map(node).collect(),
        assignments: table.assignments.iter().map(assignment).collect(),
    }
}

fn table(set: u32, line: TableLine) -> Result<Table, String> {
    let node = |node: NodeLine| Node {
        name: node.name,
        addr: node.addr,
        state: if node.drained { NodeState::Drained } else { NodeState::Active },
    };
    let assignment = |one: AssignmentLine| Assignment {
        sections: SectionId::new(one.first)..=SectionId::new(one.last),
        node: one.node,
        home: one.home,
        incarnation: one.incarnation.0,
        epoch: one.epoch.into(),
    };
    let table = Table {
        set,
        version: line.version.into(),
        section_size: line.section_size,
        uids: line.first_uid..=line.last_uid,
        nodes: line.nodes.into_iter().map(node).collect(),
        assignments: line.assignments.into_iter().map(assignment).collect(),
    };
    table.check().map_err(|error| error.to_string())?;
    Ok(table)
}

#[cfg(test)]
mod tests;
