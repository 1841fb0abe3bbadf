//! The model beside each store.

use std::sync::Arc;

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use tidemark_test_support::servers::postgres::durable_database;
use uuid::Uuid;

use super::rules::Model;
use super::{DAY, events, live};
use crate::domain::HistoryId;
use crate::store::MessageStore;
use crate::store::memory::MemoryTables;
use crate::store::sqlite::{Db, SqliteOptions, SqliteStore};
use crate::table::tests::postgres;

fn block_on(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(test);
}

fn models() -> impl Strategy<Value = Model> {
    let ttl = prop_oneof![Just(None), Just(Some(DAY))];
    (any::<bool>(), 1..4_usize, ttl)
        .prop_map(|(is_numbered, versions, ttl)| Model::new(is_numbered, versions, ttl))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]
    #[test]
    fn tables_in_memory_are_as_the_model_says(model in models(), events in events()) {
        block_on(live(Arc::new(MemoryTables::new()), "test", model, events));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn tables_on_sqlite_are_as_the_model_says(model in models(), events in events()) {
        block_on(async {
            let directory = tempfile::tempdir().expect("a directory");
            let db = Db::open(&directory.path().join("tidemark.db")).await.expect("a database");
            let history = HistoryId(Uuid::from_u128(1));
            let store = SqliteStore::open(db, SqliteOptions::default(), history).await.expect("a store");
            let store = Arc::new(store);
            live(Arc::clone(&store) as Arc<_>, "test", model, events).await;
            MessageStore::close(&*store).await;
        });
    }
}

/// Cases of chance on one database, each with an instance of its own.
#[test]
fn tables_on_postgresql_are_as_the_model_says() {
    let cases = (models(), events());
    let mut runner = TestRunner::new(ProptestConfig::default());
    block_on(async {
        let store = postgres::open(&durable_database().await).await;
        for case in 0..24 {
            let (model, events) = cases.new_tree(&mut runner).expect("a case").current();
            live(Arc::clone(&store) as Arc<_>, &format!("case{case}"), model, events).await;
        }
    });
}
