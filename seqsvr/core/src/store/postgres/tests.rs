//! The store in PostgreSQL, by the suite of all stores and by what only a server can do: be used by several at a time.

use super::*;
use crate::store::conformance::{LAYOUT, owner, range, to};
use tidemark_test_support::servers::postgres::{fresh_schema, url};

async fn fresh() -> (PostgresSections, ()) {
    (PostgresSections::open(url(), &fresh_schema()).await.unwrap(), ())
}

super::super::conformance::conformance!(fresh);

#[tokio::test]
async fn two_processes_see_each_other() {
    let schema = fresh_schema();
    let (one, other) =
        tokio::join!(PostgresSections::open(url(), &schema), PostgresSections::open(url(), &schema));
    let (one, other) = (one.unwrap(), other.unwrap());
    one.claim(&[range(0, 9)], owner(1, 1), LAYOUT).await.unwrap();
    assert_eq!(one.raise(owner(1, 1), &[to(3, 10_000)]).await, [Ok(10_000)]);
    assert_eq!(other.claim(&[range(0, 4)], owner(2, 2), LAYOUT).await.unwrap().ceilings, [to(3, 10_000)]);
    let lost = Err(RaiseError::NotOwner { newest: owner(2, 2).epoch });
    assert_eq!(one.raise(owner(1, 1), &[to(3, 20_000), to(7, 20_000)]).await, [lost, Ok(20_000)]);
}

#[tokio::test]
async fn an_allocator_without_a_lease_is_refused() {
    let (store, ()) = fresh().await;
    let refused =
        crate::alloc::Embedded::open(std::sync::Arc::new(store), crate::Options::default()).await.err();
    assert!(matches!(refused, Some(crate::OpenError::Shared)), "{refused:?}");
}

#[tokio::test]
async fn what_cannot_be_kept_is_refused() {
    let (store, ()) = fresh().await;
    store.claim(&[range(0, 9)], owner(1, 1), LAYOUT).await.unwrap();
    let answers = store.raise(owner(1, 1), &[to(0, u64::MAX)]).await;
    assert!(matches!(answers[..], [Err(RaiseError::Unavailable(_))]), "{answers:?}");
    assert_eq!(store.raise(owner(1, 1), &[to(0, 1)]).await, [Ok(1)], "the store goes on afterwards");
}

#[tokio::test]
async fn a_wrong_name_or_an_unknown_schema_is_refused() {
    let error = PostgresSections::open(url(), "Set 1; --").await.unwrap_err().to_string();
    assert!(error.contains("no name of a schema"), "{error}");
    let schema = fresh_schema();
    let store = PostgresSections::open(url(), &schema).await.unwrap();
    sqlx::query("UPDATE schema_version SET version = 2").execute(&store.pool).await.unwrap();
    store.close().await;
    let error = PostgresSections::open(url(), &schema).await.unwrap_err().to_string();
    assert!(error.contains("version 2, which this program does not know"), "{error}");
}
