//! Tables that earlier versions wrote, opened by this one. `../api/fixtures/README.md` says how a fixture is made.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tidemark_table::KeyValue;
use tidemark_table::wire::plain_buffer::{KeyPart, ReceivedRow, encode_sent};
use tidemark_table::wire::proto;

use crate::fixtures::{fixtures, lay_out};
use crate::python::python;
use crate::wire::{assigned, put};
use crate::world::{Key, World, output};

/// The fixtures below `folder` that have tables.
fn with_tables(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("readable").map(|entry| entry.expect("readable").path());
    let mut folders: Vec<PathBuf> = entries.filter(|path| path.join("tables.json").is_file()).collect();
    folders.sort();
    assert!(!folders.is_empty(), "make one as the README says");
    folders
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_of_earlier_versions_go_on_unharmed() {
    for folder in with_tables(&fixtures()) {
        let data = tempfile::tempdir().expect("a folder");
        lay_out(&folder, data.path());
        go_on(&folder, World::over(data, &[]).await).await;
    }
}

/// All is there as it was told before the kill, and numbers go on.
async fn go_on(folder: &Path, mut world: World) {
    println!("{}", folder.display());
    let text = fs::read_to_string(folder.join("tables.json")).expect("readable");
    let before: Value = serde_json::from_str(&text).expect("JSON");
    let key = |name: &str| before["key"][name].as_str().expect(name).to_owned();
    world.key = Key { id: key("id"), secret: key("secret"), instance: key("instance") };
    assert_eq!(told(&world).await, before);
    world = world.stop().await.start_again().await;
    assert_eq!(told(&world).await, before, "after everything was flushed");
    for (group, next) in [("ann", 7), ("bob", 2), ("cat", 2), ("dan", 2), ("new", 1)] {
        let value = KeyPart::Value(KeyValue::String(group.to_owned()));
        let key = vec![("g".into(), value), ("id".into(), KeyPart::AutoIncrement)];
        let row = encode_sent(&ReceivedRow { key, cells: Vec::new(), delete: false });
        let request = proto::PutRowRequest { row: Some(row), ..put("assigned") };
        let done: proto::WriteRowResponse = world.call("PutRow", &request).await.message();
        assert_eq!(assigned(&done.row.expect("the key")), next, "{group}");
    }
}

/// What there is, as `tables.py` tells it.
async fn told(world: &World) -> Value {
    let mut command = python(&fixtures().join("tables.py"), world).await;
    command.arg("tell");
    serde_json::from_str(&output(command).await).expect("JSON")
}
