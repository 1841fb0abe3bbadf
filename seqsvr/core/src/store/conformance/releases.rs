//! Hand-overs: the earlier owners that a claim tells of, and how a release changes them.

use super::{claim, owner, range};
use crate::store::message::Earlier;
use crate::store::{Claimed, Owner, SectionStore};

fn held(first: u32, last: u32, owner: Owner, released: bool) -> Earlier {
    Earlier { sections: range(first, last), owner, released }
}

/// The earlier owners of the sections, with neighbours in the same hands made one: a store may split them as it likes.
fn earlier(claimed: Claimed) -> Vec<Earlier> {
    let mut joined: Vec<Earlier> = Vec::new();
    for one in claimed.earlier {
        match joined.last_mut() {
            Some(last)
                if last.sections.end().get() + 1 == one.sections.start().get()
                    && (last.owner, last.released) == (one.owner, one.released) =>
            {
                last.sections = *last.sections.start()..=*one.sections.end();
            }
            _ => joined.push(one),
        }
    }
    joined
}

async fn release(store: &dyn SectionStore, first: u32, last: u32, owner: Owner) {
    store.release(&[range(first, last)], owner).await.expect("a release is never refused");
}

pub async fn a_claim_tells_who_held_the_sections_before(store: &dyn SectionStore) {
    claim(store, 0, 9, owner(1, 1)).await;
    assert_eq!(earlier(claim(store, 5, 14, owner(2, 2)).await), [held(5, 9, owner(1, 1), false)]);
    let both = store.claim(&[range(3, 6), range(12, 20)], owner(3, 3), super::LAYOUT).await.unwrap();
    let expected =
        [held(3, 4, owner(1, 1), false), held(5, 6, owner(2, 2), false), held(12, 14, owner(2, 2), false)];
    assert_eq!(
        earlier(both),
        expected,
        "the highest earlier owner of each section, none where there was none"
    );
}

pub async fn a_repeated_claim_tells_the_same_earlier_owner(store: &dyn SectionStore) {
    claim(store, 0, 9, owner(1, 1)).await;
    let first = claim(store, 0, 19, owner(2, 2)).await;
    assert_eq!(claim(store, 0, 19, owner(2, 2)).await, first);
    assert_eq!(earlier(claim(store, 4, 5, owner(2, 2)).await), [held(4, 5, owner(1, 1), false)]);
}

pub async fn a_release_is_reported_to_the_next_claim(store: &dyn SectionStore) {
    claim(store, 0, 9, owner(1, 1)).await;
    release(store, 2, 4, owner(1, 1)).await;
    let expected =
        [held(0, 1, owner(1, 1), false), held(2, 4, owner(1, 1), true), held(5, 9, owner(1, 1), false)];
    assert_eq!(earlier(claim(store, 0, 9, owner(2, 2)).await), expected);
}

pub async fn a_release_after_the_next_claim_is_noted(store: &dyn SectionStore) {
    claim(store, 0, 9, owner(1, 1)).await;
    claim(store, 0, 9, owner(2, 2)).await;
    release(store, 0, 9, owner(1, 1)).await;
    assert_eq!(earlier(claim(store, 0, 9, owner(2, 2)).await), [held(0, 9, owner(1, 1), true)]);
    release(store, 0, 9, owner(1, 1)).await;
    assert_eq!(earlier(claim(store, 0, 9, owner(2, 2)).await), [held(0, 9, owner(1, 1), true)], "once more");
}

pub async fn only_the_exact_owner_releases(store: &dyn SectionStore) {
    claim(store, 0, 9, owner(1, 1)).await;
    for other in [owner(1, 2), owner(2, 1), owner(0, 1)] {
        release(store, 0, 9, other).await;
    }
    assert_eq!(earlier(claim(store, 0, 9, owner(2, 2)).await), [held(0, 9, owner(1, 1), false)]);
    for other in [owner(1, 2), owner(2, 1)] {
        release(store, 0, 9, other).await;
    }
    assert_eq!(earlier(claim(store, 0, 9, owner(2, 2)).await), [held(0, 9, owner(1, 1), false)]);
}

pub async fn an_owner_from_long_ago_releases_without_effect(store: &dyn SectionStore) {
    for version in 1..=3 {
        claim(store, 0, 9, owner(version, version)).await;
    }
    release(store, 0, 9, owner(1, 1)).await;
    assert_eq!(earlier(claim(store, 0, 9, owner(3, 3)).await), [held(0, 9, owner(2, 2), false)]);
}

pub async fn a_release_of_nobody_s_sections_changes_nothing(store: &dyn SectionStore) {
    release(store, 0, 9, owner(1, 1)).await;
    assert_eq!(store.newest_epoch().await.unwrap(), crate::ids::Epoch::default());
    assert_eq!(earlier(claim(store, 0, 9, owner(1, 1)).await), []);
    assert_eq!(earlier(claim(store, 0, 9, owner(2, 2)).await), [held(0, 9, owner(1, 1), false)]);
}

pub async fn a_release_leaves_the_ceilings_and_the_owner(store: &dyn SectionStore) {
    claim(store, 0, 9, owner(1, 1)).await;
    assert_eq!(super::raise(store, owner(1, 1), 3, 10_000).await, Ok(10_000));
    release(store, 0, 9, owner(1, 1)).await;
    assert_eq!(super::raise(store, owner(1, 1), 3, 20_000).await, Ok(20_000));
    assert_eq!(claim(store, 0, 9, owner(2, 2)).await.ceilings, [super::to(3, 20_000)]);
}
