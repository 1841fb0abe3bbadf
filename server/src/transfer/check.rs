//! The rules of a good archive that go beyond one line. Pure; the whole file is checked before the first record of it
//! is imported.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use indicatif::ProgressBar;

use super::error::TransferError;
use super::file_parts::Followed;
use super::line::{ArchiveLine, Header, Totals};
use super::reader::ArchiveReader;
use crate::domain::{Conversation, FileId, GroupId, MessageId, Uid, name_key};
use crate::store::archive::{Record, RecordKey};
use crate::store::tables::TableId;

/// An archive that was read to its end and found good.
#[derive(Debug)]
pub struct Checked {
    /// The checksum in its footer.
    pub(super) source: String,
    /// How many records it holds.
    pub(super) records: u64,
    /// How many files it knows, and how many of them are gone.
    files: (u64, u64),
    /// Whether it holds their bytes.
    has_file_bytes: bool,
    /// For each range of adjacent users, by its number, a user with the largest id in it.
    pub(super) largest: BTreeMap<u32, (Uid, MessageId)>,
    /// The largest uid and the largest number of a group.
    largest_of_all: (Uid, GroupId),
}

impl Checked {
    /// The largest uid and the largest number of a group; 0 where there is none.
    pub fn largest(&self) -> (Uid, GroupId) {
        self.largest_of_all
    }

    /// How many records it holds.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// How many files it knows.
    pub fn files(&self) -> u64 {
        self.files.0
    }

    /// How many of them were gone when it was written, though it knows them.
    pub fn files_gone(&self) -> u64 {
        self.files.1
    }

    /// Whether it holds the bytes of its files.
    pub fn has_file_bytes(&self) -> bool {
        self.has_file_bytes
    }
}

/// Reads the archive at `path` to its end. `adjacent` users share a ceiling.
///
/// # Errors
/// When the file cannot be read, is cut off, was changed, or holds what no installation can hold; the line is named.
pub fn check(path: &Path, adjacent: u32, progress: &ProgressBar) -> Result<Checked, TransferError> {
    let mut reader = ArchiveReader::open(path)?;
    let mut rules = Rules::new(adjacent);
    progress.set_message("checking");
    loop {
        let Some(line) = reader.next()? else { return Err(reader.cut_off()) };
        if let ArchiveLine::Header(header) = &line {
            progress.set_length(header.totals.all());
        }
        rules.see(&line).map_err(|why| reader.fault(why))?;
        progress.set_position(rules.totals.all());
        if let ArchiveLine::Footer(footer) = line {
            if reader.next()?.is_some() {
                return Err(reader.fault("comes after the footer".to_owned()));
            }
            let records = rules.totals.all() + rules.parts + rules.gone;
            let uid = rules.accounts.iter().copied().max().unwrap_or(Uid(0));
            let gid = rules.groups.iter().copied().max().unwrap_or(GroupId(0));
            return Ok(Checked {
                source: footer.sha256,
                records,
                files: (rules.totals.files(), rules.gone),
                has_file_bytes: rules.has_file_bytes(),
                largest: rules.largest,
                largest_of_all: (uid, gid),
            });
        }
    }
}

/// The largest id that an installation with so many rows can have come to, generously: each number handed out for a
/// row, a thousand skipped beside each, and 10^12 skipped by restarts and restored backups. A crafted id near the end
/// of the sequence would else use up the sequences of 100,000 users for good.
fn largest_plausible(rows: u64) -> u64 {
    rows.saturating_mul(1_000).saturating_add(1_000_000_000_000).min(MessageId::MAX.get())
}

/// The state after the lines so far, as far as later lines depend on it.
struct Rules {
    adjacent: u32,
    header: Option<Header>,
    last: Option<RecordKey>,
    totals: Totals,
    accounts: HashSet<Uid>,
    /// In lower case, as they are compared.
    names: HashSet<String>,
    groups: HashSet<GroupId>,
    tables: HashSet<TableId>,
    /// By instance.
    table_names: HashSet<(String, String)>,
    largest: BTreeMap<u32, (Uid, MessageId)>,
    files: HashSet<FileId>,
    /// The file whose parts come.
    followed: Option<Followed>,
    /// Parts of files, and files that are gone.
    parts: u64,
    gone: u64,
}

impl Rules {
    fn new(adjacent: u32) -> Rules {
        Rules {
            adjacent,
            header: None,
            last: None,
            totals: Totals::default(),
            accounts: HashSet::new(),
            names: HashSet::new(),
            groups: HashSet::new(),
            tables: HashSet::new(),
            table_names: HashSet::new(),
            largest: BTreeMap::new(),
            files: HashSet::new(),
            followed: None,
            parts: 0,
            gone: 0,
        }
    }

    fn has_file_bytes(&self) -> bool {
        self.header.as_ref().is_some_and(|header| header.file_bytes)
    }

    fn see(&mut self, line: &ArchiveLine) -> Result<(), String> {
        match (line, &self.header) {
            (ArchiveLine::Header(header), None) => {
                self.header = Some(header.clone());
                Ok(())
            }
            (ArchiveLine::Header(_), Some(_)) => Err("a second header".to_owned()),
            (_, None) => Err("the header must come first".to_owned()),
            (ArchiveLine::Record(record), Some(header)) => {
                let most = (largest_plausible(header.totals.rows()), header.accepted);
                self.record(record, most)
            }
            (ArchiveLine::Footer(footer), Some(header)) => {
                let is_counted = header.totals == self.totals && footer.parts == self.parts + self.gone;
                file_is_whole(self.followed.as_mut())?;
                if footer.totals != self.totals || !is_counted {
                    return Err("the counts of header, footer and lines differ".to_owned());
                }
                Ok(())
            }
        }
    }

    fn record(&mut self, record: &Record, (largest, accepted): (u64, u64)) -> Result<(), String> {
        let key = record.key();
        if let Some(last) = &self.last
            && (last.section(), last) >= (key.section(), &key)
        {
            return Err("is out of order, or a duplicate".to_owned());
        }
        self.last = Some(key);
        self.totals.count(record);
        match record {
            Record::Account(account, _, latest_id) => {
                if account.uid < Uid::FIRST {
                    return Err(format!("uid {} is reserved; accounts begin at {}", account.uid, Uid::FIRST));
                }
                if let Some(latest_id) = *latest_id {
                    plausible(latest_id, largest)?;
                    self.reach(account.uid, latest_id);
                }
                self.accounts.insert(account.uid);
                let is_new = self.names.insert(name_key(&account.name));
                is_new.then_some(()).ok_or_else(|| format!("the name {:?} is there twice", account.name))
            }
            Record::Group(group) => {
                if group.gid.0 == 0 || group.gid.0 > MessageId::MAX.get() {
                    return Err(format!("gid {} is not between 1 and {}", group.gid, MessageId::MAX));
                }
                self.groups.insert(group.gid);
                group.members.iter().try_for_each(|member| self.knows(member.uid))
            }
            Record::EndedEpoch(gid, uid, _) => {
                self.knows_conversation(Conversation::Group(*gid))?;
                self.knows(*uid)
            }
            Record::Row(entry) => {
                self.knows(entry.receiver)?;
                self.knows(entry.content.sender)?;
                self.knows_conversation(entry.content.target)?;
                plausible(entry.message_id, largest)?;
                self.reach(entry.receiver, entry.message_id);
                Ok(())
            }
            Record::Sent(sender, _, sent) => {
                self.knows(*sender)?;
                plausible(sent.message_id, largest)
            }
            Record::Pending(pending, _) => {
                if pending.acceptance.0 > accepted {
                    return Err(format!(
                        "acceptance {} is later than the latest that the header names",
                        pending.acceptance.0
                    ));
                }
                self.knows(pending.content.sender)?;
                self.knows_conversation(pending.content.target)?;
                pending.owed.iter().try_for_each(|to| self.knows(to.uid))
            }
            Record::Table(table, _) => {
                self.tables.insert(table.id);
                let is_new = self.table_names.insert((table.instance.clone(), table.name.clone()));
                is_new.then_some(()).ok_or_else(|| format!("the table {:?} is there twice", table.name))
            }
            Record::File(file) => {
                file_is_whole(self.followed.as_mut())?;
                self.followed = self.has_file_bytes().then(|| Followed::of(file));
                self.files.insert(file.facts.id);
                self.knows(file.owner)
            }
            Record::FilePart(part) => {
                self.parts += 1;
                let unknown = || format!("a part of the file {} does not follow it", part.file);
                self.followed.as_mut().ok_or_else(unknown)?.see(part)
            }
            Record::FileGone(file) => {
                self.gone += 1;
                let of = self.followed.take_if(|followed| followed.file() == *file && !followed.is_whole());
                of.map(drop).ok_or_else(|| format!("it says of the file {file} that more of it would follow"))
            }
            Record::FileUse(file, of) => {
                file_is_whole(self.followed.as_mut())?;
                self.knows(of.key.0)?;
                self.knows_conversation(of.target)?;
                of.holders.iter().try_for_each(|uid| self.knows(*uid))?;
                let known = self.files.contains(file);
                known.then_some(()).ok_or_else(|| format!("there is no file {file} in this archive"))
            }
            Record::Counter(counter) => self.knows_table(counter.table),
            Record::TableRow(row) => self.knows_table(row.table),
        }
    }

    fn knows_table(&self, table: TableId) -> Result<(), String> {
        let known = self.tables.contains(&table);
        known.then_some(()).ok_or_else(|| format!("there is no table {} in this file", table.0))
    }

    /// The inbox of `uid` has come to `id`.
    fn reach(&mut self, uid: Uid, id: MessageId) {
        let largest = self.largest.entry(uid.0 / self.adjacent).or_insert((uid, id));
        if id > largest.1 {
            *largest = (uid, id);
        }
    }

    fn knows(&self, uid: Uid) -> Result<(), String> {
        let known = self.accounts.contains(&uid);
        known.then_some(()).ok_or_else(|| format!("there is no account with uid {uid} in this file"))
    }

    fn knows_conversation(&self, conversation: Conversation) -> Result<(), String> {
        match conversation {
            Conversation::MOMENTS => Ok(()),
            Conversation::User(uid) => self.knows(uid),
            Conversation::Group(gid) if self.groups.contains(&gid) => Ok(()),
            Conversation::Group(gid) => Err(format!("there is no group {gid} in this file")),
        }
    }
}

/// Refuses what comes after a file that lacks parts.
fn file_is_whole(followed: Option<&mut Followed>) -> Result<(), String> {
    let Some(followed) = followed else { return Ok(()) };
    let is_whole = followed.is_whole();
    is_whole.then_some(()).ok_or_else(|| format!("parts of the file {} are missing", followed.file()))
}

fn plausible(id: MessageId, largest: u64) -> Result<(), String> {
    if id.get() <= largest {
        return Ok(());
    }
    Err(format!("message_id {id} is implausible: with so few rows at most {largest} is expected"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Result<Rules, String> {
        let mut rules = Rules::new(100_000);
        for line in text.lines() {
            rules.see(&ArchiveLine::read(line)?)?;
        }
        Ok(rules)
    }

    const GOOD: &str = concat!(
        r#"{"type":"header","format":"tidemark-export","version":3,"history":"00000000-0000-0000-0000-000000000000","exported_at":"2026-11-21T11:43:58Z","accepted":1,"totals":{"account":2,"group":0,"ended_epoch":0,"row":2,"sent":0,"pending":0}}"#,
        "\n",
        r#"{"type":"account","uid":10001,"name":"ann","password_hash":"","disabled":false,"created_at":"2026-11-21T11:43:58Z"}"#,
        "\n",
        r#"{"type":"account","uid":10002,"name":"bob","password_hash":"","disabled":false,"created_at":"2026-11-21T11:43:58Z"}"#,
        "\n",
        r#"{"type":"row","receiver":10001,"message_id":7,"kind":"message","conversation":"u:10001","sender":10001,"body":{},"sent_at":"2026-11-21T11:43:58Z"}"#,
        "\n",
        r#"{"type":"row","receiver":10001,"message_id":9,"kind":"message","conversation":"u:10002","sender":10002,"body":{},"sent_at":"2026-11-21T11:43:58Z"}"#,
    );

    #[test]
    fn the_largest_id_of_each_range_of_users_is_found() {
        let rules = lines(GOOD).expect("good");
        assert_eq!(rules.totals.all(), 4);
        assert_eq!(rules.largest, BTreeMap::from([(0, (Uid(10_001), MessageId::new(9).expect("small")))]));
    }

    #[test]
    fn what_no_installation_can_hold_is_refused() {
        for (part, instead, why) in [
            ("\"message_id\":9", "\"message_id\":7", "is out of order, or a duplicate"),
            ("\"message_id\":9", "\"message_id\":1000000002001", "message_id 1000000002001 is implausible"),
            ("\"sender\":10002", "\"sender\":10003", "u:10002"),
            ("\"uid\":10001", "\"uid\":7", "uid 7 is reserved"),
            ("\"uid\":10002", "\"uid\":10003", "there is no account with uid 10002 in this file"),
            ("\"name\":\"bob\"", "\"name\":\"ANN\"", "the name \"ANN\" is there twice"),
            ("\"type\":\"header\"", "\"type\":\"ended_epoch\"", "unknown field"),
        ] {
            let reported = lines(&GOOD.replacen(part, instead, 1)).err().unwrap_or_default();
            assert!(reported.contains(why), "{instead}: {reported}");
        }
        let reported = lines(GOOD.split_once('\n').expect("lines").1).err();
        assert_eq!(reported.as_deref(), Some("the header must come first"));
    }

    #[test]
    fn an_id_is_plausible_far_beyond_what_restarts_skip_but_not_near_the_end() {
        assert_eq!(largest_plausible(0), 1_000_000_000_000);
        assert_eq!(largest_plausible(u64::MAX), MessageId::MAX.get());
    }
}
