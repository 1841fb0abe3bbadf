//! The record of each person after a fault run: what the person was told, and what every device holds. Plain values, which
//! `person` collects and `check` judges.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Value, json};
use tidemark_client::{Draft, Entry, Group, Kind, Recipient};
use uuid::Uuid;

use super::action::{Action, ActionOutcome, RowPlace};
use super::stage::Members;
use super::view::FEED;

/// A message whose sender was told that it is durable.
#[derive(Clone, Debug)]
pub(super) struct Acknowledged {
    /// The id of the sender's own copy.
    pub(super) message_id: u64,
    pub(super) draft: Draft,
    /// The message that it replies to.
    pub(super) quoted: Option<RowPlace>,
}

/// Something else that somebody did, and how it ended.
#[derive(Clone, Debug)]
pub(super) struct Done {
    pub(super) action: Action,
    /// The name of its row, where it has one.
    pub(super) key: Uuid,
    pub(super) outcome: ActionOutcome,
}

impl Acknowledged {
    /// The users that must have it: the sender too, and nobody twice.
    pub(super) fn everybody(&self, sender: u32, groups: &Members) -> HashSet<u32> {
        let mut uids = match self.draft.to {
            Recipient::User(uid) => HashSet::from([uid]),
            Recipient::Group(gid) => groups.get(&gid).into_iter().flatten().copied().collect(),
        };
        uids.insert(sender);
        uids
    }

    /// The body that its rows have before anybody changes it.
    pub(super) fn body(&self) -> Value {
        let mut body: Value = serde_json::from_str(self.draft.body.get()).unwrap_or_default();
        if let Some(RowPlace { sender, client_id, .. }) = self.quoted {
            body["reply_to"] = json!({ "of": { "sender": sender, "client_id": client_id } });
        }
        body
    }
}

/// The messages and actions of a person, all of them settled.
#[derive(Default)]
pub(super) struct Settled {
    pub(super) acknowledged: Vec<Acknowledged>,
    pub(super) done: Vec<Done>,
}

/// The rows that a device was told of, in the order in which it was told.
#[derive(Clone, Debug, Default)]
pub(super) struct Watched {
    pub(super) rows: Vec<u64>,
    /// How often it had to forget rows: never, in a fault run.
    pub(super) cleared: usize,
}

/// Everything about a person after the fault run.
pub(super) struct PersonRecord {
    pub(super) uid: u32,
    pub(super) settled: Arc<Settled>,
    pub(super) watched: Watched,
    /// The rows on the device that was there all the time.
    pub(super) followed: Vec<Entry>,
    /// The rows that a new device got by heartbeat afterwards.
    pub(super) fetched: Vec<Entry>,
    /// The rows that GetRange answers afterwards.
    pub(super) ranged: Vec<Entry>,
    /// The group that this person changed, as it is afterwards.
    pub(super) group: Option<Group>,
}

/// Whether it is a message, or what is left of one.
pub(super) fn is_message(row: &Entry) -> bool {
    matches!(row.kind, Kind::Message | Kind::Recalled | Kind::Deleted) && row.conversation != FEED
}
