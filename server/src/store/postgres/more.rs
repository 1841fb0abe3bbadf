//! Arguments that few calls of `commit_messages` have: groups, read markers, copies owed. One JSON object, which the
//! function explains (migrations/postgres/functions); and its answer, where the database has other facts than expected.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize, Serializer};

use crate::domain::{Conversation, GroupChange, GroupId, MembershipEpoch, MessageId, Uid};
use crate::store::{AcceptanceId, Recipient, group_settings};

/// See the module.
#[derive(Debug, Default, Serialize)]
pub(super) struct More {
    #[serde(skip_serializing_if = "BTreeMap::is_empty", serialize_with = "values")]
    locks: BTreeMap<u64, Lock>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    versions: Vec<ExpectedVersion>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    markers: Vec<Marker>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    epochs: Vec<Epoch>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty", serialize_with = "values")]
    groups: BTreeMap<u64, GroupUpdate>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty", serialize_with = "values")]
    members: BTreeMap<(u64, u32), MemberUpdate>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty", serialize_with = "values")]
    ends: BTreeMap<(u64, u32), Epoch>,
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    served: BTreeSet<Served>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pending: Vec<New>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    owed: Vec<OwedRecipient>,
    #[serde(rename = "trial", skip_serializing_if = "std::ops::Not::not")]
    check_only: bool,
}

#[derive(Debug, Serialize)]
struct Lock {
    gid: u64,
}

#[derive(Debug, Serialize)]
struct ExpectedVersion {
    gid: u64,
    version: u64,
}

#[derive(Debug, Serialize)]
struct Marker {
    place: usize,
    head: i32,
    name: String,
    read_to: u64,
}

#[derive(Debug, Serialize)]
struct Epoch {
    gid: u64,
    uid: u32,
    epoch: u32,
}

#[derive(Debug, Serialize)]
struct GroupUpdate {
    gid: u64,
    version: u64,
    is_new: bool,
    settings: serde_json::Map<String, serde_json::Value>,
}

#[derive(Debug, Serialize)]
struct MemberUpdate {
    gid: u64,
    uid: u32,
    epoch: u32,
    active: bool,
    standing: u8,
    since: i64,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
struct Served {
    partition_key: String,
    sender: u32,
    acceptance: u64,
    recipient: u32,
}

#[derive(Debug, Serialize)]
struct New {
    content: i32,
    head: i32,
    ends_uid: Option<u32>,
    ends_epoch: Option<u32>,
}

#[derive(Debug, Serialize)]
struct OwedRecipient {
    /// The place of its acceptance, from 1.
    pending: usize,
    head: i32,
    recipient: u32,
    epoch: u32,
}

/// Facts of the database that were not expected.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Unexpected {
    /// Groups and their versions.
    pub(super) versions: Vec<(u64, u64)>,
    /// Places of read markers that do not move forward.
    pub(super) markers: Vec<usize>,
    /// Members of groups, and the last of their epochs that ended with a row.
    pub(super) epochs: Vec<(u64, u32, u32)>,
}

fn values<K, V: Serialize, S: Serializer>(map: &BTreeMap<K, V>, to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(map.values())
}

impl More {
    /// As an argument; `None`: there is none of it.
    pub(super) fn to_json(&self) -> Option<String> {
        let json = serde_json::to_string(self).expect("plain numbers and texts");
        (json != "{}").then_some(json)
    }

    /// Store nothing, but say whether it could be stored.
    pub(super) fn check_only(&mut self) {
        self.check_only = true;
    }

    /// Whether copies are owed no more.
    pub(super) fn serves(&self) -> bool {
        !self.served.is_empty()
    }

    /// The group must have this version; 0: there must be no such group.
    pub(super) fn expect_version(&mut self, gid: GroupId, version: u64) {
        self.lock(gid);
        self.versions.push(ExpectedVersion { gid: gid.0, version });
    }

    /// The read marker of the write at `place`, of the user with this head, must move forward.
    pub(super) fn expect_forward(&mut self, place: usize, head: i32, of: Conversation, read_to: MessageId) {
        self.markers.push(Marker { place, head, name: of.to_string(), read_to: read_to.get() });
    }

    /// The epoch must not have ended with a row.
    pub(super) fn expect_epoch(&mut self, gid: GroupId, uid: Uid, epoch: MembershipEpoch) {
        self.epochs.push(Epoch { gid: gid.0, uid: uid.0, epoch: epoch.0 });
    }

    /// The group changes.
    pub(super) fn change(&mut self, change: &GroupChange) {
        let gid = change.gid;
        self.lock(gid);
        let version = change.from_version + 1;
        let is_new = change.is_making();
        let unchanged = GroupUpdate { gid: gid.0, version, is_new, settings: serde_json::Map::new() };
        let changed = self.groups.entry(gid.0).or_insert(unchanged);
        changed.version = version;
        changed.settings.extend(group_settings::changed(change.setting.as_ref()));
        for member in &change.members {
            let (standing, since) = member.standing.code();
            let (uid, epoch, active) = (member.uid.0, member.epoch.0, member.is_active());
            let member = MemberUpdate { gid: gid.0, uid, epoch, active, standing, since };
            self.members.insert((gid.0, uid), member);
        }
    }

    /// The epoch ends with a row of this call.
    pub(super) fn end(&mut self, gid: GroupId, uid: Uid, epoch: MembershipEpoch) {
        self.lock(gid);
        let new = Epoch { gid: gid.0, uid: uid.0, epoch: epoch.0 };
        let ended = self.ends.entry((gid.0, uid.0)).or_insert(new);
        ended.epoch = ended.epoch.max(epoch.0);
    }

    /// A copy is owed no more.
    pub(super) fn serve(&mut self, sender: Uid, acceptance: AcceptanceId, recipient: Uid) {
        let partition_key = sender.partition_key().as_str().to_owned();
        let (sender, acceptance, recipient) = (sender.0, acceptance.0, recipient.0);
        self.served.insert(Served { partition_key, sender, acceptance, recipient });
    }

    /// A new acceptance with copies owed, of the sender with this head; its place, from 0, among those of the call.
    pub(super) fn owe(
        &mut self,
        content: i32,
        head: i32,
        rest: &[Recipient],
        ends: Option<(Uid, MembershipEpoch)>,
    ) -> usize {
        let (ends_uid, ends_epoch) = ends.map(|(uid, epoch)| (uid.0, epoch.0)).unzip();
        self.pending.push(New { content, head, ends_uid, ends_epoch });
        let pending = self.pending.len();
        let owed = |to: &Recipient| OwedRecipient { pending, head, recipient: to.uid.0, epoch: to.epoch.0 };
        self.owed.extend(rest.iter().map(owed));
        pending - 1
    }

    fn lock(&mut self, gid: GroupId) {
        self.locks.insert(gid.0, Lock { gid: gid.0 });
    }
}
