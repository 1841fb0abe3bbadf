//! The rules that every section store must keep, run by each of them: `conformance!(fresh)` in a test module makes one test of each rule,
//! on a store that `fresh` returns empty.

#![allow(clippy::unwrap_used, reason = "a rule whose stage cannot be set fails")]
#![allow(missing_docs, reason = "each rule is said by its name")]

use std::ops::RangeInclusive;

use super::{Ceiling, Claimed, Layout, MAX_CEILING, Owner, RaiseError, SectionStore, StoreError};
use crate::ids::{Epoch, SectionId};

mod backups;
mod releases;
pub mod tables;

pub use backups::*;
pub use releases::*;

pub const LAYOUT: Layout = Layout { section_size: 100_000, step: 10_000 };

pub fn owner(version: u64, incarnation: u64) -> Owner {
    Owner { epoch: Epoch { term: 3, version }, incarnation }
}

pub fn range(first: u32, last: u32) -> RangeInclusive<SectionId> {
    SectionId::new(first)..=SectionId::new(last)
}

pub fn to(section: u32, max: u64) -> Ceiling {
    Ceiling { section: SectionId::new(section), max }
}

async fn claim(store: &dyn SectionStore, first: u32, last: u32, owner: Owner) -> Claimed {
    let mut claimed = store.claim(&[range(first, last)], owner, LAYOUT).await.expect("the claim is newer");
    claimed.ceilings.sort_by_key(|ceiling| ceiling.section);
    claimed
}

async fn raise(store: &dyn SectionStore, owner: Owner, section: u32, max: u64) -> Result<u64, RaiseError> {
    let mut answers = store.raise(owner, &[to(section, max)]).await;
    assert_eq!(answers.len(), 1, "one answer for one raise");
    answers.remove(0)
}

pub async fn an_empty_store_has_no_epoch_and_no_ceilings(store: &dyn SectionStore) {
    assert_eq!(store.newest_epoch().await.unwrap(), Epoch::default());
    assert_eq!(claim(store, 0, 42_949, owner(1, 1)).await, Claimed::default());
    assert_eq!(store.newest_epoch().await.unwrap(), owner(1, 1).epoch);
}

pub async fn a_claim_answers_with_what_was_raised(store: &dyn SectionStore) {
    claim(store, 0, 9, owner(1, 1)).await;
    assert_eq!(raise(store, owner(1, 1), 4, 10_000).await, Ok(10_000));
    assert_eq!(raise(store, owner(1, 1), 9, MAX_CEILING).await, Ok(MAX_CEILING));
    assert_eq!(raise(store, owner(1, 1), 4, 20_000).await, Ok(20_000));
    let claimed = claim(store, 4, 8, owner(2, 2)).await;
    assert_eq!(claimed.ceilings, [to(4, 20_000)]);
    let claimed = claim(store, 0, 42_949, owner(3, 3)).await;
    assert_eq!(claimed.ceilings, [to(4, 20_000), to(9, MAX_CEILING)]);
}

pub async fn a_ceiling_never_becomes_smaller(store: &dyn SectionStore) {
    claim(store, 0, 9, owner(1, 1)).await;
    assert_eq!(raise(store, owner(1, 1), 0, 20_000).await, Ok(20_000));
    assert_eq!(raise(store, owner(1, 1), 0, 19_999).await, Err(RaiseError::Smaller { stored: 20_000 }));
    claim(store, 0, 9, owner(2, 1)).await;
    assert_eq!(raise(store, owner(2, 1), 0, 10_000).await, Err(RaiseError::Smaller { stored: 20_000 }));
    assert_eq!(claim(store, 0, 9, owner(3, 1)).await.ceilings, [to(0, 20_000)]);
}

pub async fn the_same_raise_again_is_confirmed_again(store: &dyn SectionStore) {
    claim(store, 0, 9, owner(1, 1)).await;
    assert_eq!(raise(store, owner(1, 1), 7, 10_000).await, Ok(10_000));
    assert_eq!(raise(store, owner(1, 1), 7, 10_000).await, Ok(10_000));
}

pub async fn an_older_owner_is_fenced_off(store: &dyn SectionStore) {
    claim(store, 0, 9, owner(1, 1)).await;
    assert_eq!(raise(store, owner(1, 1), 0, 10_000).await, Ok(10_000));
    assert_eq!(claim(store, 0, 4, owner(2, 2)).await.ceilings, [to(0, 10_000)]);
    let lost = Err(RaiseError::NotOwner { newest: owner(2, 2).epoch });
    assert_eq!(raise(store, owner(1, 1), 0, 20_000).await, lost);
    assert_eq!(raise(store, owner(1, 1), 5, 20_000).await, Ok(20_000), "it still owns the others");
    assert_eq!(claim(store, 0, 9, owner(3, 3)).await.ceilings, [to(0, 10_000), to(5, 20_000)]);
}

pub async fn who_never_claimed_cannot_raise(store: &dyn SectionStore) {
    let nobody = Err(RaiseError::NotOwner { newest: Epoch::default() });
    assert_eq!(raise(store, owner(1, 1), 0, 10_000).await, nobody);
    claim(store, 0, 9, owner(1, 1)).await;
    assert_eq!(raise(store, owner(1, 1), 10, 10_000).await, nobody);
    let other = Err(RaiseError::NotOwner { newest: owner(1, 1).epoch });
    assert_eq!(raise(store, owner(1, 2), 0, 10_000).await, other, "another incarnation");
    assert_eq!(raise(store, owner(2, 1), 0, 10_000).await, other, "an epoch without a claim");
}

pub async fn only_a_newer_claim_takes_over(store: &dyn SectionStore) {
    claim(store, 0, 9, owner(5, 1)).await;
    for loser in [owner(4, 2), owner(5, 2), owner(4, 1)] {
        let refused = store.claim(&[range(20, 29), range(9, 9)], loser, LAYOUT).await;
        assert!(
            matches!(refused, Err(StoreError::Claimed { newest }) if newest == owner(5, 1).epoch),
            "{refused:?}"
        );
    }
    let untouched = Err(RaiseError::NotOwner { newest: Epoch::default() });
    assert_eq!(raise(store, owner(5, 2), 20, 10_000).await, untouched, "a refused claim takes nothing");
    assert_eq!(raise(store, owner(5, 1), 9, 10_000).await, Ok(10_000));
    claim(store, 10, 19, owner(4, 2)).await;
    assert_eq!(store.newest_epoch().await.unwrap(), owner(5, 1).epoch);
}

pub async fn an_owner_may_repeat_its_claim(store: &dyn SectionStore) {
    claim(store, 0, 9, owner(1, 1)).await;
    assert_eq!(raise(store, owner(1, 1), 3, 10_000).await, Ok(10_000));
    assert_eq!(claim(store, 0, 9, owner(1, 1)).await.ceilings, [to(3, 10_000)]);
}

pub async fn a_term_outranks_every_version(store: &dyn SectionStore) {
    claim(store, 0, 9, owner(1_000, 1)).await;
    let newer = Owner { epoch: Epoch { term: 4, version: 1 }, incarnation: 2 };
    claim(store, 0, 9, newer).await;
    let lost = Err(RaiseError::NotOwner { newest: newer.epoch });
    assert_eq!(raise(store, owner(1_000, 1), 0, 10_000).await, lost);
}

pub async fn raises_are_answered_one_by_one_in_order(store: &dyn SectionStore) {
    claim(store, 0, 9, owner(1, 1)).await;
    assert_eq!(raise(store, owner(1, 1), 1, 30_000).await, Ok(30_000));
    let raises = [to(0, 10_000), to(1, 20_000), to(2, 10_000), to(77, 10_000)];
    let answers = store.raise(owner(1, 1), &raises).await;
    let refused = Err(RaiseError::Smaller { stored: 30_000 });
    let nobody = Err(RaiseError::NotOwner { newest: Epoch::default() });
    assert_eq!(answers, [Ok(10_000), refused, Ok(10_000), nobody]);
    let stored = claim(store, 0, 99, owner(2, 1)).await.ceilings;
    assert_eq!(stored, [to(0, 10_000), to(1, 30_000), to(2, 10_000)]);
}

pub async fn a_section_may_come_twice_in_one_call(store: &dyn SectionStore) {
    claim(store, 0, 9, owner(1, 1)).await;
    let raises = [to(1, 30_000), to(2, 10_000), to(1, 20_000), to(1, 40_000)];
    let answers = store.raise(owner(1, 1), &raises).await;
    let refused = Err(RaiseError::Smaller { stored: 30_000 });
    assert_eq!(answers, [Ok(30_000), Ok(10_000), refused, Ok(40_000)]);
}

pub async fn every_section_of_the_uid_space_loads_in_one_claim(store: &dyn SectionStore) {
    claim(store, 0, 42_949, owner(1, 1)).await;
    let raises: Vec<_> = (0..42_950).map(|section| to(section, 10_000 + u64::from(section))).collect();
    assert!(store.raise(owner(1, 1), &raises).await.iter().all(Result::is_ok));
    assert_eq!(claim(store, 0, 42_949, owner(2, 2)).await.ceilings, raises);
    let apart = [range(40_000, 42_949), range(7, 7), range(100, 199)];
    let mut found = store.claim(&apart, owner(3, 3), LAYOUT).await.expect("the claim is newer").ceilings;
    found.sort_by_key(|ceiling| ceiling.section);
    assert_eq!(found, [&raises[7..8], &raises[100..200], &raises[40_000..]].concat());
}

pub async fn another_layout_is_refused(store: &dyn SectionStore) {
    claim(store, 0, 9, owner(1, 1)).await;
    for configured in [Layout { section_size: 50_000, ..LAYOUT }, Layout { step: 1_000, ..LAYOUT }] {
        let refused = store.claim(&[range(0, 9)], owner(2, 2), configured).await;
        let error = refused.expect_err("the layout differs").to_string();
        assert!(error.contains("set section_size = 100000 and step = 10000"), "{error}");
    }
    assert_eq!(raise(store, owner(1, 1), 0, 10_000).await, Ok(10_000), "the owner stays");
}

/// One test for each rule; `fresh` is an async function that returns an empty store and a value that must outlive it.
#[macro_export]
#[doc(hidden)]
macro_rules! conformance_of_sections {
    ($fresh:path; $($rule:ident)*) => { $(
        #[tokio::test]
        async fn $rule() {
            let (store, _kept) = $fresh().await;
            $crate::store::conformance::$rule(&store).await;
        }
    )* };
    ($fresh:path) => {
        $crate::store::conformance::conformance! { $fresh;
            an_empty_store_has_no_epoch_and_no_ceilings
            a_claim_answers_with_what_was_raised
            a_ceiling_never_becomes_smaller
            the_same_raise_again_is_confirmed_again
            an_older_owner_is_fenced_off
            who_never_claimed_cannot_raise
            only_a_newer_claim_takes_over
            an_owner_may_repeat_its_claim
            a_term_outranks_every_version
            raises_are_answered_one_by_one_in_order
            a_section_may_come_twice_in_one_call
            every_section_of_the_uid_space_loads_in_one_claim
            another_layout_is_refused
            a_claim_tells_who_held_the_sections_before
            a_repeated_claim_tells_the_same_earlier_owner
            a_release_is_reported_to_the_next_claim
            a_release_after_the_next_claim_is_noted
            only_the_exact_owner_releases
            an_owner_from_long_ago_releases_without_effect
            a_release_of_nobody_s_sections_changes_nothing
            a_release_leaves_the_ceilings_and_the_owner
            what_is_restored_is_far_ahead_of_what_was_handed_out_since
            a_new_store_takes_the_backup_of_another
        }
    };
}
pub use conformance_of_sections as conformance;
