//! The stored form of a group's settings: JSON, in every database and in the journal of SQLite.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::StoreError;
use crate::domain::{GroupSetting, GroupSettings};

/// Settings, or one of them, as they are stored.
pub(super) fn text(settings: &impl Serialize) -> String {
    serde_json::to_string(settings).expect("plain texts")
}

/// What a change of a setting puts into the stored object.
pub(super) fn changed(setting: Option<&GroupSetting>) -> Map<String, Value> {
    let set = setting.map(|setting| json!(setting));
    set.and_then(|set| set.as_object().cloned()).unwrap_or_default()
}

/// Those that are stored so.
pub(super) fn read(json: &str) -> Result<GroupSettings, StoreError> {
    serde_json::from_str(json).map_err(|error| StoreError::corrupt(format!("the settings {json}: {error}")))
}
