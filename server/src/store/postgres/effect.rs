//! The effect of a row on those before it, as the stored function `compact_entry` takes it. The rules are those of
//! `domain::kinds` and `domain::amendment`: the function knows neither kinds nor keys.

use serde::{Deserialize, Serialize};

use crate::domain::{Change, Content, Kind, Uid, amendment_key};

/// See the module.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Effect {
    /// The row takes the place of the one before it with this compaction key.
    key: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    change: Option<OfAnother>,
}

/// The change of another row.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct OfAnother {
    sender: u32,
    /// Hex digits.
    client_id: String,
    /// The kinds that change.
    from: Vec<u8>,
    /// Its kind and body from then on.
    kind: u8,
    body: String,
    /// Of a row that gives a new text: the kinds whose text is gone, which make it void.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    void: Vec<u8>,
    /// Of a row that takes a text for good: the key and the kind of the row that has the text, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    also: Option<(String, u8)>,
}

impl Effect {
    /// That of a row of `receiver`, if it has any.
    pub(super) fn of(content: &Content, receiver: Uid) -> Option<Effect> {
        let key = content.compaction_key(receiver)?;
        let change = content.of().zip(content.change()).map(|(of, Change { from, kind, body })| OfAnother {
            sender: of.0.0,
            client_id: of.1.0.simple().to_string(),
            from: Kind::codes(from),
            kind: kind.code(),
            body: body.into(),
            void: if kind.is_gone() { Vec::new() } else { Kind::codes(Kind::is_gone) },
            also: (kind == Kind::Deleted).then(|| (amendment_key(of), Kind::Edit.code())),
        });
        Some(Effect { key, change })
    }

    /// The same as JSON.
    pub(super) fn json(content: &Content, receiver: Uid) -> Option<String> {
        Effect::of(content, receiver)
            .map(|effect| serde_json::to_string(&effect).expect("plain numbers and texts"))
    }
}
