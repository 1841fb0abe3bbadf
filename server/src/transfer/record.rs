//! One record of an archive: how each type is written as JSON and read back.
//!
//! The written form is stored by others and must stay stable; `docs/EXPORT.md` describes it. Each line that is read is
//! checked here as far as one line can be: domain values are valid once a line has become a [`Record`].

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use uuid::Uuid;

use super::file_record::{self, FileGoneLine, FileLine, FilePartLine, FileUseLine};
use super::group_record::GroupLine;
use super::table_record::{self, CounterLine, TableLine, TableRowLine};
use super::values::{body, conversation, hex, kind, message_id, parse, time, unhex};
use crate::domain::{
    ClientId, Content, Digest, Entry, FileId, GroupId, MembershipEpoch, MessageId, Timestamp, Uid,
};
use crate::store::archive::Record;
use crate::store::{AcceptanceId, Account, IdempotencyRecord, Pending, Recipient};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct AccountLine {
    #[serde(rename = "type")]
    tag: String,
    uid: u32,
    name: String,
    password_hash: String,
    disabled: bool,
    created_at: String,
    /// When it was deleted, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    deleted_at: Option<String>,
    /// The latest id of the inbox, where no row has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    latest_id: Option<u64>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct EndedEpochLine {
    #[serde(rename = "type")]
    tag: String,
    gid: u64,
    uid: u32,
    epoch: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RowLine {
    #[serde(rename = "type")]
    tag: String,
    receiver: u32,
    message_id: u64,
    kind: String,
    /// From the receiver's side.
    conversation: String,
    sender: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    client_id: Option<Uuid>,
    body: Box<RawValue>,
    sent_at: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SentLine {
    #[serde(rename = "type")]
    tag: String,
    sender: u32,
    client_id: Uuid,
    message_id: u64,
    sent_at: String,
    digest: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PendingLine {
    #[serde(rename = "type")]
    tag: String,
    acceptance: u64,
    kind: String,
    /// From the sender's side.
    target: String,
    sender: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    client_id: Option<Uuid>,
    body: Box<RawValue>,
    sent_at: String,
    owed: Vec<EpochPart>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ends: Option<EpochPart>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct EpochPart {
    uid: u32,
    epoch: u32,
}

/// Reads the record of type `tag` that `text` holds.
pub(super) fn read(tag: &str, text: &str) -> Result<Record, String> {
    match tag {
        "account" => parse::<AccountLine>(text)?.read(),
        "group" => parse::<GroupLine>(text)?.read(),
        "ended_epoch" | "stay" => {
            let EndedEpochLine { gid, uid, epoch, .. } = parse(text)?;
            Ok(Record::EndedEpoch(GroupId(gid), Uid(uid), MembershipEpoch(epoch)))
        }
        "row" => parse::<RowLine>(text)?.read(),
        "sent" => parse::<SentLine>(text)?.read(),
        "pending" => parse::<PendingLine>(text)?.read(),
        "table" => parse::<TableLine>(text)?.read(),
        "counter" => parse::<CounterLine>(text)?.read(),
        "table_row" => parse::<TableRowLine>(text)?.read(),
        "file" => parse::<FileLine>(text)?.read(),
        "file_part" => parse::<FilePartLine>(text)?.read(),
        "file_gone" => Ok(Record::FileGone(FileId(parse::<FileGoneLine>(text)?.file))),
        "file_use" => parse::<FileUseLine>(text)?.read(),
        other => Err(format!("`{other}` is not a type of record")),
    }
}

/// The record as JSON.
pub(super) fn write(record: &Record) -> serde_json::Result<String> {
    match record {
        Record::Account(account, created_at, latest_id) => serde_json::to_string(&AccountLine {
            tag: "account".into(),
            uid: account.uid.0,
            name: account.name.clone(),
            password_hash: account.password_hash.clone(),
            disabled: account.disabled,
            created_at: created_at.to_rfc3339(),
            deleted_at: account.deleted_at.map(Timestamp::to_rfc3339),
            latest_id: latest_id.map(MessageId::get),
        }),
        Record::Group(group) => serde_json::to_string(&GroupLine::of(group)),
        Record::EndedEpoch(gid, uid, epoch) => serde_json::to_string(&EndedEpochLine {
            tag: "ended_epoch".into(),
            gid: gid.0,
            uid: uid.0,
            epoch: epoch.0,
        }),
        Record::Row(entry) => serde_json::to_string(&RowLine {
            tag: "row".into(),
            receiver: entry.receiver.0,
            message_id: entry.message_id.get(),
            kind: entry.content.kind.as_str().into(),
            conversation: entry.conversation().to_string(),
            sender: entry.content.sender.0,
            client_id: entry.content.client_id.map(|id| id.0),
            body: RawValue::from_string(entry.content.body.as_json().to_owned())?,
            sent_at: entry.content.sent_at.to_rfc3339(),
        }),
        Record::Sent(sender, client_id, sent) => serde_json::to_string(&SentLine {
            tag: "sent".into(),
            sender: sender.0,
            client_id: client_id.0,
            message_id: sent.message_id.get(),
            sent_at: sent.sent_at.to_rfc3339(),
            digest: hex(&sent.digest.0),
        }),
        Record::Table(..) | Record::Counter(_) | Record::TableRow(_) => table_record::write(record),
        Record::File(..) | Record::FilePart(_) | Record::FileGone(_) | Record::FileUse(..) => {
            file_record::write(record)
        }
        Record::Pending(pending, ends) => serde_json::to_string(&PendingLine {
            tag: "pending".into(),
            acceptance: pending.acceptance.0,
            kind: pending.content.kind.as_str().into(),
            target: pending.content.target.to_string(),
            sender: pending.content.sender.0,
            client_id: pending.content.client_id.map(|id| id.0),
            body: RawValue::from_string(pending.content.body.as_json().to_owned())?,
            sent_at: pending.content.sent_at.to_rfc3339(),
            owed: pending.owed.iter().map(|to| EpochPart::of(to.uid, to.epoch)).collect(),
            ends: ends.map(|(uid, epoch)| EpochPart::of(uid, epoch)),
        }),
    }
}

impl AccountLine {
    fn read(self) -> Result<Record, String> {
        let created_at = time(&self.created_at)?;
        let latest_id = self.latest_id.map(message_id).transpose()?;
        let deleted_at = self.deleted_at.as_deref().map(time).transpose()?;
        let AccountLine { uid, name, password_hash, disabled, .. } = self;
        // Nobody comes into it, whatever a file says.
        let (password_hash, disabled) = match deleted_at {
            None => (password_hash, disabled),
            Some(_) => (String::new(), true),
        };
        let account = Account { uid: Uid(uid), name, password_hash, disabled, deleted_at };
        Ok(Record::Account(account, created_at, latest_id))
    }
}

impl RowLine {
    fn read(self) -> Result<Record, String> {
        let (receiver, sender) = (Uid(self.receiver), Uid(self.sender));
        let content = Content {
            kind: kind(&self.kind)?,
            sender,
            target: Content::target_of(receiver, sender, conversation(&self.conversation)?),
            client_id: self.client_id.map(ClientId),
            body: body(&self.body)?,
            sent_at: time(&self.sent_at)?,
        };
        let message_id = message_id(self.message_id)?;
        let entry = Entry { receiver, message_id, content: Arc::new(content) };
        if entry.conversation().to_string() != self.conversation {
            return Err(format!("user {receiver} has no part in {} with {sender}", self.conversation));
        }
        Ok(Record::Row(entry))
    }
}

impl SentLine {
    fn read(self) -> Result<Record, String> {
        let sent = IdempotencyRecord {
            message_id: message_id(self.message_id)?,
            sent_at: time(&self.sent_at)?,
            digest: Digest(unhex(&self.digest).ok_or("digest: expected 32 hex digits")?),
        };
        Ok(Record::Sent(Uid(self.sender), ClientId(self.client_id), sent))
    }
}

impl PendingLine {
    fn read(self) -> Result<Record, String> {
        let content = Content {
            kind: kind(&self.kind)?,
            sender: Uid(self.sender),
            target: conversation(&self.target)?,
            client_id: self.client_id.map(ClientId),
            body: body(&self.body)?,
            sent_at: time(&self.sent_at)?,
        };
        let owed = self.owed.iter().map(EpochPart::read).map(|(uid, epoch)| Recipient { uid, epoch });
        let acceptance = AcceptanceId(self.acceptance);
        let pending = Pending { acceptance, content: Arc::new(content), owed: owed.collect() };
        Ok(Record::Pending(pending, self.ends.as_ref().map(EpochPart::read)))
    }
}

impl EpochPart {
    fn of(uid: Uid, epoch: MembershipEpoch) -> EpochPart {
        EpochPart { uid: uid.0, epoch: epoch.0 }
    }

    fn read(&self) -> (Uid, MembershipEpoch) {
        (Uid(self.uid), MembershipEpoch(self.epoch))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{
        Body, Conversation, FileId, Group, GroupSettings, History, Keep, Kind, Member, Mute, Muted, Role,
        Standing,
    };

    fn content(target: Conversation, text: &str) -> Arc<Content> {
        Arc::new(Content {
            kind: Kind::Message,
            sender: Uid(10_001),
            target,
            client_id: Some(ClientId(Uuid::from_u128(7))),
            body: Body::text(text, 100).expect("short"),
            sent_at: Timestamp(1_795_261_438_042),
        })
    }

    fn id(n: u64) -> MessageId {
        MessageId::new(n).expect("small")
    }

    #[test]
    fn every_record_survives_the_way_out_and_in() {
        let to_bob = content(Conversation::User(Uid(10_002)), "a \"line\"\nfeed \u{2028} é");
        let standings = [
            Standing::Left,
            Standing::In { role: Role::Owner, since: 1 },
            Standing::In { role: Role::Administrator, since: 0 },
            Standing::In { role: Role::Member, since: 4 },
            Standing::Removed { at: Timestamp(1_795_261_438_042) },
            Standing::Banned { at: Timestamp(5) },
        ];
        let member = |(uid, standing)| Member { uid: Uid(uid), epoch: MembershipEpoch(2), standing };
        let ann = Account {
            uid: Uid(10_001),
            name: "Ann".into(),
            password_hash: "$argon2id$".into(),
            disabled: true,
            deleted_at: None,
        };
        let gone = Account {
            password_hash: String::new(),
            deleted_at: Some(Timestamp(1_795_261_438_042)),
            ..ann.clone()
        };
        let records = [
            Record::Account(ann.clone(), Timestamp(5), None),
            Record::Account(ann, Timestamp(5), Some(id(12))),
            Record::Account(gone, Timestamp(5), None),
            Record::Group(Group {
                gid: GroupId(1),
                settings: GroupSettings {
                    name: "walkers".into(),
                    topic: "Sundays".into(),
                    history: History::Visible,
                    slow_seconds: 30,
                    keep: Keep { seconds: 60, gone_before: 5 },
                    picture: Some(FileId(uuid::Uuid::from_u128(7))),
                    muted: vec![
                        Muted { uid: 10_001, until: Mute::Until(Timestamp(9)) },
                        Muted { uid: 10_003, until: Mute::ForGood },
                    ],
                },
                version: 4,
                members: (10_001..).zip(standings).map(member).collect(),
            }),
            Record::EndedEpoch(GroupId(1), Uid(10_001), MembershipEpoch(2)),
            Record::Row(Entry { receiver: Uid(10_001), message_id: id(1), content: to_bob.clone() }),
            Record::Row(Entry { receiver: Uid(10_002), message_id: id(9), content: to_bob.clone() }),
            Record::Sent(
                Uid(10_001),
                ClientId(Uuid::from_u128(7)),
                IdempotencyRecord { message_id: id(1), sent_at: Timestamp(6), digest: Digest([0xa5; 16]) },
            ),
            Record::Pending(
                Pending {
                    acceptance: AcceptanceId(3),
                    content: content(Conversation::Group(GroupId(1)), "bye"),
                    owed: vec![Recipient { uid: Uid(10_002), epoch: MembershipEpoch(1) }],
                },
                Some((Uid(10_002), MembershipEpoch(1))),
            ),
        ];
        for record in records {
            let text = write(&record).expect("JSON");
            assert!(!text.contains('\n'), "{text}");
            let tag = text.split('"').nth(3).expect("the type stands first");
            let back = read(tag, &text).expect("reads back");
            assert_eq!(format!("{back:?}"), format!("{record:?}"));
        }
    }

    #[test]
    fn a_row_that_cannot_be_is_refused() {
        let good = r#"{"type":"row","receiver":10002,"message_id":9,"kind":"message","conversation":"u:10001","sender":10001,"body":{"text":"a"},"sent_at":"2026-11-21T11:43:58.042Z"}"#;
        assert!(read("row", good).is_ok());
        for (part, instead) in [
            (":9,", ":0,"),
            (":9,", ":9007199254740992,"),
            ("\"message\"", "\"massage\""),
            ("u:10001", "u:10003"),
            ("u:10001", "u:010001"),
            ("{\"text\":\"a\"}", "\"a\""),
            ("T11", " at 11"),
            ("\"sender\"", "\"from\""),
        ] {
            assert!(read("row", &good.replacen(part, instead, 1)).is_err(), "{instead}");
        }
    }
}
