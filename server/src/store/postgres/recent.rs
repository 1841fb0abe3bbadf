//! The rows that this process committed last, in memory, so that connected devices are told of them without asking the
//! database.
//!
//! A commit learns the latest id that each inbox had before, under the lock of its head. So it is known that nothing
//! lies between that id and the rows of the commit. Commits of one inbox that follow each other without a gap make a
//! run; where another process wrote in between, a new run begins. Rows that this process replaced later are changed
//! here, too. Rows that another one replaced are not known here. So a run is told only while no newer id of the inbox
//! is known. An edit whose message is not in the run with its text ends the run: the database may have left it out.
//!
//! Without it each connected device would ask the database for each copy: two look-ups more for a message between two people,
//! and fifty for one to a group of fifty, where a commit is one call. Owned by the store; at most 16 MiB. Only the plain
//! layout keeps such rows.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::domain::{Content, Entry, Kind, MessageId, PageLimit, Timestamp, Uid};
use crate::store::Page;

/// Bytes of rows in memory, by [`Entry::weight`].
const MOST_BYTES: usize = 16 << 20;

/// No row weighs less.
const LEAST_WEIGHT: usize = 256;

/// See the module.
#[derive(Debug)]
pub(super) struct Recent {
    state: Mutex<RecentRuns>,
    most_bytes: usize,
}

#[derive(Debug, Default)]
struct RecentRuns {
    runs: HashMap<Uid, InboxRun>,
    /// Everything that was kept, oldest first; some of it may be gone.
    order: VecDeque<(Uid, MessageId)>,
    bytes: usize,
}

/// All rows that an inbox has above `base`, up to the last of them, but for those that later ones of this process replaced.
#[derive(Debug)]
struct InboxRun {
    base: MessageId,
    rows: VecDeque<Entry>,
}

impl Default for Recent {
    fn default() -> Recent {
        Recent { state: Mutex::default(), most_bytes: MOST_BYTES }
    }
}

impl Recent {
    /// Keeps the rows of a commit. `before`: the latest id of each inbox before it. `rows`: those of one inbox in their order.
    pub(super) fn keep(
        &self,
        before: impl IntoIterator<Item = (Uid, MessageId)>,
        rows: impl IntoIterator<Item = (Uid, MessageId, Arc<Content>)>,
    ) {
        let before: HashMap<Uid, MessageId> = before.into_iter().collect();
        let mut takes: HashMap<Uid, bool> = HashMap::with_capacity(before.len());
        let mut state = self.state();
        for (receiver, message_id, content) in rows {
            let open = || before.get(&receiver).is_some_and(|base| state.open(receiver, *base));
            if *takes.entry(receiver).or_insert_with(open) {
                state.push(Entry { receiver, message_id, content });
            }
        }
        while state.bytes > self.most_bytes || state.order.len() > self.most_bytes / LEAST_WEIGHT {
            state.forget_oldest();
        }
    }

    /// The rows after `cursor`, as far as they fit into a page; `None` where they are not all here up to `known`: what another
    /// process wrote after them may have taken the place of one of them, or taken it back.
    pub(super) fn after(
        &self,
        uid: Uid,
        cursor: MessageId,
        known: MessageId,
        limit: PageLimit,
    ) -> Option<Page> {
        let state = self.state();
        let holds = |run: &&InboxRun| run.base <= cursor && cursor < run.last() && known <= run.last();
        let run = state.runs.get(&uid).filter(holds)?;
        let first = run.rows.partition_point(|row| row.message_id <= cursor);
        Some(Page::filled(run.rows.range(first..).cloned(), limit))
    }

    /// Forgets the runs in which a row was sent before `sent_before`: the database may have removed it.
    pub(super) fn forget_before(&self, sent_before: Timestamp) {
        let mut state = self.state();
        let is_old = |run: &InboxRun| run.rows.iter().any(|row| row.content.sent_at < sent_before);
        let old: Vec<Uid> = state.runs.iter().filter(|(_, run)| is_old(run)).map(|(uid, _)| *uid).collect();
        old.into_iter().for_each(|uid| state.replace(uid, None));
    }

    fn state(&self) -> MutexGuard<'_, RecentRuns> {
        // A row that was kept is kept whole, so a panic elsewhere leaves nothing half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl InboxRun {
    fn last(&self) -> MessageId {
        self.rows.back().map_or(self.base, |row| row.message_id)
    }

    /// As in the database: the message that `content` amends is shown as it is now, the row whose place it takes goes, and the text of an
    /// edit goes with its message. The bytes of the run before and after.
    fn supersede(&mut self, name: &str, content: &Content) -> (usize, usize) {
        let weight = |run: &InboxRun| run.rows.iter().map(Entry::weight).sum::<usize>();
        let before = weight(self);
        let key = content.changes_message();
        self.rows.retain(|row| {
            row.content.compaction_key(row.receiver).as_deref() != Some(name)
                && !row.content.is_edit_deleted_by(content)
        });
        for message in self.rows.iter_mut().filter(|message| key.is_some() && message.content.key() == key) {
            if let Some(amended) = message.content.amended(content) {
                message.content = Arc::new(amended);
            }
        }
        (before, weight(self))
    }

    /// Whether the database may have left out this row: an edit of a message that is recalled or deleted. It is kept for certain where the
    /// message is here with its text.
    fn may_be_left_out(&self, row: &Content) -> bool {
        let of = row.changes_message();
        let has_text = |message: &Entry| message.content.kind == Kind::Message && message.content.key() == of;
        row.kind == Kind::Edit && !self.rows.iter().any(has_text)
    }
}

impl RecentRuns {
    /// Whether rows that come after `base` can be kept: not if those of a later commit were kept already.
    fn open(&mut self, uid: Uid, base: MessageId) -> bool {
        match self.runs.get(&uid).map(InboxRun::last) {
            Some(last) if last == base => {}
            Some(last) if last > base => return false,
            _ => self.replace(uid, Some(InboxRun { base, rows: VecDeque::new() })),
        }
        true
    }

    /// Forgets the run of an inbox, for another one or for none.
    fn replace(&mut self, uid: Uid, run: Option<InboxRun>) {
        let before = match run {
            Some(run) => self.runs.insert(uid, run),
            None => self.runs.remove(&uid),
        };
        self.bytes -= before.iter().flat_map(|run| &run.rows).map(Entry::weight).sum::<usize>();
    }

    fn push(&mut self, row: Entry) {
        let Some(run) = self.runs.get_mut(&row.receiver) else { return };
        if run.may_be_left_out(&row.content) {
            // From now on the database is asked.
            return self.replace(row.receiver, None);
        }
        if let Some(name) = row.content.compaction_key(row.receiver) {
            let (before, after) = run.supersede(&name, &row.content);
            self.bytes = self.bytes - before + after;
        }
        self.bytes += row.weight();
        self.order.push_back((row.receiver, row.message_id));
        run.rows.push_back(row);
    }

    fn forget_oldest(&mut self) {
        let Some((uid, id)) = self.order.pop_front() else { return };
        let Some(run) = self.runs.get_mut(&uid) else { return };
        // A run that began anew has not got it any more.
        if run.rows.front().is_some_and(|row| row.message_id == id) {
            self.bytes -= run.rows.pop_front().map_or(0, |row| row.weight());
            run.base = id;
            if run.rows.is_empty() {
                self.runs.remove(&uid);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Amendment, Body, Conversation};
    use crate::store::conformance::{id, text_message};

    const ANN: Uid = Uid(10_001);
    const BOB: Uid = Uid(10_002);

    /// Rows with these ids, written when the latest id was `before`.
    fn keep(recent: &Recent, uid: Uid, before: u64, ids: &[u64]) {
        let content = text_message(BOB, Conversation::User(ANN), 1, "hello");
        let rows = ids.iter().map(|number| (uid, id(*number), Arc::clone(&content)));
        recent.keep([(uid, id(before))], rows);
    }

    /// The ids after `cursor`.
    fn after(recent: &Recent, uid: Uid, cursor: u64) -> Option<Vec<u64>> {
        let page = recent.after(uid, id(cursor), MessageId::ZERO, PageLimit::of_rows(100))?;
        Some(page.rows.iter().map(|row| row.message_id.get()).collect())
    }

    #[test]
    fn commits_that_follow_each_other_are_one_run() {
        let recent = Recent::default();
        keep(&recent, ANN, 4, &[5, 6]);
        keep(&recent, ANN, 6, &[7]);
        assert_eq!(after(&recent, ANN, 4), Some(vec![5, 6, 7]));
        assert_eq!(after(&recent, ANN, 6), Some(vec![7]));
        assert_eq!(after(&recent, ANN, 3), None, "what came before is not known");
        assert_eq!(after(&recent, ANN, 7), None, "another server may have written more");
        assert_eq!(after(&recent, BOB, 0), None);
    }

    #[test]
    fn what_another_server_wrote_in_between_is_not_left_out() {
        let recent = Recent::default();
        keep(&recent, ANN, 4, &[5]);
        keep(&recent, ANN, 8, &[9]);
        assert_eq!(after(&recent, ANN, 4), None);
        assert_eq!(after(&recent, ANN, 8), Some(vec![9]));
    }

    /// It may have taken back one of these.
    #[test]
    fn rows_before_one_that_another_server_is_known_to_have_written_are_not_told() {
        let recent = Recent::default();
        keep(&recent, ANN, 4, &[5, 6]);
        let first_of = |known| recent.after(ANN, id(4), id(known), PageLimit::of_rows(1)).is_some();
        assert_eq!((first_of(6), first_of(7)), (true, false));
    }

    #[test]
    fn a_commit_that_is_kept_after_its_successor_is_left_out() {
        let recent = Recent::default();
        keep(&recent, ANN, 5, &[6]);
        keep(&recent, ANN, 4, &[5]);
        keep(&recent, ANN, 6, &[7]);
        assert_eq!((after(&recent, ANN, 4), after(&recent, ANN, 5)), (None, Some(vec![6, 7])));
    }

    #[test]
    fn a_page_that_does_not_hold_all_says_so() {
        let recent = Recent::default();
        keep(&recent, ANN, 0, &[1, 2, 3]);
        let page = recent.after(ANN, id(0), id(3), PageLimit::of_rows(2)).expect("known");
        assert_eq!((page.rows.len(), page.more), (2, true));
    }

    /// A row of `kind` about the message of Bob that [`keep`] keeps.
    fn amending(kind: Kind, by: Uid, name: u128) -> Arc<Content> {
        let said = text_message(BOB, Conversation::User(ANN), 1, "hello");
        let amendment =
            if kind == Kind::Edit { Amendment::Edit("secret".to_owned()) } else { Amendment::Delete };
        let body = Body::amendment(&amendment, said.key().expect("named"), &said, 100).expect("short");
        let row = text_message(by, Conversation::User(ANN), name, "replaced");
        Arc::new(Content { kind, body, ..Content::clone(&row) })
    }

    /// The edit is a row of its own, with the text that the message has no more.
    #[test]
    fn the_text_of_an_edit_goes_with_its_message() {
        let recent = Recent::default();
        keep(&recent, ANN, 0, &[1]);
        recent.keep([(ANN, id(1))], [(ANN, id(2), amending(Kind::Edit, BOB, 2))]);
        assert_eq!(after(&recent, ANN, 0), Some(vec![1, 2]));
        recent.keep([(ANN, id(2))], [(ANN, id(3), amending(Kind::Delete, ANN, 3))]);
        assert_eq!(after(&recent, ANN, 0), Some(vec![1, 3]));
    }

    /// Another server may have taken the message back: then the database has no row of the edit.
    #[test]
    fn an_edit_of_a_message_that_is_not_here_is_asked_of_the_database() {
        let recent = Recent::default();
        recent.keep([(ANN, id(1))], [(ANN, id(2), amending(Kind::Edit, BOB, 2))]);
        assert_eq!(after(&recent, ANN, 1), None);
        keep(&recent, ANN, 2, &[3]);
        assert_eq!((after(&recent, ANN, 1), after(&recent, ANN, 2)), (None, Some(vec![3])));
        recent.keep([(ANN, id(3))], [(ANN, id(4), amending(Kind::Delete, ANN, 4))]);
        recent.keep([(ANN, id(4))], [(ANN, id(5), amending(Kind::Edit, BOB, 5))]);
        assert_eq!(after(&recent, ANN, 2), None);
    }

    #[test]
    fn a_run_with_an_old_row_is_forgotten() {
        let recent = Recent::default();
        let said = |name| text_message(BOB, Conversation::User(ANN), name, "hello");
        for (uid, name) in [(ANN, 1), (BOB, 2), (ANN, 3)] {
            let before = id(u64::try_from(name - 1).expect("small"));
            recent.keep([(uid, before)], [(uid, id(before.get() + 1), said(name))]);
        }
        recent.forget_before(said(2).sent_at);
        assert_eq!((after(&recent, ANN, 2), after(&recent, BOB, 1)), (Some(vec![3]), Some(vec![2])));
        recent.forget_before(said(3).sent_at);
        assert_eq!((after(&recent, ANN, 2), after(&recent, BOB, 1)), (Some(vec![3]), None));
        let kept: usize = recent.state().runs.values().flat_map(|run| &run.rows).map(Entry::weight).sum();
        assert_eq!(recent.state().bytes, kept);
    }

    #[test]
    fn memory_is_bounded_and_the_oldest_rows_go_first() {
        let recent = Recent { most_bytes: 3 * 300, ..Recent::default() };
        for number in 1..=5 {
            keep(&recent, ANN, number - 1, &[number]);
        }
        keep(&recent, BOB, 0, &[1]);
        assert_eq!((after(&recent, ANN, 2), after(&recent, ANN, 3)), (None, Some(vec![4, 5])));
        assert_eq!(after(&recent, BOB, 0), Some(vec![1]));
        // Runs that begin anew leave nothing behind.
        for number in 1..=1_000 {
            keep(&recent, ANN, 2 * number, &[2 * number + 1]);
        }
        let state = recent.state();
        assert!(state.order.len() <= 3 && state.runs.len() <= 2 && state.bytes <= 900, "{state:?}");
        let weights: usize = state.runs.values().flat_map(|run| &run.rows).map(Entry::weight).sum();
        assert_eq!(state.bytes, weights);
    }
}
