//! The records of files: how each type is written as JSON and read back. Bytes are base64, each part with its own sum.
//!
//! The written form is stored by others and must stay stable; `docs/EXPORT.md` describes it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::values::{conversation, sum, time};
use crate::domain::{ClientId, FileFacts, FileId, MOST_SEGMENTS, Preview, Segments, Uid, file_name};
use crate::store::archive::{FilePart, Record};
use crate::store::{FileState, FileUse, StoredFile};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileLine {
    #[serde(rename = "type")]
    tag: String,
    file: Uuid,
    owner: u32,
    name: String,
    made_at: String,
    /// As its sender said.
    length: u64,
    /// As readers get it.
    size: u64,
    media_type: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    width: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    height: Option<u32>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    previews: Vec<String>,
    /// Where its bytes lie.
    objects: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FilePartLine {
    #[serde(rename = "type")]
    tag: String,
    file: Uuid,
    part: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    preview: Option<String>,
    bytes: String,
    sha256: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileGoneLine {
    #[serde(rename = "type")]
    tag: String,
    pub(super) file: Uuid,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileUseLine {
    #[serde(rename = "type")]
    tag: String,
    file: Uuid,
    sender: u32,
    client_id: Uuid,
    /// From the sender's side.
    target: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    holders: Vec<u32>,
    used_at: String,
}

/// The record as JSON; `null` for one that is none of a file.
pub(super) fn write(record: &Record) -> serde_json::Result<String> {
    match record {
        Record::File(file) => serde_json::to_string(&FileLine::of(file)),
        Record::FilePart(part) => serde_json::to_string(&FilePartLine {
            tag: "file_part".into(),
            file: part.file.0,
            part: part.part,
            preview: part.preview.map(|preview| preview.as_str().to_owned()),
            bytes: STANDARD.encode(&part.bytes),
            sha256: sum(&part.bytes),
        }),
        Record::FileGone(file) => {
            serde_json::to_string(&FileGoneLine { tag: "file_gone".into(), file: file.0 })
        }
        Record::FileUse(file, of) => serde_json::to_string(&FileUseLine {
            tag: "file_use".into(),
            file: file.0,
            sender: of.key.0.0,
            client_id: of.key.1.0,
            target: of.target.to_string(),
            holders: of.holders.iter().map(|uid| uid.0).collect(),
            used_at: of.at.to_rfc3339(),
        }),
        _ => Ok("null".to_owned()),
    }
}

impl FileLine {
    fn of(file: &StoredFile) -> FileLine {
        let FileFacts { id, name, size, media_type, sides, previews } = &file.facts;
        FileLine {
            tag: "file".into(),
            file: id.0,
            owner: file.owner.0,
            name: name.clone(),
            made_at: file.made_at.to_rfc3339(),
            length: file.length,
            size: *size,
            media_type: media_type.clone(),
            width: sides.map(|(width, _)| width),
            height: sides.map(|(_, height)| height),
            previews: previews.iter().map(|preview| preview.as_str().to_owned()).collect(),
            objects: file.segments.to_string(),
        }
    }

    pub(super) fn read(self) -> Result<Record, String> {
        let segments: Segments = self.objects.parse().map_err(|why| format!("objects: {why}"))?;
        let lengths = segments.0.iter().map(|segment| segment.length);
        let all = lengths.clone().try_fold(0_u64, u64::checked_add);
        if all != Some(self.size)
            || lengths.clone().any(|length| length == 0)
            || segments.0.len() > MOST_SEGMENTS
        {
            return Err(format!("objects: they have no {} bytes in all", self.size));
        }
        let sides = match (self.width, self.height) {
            (None, None) => None,
            (Some(width), Some(height)) if width > 0 && height > 0 => Some((width, height)),
            _ => return Err("width and height: expected two numbers above 0, or neither".to_owned()),
        };
        let previews = self.previews.iter().map(|word| preview(word)).collect::<Result<Vec<_>, _>>()?;
        if !previews.is_sorted_by(|one, next| one < next) {
            return Err(
                "previews: expected `small`, `large` and `square`, each once and in this order".to_owned()
            );
        }
        let name = file_name(&self.name).map_err(|why| format!("name: {why}"))?;
        let made_at = time(&self.made_at)?;
        Ok(Record::File(Box::new(StoredFile {
            owner: Uid(self.owner),
            made_at,
            length: self.length,
            stored: self.length,
            segments,
            state: FileState::Whole,
            facts: FileFacts {
                id: FileId(self.file),
                name,
                size: self.size,
                media_type: self.media_type,
                sides,
                previews,
            },
            // Rows are asked for soon, and then from day to day.
            check_at: made_at,
        })))
    }
}

impl FilePartLine {
    pub(super) fn read(self) -> Result<Record, String> {
        let bytes = STANDARD.decode(&self.bytes).map_err(|why| format!("bytes: not base64: {why}"))?;
        if sum(&bytes) != self.sha256 {
            return Err(format!(
                "the bytes of part {} of the file {} are not as they were written",
                self.part, self.file
            ));
        }
        let preview = self.preview.as_deref().map(preview).transpose()?;
        Ok(Record::FilePart(FilePart { file: FileId(self.file), part: self.part, preview, bytes }))
    }
}

impl FileUseLine {
    pub(super) fn read(self) -> Result<Record, String> {
        let of = FileUse {
            key: (Uid(self.sender), ClientId(self.client_id)),
            target: conversation(&self.target)?,
            holders: self.holders.into_iter().map(Uid).collect(),
            at: time(&self.used_at)?,
        };
        Ok(Record::FileUse(FileId(self.file), of))
    }
}

fn preview(word: &str) -> Result<Preview, String> {
    let found = Preview::ALL.into_iter().find(|preview| preview.as_str() == word);
    found.ok_or_else(|| format!("`{word}` is not a preview; expected `small`, `large` or `square`"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Conversation, Segment, Timestamp};
    use crate::transfer::record::read;

    fn file() -> StoredFile {
        let segments = Segments(vec![Segment { name: 10, length: 3 }, Segment { name: u64::MAX, length: 4 }]);
        StoredFile {
            owner: Uid(7),
            made_at: Timestamp(5),
            length: 9,
            stored: 9,
            segments,
            state: FileState::Whole,
            facts: FileFacts {
                id: FileId(Uuid::from_u128(1)),
                name: "a \"b\".png".to_owned(),
                size: 7,
                media_type: "image/png".to_owned(),
                sides: Some((2, 1)),
                previews: Preview::ALL.to_vec(),
            },
            check_at: Timestamp(5),
        }
    }

    #[test]
    fn every_record_of_a_file_survives_the_way_out_and_in() {
        let id = FileId(Uuid::from_u128(1));
        let mut plain = file();
        (plain.facts.sides, plain.facts.previews) = (None, Vec::new());
        let of = FileUse {
            key: (Uid(7), ClientId(Uuid::from_u128(2))),
            target: Conversation::MOMENTS,
            holders: vec![Uid(8), Uid(9)],
            at: Timestamp(6),
        };
        let alone = FileUse { target: Conversation::User(Uid(8)), holders: Vec::new(), ..of.clone() };
        let records = [
            Record::File(Box::new(file())),
            Record::File(Box::new(plain)),
            Record::FilePart(FilePart { file: id, part: 1, preview: None, bytes: vec![0, 0xff, b'\n'] }),
            Record::FilePart(FilePart { file: id, part: 3, preview: Some(Preview::Large), bytes: vec![7] }),
            Record::FileGone(id),
            Record::FileUse(id, of),
            Record::FileUse(id, alone),
        ];
        for record in records {
            let text = write(&record).expect("JSON");
            let tag = text.split('"').nth(3).expect("the type stands first");
            assert_eq!(format!("{:?}", read(tag, &text).expect("reads back")), format!("{record:?}"));
        }
    }

    #[test]
    fn what_no_file_can_be_is_refused() {
        let whole = write(&Record::File(Box::new(file()))).expect("JSON");
        let part = FilePart {
            file: FileId(Uuid::from_u128(1)),
            part: 1,
            preview: None,
            bytes: b"low tide".to_vec(),
        };
        let part = write(&Record::FilePart(part)).expect("JSON");
        assert!(read("file", &whole).is_ok() && read("file_part", &part).is_ok());
        for (tag, line, from, to) in [
            ("file", &whole, ":3 ", ":4 "),
            ("file", &whole, "a:3 ffffffffffffffff:4", "a:7 ffffffffffffffff:0"),
            ("file", &whole, "\"width\":2,", ""),
            ("file", &whole, "\"height\":1", "\"height\":0"),
            ("file", &whole, "\"small\",\"large\"", "\"large\",\"small\""),
            ("file", &whole, "\"large\"", "\"huge\""),
            ("file", &whole, "b\\\".png", "../b"),
            ("file_part", &part, "bG93", "aG93"),
            ("file_part", &part, "bG93", "bG9"),
        ] {
            assert!(line.contains(from), "{from}");
            assert!(read(tag, &line.replacen(from, to, 1)).is_err(), "{to}");
        }
    }
}
