//! The kinds of rows. All that the server knows of a kind by itself stands in its entry below: the word on the wire and in
//! exports, the number in the databases, who writes it, and what it is to the other rows of an inbox. `compaction` says
//! which rows make way for later ones.
//!
//! Stores ask these facts and hand numbers and keys on to SQL; no statement and no stored function knows a kind. The
//! effects of an edit, a recall and a deletion on their message stand in `amendment`.

/// Who writes rows of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WrittenBy {
    /// People, by a call or a frame.
    People,
    /// Programs, through the table `inbox`.
    Programs,
    /// The server, out of rows that people have changed.
    Server,
}

/// The facts about a kind, as the methods of [`Kind`] explain them.
struct KindFacts {
    name: &'static str,
    code: u8,
    writer: WrittenBy,
    is_state: bool,
    is_said: bool,
    is_shown: bool,
    is_gone: bool,
    is_of_moments: bool,
    is_deletable: bool,
    names_another: bool,
    is_lasting: bool,
    is_told: bool,
    /// The compaction key, whose words in braces `compaction` takes from the row; empty: it has none.
    key: &'static str,
}

const PLAIN: KindFacts = KindFacts {
    name: "",
    code: 0,
    writer: WrittenBy::People,
    is_state: false,
    is_said: false,
    is_shown: false,
    is_gone: false,
    is_of_moments: false,
    is_deletable: false,
    names_another: false,
    is_lasting: false,
    is_told: false,
    key: "",
};

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident $name:literal $code:literal $writer:ident { $($fact:ident: $value:expr),* })*) => {
        /// The kind of a row. Clients skip kinds that they do not know.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Kind { $($(#[$doc])* $kind,)* }

        impl Kind {
            /// All of them.
            pub const ALL: [Kind; [$($code),*].len()] = [$(Kind::$kind),*];

            fn facts(self) -> &'static KindFacts {
                match self {
                    $(Kind::$kind => const {
                        &KindFacts { name: $name, code: $code, writer: WrittenBy::$writer, $($fact: $value,)* ..PLAIN }
                    },)*
                }
            }
        }
    };
}

// The words, the numbers and the compaction keys are stored and must stay stable.
kinds! {
    /// Something a person said.
    Message "message" 1 People { is_said: true, is_shown: true, is_deletable: true, is_told: true }
    /// The user's own read marker moved; only in the user's own inbox.
    ReadMarker "receipt" 2 People { is_state: true, is_lasting: true, key: "read {conversation}" }
    /// A group was made, or somebody joined or left it.
    Membership "membership" 3 People { is_shown: true, is_lasting: true, key: "keep {conversation} {kept}" }
    /// A row that a program put there, of a kind of its own ([`AppKind`](super::AppKind)). It is no message of a person.
    App "app" 4 Programs {}
    /// The sender of a message changed its text.
    Edit "edit" 5 People { names_another: true, key: "amend {of}" }
    /// The sender of a message took it back, or an administrator of the group did.
    Recall "recall" 6 People { names_another: true, key: "amend {of}" }
    /// A person's reactions to a message.
    Reaction "reaction" 7 People { names_another: true, key: "react {sender} {of}" }
    /// A message that was taken back: its sender and time, without its text.
    Recalled "recalled" 8 Server { is_said: true, is_shown: true, is_gone: true, is_deletable: true }
    /// A setting of the user, for one conversation or for all; only in the user's own inbox.
    Setting "setting" 9 People { is_state: true, is_lasting: true, key: "set {setting} {conversation}" }
    /// One of two people wants to be the other's friend, or no longer.
    Friend "friend" 10 People { is_state: true, is_lasting: true, key: "friend {conversation} {sender}" }
    /// A person's post to all friends.
    Moment "moment" 11 People { is_of_moments: true, is_deletable: true }
    /// A person likes a moment, or no longer.
    Like "like" 12 People { is_of_moments: true, names_another: true, key: "like {sender} {of}" }
    /// A person's comment on a moment.
    Comment "comment" 13 People { is_of_moments: true, is_deletable: true, names_another: true }
    /// A moment or a comment is deleted for everybody, or a message for the user alone.
    Delete "delete" 14 People { names_another: true, key: "delete {of}" }
    /// A message, a moment or a comment that was deleted: without its text.
    Deleted "deleted" 15 Server { is_shown: true, is_gone: true }
    /// How far the other person has got and read the user's messages, or how many members of a group have read them.
    Seen "seen" 16 People { is_state: true, names_another: true, is_lasting: true, key: "seen {state} {conversation}" }
    /// A message is pinned for everybody in the conversation, or no longer.
    Pin "pin" 17 People { is_state: true, names_another: true, key: "pin {conversation} {of}" }
    /// The user wants to find a message again, or no longer; only in the user's own inbox.
    Star "star" 18 People { is_state: true, names_another: true, key: "star {of}" }
    /// One of two people has chosen for how long their messages are kept.
    Keep "keep" 19 People { is_shown: true, is_lasting: true, key: "keep {conversation} {kept}" }
}

impl Kind {
    /// The word in exports; on the wire it is that of [`Content::kind_name`](super::Content::kind_name).
    pub fn as_str(self) -> &'static str {
        self.facts().name
    }

    /// The number in the databases.
    pub fn code(self) -> u8 {
        self.facts().code
    }

    /// The kind stored as `code`.
    pub fn from_code(code: u8) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.code() == code)
    }

    /// The numbers of the kinds of which this is true.
    pub fn codes(is: impl Fn(Kind) -> bool) -> Vec<u8> {
        Kind::ALL.into_iter().filter(|kind| is(*kind)).map(Kind::code).collect()
    }

    /// Who writes it.
    pub fn writer(self) -> WrittenBy {
        self.facts().writer
    }

    /// Whether it only says what holds now: such rows are no part of a conversation's history.
    pub fn is_state(self) -> bool {
        self.facts().is_state
    }

    /// Whether it is a message, also one that was taken back: such rows tell who has written to whom.
    pub fn is_said(self) -> bool {
        self.facts().is_said
    }

    /// Whether it is what is left of a row that was taken back or deleted.
    pub fn is_gone(self) -> bool {
        self.facts().is_gone
    }

    /// Whether friends share it: it lies among the moments.
    pub fn is_of_moments(self) -> bool {
        self.facts().is_of_moments
    }

    /// Whether a deletion puts `Deleted` in its place.
    pub fn is_deletable(self) -> bool {
        self.facts().is_deletable
    }

    /// Whether it is about another row, which its body names in `of`.
    pub(super) fn names_another(self) -> bool {
        self.facts().names_another
    }

    /// Whether its rows stay however old they are, where others expire: they say how things stand between people, in a group or with a
    /// conversation, and are few.
    pub fn is_lasting(self) -> bool {
        self.facts().is_lasting
    }

    /// Whether a device tells its owner of one that somebody else has sent, unless the conversation is muted: it wakes devices that sleep.
    pub fn is_told(self) -> bool {
        self.facts().is_told
    }

    /// The compaction key of its rows, before the words in braces are taken from a row; empty: they have none.
    pub(super) fn key(self) -> &'static str {
        self.facts().key
    }

    /// Whether the newest of these rows stands for its conversation in lists. A deleted message does, so that the conversation stays there;
    /// the page has no line for it in the conversation itself.
    pub fn is_shown(self) -> bool {
        self.facts().is_shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_a_word_and_a_number_of_its_own() {
        for (at, kind) in Kind::ALL.into_iter().enumerate() {
            assert_eq!((usize::from(kind.code()), Kind::from_code(kind.code())), (at + 1, Some(kind)));
            assert!(Kind::ALL[..at].iter().all(|before| before.as_str() != kind.as_str()), "{kind:?}");
        }
        assert_eq!(Kind::codes(Kind::is_gone), [8, 15]);
    }
}
