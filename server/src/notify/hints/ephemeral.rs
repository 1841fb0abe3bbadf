//! Notices between servers that are never stored: which users are typing, and which are online at which server.
//!
//! Any notice may be lost. Servers tell again and again which users came, which makes up for it. The payloads begin with
//! `e`, which tells them from [hints](super::text). Words: `t`, the sender, the group if it is in one, and the
//! receivers; `c`, `w` and `x` with people who came, went, or see others anew; `s` alone, the last one of a server that
//! stops. All numbers are in base 36.

use std::collections::{HashMap, HashSet};

use super::text::{LONGEST, ServerNumber, base_36, sign_of_life};
use crate::domain::{GroupId, Uid};

/// More than a uid and a comma have.
const UID: usize = 8;
/// Notices of typing that wait at most; more of them are dropped.
const MOST_TYPING: usize = 100;
/// People who wait to be told of; more of them are dropped, and told of later.
const MOST_PEOPLE: usize = 100_000;
/// People told of at once, so that hints of rows need not wait for long.
const PEOPLE_AT_ONCE: usize = 10_000;
/// Receivers of one notice of typing: they fit into one payload.
pub const MOST_RECEIVERS: usize = 800;

/// Somebody is typing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Typing {
    /// The user that is typing.
    pub sender: Uid,
    /// In which group; `None`: to one person.
    pub group: Option<GroupId>,
    /// The users that may be shown it, as far as the sender's side decides that.
    pub receivers: Vec<Uid>,
}

/// A notice that is told and not stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ephemeral {
    /// Somebody is typing.
    Typing(Typing),
    /// These are connected to the server that says it.
    Came(Vec<Uid>),
    /// These were, and are no more.
    Went(Vec<Uid>),
    /// The visibility of these may have changed.
    Changed(Vec<Uid>),
    /// The server that says it stops: its users go to another one, or away.
    Stops,
}

/// The payloads that carry it, as few as can be.
pub fn encode(server: ServerNumber, said: &Ephemeral) -> Vec<String> {
    let head = |word: char| format!("e{} {word}", sign_of_life(server));
    let (word, people) = match said {
        Ephemeral::Typing(Typing { sender, group, receivers }) => {
            let mut payload = head('t');
            base_36(&mut payload, sender.0.into());
            payload.push(':');
            if let Some(gid) = group {
                base_36(&mut payload, gid.0);
            }
            payload.push(':');
            put_people(&mut payload, &receivers[..receivers.len().min(MOST_RECEIVERS)]);
            return vec![payload];
        }
        Ephemeral::Came(people) => ('c', people),
        Ephemeral::Went(people) => ('w', people),
        Ephemeral::Changed(people) => ('x', people),
        Ephemeral::Stops => return vec![head('s')],
    };
    let payloads = people.chunks((LONGEST - 32) / UID).map(|some| {
        let mut payload = head(word);
        put_people(&mut payload, some);
        payload
    });
    payloads.collect()
}

/// Reads a payload: the server that sent it, and its notice. `None`: it is none of these, or of a newer program.
pub fn decode(payload: &str) -> Option<(ServerNumber, Ephemeral)> {
    let (server, said) = payload.strip_prefix('e')?.split_once(' ')?;
    if server.len() != 16 {
        return None;
    }
    let server = ServerNumber(u64::from_str_radix(server, 16).ok()?);
    let (word, rest) = said.split_at_checked(1)?;
    let said = match word {
        "t" => {
            let mut parts = rest.splitn(3, ':');
            let (sender, group, receivers) = (parts.next()?, parts.next()?, parts.next()?);
            let group = match group {
                "" => None,
                gid => Some(GroupId(u64::from_str_radix(gid, 36).ok()?)),
            };
            Ephemeral::Typing(Typing { sender: person(sender)?, group, receivers: people(receivers)? })
        }
        "c" => Ephemeral::Came(people(rest)?),
        "w" => Ephemeral::Went(people(rest)?),
        "x" => Ephemeral::Changed(people(rest)?),
        "s" => Ephemeral::Stops,
        _ => return None,
    };
    Some((server, said))
}

fn put_people(payload: &mut String, people: &[Uid]) {
    for (at, uid) in people.iter().enumerate() {
        if at > 0 {
            payload.push(',');
        }
        base_36(payload, uid.0.into());
    }
}

fn person(text: &str) -> Option<Uid> {
    u32::from_str_radix(text, 36).ok().map(Uid)
}

fn people(text: &str) -> Option<Vec<Uid>> {
    text.split(',').map(person).collect()
}

/// The notices that wait to be told. Bounded: more of them are dropped.
#[derive(Debug, Default)]
pub struct EphemeralOutbox {
    typing: Vec<Typing>,
    /// Whether they came or went last.
    people: HashMap<Uid, bool>,
    changed: HashSet<Uid>,
    stops: bool,
}

impl EphemeralOutbox {
    /// Keeps it until it is [taken](Self::take).
    pub fn put(&mut self, said: Ephemeral) {
        let (people, came) = match said {
            Ephemeral::Typing(typing) if self.typing.len() < MOST_TYPING => return self.typing.push(typing),
            Ephemeral::Typing(_) => return,
            Ephemeral::Changed(people) => {
                let room = MOST_PEOPLE.saturating_sub(self.changed.len());
                return self.changed.extend(people.into_iter().take(room));
            }
            Ephemeral::Came(people) => (people, true),
            Ephemeral::Went(people) => (people, false),
            Ephemeral::Stops => {
                // From now on other servers tell of these people.
                self.people.clear();
                self.stops = true;
                return;
            }
        };
        for uid in people {
            if self.people.len() < MOST_PEOPLE || self.people.contains_key(&uid) {
                self.people.insert(uid, came);
            }
        }
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.typing.is_empty() && self.people.is_empty() && self.changed.is_empty() && !self.stops
    }

    /// The waiting notices, or as many as may be told at once.
    pub fn take(&mut self) -> Vec<Ephemeral> {
        let mut said: Vec<Ephemeral> = self.typing.drain(..).map(Ephemeral::Typing).collect();
        let some: Vec<Uid> = self.people.keys().copied().take(PEOPLE_AT_ONCE).collect();
        let (came, went): (Vec<Uid>, Vec<Uid>) =
            some.into_iter().partition(|uid| self.people.get(uid) == Some(&true));
        for uid in came.iter().chain(&went) {
            self.people.remove(uid);
        }
        let changed: Vec<Uid> = self.changed.iter().copied().take(PEOPLE_AT_ONCE).collect();
        for uid in &changed {
            self.changed.remove(uid);
        }
        let all = [Ephemeral::Came(came), Ephemeral::Went(went), Ephemeral::Changed(changed)];
        said.extend(all.into_iter().filter(|said| !said.is_nothing()));
        said.extend(std::mem::take(&mut self.stops).then_some(Ephemeral::Stops));
        said
    }
}

impl Ephemeral {
    fn is_nothing(&self) -> bool {
        match self {
            Ephemeral::Typing(typing) => typing.receivers.is_empty(),
            Ephemeral::Came(people) | Ephemeral::Went(people) | Ephemeral::Changed(people) => {
                people.is_empty()
            }
            Ephemeral::Stops => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::text;
    use super::*;

    const SERVER: ServerNumber = ServerNumber(0x1234);

    fn people() -> impl Strategy<Value = Vec<Uid>> {
        proptest::collection::vec(any::<u32>().prop_map(Uid), 1..3_000)
    }

    fn anything() -> impl Strategy<Value = Ephemeral> {
        let group = proptest::option::of(any::<u64>().prop_map(GroupId));
        let receivers = proptest::collection::vec(any::<u32>().prop_map(Uid), 1..=MOST_RECEIVERS);
        let typing = (any::<u32>(), group, receivers).prop_map(|(sender, group, receivers)| {
            Ephemeral::Typing(Typing { sender: Uid(sender), group, receivers })
        });
        prop_oneof![
            typing,
            people().prop_map(Ephemeral::Came),
            people().prop_map(Ephemeral::Went),
            people().prop_map(Ephemeral::Changed),
            Just(Ephemeral::Stops),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn what_is_told_is_what_is_heard_and_no_hint(said in anything()) {
            let mut heard = Vec::new();
            for payload in encode(SERVER, &said) {
                prop_assert!(payload.len() <= LONGEST, "{}", payload.len());
                prop_assert_eq!(text::decode(&payload), None);
                let (server, said) = decode(&payload).expect("ours");
                prop_assert_eq!(server, SERVER);
                heard.push(said);
            }
            let all = heard.into_iter().reduce(|all, next| match (all, next) {
                (Ephemeral::Came(all), Ephemeral::Came(next)) => Ephemeral::Came([all, next].concat()),
                (Ephemeral::Went(all), Ephemeral::Went(next)) => Ephemeral::Went([all, next].concat()),
                (Ephemeral::Changed(all), Ephemeral::Changed(next)) => Ephemeral::Changed([all, next].concat()),
                (all, _) => all,
            });
            prop_assert_eq!(all, Some(said));
        }

        #[test]
        fn no_text_harms(text in ".*") {
            _ = decode(&text);
            _ = decode(&format!("e{} {text}", sign_of_life(SERVER)));
        }
    }

    #[test]
    fn what_waits_is_bounded_and_the_last_word_on_each_stands() {
        let mut outbox = EphemeralOutbox::default();
        outbox.put(Ephemeral::Came(vec![Uid(1), Uid(2)]));
        outbox.put(Ephemeral::Went(vec![Uid(1)]));
        assert_eq!(outbox.take(), [Ephemeral::Came(vec![Uid(2)]), Ephemeral::Went(vec![Uid(1)])]);
        outbox.put(Ephemeral::Came(vec![Uid(1)]));
        outbox.put(Ephemeral::Stops);
        assert!(!outbox.is_empty());
        assert_eq!(outbox.take(), [Ephemeral::Stops]);
        assert!(outbox.is_empty());
        for n in 0..=MOST_PEOPLE as u32 {
            outbox.put(Ephemeral::Came(vec![Uid(n)]));
            outbox.put(Ephemeral::Changed(vec![Uid(n)]));
            let typing = Typing { sender: Uid(n), group: None, receivers: vec![Uid(1)] };
            outbox.put(Ephemeral::Typing(typing));
        }
        let first = outbox.take();
        assert_eq!(first.len(), MOST_TYPING + 2);
        let mut told = PEOPLE_AT_ONCE;
        while !outbox.is_empty() {
            let said = outbox.take();
            assert!(
                matches!(&said[..], [Ephemeral::Came(some), Ephemeral::Changed(_)] if some.len() == PEOPLE_AT_ONCE)
            );
            told += PEOPLE_AT_ONCE;
        }
        assert_eq!(told, MOST_PEOPLE);
    }
}
