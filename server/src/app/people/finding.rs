//! Finding people by their names, as far as their privacy allows, and their public profiles.

use super::People;
use crate::domain::{
    Body, Conversation, Entry, FileId, FoundBy, Profile, Relation, Setting, Uid, name_key, normal_name,
    setting_key,
};
use crate::store::{ShownName, StoreError};

/// Characters of a part that is looked for, at least. A whole name is found in any case.
const SHORTEST_PART: usize = 2;

/// Candidates read for each person returned, since some do not want to be found by a part of their name.
const LOOKED_AT: usize = 2;

/// A person as others see them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownPerson {
    /// The person's uid.
    pub uid: Uid,
    /// The account's name.
    pub name: String,
    /// The profile that the person has set.
    pub profile: Profile,
    /// The person's picture.
    pub picture: Option<FileId>,
    /// Whether the account is deleted.
    pub is_deleted: bool,
}

impl People {
    /// People with `part` in their name, at most `limit`: the one with exactly that name first, then names that begin with it. People that
    /// allow only the whole name, or have blocked `who`, are found by the whole name; their friends find them by a part, too.
    pub async fn find(&self, who: Uid, part: &str, limit: usize) -> Result<Vec<(Uid, String)>, StoreError> {
        let part = normal_name(part);
        if part.is_empty() {
            return Ok(Vec::new());
        }
        let whole = self.directory.account_by_name(&part).await?.filter(|account| !account.disabled);
        let mut found: Vec<_> = whole.into_iter().map(|account| (account.uid, account.name)).collect();
        if part.chars().count() >= SHORTEST_PART {
            let looked_at = self.directory.search(&part, limit.saturating_mul(LOOKED_AT)).await?;
            found.extend(self.who_are_found(who, &name_key(&part), looked_at).await?);
        }
        found.truncate(limit);
        Ok(found)
    }

    /// The people that `who` may find by a part of their name, without the one whose whole name is `key`.
    async fn who_are_found(
        &self,
        who: Uid,
        key: &str,
        mut people: Vec<(Uid, String)>,
    ) -> Result<Vec<(Uid, String)>, StoreError> {
        people.retain(|(_, name)| name_key(name) != key);
        let keys: Vec<_> = people.iter().flat_map(|(uid, _)| Relation::keys(*uid, who)).collect();
        let rows = self.store.newest(&keys).await?;
        let is_found = |uid: Uid, rows: &[Option<Entry>]| {
            let rows = rows.iter().map(|row| row.as_ref().map(|row| &*row.content));
            let Relation { is_blocked, privacy, friendship, .. } = Relation::read(uid, rows);
            let is_open = privacy.found_by == FoundBy::Part && !is_blocked;
            is_open || uid == who || friendship.is_mutual()
        };
        let found = people.into_iter().zip(rows.chunks(Relation::ROWS));
        Ok(found.filter(|((uid, _), rows)| is_found(*uid, rows)).map(|(person, _)| person).collect())
    }

    /// The existing people of `uids` as others see them, in order.
    pub async fn shown(&self, uids: &[Uid]) -> Result<Vec<ShownPerson>, StoreError> {
        let names = self.directory.shown_names(uids).await?;
        let there = uids.iter().zip(names).filter_map(|(uid, name)| Some((*uid, name?)));
        let there: Vec<(Uid, ShownName)> = there.collect();
        let key = |uid, setting| (uid, setting_key(setting, Conversation::User(uid)));
        let keys = |(uid, _): &(Uid, ShownName)| [key(*uid, Setting::Profile), key(*uid, Setting::Picture)];
        let rows = self.store.newest(&there.iter().flat_map(keys).collect::<Vec<_>>()).await?;
        let shown = there.into_iter().zip(rows.chunks(2)).map(|((uid, name), rows)| {
            let is_deleted = name.is_deleted();
            let body = |row: usize| rows[row].as_ref().filter(|_| !is_deleted).map(|row| &row.content.body);
            let profile =
                body(0).and_then(Body::setting_value).and_then(|value| serde_json::from_str(value).ok());
            let (profile, picture) = (profile.unwrap_or_default(), body(1).and_then(Body::picture));
            ShownPerson { uid, name: name.into_text(), profile, picture, is_deleted }
        });
        Ok(shown.collect())
    }
}
