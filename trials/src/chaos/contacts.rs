//! The people and groups that a person has to do with, and what there is to do to them: the next action, drawn by chance.

use std::collections::VecDeque;

use rand::RngExt;
use rand::rngs::StdRng;
use serde_json::json;
use tidemark_client::{Conversation, Entry, History, Kind, Progress, Recipient, Role};

use super::action::{Action, RowPlace};

/// Rows that somebody remembers, to do something to them.
const REMEMBERED: usize = 64;

const EMOJI: [&str; 4] = ["👍", "❤️", "😀", "🎉"];

/// The people, groups and latest rows that a person has to do with.
#[derive(Clone, Debug, Default)]
pub(super) struct Contacts {
    pub(super) uid: u32,
    /// The recipients of messages.
    pub(super) recipients: Vec<Recipient>,
    /// Users whose friend the person becomes and ceases to be.
    pub(super) fickle: Vec<u32>,
    /// The group that the person changes, with its possible members.
    pub(super) changing: Option<Changing>,
    /// The group that the person takes others into.
    pub(super) joined: Option<Joined>,
    /// Whether the person blocks people, and hears friends alone.
    pub(super) is_private: bool,
    pub(super) messages: VecDeque<RowPlace>,
    pub(super) moments: VecDeque<RowPlace>,
    pub(super) comments: VecDeque<RowPlace>,
}

/// A group that is changed.
#[derive(Clone, Debug)]
pub(super) struct Changing {
    pub(super) gid: u64,
    /// They get roles.
    pub(super) lasting: Vec<u32>,
    /// They are removed, banned and added.
    pub(super) passing: Vec<u32>,
}

/// A group whose history is visible. Its first members write to it.
#[derive(Clone, Debug)]
pub(super) struct Joined {
    pub(super) gid: u64,
    /// The member who takes the others in.
    pub(super) owner: u32,
    /// They are taken in at some time, and stay.
    pub(super) joining: Vec<u32>,
}

impl Contacts {
    /// Remembers a row.
    pub(super) fn take(&mut self, row: &Entry) {
        let Some(client_id) = row.client_id else { return };
        let (message_id, conversation, sender) = (row.message_id, row.conversation, row.sender);
        let rows = match row.kind {
            Kind::Message => &mut self.messages,
            Kind::Moment => &mut self.moments,
            Kind::Comment => &mut self.comments,
            _ => return,
        };
        if rows.len() == REMEMBERED {
            rows.pop_front();
        }
        rows.push_back(RowPlace { conversation, message_id, sender, client_id });
    }

    /// A message of this conversation to reply to.
    pub(super) fn quoted(&self, to: Recipient, random: &mut StdRng) -> Option<RowPlace> {
        let conversation = match to {
            Recipient::User(uid) => Conversation::User(uid),
            Recipient::Group(gid) => Conversation::Group(gid),
        };
        one(random, self.messages.iter().filter(|place| place.conversation == conversation)).copied()
    }

    /// Something to do that makes rows of this kind, if there is what it takes. `number`: makes texts differ.
    pub(super) fn action(&self, kind: &Kind, number: u64, random: &mut StdRng) -> Option<Action> {
        let uid = self.uid;
        let text = format!("{uid} meant {number}");
        let own = |place: &&RowPlace| place.sender == uid;
        let message = |random: &mut StdRng| one(random, self.messages.iter()).copied();
        let own_message = |random: &mut StdRng| one(random, self.messages.iter().filter(own)).copied();
        let moment = |random: &mut StdRng| one(random, self.moments.iter()).copied();
        Some(match kind {
            Kind::Edit => Action::Edit { at: own_message(random)?, text },
            Kind::Recall => Action::Recall { at: own_message(random)? },
            Kind::Reaction => {
                let count = random.random_range(0..3);
                let emoji = EMOJI.into_iter().skip(count).take(count).map(str::to_owned).collect();
                Action::React { at: message(random)?, emoji }
            }
            Kind::Delete if random.random_bool(0.5) => Action::Delete { at: message(random)? },
            Kind::Delete => {
                let own = self.moments.iter().chain(&self.comments).filter(own);
                Action::DeleteMoment { at: *one(random, own)? }
            }
            Kind::Pin => Action::Pin { at: message(random)?, pinned: random.random_bool(0.5) },
            Kind::Star => Action::Star { at: message(random)?, starred: random.random_bool(0.6) },
            Kind::Setting => self.setting(text, random)?,
            Kind::Friend => {
                Action::Befriend { uid: *one(random, self.fickle.iter())?, wanted: random.random_bool(0.6) }
            }
            // Nothing gets so old in a run.
            Kind::Keep => Action::Keep {
                uid: *one(random, self.fickle.iter())?,
                seconds: random.random_range(0..3) * 86_400,
            },
            Kind::Moment => Action::Post { text },
            Kind::Like => Action::Like { at: moment(random)?, liked: random.random_bool(0.7) },
            Kind::Comment => Action::Comment { at: moment(random)?, text },
            Kind::ReadMarker => {
                let all = self.messages.iter().chain(&self.moments);
                Action::Read { at: *one(random, all)? }
            }
            Kind::Seen => {
                let theirs = |place: &&RowPlace| {
                    place.sender != uid && place.conversation == Conversation::User(place.sender)
                };
                let at = *one(random, self.messages.iter().filter(theirs))?;
                let progress = if random.random_bool(0.5) { Progress::Delivered } else { Progress::Read };
                Action::Seen { at, progress }
            }
            Kind::Membership => self.change(text, random)?,
            _ => return None,
        })
    }

    fn setting(&self, text: String, random: &mut StdRng) -> Option<Action> {
        let conversation = match *one(random, self.recipients.iter())? {
            Recipient::User(uid) => Conversation::User(uid),
            Recipient::Group(gid) => Conversation::Group(gid),
        };
        let (name, value) = match random.random_range(0..if self.is_private { 7 } else { 5 }) {
            0 => ("draft", json!({ "text": text })),
            1 => ("mute", json!({ "until": random.random_range(1..2_000_000_000_000_u64) })),
            2 => ("pin", json!({ "pinned": true })),
            3 => ("archive", json!({ "up_to": random.random_range(1..1_000) })),
            4 => {
                let value = json!({ "about": text }).to_string();
                return Some(Action::SetForAll { name: "profile", value });
            }
            5 => {
                let who = if random.random_bool(0.3) { "friends" } else { "everybody" };
                return Some(Action::SetForAll {
                    name: "privacy",
                    value: json!({ "write": who }).to_string(),
                });
            }
            _ => ("block", json!({ "blocked": true })),
        };
        // Blocks end soon, so that there is something to say.
        let ends = random.random_bool(if name == "block" { 0.8 } else { 0.3 });
        let value = if ends { "null".to_owned() } else { value.to_string() };
        Some(Action::Set { conversation, name, value })
    }

    fn change(&self, text: String, random: &mut StdRng) -> Option<Action> {
        if let Some(Joined { gid, joining, .. }) = &self.joined {
            // Seldom, so that there is a history.
            let uid = *one(random, joining.iter())?;
            return random.random_bool(0.1).then_some(Action::Add { gid: *gid, uid });
        }
        let Changing { gid, lasting, passing } = self.changing.as_ref()?;
        let (gid, lasting, passing) = (*gid, one(random, lasting.iter()), one(random, passing.iter()));
        Some(match random.random_range(0..9) {
            0 => Action::Rename { gid, name: text },
            1 => Action::Topic { gid, topic: text },
            2 | 3 => {
                let role = if random.random_bool(0.5) { Role::Administrator } else { Role::Member };
                Action::Role { gid, uid: *lasting?, role }
            }
            4 => Action::Remove { gid, uid: *passing? },
            5 => Action::Ban { gid, uid: *passing? },
            6 => Action::Unban { gid, uid: *passing? },
            7 => {
                let history = if random.random_bool(0.5) { History::Visible } else { History::Hidden };
                Action::History { gid, history }
            }
            _ => Action::Add { gid, uid: *passing? },
        })
    }
}

/// Any of them.
fn one<T>(random: &mut StdRng, all: impl Iterator<Item = T> + Clone) -> Option<T> {
    let count = all.clone().count();
    if count == 0 { None } else { all.clone().nth(random.random_range(0..count)) }
}
