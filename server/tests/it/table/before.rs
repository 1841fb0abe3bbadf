//! Tables in the export of a build before 0.1.0, `../support/before`, which also has what that build told of them.

use std::path::Path;

use serde_json::Value;
use tidemark_test_support::servers::postgres::durable_database;

use crate::table::tell::{put_next, told};
use crate::table::world::World;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_of_an_export_of_before_go_on_unharmed() {
    go_on(&[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_of_an_export_of_before_go_on_unharmed_on_postgres() {
    go_on(&[("TIDEMARK_DATABASE_URL", &durable_database().await)]).await;
}

/// All is there as it was told, and numbers go on.
async fn go_on(settings: &[(&'static str, &str)]) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/before");
    let text = std::fs::read_to_string(folder.join("tables.json")).expect("readable");
    let before: Value = serde_json::from_str(&text).expect("JSON");
    let mut world = World::of_export_with(&folder.join("archive.jsonl"), settings).await;
    // Keys are not exported.
    world.key = world.make_key(&["--instance", "fixture"]).await;
    assert_eq!(told(&world).await, before);
    for (group, next) in [("ann", 7), ("bob", 2), ("cat", 2), ("dan", 2), ("new", 1)] {
        assert_eq!(put_next(&world, group).await, next, "{group}");
    }
}
