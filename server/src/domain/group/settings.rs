//! What the owner and the administrators of a group choose, and its one stored form. A new setting is a field of
//! [`GroupSettings`] and a variant of [`GroupSetting`]; every store, the journal and exports have it with that.

use serde::{Deserialize, Serialize};

use crate::domain::{FileId, Keep, Timestamp, Uid};

/// People who are muted in one group, at most.
pub const MOST_MUTED: usize = 200;

/// Seconds between two messages of one member in slow mode, at most.
pub const SLOWEST: u16 = 3_600;

/// For how long a member's messages to the group are refused. Stored as milliseconds since 1970 UTC, or as `null`; must stay stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Option<i64>", from = "Option<i64>")]
pub enum Mute {
    /// Before this time.
    Until(Timestamp),
    /// Until it is lifted.
    ForGood,
}

impl Mute {
    /// Whether it holds at `now`.
    pub fn holds(self, now: Timestamp) -> bool {
        self.end().is_none_or(|end| now < end)
    }

    /// When it ends by itself; `None`: never.
    pub fn end(self) -> Option<Timestamp> {
        match self {
            Mute::Until(end) => Some(end),
            Mute::ForGood => None,
        }
    }
}

/// Somebody who is muted. Stored; must stay stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Muted {
    /// The person's uid.
    pub uid: u32,
    /// For how long.
    pub until: Mute,
}

impl From<Mute> for Option<i64> {
    fn from(mute: Mute) -> Option<i64> {
        mute.end().map(|end| end.0)
    }
}

impl From<Option<i64>> for Mute {
    fn from(end: Option<i64>) -> Mute {
        end.map_or(Mute::ForGood, |end| Mute::Until(Timestamp(end)))
    }
}

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
    /// Seconds between two messages of one member; 0: no slow mode.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub slow_seconds: u16,
    /// For how long messages are kept.
    #[serde(default, skip_serializing_if = "is_default")]
    pub keep: Keep,
    /// Its picture.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub picture: Option<FileId>,
    /// The people who are muted, and such as were: a mute that has ended stays until the next mute or lifting in the group. It outlasts a
    /// leaving, so that nobody comes back without it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub muted: Vec<Muted>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_zero(seconds: &u16) -> bool {
    *seconds == 0
}

fn is_default(keep: &Keep) -> bool {
    *keep == Keep::default()
}

/// One of these settings. As JSON it is the field of [`GroupSettings`] alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GroupSetting {
    /// Its name.
    Name(String),
    /// Its topic.
    Topic(String),
    /// Which earlier messages new members see.
    History(History),
    /// Seconds between two messages of one member.
    SlowSeconds(u16),
    /// For how long messages are kept. In a wish its seconds alone count.
    Keep(Keep),
    /// Its picture; `None`: it has none.
    Picture(Option<FileId>),
    /// All who are muted.
    Muted(Vec<Muted>),
}

impl GroupSettings {
    /// Those of a new group.
    pub fn new(name: String) -> GroupSettings {
        GroupSettings {
            name,
            topic: String::new(),
            history: History::Hidden,
            slow_seconds: 0,
            keep: Keep::default(),
            picture: None,
            muted: Vec::new(),
        }
    }

    /// The mute of `uid` that holds at `now`.
    pub fn mute_of(&self, uid: Uid, now: Timestamp) -> Option<Mute> {
        let own = self.muted.iter().find(|muted| muted.uid == uid.0);
        own.map(|muted| muted.until).filter(|mute| mute.holds(now))
    }

    /// The same with another one.
    #[must_use]
    pub fn with(&self, setting: &GroupSetting) -> GroupSettings {
        let mut next = self.clone();
        match setting {
            GroupSetting::Name(name) => next.name.clone_from(name),
            GroupSetting::Topic(topic) => next.topic.clone_from(topic),
            GroupSetting::History(history) => next.history = *history,
            GroupSetting::SlowSeconds(seconds) => next.slow_seconds = *seconds,
            GroupSetting::Keep(keep) => next.keep = *keep,
            GroupSetting::Picture(picture) => next.picture = *picture,
            GroupSetting::Muted(muted) => next.muted.clone_from(muted),
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
            GroupSetting::SlowSeconds(_) => "slow",
            GroupSetting::Keep(_) => "keep",
            GroupSetting::Picture(_) => "picture",
            GroupSetting::Muted(_) => "muted",
        }
    }

    /// By which a digest tells it from others. Stored; must stay stable.
    pub fn words(&self) -> String {
        match self {
            GroupSetting::Name(name) => format!("rename\0{name}"),
            GroupSetting::Topic(topic) => format!("topic\0{topic}"),
            GroupSetting::History(history) => format!("history\0{}", history.as_str()),
            GroupSetting::SlowSeconds(seconds) => format!("slow\0{seconds}"),
            GroupSetting::Keep(keep) => format!("keep\0{}", keep.seconds),
            GroupSetting::Picture(picture) => {
                format!("picture\0{}", picture.map(|file| file.to_string()).unwrap_or_default())
            }
            // Nobody asks for it by itself.
            GroupSetting::Muted(_) => "muted".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two_muted() -> Vec<Muted> {
        [(7, Mute::Until(Timestamp(9))), (10, Mute::ForGood)]
            .map(|(uid, until)| Muted { uid, until })
            .to_vec()
    }

    /// They lie in the databases, in journals and in exports.
    #[test]
    fn settings_stay_as_they_are_stored() {
        let new = GroupSettings::new("walkers".to_owned());
        let set = new
            .with(&GroupSetting::Topic("Sundays".to_owned()))
            .with(&GroupSetting::History(History::Visible));
        let quiet = new.with(&GroupSetting::SlowSeconds(30)).with(&GroupSetting::Muted(two_muted()));
        let keep = Keep { seconds: 60, gone_before: 0 };
        let brief = new.with(&GroupSetting::Keep(keep));
        let picture = GroupSetting::Picture(Some(FileId(uuid::Uuid::from_u128(7))));
        let seen = new.with(&picture);
        for (settings, stored) in [
            (new, r#"{"name":"walkers"}"#),
            (set, r#"{"name":"walkers","topic":"Sundays","history":"visible"}"#),
            (
                quiet,
                r#"{"name":"walkers","slow_seconds":30,"muted":[{"uid":7,"until":9},{"uid":10,"until":null}]}"#,
            ),
            (brief, r#"{"name":"walkers","keep":{"seconds":60}}"#),
            (seen, r#"{"name":"walkers","picture":"00000000-0000-0000-0000-000000000007"}"#),
        ] {
            assert_eq!(serde_json::to_string(&settings).expect("JSON"), stored);
            assert_eq!(serde_json::from_str::<GroupSettings>(stored).expect("settings"), settings);
        }
        let topic = GroupSetting::Topic(String::new());
        assert_eq!(serde_json::to_string(&topic).expect("JSON"), r#"{"topic":""}"#);
        let slow = GroupSetting::SlowSeconds(5);
        assert_eq!(serde_json::to_string(&slow).expect("JSON"), r#"{"slow_seconds":5}"#);
        assert_eq!(serde_json::to_string(&GroupSetting::Picture(None)).expect("JSON"), r#"{"picture":null}"#);
        let none: GroupSettings =
            serde_json::from_str(r#"{"name":"walkers","picture":null}"#).expect("settings");
        assert_eq!(none.picture, None);
        let keep = GroupSetting::Keep(keep);
        assert_eq!(serde_json::to_string(&keep).expect("JSON"), r#"{"keep":{"seconds":60}}"#);
    }

    #[test]
    fn a_mute_holds_until_its_end() {
        let settings = GroupSettings::new("walkers".to_owned()).with(&GroupSetting::Muted(two_muted()));
        let holds = |uid, now| settings.mute_of(Uid(uid), Timestamp(now)).is_some();
        assert_eq!([holds(7, 8), holds(7, 9), holds(10, 9), holds(11, 8)], [true, false, true, false]);
    }
}
