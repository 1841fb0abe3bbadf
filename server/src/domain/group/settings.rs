//! What the owner and the administrators of a group choose, and its one stored form. A new setting is a field of
//! [`GroupSettings`] and a variant of [`GroupSetting`]; every store, the journal and exports have it with that.

use serde::{Deserialize, Serialize};

/// Which earlier messages new members of a group see. The words are stored and must stay stable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum History {
    /// Nothing.
    #[default]
    Hidden,
    /// The newest messages.
    Visible,
}

impl History {
    /// The word in answers and bodies.
    pub fn as_str(self) -> &'static str {
        match self {
            History::Hidden => "hidden",
            History::Visible => "visible",
        }
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
    fn is_hidden(&self) -> bool {
        *self == History::Hidden
    }
}

/// What the owner and the administrators of a group choose. As JSON, in which an absent field has its default, it is the stored form in
/// every database, in the journal and in exports: it must stay stable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupSettings {
    /// Its name.
    pub name: String,
    /// Its topic, a line of text; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub topic: String,
    /// Which earlier messages new members see.
    #[serde(default, skip_serializing_if = "History::is_hidden")]
    pub history: History,
}

/// One of these settings. As JSON it is the field of [`GroupSettings`] alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GroupSetting {
    /// Its name.
    Name(String),
    /// Its topic.
    Topic(String),
    /// Which earlier messages new members see.
    History(History),
}

impl GroupSettings {
    /// Those of a new group.
    pub fn new(name: String) -> GroupSettings {
        GroupSettings { name, topic: String::new(), history: History::Hidden }
    }

    /// The same with another one.
    #[must_use]
    pub fn with(&self, setting: &GroupSetting) -> GroupSettings {
        let mut next = self.clone();
        match setting {
            GroupSetting::Name(name) => next.name.clone_from(name),
            GroupSetting::Topic(topic) => next.topic.clone_from(topic),
            GroupSetting::History(history) => next.history = *history,
        }
        next
    }
}

impl GroupSetting {
    /// The word in a `membership` body.
    pub fn word(&self) -> &'static str {
        match self {
            GroupSetting::Name(_) => "renamed",
            GroupSetting::Topic(_) => "topic",
            GroupSetting::History(_) => "history",
        }
    }

    /// By which a digest tells it from others. Stored; must stay stable.
    pub fn words(&self) -> String {
        match self {
            GroupSetting::Name(name) => format!("rename\0{name}"),
            GroupSetting::Topic(topic) => format!("topic\0{topic}"),
            GroupSetting::History(history) => format!("history\0{}", history.as_str()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// They lie in the databases, in journals and in exports.
    #[test]
    fn settings_stay_as_they_are_stored() {
        let new = GroupSettings::new("walkers".to_owned());
        let set = new
            .with(&GroupSetting::Topic("Sundays".to_owned()))
            .with(&GroupSetting::History(History::Visible));
        for (settings, stored) in [
            (new, r#"{"name":"walkers"}"#),
            (set, r#"{"name":"walkers","topic":"Sundays","history":"visible"}"#),
        ] {
            assert_eq!(serde_json::to_string(&settings).expect("JSON"), stored);
            assert_eq!(serde_json::from_str::<GroupSettings>(stored).expect("settings"), settings);
        }
        let topic = GroupSetting::Topic(String::new());
        assert_eq!(serde_json::to_string(&topic).expect("JSON"), r#"{"topic":""}"#);
    }
}
