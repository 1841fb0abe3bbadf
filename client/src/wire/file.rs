//! Files that messages and moments name.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Draft, Entry, Kind};

impl Entry {
    /// The files that a message or a moment names; [`crate::Http::file`] reads them.
    pub fn files(&self) -> Vec<NamedFile> {
        let read = matches!(self.kind, Kind::Message | Kind::Moment).then(|| self.field("files"));
        read.flatten().unwrap_or_default()
    }
}

impl Draft {
    /// The same message with these files, which the sender has uploaded; its text may be empty. A body that is no JSON object stays as it
    /// is.
    #[must_use]
    pub fn with_files(mut self, files: &[Uuid]) -> Draft {
        let body: Result<serde_json::Map<_, _>, _> = serde_json::from_str(self.body.get());
        if let Ok(mut body) = body {
            let files = files.iter().map(|id| serde_json::json!({ "id": id })).collect();
            body.insert("files".to_owned(), serde_json::Value::Array(files));
            self.body = serde_json::value::to_raw_value(&body).expect("a JSON value can always be written");
        }
        self
    }
}

/// A file, as a row names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedFile {
    /// Which.
    pub id: Uuid,
    /// Its name.
    pub name: String,
    /// Its bytes.
    pub size: u64,
    /// Its media type, by its bytes.
    #[serde(rename = "type")]
    pub media_type: String,
    /// The width of a picture or film, in pixels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub width: Option<u32>,
    /// The height, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub height: Option<u32>,
    /// The previews that there are: `small`, `large`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub previews: Vec<String>,
    /// How long it plays, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// The heights of a recording, as Base64 of up to 100 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waveform: Option<String>,
}
