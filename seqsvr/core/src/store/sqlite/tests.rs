//! The file-backed store, by the suite of all stores and by what only a file can do: reopen, be shared, be changed.

use std::ops::RangeInclusive;

use tempfile::TempDir;

use super::*;
use crate::store::MAX_CEILING;
use crate::store::conformance::{LAYOUT, to};

const FIRST: Owner = Owner { epoch: Epoch { term: 0, version: 1 }, incarnation: u64::MAX };
const SECOND: Owner = Owner { epoch: Epoch { term: 0, version: 2 }, incarnation: 7 };

fn all() -> RangeInclusive<SectionId> {
    SectionId::new(0)..=SectionId::new(42_949)
}

async fn fresh() -> (SqliteSections, TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let store = SqliteSections::open(directory.path().join("sections.db")).await.unwrap();
    (store, directory)
}

super::super::conformance::conformance!(fresh);

#[tokio::test]
async fn ceilings_claims_and_layout_outlive_the_process() {
    let (store, directory) = fresh().await;
    store.claim(&[all()], FIRST, LAYOUT).await.unwrap();
    assert_eq!(
        store.raise(FIRST, &[to(0, 10_000), to(42_949, MAX_CEILING)]).await,
        [Ok(10_000), Ok(MAX_CEILING)]
    );
    drop(store);
    let store = SqliteSections::open(directory.path().join("sections.db")).await.unwrap();
    assert_eq!(store.newest_epoch().await.unwrap(), FIRST.epoch);
    let other = Layout { step: 20_000, ..LAYOUT };
    assert!(matches!(store.claim(&[all()], SECOND, other).await, Err(StoreError::Layout { .. })));
    let claimed = store.claim(&[all()], SECOND, LAYOUT).await.unwrap();
    assert_eq!(claimed.ceilings, [to(0, 10_000), to(42_949, MAX_CEILING)]);
}

#[tokio::test]
async fn raise_all_lifts_every_section_stored_or_not() {
    let (store, _directory) = fresh().await;
    store.raise_all(50_000).await.unwrap();
    store.raise_all(40_000).await.unwrap();
    let claimed = store.claim(&[all()], FIRST, LAYOUT).await.unwrap();
    assert_eq!(claimed, Claimed { floor: 50_000, ..Claimed::default() });
    let answers = store.raise(FIRST, &[to(1, 49_999), to(2, 50_000), to(3, 60_000)]).await;
    assert_eq!(answers, [Err(RaiseError::Smaller { stored: 50_000 }), Ok(50_000), Ok(60_000)]);
    store.raise_all(55_000).await.unwrap();
    let answers = store.raise(FIRST, &[to(2, 52_000), to(3, 59_000)]).await;
    let stored = |stored| Err(RaiseError::Smaller { stored });
    assert_eq!(answers, [stored(55_000), stored(60_000)]);
}

#[tokio::test]
async fn what_sqlite_cannot_keep_is_refused() {
    let (store, _directory) = fresh().await;
    let error = store.raise_all(MAX_CEILING + 1).await.unwrap_err().to_string();
    assert!(error.contains("above 9223372036854775807"), "{error}");
    store.claim(&[all()], FIRST, LAYOUT).await.unwrap();
    let answers = store.raise(FIRST, &[to(0, u64::MAX)]).await;
    assert!(matches!(answers[..], [Err(RaiseError::Unavailable(_))]), "{answers:?}");
    assert_eq!(store.raise(FIRST, &[to(0, 1)]).await, [Ok(1)], "the store goes on afterwards");
}

#[tokio::test]
async fn a_second_opener_is_turned_away_until_the_first_has_closed() {
    let (store, directory) = fresh().await;
    let path = directory.path().join("sections.db");
    let error = SqliteSections::open(&path).await.unwrap_err().to_string();
    assert!(error.contains("another process"), "{error}");
    store.close().await.unwrap();
    SqliteSections::open(&path).await.unwrap();
}

#[tokio::test]
async fn a_closed_store_opens_itself_again_when_it_is_used() {
    let (store, _directory) = fresh().await;
    store.claim(&[all()], FIRST, LAYOUT).await.unwrap();
    store.close().await.unwrap();
    assert_eq!(store.raise(FIRST, &[to(0, 10_000)]).await, [Ok(10_000)]);
}

#[tokio::test]
async fn a_file_of_an_unknown_version_is_refused() {
    let (store, directory) = fresh().await;
    store.close().await.unwrap();
    let path = directory.path().join("sections.db");
    let mut raw = SqliteConnection::connect(&format!("sqlite:{}", path.display())).await.unwrap();
    sqlx::query("PRAGMA user_version = 2").execute(&mut raw).await.unwrap();
    raw.close().await.unwrap();
    let error = SqliteSections::open(&path).await.unwrap_err().to_string();
    assert!(error.contains("version 2, which this program does not know"), "{error}");
}

#[tokio::test]
async fn a_damaged_file_is_named_and_left_alone() {
    let (store, directory) = fresh().await;
    store.claim(&[all()], FIRST, LAYOUT).await.unwrap();
    store.close().await.unwrap();
    let path = directory.path().join("sections.db");
    let sound = std::fs::read(&path).unwrap();
    let damages: [fn(&mut Vec<u8>); 2] = [|bytes| bytes[..16].fill(b'x'), |bytes| bytes[100..].fill(0xff)];
    for damage in damages {
        let mut bytes = sound.clone();
        damage(&mut bytes);
        std::fs::write(&path, &bytes).unwrap();
        let error = SqliteSections::open(&path).await.unwrap_err().to_string();
        assert!(error.contains("sections.db") && error.contains("it is damaged: restore a copy"), "{error}");
        assert!(!error.contains('\n'), "{error}");
        assert_eq!(std::fs::read(&path).unwrap(), bytes);
    }
}
