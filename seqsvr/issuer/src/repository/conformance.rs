//! The rules that every repository must keep, run by each of them: `conformance!(fresh)` in a test module makes one test of each rule, on a
//! repository that `fresh` returns empty.

use super::{Extension, MAX_NUMBER, Repository, RepositoryError, Values};
use crate::range::Range;
use crate::tag::Tag;

fn tag(name: &str) -> Tag {
    Tag::new(name).expect("a good name")
}

fn values(max: u64) -> Values {
    Values { start: 1, max, step: 100 }
}

async fn stored(repository: &dyn Repository, name: &str) -> Option<Values> {
    repository.get(&tag(name)).await.unwrap().map(|row| row.values)
}

pub(super) async fn an_empty_repository_has_no_rows(repository: &dyn Repository) {
    assert_eq!(repository.get(&tag("order")).await, Ok(None));
    assert_eq!(repository.list().await, Ok(vec![]));
    assert_eq!(repository.take(&tag("order"), 0, values(100)).await, Ok(false));
    assert_eq!(repository.remove(&tag("order")).await, Ok(false));
}

pub(super) async fn a_row_is_made_once(repository: &dyn Repository) {
    assert_eq!(repository.create(&tag("order"), values(0)).await, Ok(true));
    assert_eq!(repository.take(&tag("order"), 0, values(100)).await, Ok(true));
    assert_eq!(repository.create(&tag("order"), values(0)).await, Ok(false));
    assert_eq!(stored(repository, "order").await, Some(values(100)));
}

pub(super) async fn a_take_that_expects_what_was_moved_on_fails(repository: &dyn Repository) {
    repository.create(&tag("order"), values(0)).await.unwrap();
    let first = Values { start: 1, max: 100, step: 200 };
    assert_eq!(repository.take(&tag("order"), 0, first).await, Ok(true));
    assert_eq!(repository.take(&tag("order"), 0, values(100)).await, Ok(false));
    assert_eq!(repository.take(&tag("order"), 99, values(300)).await, Ok(false));
    assert_eq!(stored(repository, "order").await, Some(first));
    assert_eq!(repository.take(&tag("order"), 100, values(MAX_NUMBER)).await, Ok(true));
    assert_eq!(stored(repository, "order").await, Some(values(MAX_NUMBER)));
}

pub(super) async fn a_max_never_becomes_smaller(repository: &dyn Repository) {
    repository.create(&tag("order"), values(500)).await.unwrap();
    let back = repository.take(&tag("order"), 500, values(499)).await;
    assert_eq!(back, Err(RepositoryError::Smaller { tag: tag("order"), to: 499, stored: 500 }));
    assert_eq!(stored(repository, "order").await, Some(values(500)));
}

pub(super) async fn of_takes_at_once_each_range_has_one_winner(repository: &dyn Repository) {
    repository.create(&tag("order"), values(0)).await.unwrap();
    let order = tag("order");
    let takes = || repository.take(&order, 0, values(100));
    let (a, b, c, d) = tokio::join!(takes(), takes(), takes(), takes());
    let won = [a, b, c, d].into_iter().filter(|taken| *taken == Ok(true)).count();
    assert_eq!(won, 1);
}

pub(super) async fn tags_do_not_touch_each_other(repository: &dyn Repository) {
    repository.create(&tag("b"), values(7)).await.unwrap();
    repository.create(&tag("a"), values(5)).await.unwrap();
    assert_eq!(repository.take(&tag("a"), 5, values(105)).await, Ok(true));
    let rows = repository.list().await.unwrap();
    let named: Vec<_> = rows.iter().map(|row| (row.tag.as_str(), row.values.max)).collect();
    assert_eq!(named, [("a", 105), ("b", 7)]);
    assert_eq!(repository.remove(&tag("a")).await, Ok(true));
    assert_eq!(stored(repository, "a").await, None);
    assert_eq!(stored(repository, "b").await, Some(values(7)));
}

pub(super) async fn an_extension_is_recorded_once(repository: &dyn Repository) {
    repository.create(&tag("order"), values(300)).await.unwrap();
    let extension =
        Extension { tag: tag("order"), range: Range { first: 201, last: 300 }, used_at: 1_700_000_000_000 };
    assert_eq!(repository.reconcile(&extension).await, Ok(true));
    assert_eq!(repository.reconcile(&extension).await, Ok(false));
    assert_eq!(repository.extensions(&tag("order")).await, Ok(vec![extension]));
    assert_eq!(repository.extensions(&tag("other")).await, Ok(vec![]));
    assert_eq!(stored(repository, "order").await, Some(values(300)));
}

pub(super) async fn an_extension_raises_a_max_that_went_back(repository: &dyn Repository) {
    repository.create(&tag("order"), values(100)).await.unwrap();
    let range = Range { first: 201, last: 300 };
    let lost = Extension { tag: tag("lost"), range, used_at: 5 };
    for extension in [&Extension { tag: tag("order"), ..lost.clone() }, &lost] {
        assert_eq!(repository.reconcile(extension).await, Ok(true));
        assert_eq!(stored(repository, extension.tag.as_str()).await.map(|values| values.max), Some(300));
    }
}

/// One test for each rule; `fresh` is an async function that returns an empty repository and a value that must outlive it.
macro_rules! conformance {
    ($fresh:path; $($rule:ident)*) => { $(
        #[tokio::test]
        async fn $rule() {
            let (repository, _kept) = $fresh().await;
            super::super::conformance::$rule(&repository).await;
        }
    )* };
    ($fresh:path) => {
        $crate::repository::conformance::conformance! { $fresh;
            an_empty_repository_has_no_rows
            a_row_is_made_once
            a_take_that_expects_what_was_moved_on_fails
            a_max_never_becomes_smaller
            of_takes_at_once_each_range_has_one_winner
            tags_do_not_touch_each_other
            an_extension_is_recorded_once
            an_extension_raises_a_max_that_went_back
        }
    };
}
pub(super) use conformance;
