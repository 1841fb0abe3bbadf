//! The people of a fault run: groups to write to, friends who stay friends, and groups that are changed.

use std::collections::HashMap;

use rand::rngs::StdRng;
use tidemark_client::{Account, Conversation, History, Http, Recipient};

use super::action::name;
use super::contacts::{Changing, Contacts, Joined};
use crate::{Failure, Result};

pub(super) const USERS: usize = 8;
const GROUPS: usize = 2;
/// Out of eight, so that the groups overlap and somebody is in neither.
const MEMBERS: usize = 5;
/// The first ones are friends of each other throughout; all others become friends and cease to be.
const FRIENDS: usize = 4;
/// The number of people who change a group of their own.
const CHANGING: usize = 2;
/// The owner and the first member of the group with a visible history, and the number of people who join it.
const HOST: usize = 2;
const HOSTED: usize = 3;
const JOINING: usize = 3;
/// The first name of the changed groups.
pub(super) const FIRST_NAME: &str = "changing";

/// The members of each group, for the whole fault run.
pub(super) type Members = HashMap<u64, Vec<u32>>;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Stage {
    /// Groups that stay as they are.
    pub(super) groups: Members,
    /// They are friends of each other.
    pub(super) friends: Vec<u32>,
    /// By owner, the group that the owner changes; nobody writes to it.
    pub(super) changing: HashMap<u32, Changing>,
    /// The group that people join in the course of the run, one of `groups`.
    pub(super) joined: Option<Joined>,
}

impl Stage {
    /// Makes the groups and the friends.
    pub(super) async fn set(server: &Http, accounts: &[Account], random: &mut StdRng) -> Result<Stage> {
        let mut stage = Stage::default();
        for n in 0..GROUPS {
            let members: Vec<u32> =
                accounts.iter().cycle().skip(n * 2).take(MEMBERS).map(|account| account.uid).collect();
            let owner = accounts.iter().find(|account| account.uid == members[0]);
            let owner = owner.ok_or_else(|| Failure::new("a group needs somebody"))?;
            let http = server.with_token(&owner.token);
            stage.groups.insert(http.create_group(&format!("group {n}"), &members[1..]).await?, members);
        }
        let uids: Vec<u32> = accounts.iter().map(|account| account.uid).collect();
        for (n, owner) in accounts.iter().enumerate().take(CHANGING) {
            let others =
                |from: usize| uids.iter().cycle().skip(n + from).take(2).copied().collect::<Vec<_>>();
            let (lasting, passing) = (others(1), others(3));
            let members = [lasting.clone(), passing.clone()].concat();
            let gid = server.with_token(&owner.token).create_group(FIRST_NAME, &members).await?;
            stage.changing.insert(owner.uid, Changing { gid, lasting, passing });
        }
        if let Some(owner) = accounts.get(HOST) {
            let others = |from: usize| uids.iter().cycle().skip(HOST + from).take(JOINING).copied();
            let hosted = uids[HOSTED % uids.len()];
            let http = server.with_token(&owner.token);
            let gid = http.create_group("visible", &[hosted]).await?;
            http.set_history(gid, History::Visible).await?;
            stage.groups.insert(gid, vec![owner.uid, hosted]);
            stage.joined = Some(Joined { gid, owner: owner.uid, joining: others(2).collect() });
        }
        stage.friends = uids.iter().take(FRIENDS).copied().collect();
        for account in accounts.iter().take(FRIENDS) {
            let http = server.with_token(&account.token);
            for other in stage.friends.iter().filter(|other| **other != account.uid) {
                http.befriend(name(random), *other, true).await?;
            }
        }
        Ok(stage)
    }

    /// Whether `uid` joins the group of this conversation in the course of the run, so that it is open what came before.
    pub(super) fn joins(&self, uid: u32, conversation: Conversation) -> bool {
        let joined = self.joined.as_ref();
        joined.is_some_and(|it| conversation == Conversation::Group(it.gid) && it.joining.contains(&uid))
    }

    /// The people and groups of `uid`: everybody, `uid` included, and the groups that it is in.
    pub(super) fn known(&self, uid: u32, accounts: &[Account]) -> Contacts {
        let groups = self.groups.iter().filter(|(_, members)| members.contains(&uid));
        let mut own: Vec<u64> = groups.map(|(gid, _)| *gid).collect();
        // A map has no order of its own, and the seed must lead to the same choices.
        own.sort_unstable();
        // About as many to groups as to users: they are where most can go wrong.
        let groups = own.iter().cycle().copied().map(Recipient::Group).take(own.len() * 4);
        let everybody = || accounts.iter().map(|account| account.uid);
        let stays = |other: &u32| self.friends.contains(&uid) && self.friends.contains(other);
        Contacts {
            uid,
            recipients: everybody().map(Recipient::User).chain(groups).collect(),
            fickle: everybody().filter(|other| *other != uid && !stays(other)).collect(),
            changing: self.changing.get(&uid).cloned(),
            joined: self.joined.clone().filter(|joined| joined.owner == uid),
            ..Contacts::default()
        }
    }
}
