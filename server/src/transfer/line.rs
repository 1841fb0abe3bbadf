//! One line of an archive: the header, the footer, and which type of record lies between them.
//!
//! The written form is stored by others and must stay stable; `docs/EXPORT.md` describes it.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::record;
use super::values::parse;
use crate::domain::{HistoryId, Timestamp};
use crate::store::StoreError;
use crate::store::archive::{About, Record, SECTIONS};

/// The name of the format, in the header.
const FORMAT: &str = "tidemark-export";
/// The version that is written.
const VERSION: u32 = 4;
/// Versions that are read: 3 is of 0.1.0 and says nothing of files, 2 is of builds before that and says nothing of tables either.
const READ: RangeInclusive<u32> = 2..=VERSION;

/// A line of an archive.
#[derive(Debug)]
pub(super) enum ArchiveLine {
    Header(Header),
    Record(Box<Record>),
    Footer(Footer),
}

/// The first line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Header {
    #[serde(rename = "type")]
    tag: String,
    format: String,
    version: u32,
    pub(super) history: Uuid,
    pub(super) exported_at: String,
    /// Grows with all that is accepted; tells apart two moments of one history.
    pub(super) accepted: u64,
    pub(super) totals: Totals,
    /// Another one after every change of a table.
    #[serde(default)]
    tables: u64,
    /// Another one after every change of files.
    #[serde(default)]
    files: u64,
    /// Whether the bytes of files are here.
    #[serde(default)]
    pub(super) file_bytes: bool,
}

/// The last line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Footer {
    #[serde(rename = "type")]
    tag: String,
    pub(super) totals: Totals,
    /// Lines with bytes of files; nobody knows how many before they are written.
    #[serde(default)]
    pub(super) parts: u64,
    /// Of every byte before this line, in hex.
    pub(super) sha256: String,
}

/// How many records of each type there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Totals {
    account: u64,
    group: u64,
    ended_epoch: u64,
    row: u64,
    sent: u64,
    pending: u64,
    #[serde(default)]
    table: u64,
    #[serde(default)]
    counter: u64,
    #[serde(default)]
    table_row: u64,
    #[serde(default)]
    file: u64,
    #[serde(default)]
    file_use: u64,
}

#[derive(Deserialize)]
struct Tag {
    #[serde(rename = "type")]
    tag: String,
}

impl Header {
    /// The header of an archive of what `about` says.
    pub(super) fn new(about: &About, file_bytes: bool, exported_at: Timestamp) -> Header {
        Header {
            tag: "header".into(),
            format: FORMAT.into(),
            version: VERSION,
            history: about.history.0,
            exported_at: exported_at.to_rfc3339(),
            accepted: about.accepted,
            totals: Totals::of(about.totals),
            tables: about.tables,
            files: about.files,
            file_bytes,
        }
    }

    /// Whether it is in the form that is written.
    pub(super) fn is_current(&self) -> bool {
        self.version == VERSION
    }

    /// Whether it is of the same moment of the same history, in the form that is written.
    pub(super) fn is_of(&self, about: &About) -> bool {
        self.is_current()
            && self.tables == about.tables
            && self.files == about.files
            && HistoryId(self.history) == about.history
            && self.accepted == about.accepted
            && self.totals == Totals::of(about.totals)
    }
}

impl Footer {
    pub(super) fn new(totals: Totals, parts: u64, sha256: String) -> Footer {
        Footer { tag: "footer".into(), totals, parts, sha256 }
    }
}

impl Totals {
    /// Totals in the order of `ArchiveSection::ALL`.
    pub(super) fn of(totals: [u64; SECTIONS]) -> Totals {
        let [account, group, ended_epoch, row, sent, pending, table, counter, table_row, file, file_use] =
            totals;
        Totals { account, group, ended_epoch, row, sent, pending, table, counter, table_row, file, file_use }
    }

    /// Counts one more record, unless it is a part of another one.
    pub(super) fn count(&mut self, record: &Record) {
        *match record {
            Record::Account(..) => &mut self.account,
            Record::Group(..) => &mut self.group,
            Record::EndedEpoch(..) => &mut self.ended_epoch,
            Record::Row(..) => &mut self.row,
            Record::Sent(..) => &mut self.sent,
            Record::Pending(..) => &mut self.pending,
            Record::Table(..) => &mut self.table,
            Record::Counter(..) => &mut self.counter,
            Record::TableRow(..) => &mut self.table_row,
            Record::File(..) => &mut self.file,
            Record::FileUse(..) => &mut self.file_use,
            Record::FilePart(..) | Record::FileGone(..) => return,
        } += 1;
    }

    /// Rows alone.
    pub(super) fn rows(&self) -> u64 {
        self.row
    }

    /// Files alone.
    pub(super) fn files(&self) -> u64 {
        self.file
    }

    /// Records of all types, without parts of files; saturates, since a file may claim anything.
    pub(super) fn all(&self) -> u64 {
        let of_others = [self.table, self.counter, self.table_row, self.file, self.file_use];
        [self.account, self.group, self.ended_epoch, self.row, self.sent, self.pending]
            .into_iter()
            .chain(of_others)
            .fold(0, u64::saturating_add)
    }
}

impl ArchiveLine {
    /// Reads one line, without its line feed.
    pub(super) fn read(text: &str) -> Result<ArchiveLine, String> {
        // A complaint repeats what is wrong, which may hold anything.
        ArchiveLine::read_any(text).map_err(|refused| refused.replace(char::is_control, " "))
    }

    fn read_any(text: &str) -> Result<ArchiveLine, String> {
        let Tag { tag } = parse(text)?;
        Ok(match tag.as_str() {
            "header" => {
                let header: Header = parse(text)?;
                if header.format != FORMAT || !READ.contains(&header.version) {
                    let (format, version) = (&header.format, header.version);
                    return Err(format!(
                        "this is {format} version {version}; this server reads {FORMAT} versions {} to {VERSION}",
                        READ.start()
                    ));
                }
                ArchiveLine::Header(header)
            }
            "footer" => ArchiveLine::Footer(parse(text)?),
            other => ArchiveLine::Record(Box::new(record::read(other, text)?)),
        })
    }

    /// The line as text, with its line feed.
    ///
    /// # Errors
    /// When a body in storage is no JSON.
    pub(super) fn write(&self) -> Result<String, StoreError> {
        let text = match self {
            ArchiveLine::Header(header) => serde_json::to_string(header),
            ArchiveLine::Footer(footer) => serde_json::to_string(footer),
            ArchiveLine::Record(record) => record::write(record),
        };
        let mut text = text.map_err(StoreError::corrupt)?;
        text.push('\n');
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A line of each type.
    const LINES: [&str; 13] = [
        r#"{"type":"account","uid":7,"name":"Ann","password_hash":"x","disabled":false,"created_at":"2026-01-01T00:00:00Z"}"#,
        r#"{"type":"group","gid":3,"name":"walkers","version":2,"members":[{"uid":7,"epoch":1,"active":true}]}"#,
        r#"{"type":"ended_epoch","gid":3,"uid":7,"epoch":1}"#,
        r#"{"type":"row","receiver":7,"message_id":1,"kind":"message","conversation":"u:8","sender":8,"client_id":"11111111-1111-4111-8111-111111111111","body":{"text":"hi"},"sent_at":"2026-01-01T00:00:00Z"}"#,
        r#"{"type":"sent","sender":8,"client_id":"11111111-1111-4111-8111-111111111111","message_id":1,"sent_at":"2026-01-01T00:00:00Z","digest":"00112233445566778899aabbccddeeff"}"#,
        r#"{"type":"table","table":4,"instance":"shop","name":"orders","definition":{"a":1},"created_at":"2026-01-01T00:00:00Z","begins_after":7}"#,
        r#"{"type":"counter","table":4,"partition_key":"0a1b","first":"IGFubgAB","last_id":12}"#,
        r#"{"type":"table_row","table":4,"partition_key":"0a1b","key":"IGFubgAB","row":""}"#,
        r#"{"type":"file","file":"11111111-1111-4111-8111-111111111111","owner":7,"name":"a.png","made_at":"2026-01-01T00:00:00Z","length":9,"size":3,"media_type":"image/png","width":2,"height":1,"previews":["small"],"objects":"000000000000000a:3"}"#,
        r#"{"type":"file_part","file":"11111111-1111-4111-8111-111111111111","part":1,"bytes":"YWJj","sha256":"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"}"#,
        r#"{"type":"file_gone","file":"11111111-1111-4111-8111-111111111111"}"#,
        r#"{"type":"file_use","file":"11111111-1111-4111-8111-111111111111","sender":7,"client_id":"11111111-1111-4111-8111-111111111111","target":"u:0","holders":[8,9],"used_at":"2026-01-01T00:00:00Z"}"#,
        r#"{"type":"footer","totals":{"account":1,"group":1,"ended_epoch":1,"row":1,"sent":1,"pending":0,"table":1,"counter":1,"table_row":1},"sha256":"00"}"#,
    ];

    proptest! {
        #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_text_is_a_line_or_refused_in_one_line(
            which in prop::sample::select(LINES.to_vec()),
            from in any::<prop::sample::Index>(), to in any::<prop::sample::Index>(),
            piece in prop_oneof![any::<String>(), "[0-9]{0,25}", r#"[-0-9eE.:"{}\[\],a-z]{0,9}"#],
        ) {
            let (from, to) = (from.index(which.len()), to.index(which.len()));
            let mut text = which.to_owned();
            text.replace_range(from.min(to)..from.max(to), &piece);
            match ArchiveLine::read(&text) {
                // A line that was read is written so that it reads the same.
                Ok(line) => {
                    let written = line.write().expect("what was read can be written");
                    let again = ArchiveLine::read(written.trim_end_matches('\n')).expect("and read again");
                    prop_assert_eq!(again.write().expect("again"), written);
                }
                Err(refused) => prop_assert!(!refused.contains('\n'), "{}", refused),
            }
        }
    }

    #[test]
    fn a_line_of_each_type_is_read() {
        for line in LINES {
            assert!(ArchiveLine::read(line).is_ok(), "{line}: {:?}", ArchiveLine::read(line).err());
        }
    }

    #[test]
    fn another_format_is_refused_by_its_name() {
        let about = About {
            history: HistoryId(Uuid::nil()),
            accepted: 3,
            totals: [1, 2, 3, 4, 5, 6, 0, 0, 0, 0, 0],
            tables: 0,
            files: 0,
        };
        let header = ArchiveLine::Header(Header::new(&about, false, Timestamp(0))).write().expect("plain");
        let Ok(ArchiveLine::Header(read)) = ArchiveLine::read(header.trim_end()) else { panic!("{header}") };
        assert!(read.is_of(&about));
        assert_eq!((read.totals.rows(), read.totals.all()), (4, 21));
        let with_tables =
            About { totals: [0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5], tables: 9, files: 9, ..about.clone() };
        let other =
            ArchiveLine::Header(Header::new(&with_tables, true, Timestamp(0))).write().expect("plain");
        let Ok(ArchiveLine::Header(read)) = ArchiveLine::read(other.trim_end()) else { panic!("{other}") };
        assert!(read.is_of(&with_tables) && !read.is_of(&About { tables: 8, ..with_tables.clone() }));
        assert!(!read.is_of(&About { files: 8, ..with_tables.clone() }));
        for version in [1, 5] {
            let unknown = header.replace("\"version\":4", &format!("\"version\":{version}"));
            let reported = ArchiveLine::read(unknown.trim_end()).expect_err("unknown version");
            let expected = format!(
                "this is tidemark-export version {version}; this server reads tidemark-export versions 2 to 4"
            );
            assert_eq!(reported, expected);
        }
    }

    #[test]
    fn a_line_of_an_unknown_type_is_refused() {
        assert_eq!(
            ArchiveLine::read(r#"{"type":"poll"}"#).expect_err("unknown"),
            "`poll` is not a type of record"
        );
        assert!(ArchiveLine::read("{\"type\":").is_err());
    }
}
