//! The record of a group in an export: its settings, and everybody who was ever in it or is banned. Only `record` uses it.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::values::time;
use crate::domain::{Group, GroupId, GroupSettings, Member, MembershipEpoch, Role, Standing, Uid};
use crate::store::archive::Record;

#[derive(Serialize, Deserialize)]
pub(super) struct GroupLine {
    #[serde(rename = "type")]
    tag: String,
    gid: u64,
    #[serde(flatten)]
    settings: GroupSettings,
    version: u64,
    members: Vec<MemberPart>,
    /// Fields that are not known: serde does not refuse them beside a flattened part.
    #[serde(flatten)]
    others: Map<String, Value>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct MemberPart {
    uid: u32,
    epoch: u32,
    active: bool,
    /// Any further standing: `administrator`, `owner`, `removed`, `banned`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    standing: Option<String>,
    /// Of current members: since which version; 0 where that is not known.
    #[serde(default, skip_serializing_if = "is_zero")]
    since: u64,
    /// Of removed or banned people: when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    at: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl GroupLine {
    pub(super) fn of(group: &Group) -> GroupLine {
        GroupLine {
            tag: "group".into(),
            gid: group.gid.0,
            settings: group.settings.clone(),
            version: group.version,
            members: group.members.iter().map(MemberPart::of).collect(),
            others: Map::new(),
        }
    }

    pub(super) fn read(self) -> Result<Record, String> {
        if let Some(field) = self.others.keys().next() {
            return Err(format!("unknown field `{field}`"));
        }
        let mut members = self.members.iter().map(MemberPart::read).collect::<Result<Vec<_>, _>>()?;
        // Binary searches rely on the order, and a file may have any.
        members.sort_by_key(|member| member.uid);
        members.dedup_by_key(|member| member.uid);
        let GroupLine { gid, settings, version, .. } = self;
        Ok(Record::Group(Group { gid: GroupId(gid), settings, version, members }))
    }
}

impl MemberPart {
    fn of(member: &Member) -> MemberPart {
        let (standing, since, at) = match member.standing {
            Standing::In { role: Role::Member, since } => (None, since, None),
            Standing::In { role, since } => (Some(role.as_str()), since, None),
            Standing::Left => (None, 0, None),
            Standing::Removed { at } => (Some("removed"), 0, Some(at.to_rfc3339())),
            Standing::Banned { at } => (Some("banned"), 0, Some(at.to_rfc3339())),
        };
        let (uid, epoch, active) = (member.uid.0, member.epoch.0, member.is_active());
        MemberPart { uid, epoch, active, standing: standing.map(str::to_owned), since, at }
    }

    fn read(&self) -> Result<Member, String> {
        let at = || time(self.at.as_deref().ok_or("at: expected a time")?);
        let standing = match (self.active, self.standing.as_deref()) {
            (true, role) => {
                let role = Role::parse(role.unwrap_or("member"));
                let role = role.ok_or("standing: expected `administrator` or `owner`")?;
                Standing::In { role, since: self.since }
            }
            (false, None) => Standing::Left,
            (false, Some("removed")) => Standing::Removed { at: at()? },
            (false, Some("banned")) => Standing::Banned { at: at()? },
            (false, Some(_)) => return Err("standing: expected `removed` or `banned`".to_owned()),
        };
        Ok(Member { uid: Uid(self.uid), epoch: MembershipEpoch(self.epoch), standing })
    }
}
