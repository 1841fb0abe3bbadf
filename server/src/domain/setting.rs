//! Settings: what a user has chosen, for one conversation or for all. Each is a row of the user's own inbox, so that
//! the user's other devices follow; the newest one stands.

use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{Body, Content, FileId};

/// Bytes of a setting's value as JSON, at most. A draft of the longest text that can be configured has room: 10,000 characters, of which
/// each may be six bytes in JSON.
pub const MOST_SETTING_BYTES: usize = 65_536;

/// Characters of the line that a person says about himself, at most.
pub const MOST_ABOUT: usize = 120;

/// A setting. The names are stored and go over the wire; they must stay stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Setting {
    /// A text that is not sent yet: `{"text"}`.
    Draft,
    /// Nothing is told of new messages: `{"until"}`, milliseconds since 1970 UTC, or always without it.
    Mute,
    /// The conversation stands above the others: `{"pinned": true}`.
    Pin,
    /// The conversation lies in the archive until a newer row comes, or as long as it is muted: `{"up_to"}`, a row of the user's own inbox.
    Archive,
    /// The same, as pages of 0.1.0 call it.
    Hide,
    /// The conversation counts as unread until it is opened: `{"unread": true}`.
    Unread,
    /// The other person may not write: `{"blocked": true}`.
    Block,
    /// The person's privacy, for all: [`Privacy`].
    Privacy,
    /// The person's public profile: [`Profile`].
    Profile,
    /// The person's picture: `{"file"}`, a picture that the person has uploaded.
    Picture,
    /// The language of the page, on devices where none was chosen: `{"tag"}`.
    Language,
}

impl Setting {
    /// All of them.
    pub const ALL: [Setting; 11] = [
        Setting::Draft,
        Setting::Mute,
        Setting::Pin,
        Setting::Archive,
        Setting::Hide,
        Setting::Unread,
        Setting::Block,
        Setting::Privacy,
        Setting::Profile,
        Setting::Picture,
        Setting::Language,
    ];

    /// The word in bodies, addresses and keys.
    pub fn as_str(self) -> &'static str {
        match self {
            Setting::Draft => "draft",
            Setting::Mute => "mute",
            Setting::Pin => "pin",
            Setting::Archive => "archive",
            Setting::Hide => "hide",
            Setting::Unread => "unread",
            Setting::Block => "block",
            Setting::Privacy => "privacy",
            Setting::Profile => "profile",
            Setting::Picture => "picture",
            Setting::Language => "language",
        }
    }

    /// Whether it is set once for all conversations, and not for each.
    pub fn is_for_all(self) -> bool {
        matches!(self, Setting::Privacy | Setting::Profile | Setting::Picture | Setting::Language)
    }
}

/// A name that no setting has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "there is no such setting; use draft, mute, pin, archive, unread, block, privacy, profile, picture or language"
)]
pub struct UnknownSetting;

impl FromStr for Setting {
    type Err = UnknownSetting;

    fn from_str(name: &str) -> Result<Setting, UnknownSetting> {
        Setting::ALL.into_iter().find(|known| known.as_str() == name).ok_or(UnknownSetting)
    }
}

/// For whom something is open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PrivacyLevel {
    /// Every user of the server.
    #[default]
    Everybody,
    /// Friends alone.
    Friends,
}

/// By what a person can be found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FoundBy {
    /// Any part of the name.
    #[default]
    Part,
    /// The whole name alone.
    Name,
}

/// The privacy of a person. An absent field has its default, which is the most open one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Privacy {
    /// The people that may write to the person.
    pub write: PrivacyLevel,
    /// The people that may put the person into a group.
    pub groups: PrivacyLevel,
    /// By what others find the person.
    pub found_by: FoundBy,
    /// Whether devices do not tell others how far messages have come. Devices keep it.
    pub quiet: bool,
    /// Whether others see the person typing. A person that hides it does not see others typing.
    pub typing: bool,
    /// Whether people that may write to the person see when the person is online. A person that hides it does not see it of others.
    pub presence: bool,
    /// Whether friends, and people to whom the person has written, see when the person was online last, as long as `presence` is shown. A
    /// person that hides it does not see it of others.
    pub last_seen: bool,
}

impl Default for Privacy {
    fn default() -> Privacy {
        Privacy {
            write: PrivacyLevel::default(),
            groups: PrivacyLevel::default(),
            found_by: FoundBy::default(),
            quiet: false,
            typing: true,
            presence: true,
            last_seen: true,
        }
    }
}

impl Privacy {
    /// Reads the newest row of the setting; the default without one. Fields that a newer program has added are passed over.
    pub fn read(row: Option<&Content>) -> Privacy {
        row.and_then(|row| row.body.setting_value()).map(Privacy::of_stored).unwrap_or_default()
    }

    fn of_stored(value: &str) -> Privacy {
        let mut fields: serde_json::Map<_, _> = serde_json::from_str(value).unwrap_or_default();
        fields.retain(|name, value| {
            let alone = serde_json::Map::from_iter([(name.clone(), value.clone())]);
            serde_json::from_value::<Privacy>(alone.into()).is_ok()
        });
        serde_json::from_value(fields.into()).unwrap_or_default()
    }
}

/// A person's public profile, beside the name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Profile {
    /// The hue of the person's disc, 0 to 359.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hue: Option<u16>,
    /// A line of text.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub about: String,
}

/// Why a value is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingError {
    /// It has another shape.
    #[error("the value of {setting} is {expected}, or null to clear it")]
    Shape {
        /// Which setting.
        setting: &'static str,
        /// The expected form.
        expected: &'static str,
    },
    /// It has a NUL, which databases disagree about.
    #[error("the value of {setting} holds a NUL character; remove it")]
    Nul {
        /// Which setting.
        setting: &'static str,
    },
    /// It is too long.
    #[error("the value of {setting} has {bytes} bytes as JSON; at most {MOST_SETTING_BYTES} are allowed")]
    TooLong {
        /// Which setting.
        setting: &'static str,
        /// Its length.
        bytes: usize,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Draft {
    #[serde(rename = "text")]
    _text: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Mute {
    until: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Pin {
    pinned: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Archive {
    up_to: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Unread {
    unread: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Block {
    blocked: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Picture {
    file: FileId,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Language {
    tag: String,
}

#[derive(Deserialize)]
struct StoredSetting<'a> {
    name: &'a str,
    #[serde(borrow)]
    value: Option<&'a RawValue>,
}

/// Whether a text may be the tag of a language (RFC 5646), which need not be one of the page.
fn is_tag(tag: &str) -> bool {
    (2..=35).contains(&tag.len()) && tag.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

impl Setting {
    fn check(self, value: &str) -> Result<(), SettingError> {
        fn reads<'a, T: Deserialize<'a>>(value: &'a str, good: impl Fn(T) -> bool) -> bool {
            // serde takes an array for a struct, field by field.
            value.trim_start().starts_with('{') && serde_json::from_str(value).is_ok_and(good)
        }
        let is_safe = |number: u64| number < 1 << 53;
        let (is_good, expected) = match self {
            Setting::Draft => (reads(value, |_: Draft| true), "{\"text\": TEXT}"),
            Setting::Mute => (
                reads(value, |mute: Mute| mute.until.is_none_or(is_safe)),
                "{} or {\"until\": milliseconds since 1970 UTC}",
            ),
            Setting::Pin => (reads(value, |pin: Pin| pin.pinned), "{\"pinned\": true}"),
            Setting::Archive | Setting::Hide => {
                (reads(value, |archive: Archive| is_safe(archive.up_to)), "{\"up_to\": MESSAGE_ID}")
            }
            Setting::Unread => (reads(value, |unread: Unread| unread.unread), "{\"unread\": true}"),
            Setting::Block => (reads(value, |block: Block| block.blocked), "{\"blocked\": true}"),
            Setting::Privacy => (
                reads(value, |_: Privacy| true),
                "{\"write\", \"groups\": \"everybody\" or \"friends\", \"found_by\": \"part\" or \"name\", \"quiet\", \"typing\", \"presence\", \"last_seen\": true or false}",
            ),
            Setting::Profile => (
                reads(value, |profile: Profile| {
                    profile.hue.is_none_or(|hue| hue < 360)
                        && profile.about.chars().count() <= MOST_ABOUT
                        && !profile.about.chars().any(char::is_control)
                }),
                "{\"hue\": 0 to 359, \"about\": a line of at most 120 characters}",
            ),
            Setting::Picture => (reads(value, |_: Picture| true), "{\"file\": UUID}"),
            Setting::Language => {
                (reads(value, |language: Language| is_tag(&language.tag)), "{\"tag\": LANGUAGE_TAG}")
            }
        };
        if is_good { Ok(()) } else { Err(SettingError::Shape { setting: self.as_str(), expected }) }
    }
}

impl Body {
    /// The body of a setting's row. `value`: JSON; `null` clears it.
    ///
    /// # Errors
    /// When the value is too long, or not what the setting takes.
    pub fn of_setting(setting: Setting, value: &RawValue) -> Result<Body, SettingError> {
        // In one line, whatever it came in.
        let value: serde_json::Value = serde_json::from_str(value.get()).unwrap_or_default();
        let value = value.to_string();
        if value.len() > MOST_SETTING_BYTES {
            return Err(SettingError::TooLong { setting: setting.as_str(), bytes: value.len() });
        }
        if value.contains("\\u0000") {
            return Err(SettingError::Nul { setting: setting.as_str() });
        }
        if value != "null" {
            setting.check(&value)?;
        }
        Ok(Body::from_stored(format!("{{\"name\":\"{}\",\"value\":{value}}}", setting.as_str())))
    }

    /// Which setting this is the body of.
    pub fn setting(&self) -> Option<Setting> {
        let StoredSetting { name, .. } = serde_json::from_str(self.as_json()).ok()?;
        name.parse().ok()
    }

    /// The value of the setting that this is the body of, as JSON; `None`: it is cleared.
    pub fn setting_value(&self) -> Option<&str> {
        let StoredSetting { value, .. } = serde_json::from_str(self.as_json()).ok()?;
        value.map(RawValue::get)
    }

    /// The file that the setting [`Setting::Picture`] names; `None`: it is cleared.
    pub fn picture(&self) -> Option<FileId> {
        let picture: Picture = serde_json::from_str(self.setting_value()?).ok()?;
        Some(picture.file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(setting: Setting, value: &str) -> Result<Body, SettingError> {
        Body::of_setting(setting, &RawValue::from_string(value.to_owned()).expect("JSON"))
    }

    #[test]
    fn a_field_that_a_newer_program_added_leaves_the_others_as_they_are() {
        let stored = r#"{"write":"friends","typing":false,"birthday":"nobody","groups":"colleagues"}"#;
        let known = Privacy { write: PrivacyLevel::Friends, typing: false, ..Privacy::default() };
        assert_eq!(Privacy::of_stored(stored), known);
        assert_eq!(Privacy::of_stored("7"), Privacy::default());
    }

    #[test]
    fn each_setting_takes_what_it_says_and_nothing_else() {
        for (setting, good, bad) in [
            (Setting::Draft, r#"{"text":"to be"}"#, r#"{"text":1}"#),
            (Setting::Mute, "{}", r#"{"until":-1}"#),
            (Setting::Mute, r#"{"until":1795261438042}"#, "true"),
            (Setting::Pin, r#"{"pinned":true}"#, r#"{"pinned":false}"#),
            (Setting::Archive, r#"{"up_to":7}"#, "{}"),
            (Setting::Hide, r#"{"up_to":7}"#, "{}"),
            (Setting::Unread, r#"{"unread":true}"#, r#"{"unread":false}"#),
            (Setting::Block, r#"{"blocked":true}"#, "{}"),
            (Setting::Privacy, r#"{"write":"friends"}"#, r#"{"write":"nobody"}"#),
            (Setting::Privacy, r#"{"last_seen":false,"presence":false,"typing":false}"#, r#"{"typing":1}"#),
            (Setting::Profile, r#"{"about":"at sea","hue":359}"#, r#"{"hue":360}"#),
            (
                Setting::Picture,
                r#"{"file":"00000000-0000-0000-0000-000000000007"}"#,
                r#"{"file":"pier.jpg"}"#,
            ),
            (Setting::Language, r#"{"tag":"zh"}"#, r#"{"tag":"z\u00e4"}"#),
            (Setting::Profile, "{}", r#"{"about":"two\nlines"}"#),
        ] {
            let stored = body(setting, good).expect(good);
            assert_eq!((stored.setting(), stored.setting_value()), (Some(setting), Some(good)));
            assert!(matches!(body(setting, bad), Err(SettingError::Shape { .. })), "{bad}");
            let cleared = body(setting, "null").expect("cleared");
            assert_eq!((cleared.setting(), cleared.setting_value()), (Some(setting), None));
        }
        // An array of the fields is no object, and scripts read no number from 2^53 on.
        for (setting, bad) in [
            (Setting::Block, "[true]"),
            (Setting::Privacy, "[]"),
            (Setting::Mute, r#"{"until":9007199254740992}"#),
            (Setting::Archive, r#"{"up_to":9007199254740992}"#),
        ] {
            assert!(matches!(body(setting, bad), Err(SettingError::Shape { .. })), "{bad}");
        }
        let lines = body(Setting::Privacy, "{\n  \"write\": \"friends\"\n}").expect("good");
        assert_eq!(lines.as_json(), r#"{"name":"privacy","value":{"write":"friends"}}"#);
        let nul = body(Setting::Draft, r#"{"text":"\u0000"}"#);
        assert_eq!(nul, Err(SettingError::Nul { setting: "draft" }));
        let long = format!("{{\"text\":\"{}\"}}", "a".repeat(MOST_SETTING_BYTES));
        assert!(matches!(body(Setting::Draft, &long), Err(SettingError::TooLong { .. })));
    }
}
