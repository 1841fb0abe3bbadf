//! Tables in the export of a build before 0.1.0, `../support/before`, which also has what that build told of them.

use std::path::Path;

use serde_json::Value;
use tidemark_table::KeyValue;
use tidemark_table::wire::plain_buffer::{KeyPart, ReceivedRow, encode_sent};
use tidemark_table::wire::proto;
use tidemark_test_support::servers::postgres::durable_database;

use crate::table::packages::scripts;
use crate::table::python::python;
use crate::table::wire::{assigned, put};
use crate::table::world::{World, output};

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
        let value = KeyPart::Value(KeyValue::String(group.to_owned()));
        let key = vec![("g".into(), value), ("id".into(), KeyPart::AutoIncrement)];
        let row = encode_sent(&ReceivedRow { key, cells: Vec::new(), delete: false });
        let request = proto::PutRowRequest { row: Some(row), ..put("assigned") };
        let done: proto::WriteRowResponse = world.call("PutRow", &request).await.message();
        assert_eq!(assigned(&done.row.expect("the key")), next, "{group}");
    }
}

/// All tables and rows, as `tell.py` tells them.
async fn told(world: &World) -> Value {
    let command = python(&scripts().join("tell.py"), world).await;
    serde_json::from_str(&output(command).await).expect("JSON")
}
