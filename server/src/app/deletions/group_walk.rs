//! The walk over somebody's groups, down the list of conversations, while others write.
//!
//! A message moves its conversation to the top of the list, past the place that the walk has come to. So what lies above the
//! top of the walk before is walked over again, until nothing does.

use crate::domain::{Conversation, GroupId, MessageId, Uid};
use crate::store::{MessageStore, StoreError};

/// How far it has come.
#[derive(Debug, Default)]
pub(super) struct GroupWalk {
    /// Conversations whose newest rows come up to here were walked over.
    done: MessageId,
    /// The newest row at which the list began this time.
    top: Option<MessageId>,
    /// Where this time goes on.
    before: Option<MessageId>,
}

impl GroupWalk {
    /// The next groups of `uid`, of `page` conversations; `None`: there are no more. A group may come more than once.
    pub(super) async fn next(
        &mut self,
        store: &dyn MessageStore,
        uid: Uid,
        page: usize,
    ) -> Result<Option<Vec<GroupId>>, StoreError> {
        loop {
            let lines = store.conversations(uid, self.before, page).await?;
            let mut lines: Vec<_> =
                lines.into_iter().map(|line| (line.last.message_id, line.conversation)).collect();
            lines.retain(|(newest, _)| *newest > self.done);
            if let Some((oldest, _)) = lines.last() {
                self.top = self.top.or(lines.first().map(|(newest, _)| *newest));
                self.before = Some(*oldest);
                let group = |conversation| match conversation {
                    Conversation::Group(gid) => Some(gid),
                    Conversation::User(_) => None,
                };
                return Ok(Some(
                    lines.into_iter().filter_map(|(_, conversation)| group(conversation)).collect(),
                ));
            }
            let Some(top) = self.top else { return Ok(None) };
            *self = GroupWalk { done: top, ..GroupWalk::default() };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::store::conformance::{accept, accepted, row, text_message};
    use crate::store::memory::MemoryStore;

    const ANN: Uid = Uid(1);
    const BOB: Uid = Uid(2);

    /// Ann says something in the group, which Bob gets as row `n`.
    async fn say(store: &MemoryStore, gid: u64, n: u64) {
        let content = text_message(ANN, Conversation::Group(GroupId(gid)), n.into(), "hi");
        accepted(store, accept(content, vec![row(BOB, n)], vec![])).await;
    }

    #[tokio::test]
    async fn a_group_that_moves_to_the_top_meanwhile_is_not_passed_over() {
        let store = MemoryStore::new();
        for n in 1..=5 {
            say(&store, n, n).await;
        }
        let (mut walk, mut seen, mut pages) = (GroupWalk::default(), HashSet::new(), 0);
        while let Some(gids) = walk.next(&store, BOB, 2).await.expect("memory") {
            seen.extend(gids);
            pages += 1;
            match pages {
                1 => say(&store, 1, 6).await,
                // The first one that was passed over moves again, and another one that was there.
                3 => say(&store, 2, 7).await,
                _ => {}
            }
        }
        assert_eq!(seen, (1..=5).map(GroupId).collect());
        assert!(pages < 10, "{pages}");
    }
}
