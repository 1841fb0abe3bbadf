//! The SDK for Node.js: the tests and the samples that come with it, as they are.

use std::path::Path;

use tokio::process::Command;

use crate::table::packages::{NODE, scripts};
use crate::table::world::{World, output};

async fn node(world: &World, arguments: &[&str], folder: &Path) -> String {
    let mut node = Command::new("node");
    // The package makes buffers in a way that Node.js warns of.
    node.arg("--no-deprecation").args(arguments).current_dir(folder).envs(world.environment());
    output(node).await
}

async fn package() -> std::path::PathBuf {
    let folder = tokio::task::spawn_blocking(|| NODE.clone()).await.expect("installed");
    folder.join("node_modules/tablestore")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_tests_of_the_package_pass() {
    let (package, world) = (package().await, World::start().await);
    let tests = [
        "test/table.test.js",
        "test/data_opration.test.js",
        "test/long.test.js",
        "test/protocol/plain_buffer.test.js",
    ];
    let mocha = ["../mocha/bin/_mocha", "--reporter", "tap"];
    let printed = node(&world, &[&mocha[..], &tests].concat(), &package).await;
    let passed = printed.lines().filter(|line| line.starts_with("ok ")).count();
    assert!(passed >= 5 && printed.contains("# fail 0"), "{printed}");
    // One of them only prints what fails.
    assert!(!printed.lines().any(|line| line.starts_with("error:")), "{printed}");
}

/// Each sample, and what it prints when it did what it shows. They are run in this order: later ones read what earlier ones wrote.
const SAMPLES: &[(&str, &[&str])] = &[
    ("putRow.js", &["success:", "primaryKey"]),
    ("getRow.js", &["success:", "attributes: [ [Object]"]),
    ("updateRow.js", &["success:"]),
    ("batchWriteRow.js", &["success:"]),
    ("batchGetRow.js", &["success:", "\"isOk\": true"]),
    ("getRange.js", &["nextStartPrimaryKey", "20013"]),
    ("updateTable.js", &["success:", "maxVersions: 10"]),
    ("describeTable.js", &["success:", "sampleTable"]),
    ("listTable.js", &["success:", "sampleTable"]),
    ("multiVersion.js", &[]),
    ("primarykey.js", &["create table success", "put row success", "get row success"]),
    ("AutoIncrement.js", &[]),
    ("increment.js", &["success:", "\"increment\""]),
    ("deleteRow.js", &["success:"]),
    ("listSearchIndex.js", &["success:"]),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_samples_of_the_package_do_what_they_show() {
    let (package, world) = (package().await, World::start().await);
    let samples = package.join("samples");
    // Theirs asks for a stream besides, and is refused: nothing that is not supported is accepted and ignored.
    let refused = node(&world, &["createTable.js"], &samples).await;
    assert!(refused.contains("error:") && refused.contains("OTSUnsupportedOperation"), "{refused}");
    let module = package.to_str().expect("UTF-8");
    let script = scripts().join("tables_of_the_samples.js");
    node(&world, &[script.to_str().expect("UTF-8"), module], &samples).await;
    for (sample, printed) in SAMPLES {
        let found = node(&world, &[sample], &samples).await;
        assert!(!found.contains("error:"), "{sample}: {found}");
        for text in *printed {
            assert!(found.contains(text), "{sample} does not print {text}: {found}");
        }
    }
    // Its condition names columns that the row does not have; missing ones pass.
    node(&world, &["putRow.js"], &samples).await;
    let updated = node(&world, &["conditionUpdateRow.js"], &samples).await;
    assert!(updated.contains("success:"), "{updated}");
    // It ends with 1 by design.
    let mut ends = Command::new("node");
    ends.args(["--no-deprecation", "domainError.js"]).current_dir(&samples).envs(world.environment());
    let ended = ends.output().await.expect("run");
    assert!(String::from_utf8_lossy(&ended.stdout).contains("sampleTable"), "{ended:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn columns_are_read_by_pages_and_increments_are_told() {
    let (package, world) = (package().await, World::start().await);
    let module = package.to_str().expect("UTF-8");
    let script = scripts().join("columns.js");
    node(&world, &[script.to_str().expect("UTF-8"), module], &package).await;
}
