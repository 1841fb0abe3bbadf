//! The index of words: the contract, and two servers that index the same rows.

use tidemark_test_support::servers::postgres::durable_database;
use tokio::join;

use super::*;
use crate::domain::Uid;
use crate::store::search::segment::{Builder, Making};
use crate::store::search::{SearchIndex as _, conformance};

fn segment(number: u64, ids: (u64, u64)) -> crate::store::search::NewSegment {
    Builder::default().finish(Making { build: 1, number, ids, level: 0 })
}

#[tokio::test]
async fn it_keeps_the_contract() {
    let index = PgSearch::new(opened(&durable_database().await).await);
    conformance::run(&index).await;
}

#[tokio::test]
async fn of_two_servers_one_puts_a_segment_and_one_merges() {
    let url = durable_database().await;
    let (one, other) = (PgSearch::new(opened(&url).await), PgSearch::new(opened(&url).await));
    for n in 0..20 {
        let uid = Uid(10_001 + n);
        let put = join!(
            one.replace(uid, &[], Some(segment(1, (1, 9)))),
            other.replace(uid, &[], Some(segment(2, (1, 12))))
        );
        let (first, second) = (put.0.expect("asked"), put.1.expect("asked"));
        assert!(first != second, "one of both: {first} {second}");
        let old = [if first { 1 } else { 2 }];
        let merged = join!(
            one.replace(uid, &old, Some(segment(3, (1, 9)))),
            other.replace(uid, &old, Some(segment(4, (1, 9))))
        );
        assert!(merged.0.expect("asked") != merged.1.expect("asked"));
        assert_eq!(one.segments(uid).await.expect("asked").len(), 1);
    }
}
