//! The store in PostgreSQL, by the suite of all stores and by what only a server can do: be used by several at a time.

use sqlx::{AssertSqlSafe, Connection as _, PgConnection};

use super::*;
use crate::store::MAX_CEILING;
use crate::store::conformance::{LAYOUT, owner, range, to};
use crate::store::message::Earlier;
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
async fn a_schema_of_the_first_version_keeps_its_ceilings_and_claims() {
    let schema = fresh_schema();
    let mut raw = PgConnection::connect(url()).await.unwrap();
    let make =
        format!("CREATE SCHEMA {schema}; SET search_path TO {schema}; {}", include_str!("version_1.sql"));
    sqlx::raw_sql(AssertSqlSafe(make)).execute(&mut raw).await.unwrap();
    raw.close().await.unwrap();

    let store = PostgresSections::open(url(), &schema).await.unwrap();
    let (first, second, third) = (owner(1, 7), owner(2, u64::MAX), owner(3, 8));
    assert_eq!(store.newest_epoch().await.unwrap(), second.epoch);
    assert!(store.raise(first, &[to(0, 20_000)]).await[0].is_err(), "it was taken over");
    let claimed = store.claim(&[range(0, 9)], third, LAYOUT).await.unwrap();
    assert_eq!(claimed.ceilings, [to(0, 10_000), to(9, MAX_CEILING)]);
    let held = |sections, owner| Earlier { sections, owner, released: false };
    assert_eq!(claimed.earlier, [held(range(0, 4), second), held(range(5, 9), first)]);
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
async fn a_wrong_name_or_a_newer_schema_is_refused() {
    let error = PostgresSections::open(url(), "Set 1; --").await.unwrap_err().to_string();
    assert!(error.contains("no name of a schema"), "{error}");
    let schema = fresh_schema();
    let store = PostgresSections::open(url(), &schema).await.unwrap();
    sqlx::query("UPDATE schema_version SET version = 2").execute(&store.pool).await.unwrap();
    store.close().await;
    let error = PostgresSections::open(url(), &schema).await.unwrap_err().to_string();
    assert!(error.contains("newer program (version 2)"), "{error}");
}
