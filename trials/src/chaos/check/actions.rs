//! Checks of everything but the sending of messages.

use std::collections::{HashMap, HashSet};

use serde_json::Value;
use tidemark_client::{Conversation, Entry, Kind, MessageKey};

use super::super::record::PersonRecord;
use super::super::stage::Stage;
use super::super::view::{EntryKey, FEED, InboxView, ShownState};
use super::ledger::ActionLedger;

/// Checks of one inbox alone.
pub(super) fn check_one(
    record: &PersonRecord,
    view: &InboxView,
    stage: &Stage,
    ledger: &ActionLedger,
    broken: &mut Vec<String>,
) {
    let uid = record.uid;
    check_superseded(record, broken);
    let own = ledger.settings.keys().filter(|(who, ..)| *who == uid);
    let own = own.map(|(_, name, conversation)| (name.clone(), *conversation));
    for (name, conversation) in own.chain(view.settings.keys().cloned()).collect::<HashSet<_>>() {
        let value = view.settings.get(&(name.clone(), conversation)).cloned();
        if !ledger.settings.allows(&(uid, name.clone(), conversation), &value) {
            broken.push(format!("{uid}: {name} of {conversation} is {value:?}, not as it was set last"));
        }
    }
    for ((who, conversation), (least, most)) in &ledger.reads {
        let read_to = view.read_to.get(conversation).copied().unwrap_or_default();
        // Joining a group marks what came before as read.
        let is_beyond = read_to > *most && !stage.joins(uid, *conversation);
        if *who == uid && (read_to < *least || is_beyond) {
            broken.push(format!("{uid}: {conversation} is read up to {read_to}, not from {least} to {most}"));
        }
    }
    for ((conversation, state), (sender, client_id)) in &view.seen {
        let is_own =
            view.lines.get(&(*sender, *client_id)).is_some_and(|line| line.conversation == *conversation);
        if *sender != uid || !is_own {
            broken.push(format!(
                "{uid}: {conversation} was {state} up to {client_id} of {sender}, no such row"
            ));
        }
    }
    for (key, line) in &view.lines {
        // Reactions and pins of before are bounded, and some are on their way at the joining.
        let is_open = stage.joins(uid, line.conversation);
        for (who, emoji) in &line.reactions {
            if !is_open && !ledger.reactions.allows(&(*key, *who), emoji) {
                broken.push(format!("{uid}: {who} reacts to {key:?} with {emoji:?}, not what came last"));
            }
        }
        if let Some((who, pinned)) = line.pinned
            && !is_open
            && !ledger.pins.allows(&(*key, who), &Some(pinned))
        {
            broken.push(format!("{uid}: that {who} has pinned {key:?} is {pinned}, not what came last"));
        }
        let is_said = matches!(line.state, ShownState::Said { .. });
        if is_said && !ledger.stars.allows(&(*key, uid), &line.starred) {
            let starred = line.starred;
            broken.push(format!("{uid}: the star of {key:?} is {starred:?}, not as it was set last"));
        }
        if line.conversation != FEED {
            continue;
        }
        match ledger.posts.get(key) {
            None => broken.push(format!("{uid}: {key:?} in the feed was never acknowledged")),
            Some(post) if !ledger.post(*key, post).contains(&line.state) => {
                let state = &line.state;
                broken.push(format!("{uid}: {key:?} in the feed is {state:?}, not as it was left"));
            }
            Some(_) => {}
        }
    }
}

/// Checks over several inboxes.
pub(super) fn check_all(
    records: &[PersonRecord],
    views: &[InboxView],
    stage: &Stage,
    ledger: &ActionLedger,
    broken: &mut Vec<String>,
) {
    let of: HashMap<u32, &InboxView> = records.iter().map(|record| record.uid).zip(views).collect();
    check_reactions(&of, stage, ledger, broken);
    check_pins(&of, stage, ledger, broken);
    check_wishes(&of, ledger, broken);
    check_keeps(&of, ledger, broken);
    check_feed(&of, stage, ledger, broken);
    check_forgotten(records, ledger, broken);
    check_groups(records, &of, stage, ledger, broken);
}

/// Of rows that only say how things stand, an inbox keeps one.
fn check_superseded(record: &PersonRecord, broken: &mut Vec<String>) {
    let mut found = HashSet::new();
    for row in &record.ranged {
        let of = row.about().map(|MessageKey { sender, client_id }| (sender, client_id));
        let body: Value = row.body_as().unwrap_or_default();
        let words = match row.kind {
            Kind::Edit | Kind::Recall => format!("change {of:?}"),
            Kind::Pin => format!("pin {of:?}"),
            Kind::Star => format!("star {of:?}"),
            Kind::Reaction | Kind::Like => format!("{} {of:?} {}", row.kind.as_str(), row.sender),
            Kind::Setting => format!("setting {} {}", row.conversation, body["name"]),
            Kind::Friend => format!("friend {} {}", row.conversation, row.sender),
            Kind::Keep => format!("keep {} {}", row.conversation, row.sender),
            Kind::ReadMarker => format!("read marker {}", row.conversation),
            Kind::Seen => format!("seen {} {}", row.conversation, body["state"]),
            _ => continue,
        };
        if !found.insert(words.clone()) {
            broken.push(format!("{}: two rows say: {words}", record.uid));
        }
    }
}

fn check_reactions(
    of: &HashMap<u32, &InboxView>,
    stage: &Stage,
    ledger: &ActionLedger,
    broken: &mut Vec<String>,
) {
    for (key, who) in ledger.reactions.keys() {
        for (uid, view) in of {
            let Some(line) = view.lines.get(key) else { continue };
            let emoji = line.reactions.get(who).cloned().unwrap_or_default();
            let is_said =
                matches!(line.state, ShownState::Said { .. }) && !stage.joins(*uid, line.conversation);
            if is_said && !ledger.reactions.allows(&(*key, *who), &emoji) {
                broken.push(format!("{uid}: {who} reacts to {key:?} with {emoji:?}, not what came last"));
            }
        }
    }
}

/// A message that somebody pinned or unpinned names that person, or somebody who did so later.
fn check_pins(of: &HashMap<u32, &InboxView>, stage: &Stage, ledger: &ActionLedger, broken: &mut Vec<String>) {
    for (key, who) in ledger.pins.keys() {
        for (uid, view) in of {
            let Some(line) = view.lines.get(key) else { continue };
            let is_said =
                matches!(line.state, ShownState::Said { .. }) && !stage.joins(*uid, line.conversation);
            if is_said && line.pinned.is_none() && !ledger.pins.allows(&(*key, *who), &None) {
                broken.push(format!("{uid}: what {who} said of the pin of {key:?} is missing"));
            }
        }
    }
}

fn check_wishes(of: &HashMap<u32, &InboxView>, ledger: &ActionLedger, broken: &mut Vec<String>) {
    for (who, view) in of {
        for (other, theirs) in of.iter().filter(|(other, _)| *other != who) {
            let mine = view.friends.get(other).copied().unwrap_or_default().mine;
            let told = theirs.friends.get(who).copied().unwrap_or_default().theirs;
            for (wanted, inbox) in [(mine, who), (told, other)] {
                if !ledger.wishes.allows(&(*who, *other), &wanted) {
                    broken.push(format!("{inbox}: that {who} wants to be a friend of {other} is {wanted}"));
                }
            }
        }
    }
}

fn check_keeps(of: &HashMap<u32, &InboxView>, ledger: &ActionLedger, broken: &mut Vec<String>) {
    for (who, view) in of {
        for (other, theirs) in of.iter().filter(|(other, _)| *other != who) {
            let mine = view.keeps.get(&(Conversation::User(*other), *who));
            let told = theirs.keeps.get(&(Conversation::User(*who), *who));
            for (seconds, inbox) in [(mine, who), (told, other)] {
                if !ledger.keeps.allows(&(*who, *other), &seconds.copied()) {
                    broken
                        .push(format!("{inbox}: {who} keeps messages with {other} for {seconds:?} seconds"));
                }
            }
        }
    }
}

/// Friends who stay friends get everything that friends share, each once.
fn check_feed(of: &HashMap<u32, &InboxView>, stage: &Stage, ledger: &ActionLedger, broken: &mut Vec<String>) {
    let is_friend = |uid: &u32| stage.friends.contains(uid);
    let friends = |all: &[u32]| if all.iter().all(is_friend) { stage.friends.clone() } else { Vec::new() };
    for (key, post) in &ledger.posts {
        let Some(message_id) = post.message_id else { continue };
        let author = key.0;
        let told = match post.of {
            None => friends(&[author]),
            // The author of a moment gets the comments of others on it.
            Some(of) => [friends(&[author, of.0]), vec![of.0]].concat(),
        };
        for uid in told.into_iter().chain([author]).collect::<HashSet<_>>() {
            let Some(view) = of.get(&uid) else { continue };
            match view.lines.get(key) {
                None => broken.push(format!("{uid}: {key:?} in the feed was acknowledged and is missing")),
                Some(line) if uid == author && line.message_id != message_id => {
                    let id = line.message_id;
                    broken.push(format!("{uid}: was told that a moment is {message_id}, but it is {id}"));
                }
                Some(_) => {}
            }
        }
    }
    for (key, who) in ledger.likes.keys() {
        let told = [friends(&[*who, key.0]), vec![*who, key.0]].concat();
        for uid in told.into_iter().collect::<HashSet<_>>() {
            let Some(line) = of.get(&uid).and_then(|view| view.lines.get(key)) else { continue };
            let likes = line.likes.contains(who);
            let is_said = matches!(line.state, ShownState::Said { .. });
            if is_said && !ledger.likes.allows(&(*key, *who), &likes) {
                broken.push(format!("{uid}: that {who} likes {key:?} is {likes}, not what came last"));
            }
        }
    }
}

/// No row has a text that was taken back or deleted.
fn check_forgotten(records: &[PersonRecord], ledger: &ActionLedger, broken: &mut Vec<String>) {
    let sent = records.iter().flat_map(|record| {
        let messages = record.settled.acknowledged.iter();
        messages.map(|message| ((record.uid, message.draft.client_id), message.draft.body.get()))
    });
    let sent: Vec<(EntryKey, Value)> =
        sent.map(|(key, body)| (key, serde_json::from_str(body).unwrap_or_default())).collect();
    let texts: HashMap<EntryKey, &str> =
        sent.iter().filter_map(|(key, body)| Some((*key, body["text"].as_str()?))).collect();
    for record in records {
        let forgotten = ledger.forgotten(record.uid, &texts);
        let check = |row: &Entry| {
            let body: Value = row.body_as().unwrap_or_default();
            let said = [&body["text"], &body["body"]["text"]];
            said.into_iter()
                .filter_map(Value::as_str)
                .find(|text| forgotten.contains(text))
                .map(str::to_owned)
        };
        for row in &record.ranged {
            if let Some(text) = check(row) {
                let (uid, id) = (record.uid, row.message_id);
                broken.push(format!("{uid}: {text:?} was taken back or deleted, and row {id} has it"));
            }
        }
    }
}

fn check_groups(
    records: &[PersonRecord],
    of: &HashMap<u32, &InboxView>,
    stage: &Stage,
    ledger: &ActionLedger,
    broken: &mut Vec<String>,
) {
    for record in records {
        let (Some(group), Some(changing)) = (&record.group, stage.changing.get(&record.uid)) else {
            continue;
        };
        let gid = group.gid;
        if !ledger.names.allows(&gid, &group.name) || !ledger.topics.allows(&gid, &group.topic) {
            broken.push(format!("group {gid} is {:?}, {:?}, not as it was left", group.name, group.topic));
        }
        if !ledger.histories.allows(&gid, &group.history) {
            let history = group.history;
            broken.push(format!("group {gid}: its history is {history:?}, not as it was left"));
        }
        for uid in &changing.lasting {
            let role = group.members.iter().find(|member| member.uid == *uid).map(|member| member.role);
            if !role.is_some_and(|role| ledger.roles.allows(&(gid, *uid), &role)) {
                broken.push(format!("group {gid}: {uid} is {role:?}, not as it was left"));
            }
        }
        for uid in &changing.passing {
            let is_in = group.members.iter().any(|member| member.uid == *uid);
            if !ledger.members.allows(&(gid, *uid), &is_in) {
                broken.push(format!("group {gid}: that {uid} is in it is {is_in}, not as it was left"));
            }
        }
        for uid in changing.lasting.iter().chain([&record.uid]) {
            let Some(view) = of.get(uid) else { continue };
            for (_, name, is_sure) in ledger.renamed.iter().filter(|(of, ..)| *of == gid) {
                let rows = view.memberships.values();
                let told =
                    rows.filter(|body| body["action"] == "renamed" && body["name"] == name.as_str()).count();
                if told > 1 || (told == 0 && *is_sure) {
                    broken.push(format!("{uid}: was told {told} times that group {gid} is {name:?} now"));
                }
            }
        }
    }
}
