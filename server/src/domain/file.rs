//! Files that messages and moments name: what a row says of one, and which name one may have.
//!
//! The server makes what stands in a row. It takes from the sender only what it does not find out by itself, such as how long a
//! recording is. Stored in the body, under `files`; readers' rights follow from it, so its form must stay stable.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{Body, Content, FileId, Kind, Setting};

/// Files of one message or moment, at most.
pub const MOST_FILES: usize = 9;

/// Characters of a file's name, at most.
pub const LONGEST_FILE_NAME: usize = 255;

/// Characters of a waveform, at most: Base64 of 100 bytes, a height each.
const LONGEST_WAVEFORM: usize = 136;

/// Pixels of a side, as far as a sender may say so.
const LONGEST_SIDE: u32 = 65_535;

/// A hundred hours, in milliseconds.
const LONGEST_DURATION: u64 = 360_000_000;

/// How a body with files can be told without reading it as JSON: nowhere else are these quotes without a backslash.
const FIELD: &str = "\"files\":";

/// A preview of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Preview {
    /// For a list.
    Small,
    /// For a screen.
    Large,
    /// For the disc of a person or a group. It is made when somebody chooses the picture for one, and no row names it.
    Square,
}

impl Preview {
    /// All of them.
    pub const ALL: [Preview; 3] = [Preview::Small, Preview::Large, Preview::Square];

    /// The word in rows and addresses.
    pub fn as_str(self) -> &'static str {
        match self {
            Preview::Small => "small",
            Preview::Large => "large",
            Preview::Square => "square",
        }
    }
}

/// What the server knows of a file that is whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileFacts {
    /// Which.
    pub id: FileId,
    /// Its name, as its sender called it.
    pub name: String,
    /// Its bytes, as readers get them.
    pub size: u64,
    /// Its media type, by its bytes.
    pub media_type: String,
    /// Width and height of a picture, in pixels.
    pub sides: Option<(u32, u32)>,
    /// The previews that there are.
    pub previews: Vec<Preview>,
}

/// What its sender says of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SaidOfFile {
    /// Width and height of a film, in pixels.
    pub sides: Option<(u32, u32)>,
    /// How long it plays, in milliseconds.
    pub duration_ms: Option<u64>,
    /// The heights of a recording, as Base64 of up to 100 bytes.
    pub waveform: Option<String>,
}

impl SaidOfFile {
    /// Whether each of it is within its bounds.
    pub fn is_good(&self) -> bool {
        let is_side = |side| (1..=LONGEST_SIDE).contains(&side);
        let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte);
        self.sides.is_none_or(|(width, height)| is_side(width) && is_side(height))
            && self.duration_ms.is_none_or(|long| long <= LONGEST_DURATION)
            && self
                .waveform
                .as_ref()
                .is_none_or(|text| text.len() <= LONGEST_WAVEFORM && text.bytes().all(is_base64))
    }
}

/// A file that a message is to name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attached {
    /// Which.
    pub id: FileId,
    /// What the sender says of it.
    pub said: SaidOfFile,
    /// What the server knows; `None`: it is nothing that the sender may name, as far as it is known.
    pub facts: Option<Arc<FileFacts>>,
}

impl Attached {
    /// Nothing is known yet but what the sender says.
    pub fn said(id: FileId, said: SaidOfFile) -> Attached {
        Attached { id, said, facts: None }
    }

    /// By which a digest tells it from others: what the sender said. Stored; must stay stable.
    pub fn words(&self) -> String {
        let SaidOfFile { sides, duration_ms, waveform } = &self.said;
        let (width, height) = sides.unwrap_or_default();
        let (long, waveform) = (duration_ms.unwrap_or_default(), waveform.as_deref().unwrap_or_default());
        format!("{} {width} {height} {long} {waveform}", self.id)
    }

    /// As it stands in a row, if it is known.
    fn stored(&self) -> Option<Value> {
        let FileFacts { id, name, size, media_type, sides, previews } = &**self.facts.as_ref()?;
        let mut stored = json!({ "id": id.0, "name": name, "size": size, "type": media_type });
        if let Some((width, height)) = sides.or(self.said.sides) {
            (stored["width"], stored["height"]) = (json!(width), json!(height));
        }
        let named = previews.iter().filter(|preview| **preview != Preview::Square);
        let named: Vec<&str> = named.map(|preview| preview.as_str()).collect();
        if !named.is_empty() {
            stored["previews"] = json!(named);
        }
        if let Some(long) = self.said.duration_ms {
            stored["duration_ms"] = json!(long);
        }
        if let Some(waveform) = &self.said.waveform {
            stored["waveform"] = json!(waveform);
        }
        Some(stored)
    }
}

/// A file as a row names it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ShownFile {
    id: Uuid,
    /// Its name.
    pub name: String,
    /// Its bytes.
    pub size: u64,
    /// Its media type.
    #[serde(rename = "type")]
    pub media_type: String,
    #[serde(default)]
    previews: Vec<String>,
}

impl ShownFile {
    /// Which.
    pub fn id(&self) -> FileId {
        FileId(self.id)
    }

    /// Whether there is this preview of it.
    pub fn has(&self, preview: Preview) -> bool {
        self.previews.iter().any(|word| word == preview.as_str())
    }
}

/// Why a name of a file is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a file's name has 1 to {LONGEST_FILE_NAME} characters, neither / nor \\, and none that is invisible or turns the direction of the text"
)]
pub struct BadFileName;

/// A file's name as it is kept, without spaces around it.
///
/// # Errors
/// When it is empty or too long, or could lead elsewhere or be taken for another one.
pub fn file_name(name: &str) -> Result<String, BadFileName> {
    let name = name.trim();
    let is_good = |c: char| {
        let turns = matches!(c, '\u{200e}' | '\u{200f}' | '\u{61c}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        let breaks = c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}');
        !turns && !breaks && c != '/' && c != '\\'
    };
    let fits = name.chars().nth(LONGEST_FILE_NAME).is_none();
    match fits && !matches!(name, "" | "." | "..") && name.chars().all(is_good) {
        true => Ok(name.to_owned()),
        false => Err(BadFileName),
    }
}

impl Body {
    /// This body of a message or a moment, which names these files; those that are not known are left out.
    pub fn with_files(self, files: &[Attached]) -> Body {
        if files.is_empty() {
            return self;
        }
        self.with_stored(files.iter().filter_map(Attached::stored).collect())
    }

    /// The same with the files of `other`, as they stand there.
    pub fn with_files_of(self, other: &Body) -> Body {
        match other.stored_files() {
            Some(files) => self.with_stored(files),
            None => self,
        }
    }

    fn with_stored(self, files: Vec<Value>) -> Body {
        let mut body: serde_json::Map<_, _> = serde_json::from_str(self.as_json()).unwrap_or_default();
        body.insert("files".to_owned(), Value::Array(files));
        Body::from_stored(Value::Object(body).to_string())
    }

    fn stored_files(&self) -> Option<Vec<Value>> {
        #[derive(Deserialize)]
        struct Stored {
            files: Vec<Value>,
        }
        let has_field = self.as_json().contains(FIELD);
        has_field.then(|| serde_json::from_str::<Stored>(self.as_json()).ok())?.map(|stored| stored.files)
    }

    /// The files that a message or a moment with this body names.
    pub fn files(&self) -> Vec<ShownFile> {
        let stored = self.stored_files().unwrap_or_default();
        stored.into_iter().filter_map(|file| serde_json::from_value(file).ok()).collect()
    }
}

impl Content {
    /// The files that whoever has this row may read.
    pub fn files(&self) -> Vec<ShownFile> {
        match self.kind {
            Kind::Message | Kind::Moment => self.body.files(),
            _ => Vec::new(),
        }
    }

    /// The files that this row keeps from going: those, and the picture that it gives to its sender.
    pub fn kept_files(&self) -> impl Iterator<Item = FileId> {
        self.files().into_iter().map(|file| file.id()).chain(self.picture())
    }

    /// The picture of its sender, where this row says so.
    pub fn picture(&self) -> Option<FileId> {
        match self.kind {
            Kind::Setting if self.body.setting() == Some(Setting::Picture) => self.body.picture(),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attached(facts: bool) -> Attached {
        let id = FileId(Uuid::from_u128(7));
        let said = SaidOfFile {
            duration_ms: Some(1_500),
            waveform: Some("AAEC".to_owned()),
            ..SaidOfFile::default()
        };
        let known = FileFacts {
            id,
            name: "pier.jpg".to_owned(),
            size: 12,
            media_type: "image/jpeg".to_owned(),
            sides: Some((4, 3)),
            previews: vec![Preview::Small, Preview::Square],
        };
        Attached { id, said, facts: facts.then(|| Arc::new(known)) }
    }

    /// They lie in the tables and in exports, and devices read them as they are.
    #[test]
    fn files_stay_as_they_are_stored() {
        let said = Body::text("low tide", 10).expect("short");
        assert_eq!(said.clone().with_files(&[]), said);
        let body = said.with_files(&[attached(true), attached(false)]);
        assert_eq!(
            body.as_json(),
            r#"{"files":[{"duration_ms":1500,"height":3,"id":"00000000-0000-0000-0000-000000000007","name":"pier.jpg","previews":["small"],"size":12,"type":"image/jpeg","waveform":"AAEC","width":4}],"text":"low tide"}"#
        );
        let [file] = &body.files()[..] else { panic!("one file") };
        assert_eq!((file.id(), file.size, &*file.media_type), (FileId(Uuid::from_u128(7)), 12, "image/jpeg"));
        assert!(file.has(Preview::Small) && !file.has(Preview::Large));
        let again = Body::text("x", 10).expect("short").with_files_of(&body);
        assert_eq!(again.files(), body.files());
        assert_eq!(attached(false).words(), "00000000-0000-0000-0000-000000000007 0 0 1500 AAEC");
    }

    #[test]
    fn a_text_that_looks_like_files_names_none() {
        let body = Body::text(r#"{"files":[{"id":1}]}"#, 100).expect("short");
        assert_eq!(body.files(), []);
        assert_eq!(Body::from_stored(r#"{"files":[{"id":1}]}"#).files(), []);
    }

    #[test]
    fn names_that_mislead_are_refused() {
        let longest = "é".repeat(LONGEST_FILE_NAME);
        for (name, kept) in [
            ("a b.jpg", "a b.jpg"),
            (" 潮汐.png ", "潮汐.png"),
            ("👩‍👧.gif", "👩‍👧.gif"),
            ("..a", "..a"),
            (&longest, &longest),
        ] {
            assert_eq!(file_name(name).as_deref(), Ok(kept));
        }
        for name in [
            "",
            " ",
            ".",
            "..",
            "../x",
            "a/b",
            "a\\b",
            "a\0",
            "a\nb",
            "\u{202e}gpj.exe",
            "a\u{2066}b",
            "a\u{2028}b",
            &"a".repeat(256),
        ] {
            assert_eq!(file_name(name), Err(BadFileName), "{name:?}");
        }
    }

    #[test]
    fn what_senders_say_has_bounds() {
        assert!(attached(true).said.is_good());
        for bad in [
            SaidOfFile { sides: Some((0, 1)), ..SaidOfFile::default() },
            SaidOfFile { sides: Some((1, 70_000)), ..SaidOfFile::default() },
            SaidOfFile { duration_ms: Some(LONGEST_DURATION + 1), ..SaidOfFile::default() },
            SaidOfFile { waveform: Some("\"".to_owned()), ..SaidOfFile::default() },
            SaidOfFile { waveform: Some("A".repeat(137)), ..SaidOfFile::default() },
        ] {
            assert!(!bad.is_good(), "{bad:?}");
        }
    }
}
