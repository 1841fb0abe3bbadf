//! One suite for every [`MessageStore`]: what the trait's contract says, as tests.
//!
//! An implementation calls [`message_store_conformance!`](crate::message_store_conformance) with a function
//! that makes an empty store; each case becomes a test of its own. The builders here are for other tests, too.

use std::any::Any;
use std::sync::Arc;

use uuid::Uuid;

use super::*;
use crate::domain::{Amendment, AppKind, Body, ClientId, GroupChange, Kind, MembershipEpoch};

pub mod access_keys;
pub mod amendments;
pub mod assigned;
pub mod compare;
pub mod credentials;
pub mod deletions;
pub mod directory;
pub mod expiry;
pub mod files;
pub mod groups;
pub mod history;
pub mod invites;
pub mod joining;
pub mod keyed;
pub mod last_seen;
pub mod messages;
pub mod operators;
pub mod push;
pub mod reading;
pub mod renames;
pub mod reports;
pub mod tables;

/// A store under test, with what must outlive it (its directory, say).
pub struct Made {
    /// The store.
    pub store: Arc<dyn MessageStore>,
    _kept: Box<dyn Any + Send>,
}

impl Made {
    /// A store that needs nothing else.
    pub fn new(store: impl MessageStore) -> Made {
        Made::keeping(store, ())
    }

    /// A store and what must be dropped after it.
    pub fn keeping(store: impl MessageStore, kept: impl Any + Send) -> Made {
        Made { store: Arc::new(store), _kept: Box::new(kept) }
    }
}

/// Makes one test of each case of the suite; `$make` is an async function without arguments that returns [`Made`].
#[macro_export]
macro_rules! message_store_conformance {
    ($make:path) => {
        $crate::message_store_conformance! { $make:
            messages: an_empty_store_knows_nothing, each_side_reads_its_own_copy, a_repeated_key_is_refused_and_known,
                an_old_proof_lets_no_key_be_used_twice, a_repeated_key_that_nobody_asked_for_is_given_back,
                a_refused_write_takes_no_other_with_it, an_id_must_be_larger_than_the_newest,
                an_old_number_of_a_copy_that_is_there_is_no_matter,
                the_senders_copy_comes_first, a_post_is_one_row_of_one_inbox, copies_owed_are_pending_until_delivered, a_copy_is_stored_once,
                pending_comes_in_the_order_of_acceptance, an_unknown_acceptance_is_refused,
                writes_of_one_call_see_each_other;
            amendments: an_edit_changes_the_message_in_every_inbox, a_recall_is_the_last_word, a_recall_by_another_person_says_who,
                of_rows_with_one_compaction_key_the_newest_stays, an_amendment_is_in_no_list_of_conversations;
            keyed: the_newest_row_of_each_key_says_how_things_stand, keys_are_walked_in_their_order,
                pins_of_one_message_make_way_for_the_newest, stars_of_one_message_make_way_for_the_newest,
                marks_that_stand_are_found_among_many_that_do_not, who_has_a_copy_is_known, what_is_deleted_says_nothing_any_more, moments_are_no_conversation;
            assigned: each_inbox_goes_on_after_its_latest_row, an_empty_inbox_begins_at_one, a_late_copy_gets_the_next_id,
                the_largest_id_is_followed_by_a_refusal;
            reading: a_range_runs_both_ways, a_page_says_whether_there_is_more, a_page_ends_at_its_bytes,
                a_tail_is_what_the_range_says, unread_counts_others_messages_beyond_the_read_marker,
                mentions_are_counted_among_what_is_unread,
                conversations_come_newest_first, a_conversation_is_read_both_ways, a_read_marker_only_grows,
                inboxes_are_apart, rows_are_read_in_any_order, all_inboxes_are_walked_over, the_history_stays;
            deletions: the_rows_of_a_user_are_removed_in_batches_and_no_id_comes_twice;
            expiry: old_rows_go_and_no_id_comes_twice, a_row_that_is_young_holds_back_those_behind_it,
                the_newest_row_of_a_conversation_leaves_its_shell, pins_and_stars_go_with_their_message,
                a_conversation_loses_what_is_old_and_others_keep_it, inboxes_with_a_time_of_their_own_are_found,
                what_says_how_things_stand_stays, old_records_go_and_their_keys_are_free;
            groups: a_change_needs_the_version_it_was_decided_on, a_group_is_read_as_last_accepted,
                slow_mode_and_mutes_are_settings_of_the_group,
                a_row_after_the_end_of_its_epoch_is_void, a_rejoined_member_is_served_again,
                an_epoch_ends_when_its_row_is_written, a_sender_whose_epoch_ended_decides_again,
                the_largest_group_is_known, what_joiners_see_is_a_setting_of_the_group;
            joining: what_comes_before_a_copy_comes_with_it_or_not_at_all, a_read_marker_before_a_copy_counts,
                what_comes_before_a_copy_must_come_after_the_inbox;
        }
    };
    ($make:path: $($file:ident: $($case:ident),+;)+) => {
        $($(
            #[tokio::test]
            async fn $case() {
                let made = $make().await;
                $crate::store::conformance::$file::$case(&*made.store).await;
                made.store.close().await;
            }
        )+)+
    };
}

/// The id `n`.
pub fn id(n: u64) -> MessageId {
    MessageId::new(n).expect("a small id")
}

/// The `n`th name that a sender might give.
pub fn client_id(n: u128) -> ClientId {
    ClientId(Uuid::from_u128(n))
}

/// A copy for `receiver` outside groups.
pub fn row(receiver: Uid, n: u64) -> Row {
    Row { receiver, message_id: id(n), epoch: MembershipEpoch(0) }
}

/// A copy for `receiver` in its membership epoch `epoch`.
pub fn member_row(receiver: Uid, n: u64, epoch: u32) -> Row {
    Row { receiver, message_id: id(n), epoch: MembershipEpoch(epoch) }
}

/// "`sender` says `text` to `target`", under the `name`th name.
pub fn text_message(sender: Uid, target: Conversation, name: u128, text: &str) -> Arc<Content> {
    Arc::new(Content {
        kind: Kind::Message,
        sender,
        target,
        client_id: Some(client_id(name)),
        body: Body::text(text, usize::MAX).expect("a text"),
        sent_at: Timestamp(1_795_000_000_000 + name as i64),
    })
}

/// "`owner` has read `conversation` up to `read_to`".
pub fn read_marker(owner: Uid, conversation: Conversation, read_to: u64) -> Arc<Content> {
    Arc::new(Content {
        kind: Kind::ReadMarker,
        sender: owner,
        target: conversation,
        client_id: None,
        body: Body::read_marker(id(read_to)),
        sent_at: Timestamp(1_795_000_000_000),
    })
}

/// The acceptance of `content` with these copies in its own transaction and these left for later.
pub fn accept(content: Arc<Content>, rows: Vec<Row>, rest: Vec<Recipient>) -> Accept {
    let digest = Digest::of(content.target, content.body.as_json());
    Accept { content, digest, rows, rest, change: None, group_version: None, unused: None }
}

/// Commits one acceptance that must succeed, and tells its number.
pub async fn accepted(store: &dyn MessageStore, accept: Accept) -> AcceptanceId {
    let done = one(store, Write::Accept(accept)).await;
    let Outcome::Accepted(acceptance, _) = done else { panic!("expected an acceptance, got {done:?}") };
    acceptance
}

/// The idempotency records under these keys.
pub async fn records(store: &dyn MessageStore, keys: &[IdempotencyKey]) -> Vec<Option<IdempotencyRecord>> {
    store.keys(keys).await.expect("read").into_iter().map(KeyState::record).collect()
}

/// The outcomes of a delivery's copies.
pub fn delivered(outcome: &Outcome) -> Vec<CopyOutcome> {
    assert!(matches!(outcome, Outcome::Delivered(_)), "expected a delivery, got {outcome:?}");
    outcome.copies().iter().map(|(_, outcome)| *outcome).collect()
}

/// Commits one write.
pub async fn one(store: &dyn MessageStore, write: Write) -> Outcome {
    let mut done = store.commit(vec![write]).await.expect("committed");
    assert_eq!(done.len(), 1);
    done.remove(0)
}

/// Commits one write that was decided on something else than what is there. It is refused by itself as `alone` says; a store that others
/// write, too, may give it back to be decided again.
pub async fn outdated(store: &dyn MessageStore, write: Write, alone: fn(&Outcome) -> bool) {
    match store.commit(vec![write]).await {
        Ok(done) => assert!(done.len() == 1 && alone(&done[0]), "{done:?}"),
        Err(CommitError::Stale(at)) => assert_eq!(at, [0]),
        Err(error) => panic!("{error}"),
    }
}

/// A one-to-one message whose copies have the ids `n` and `m`.
pub async fn send_text(store: &dyn MessageStore, from: (Uid, u64), to: (Uid, u64), name: u128) {
    let content = text_message(from.0, Conversation::User(to.0), name, &format!("message {name}"));
    accepted(store, accept(content, vec![row(from.0, from.1), row(to.0, to.1)], vec![])).await;
}

/// Every id of `uid`'s inbox.
pub async fn ids(store: &dyn MessageStore, uid: Uid) -> Vec<u64> {
    let page =
        store.range(uid, RangeQuery::after(MessageId::ZERO, RangeQuery::MAX_ROWS)).await.expect("read");
    page.rows.iter().map(|entry| entry.message_id.get()).collect()
}
