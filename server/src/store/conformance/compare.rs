//! Whether two stores that were given the same writes answer every question alike.

use super::*;
use crate::domain::{Bound, ClientId, Direction};

/// The users, groups, names and ids to ask about.
pub struct Universe {
    /// Users.
    pub uids: Vec<Uid>,
    /// Groups.
    pub gids: Vec<GroupId>,
    /// Names that each user may have given.
    pub names: Vec<ClientId>,
    /// The largest id of anyone.
    pub latest: u64,
}

/// Asks both everything and panics where they differ.
pub async fn same_answers(left: &dyn MessageStore, right: &dyn MessageStore, universe: &Universe) {
    for &uid in &universe.uids {
        let watermarks = (left.watermark(uid).await, right.watermark(uid).await);
        assert_eq!(watermarks.0.expect("read"), watermarks.1.expect("read"), "latest of {uid}");
        same_ranges(left, right, uid, universe.latest).await;
        same_conversations(left, right, uid, universe).await;
        for n in 1..=universe.latest {
            let entries = (left.entry(uid, id(n)).await, right.entry(uid, id(n)).await);
            assert_eq!(entries.0.expect("read"), entries.1.expect("read"), "row {n} of {uid}");
        }
        let keys: Vec<_> = universe.names.iter().map(|name| (uid, *name)).collect();
        assert_eq!(records(left, &keys).await, records(right, &keys).await, "keys of {uid}");
    }
    for &gid in &universe.gids {
        let groups = (left.group(gid).await, right.group(gid).await);
        assert_eq!(groups.0.expect("read"), groups.1.expect("read"), "group {gid}");
    }
    let pending = (pending(left).await, pending(right).await);
    assert_eq!(pending.0, pending.1, "copies owed");
}

/// Compares what both know from memory alone, asked by somebody who knows how far each inbox reaches.
pub async fn same_tails(left: &dyn MessageStore, right: &dyn MessageStore, universe: &Universe) {
    let few = PageLimit::of_rows(5);
    for &uid in &universe.uids {
        let known = right.watermark(uid).await.expect("read");
        for cursor in (0..=universe.latest).map(id) {
            let tails = (left.tail(uid, cursor, known, few), right.tail(uid, cursor, known, few));
            if let (Some(left), Some(right)) = tails {
                assert_eq!(left, right, "tail of {uid} after {cursor}");
            }
        }
    }
}

/// In each sender's order; which numbers they have is the store's own.
async fn pending(store: &dyn MessageStore) -> Vec<(Arc<Content>, Vec<Recipient>)> {
    let mut pending = store.pending(PendingKey::default(), usize::MAX).await.expect("read");
    pending.sort_by_key(|pending| pending.content.sender);
    pending.into_iter().map(|pending| (pending.content, pending.owed)).collect()
}

async fn same_ranges(left: &dyn MessageStore, right: &dyn MessageStore, uid: Uid, latest: u64) {
    let third = latest / 3;
    for (start, end, direction) in [
        (Bound::InfMin, Bound::InfMax, Direction::Forward),
        (Bound::Id(third), Bound::Id(2 * third + 1), Direction::Forward),
        (Bound::InfMax, Bound::InfMin, Direction::Backward),
        (Bound::Id(2 * third + 1), Bound::Id(third), Direction::Backward),
    ] {
        for limit in [1, 3, 1_000] {
            let query = RangeQuery::new(start, end, direction, limit).expect("a range");
            let pages = (left.range(uid, query).await, right.range(uid, query).await);
            assert_eq!(pages.0.expect("read"), pages.1.expect("read"), "{query:?} of {uid}");
        }
    }
}

async fn same_conversations(
    left: &dyn MessageStore,
    right: &dyn MessageStore,
    uid: Uid,
    universe: &Universe,
) {
    for limit in [1, 2, 1_000] {
        let lists = (left.conversations(uid, None, limit).await, right.conversations(uid, None, limit).await);
        assert_eq!(lists.0.expect("read"), lists.1.expect("read"), "conversations of {uid}");
    }
    let with_users = universe.uids.iter().map(|other| Conversation::User(*other));
    let in_groups = universe.gids.iter().map(|gid| Conversation::Group(*gid));
    for conversation in with_users.chain(in_groups) {
        let markers = (left.read_to(uid, conversation).await, right.read_to(uid, conversation).await);
        assert_eq!(markers.0.expect("read"), markers.1.expect("read"), "{uid} in {conversation}");
        let middle = id(universe.latest / 2);
        for query in [
            RangeQuery::before(None, 2),
            RangeQuery::before(None, 1_000),
            RangeQuery::before(Some(middle), 2),
            RangeQuery::after(middle, 2),
            RangeQuery::after(MessageId::ZERO, 1_000).up_to(Some(middle)),
        ] {
            let pages = (
                left.conversation(uid, conversation, query).await,
                right.conversation(uid, conversation, query).await,
            );
            assert_eq!(pages.0.expect("read"), pages.1.expect("read"), "{uid} in {conversation}");
        }
    }
}
