//! Exports that are killed while rows and tables come and go: the file that is finished in the end shows one moment, and is imported.

use std::path::Path;

use prost::Message as _;
use tidemark_table::wire::plain_buffer::{KeyPart, ReceivedCell, ReceivedRow, encode_sent};
use tidemark_table::wire::proto;
use tidemark_table::{KeyValue, Value};
use tidemark_test_support::until::until;

use crate::table::raw::Request;
use crate::table::wire::{put, range};
use crate::table::world::{World, output};

/// Rows of each table; together they are far more than what is written before a kill.
const ROWS: i64 = 80;
const BYTES: usize = 200_000;
/// An export is killed when so much of it is there.
const WRITTEN: u64 = 4 << 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_export_that_is_killed_again_and_again_shows_one_moment() {
    finish(World::start().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_export_that_is_killed_again_and_again_shows_one_moment_of_postgresql() {
    finish(World::start_on_postgres().await).await;
}

async fn finish(world: World) {
    for table in ["kept", "changed", "gone"] {
        world.make_table(table).await;
        for id in 1..=ROWS {
            put_row(&world, table, KeyPart::AutoIncrement, id).await;
        }
    }
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("export.jsonl");
    let name = file.to_str().expect("UTF-8");
    kill_in_the_middle(&world, &["export", name], &file).await;
    let begun = std::fs::read(&file).expect("readable");

    // Nothing has changed: it goes on behind the lines that are there.
    kill_in_the_middle(&world, &["export", name, "--resume"], &file).await;
    let longer = std::fs::read(&file).expect("readable");
    let lines = begun.iter().rposition(|byte| *byte == b'\n').expect("lines") + 1;
    assert!(longer.starts_with(&begun[..lines]) && longer.len() > begun.len());

    for id in [1, 7, ROWS] {
        delete_row(&world, "changed", id).await;
    }
    kill_in_the_middle(&world, &["export", name, "--resume"], &file).await;
    let gone = proto::DeleteTableRequest { table_name: "gone".to_owned() };
    world.call("DeleteTable", &gone).await.message::<proto::DeleteTableResponse>();
    // As many as were deleted.
    for id in [5, 6, 8] {
        put_row(&world, "changed", KeyPart::Value(KeyValue::Integer(id)), -id).await;
    }
    let printed = output(world.command(&["export", name, "--resume"])).await;
    assert!(printed.contains("nothing of the interrupted export was kept"), "{printed}");
    let again = output(world.command(&["export", name, "--resume"])).await;
    assert!(!again.contains("interrupted"), "{again}");

    let imported = World::of_export(&file).await;
    for table in ["kept", "changed"] {
        assert!(rows(&imported, table).await == rows(&world, table).await, "{table}");
    }
    let described = proto::DescribeTableRequest { table_name: "gone".to_owned() };
    imported.call("DescribeTable", &described).await.refused(404, "OTSObjectNotExist");
    // Numbers go on, also after that of a row that was deleted.
    let next = imported.call("PutRow", &put("changed")).await.message::<proto::WriteRowResponse>();
    assert_eq!(crate::table::wire::assigned(&next.row.expect("the key")), ROWS + 1);
}

/// Runs the program until a good part of the file is written, and ends it as a power cut would.
async fn kill_in_the_middle(world: &World, arguments: &[&str], file: &Path) {
    // A resumed export cuts off the line that is not complete.
    let complete =
        |text: Vec<u8>| text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end as u64 + 1);
    let before = std::fs::read(file).map_or(0, complete);
    let mut command = world.command(arguments);
    let mut export = command.kill_on_drop(true).spawn().expect("started");
    let length = || std::fs::metadata(file).map_or(0, |file| file.len());
    until("a part is written", async || {
        // It goes on behind what was there, or begins anew.
        let now = length();
        now > before + WRITTEN || (now < before && now > WRITTEN)
    })
    .await;
    export.kill().await.expect("killed");
    let text = std::fs::read(file).expect("readable");
    assert!(!text.windows(15).any(|part| part == b"\"type\":\"footer\""), "it was faster than the kill");
}

async fn put_row(world: &World, table: &str, id: KeyPart, n: i64) {
    let cell = |name: &str, value| ReceivedCell {
        name: name.to_owned(),
        value: Some(value),
        operation: None,
        timestamp: None,
    };
    let bytes = vec![n.to_le_bytes()[0]; BYTES];
    let row = ReceivedRow {
        key: key(id),
        cells: vec![cell("n", Value::Integer(n)), cell("bytes", Value::Blob(bytes))],
        delete: false,
    };
    let request = proto::PutRowRequest { row: Some(encode_sent(&row)), ..put(table) };
    world.call("PutRow", &request).await.message::<proto::WriteRowResponse>();
}

async fn delete_row(world: &World, table: &str, id: i64) {
    let key = key(KeyPart::Value(KeyValue::Integer(id)));
    let row = ReceivedRow { key, cells: Vec::new(), delete: true };
    let request = proto::DeleteRowRequest {
        table_name: table.to_owned(),
        primary_key: Some(encode_sent(&row)),
        condition: put(table).condition,
        ..proto::DeleteRowRequest::default()
    };
    world.call("DeleteRow", &request).await.message::<proto::WriteRowResponse>();
}

fn key(id: KeyPart) -> Vec<(String, KeyPart)> {
    let group = KeyPart::Value(KeyValue::String("a".to_owned()));
    vec![("g".to_owned(), group), ("id".to_owned(), id)]
}

/// All rows with their timestamps, as pages on the wire.
async fn rows(world: &World, table: &str) -> Vec<Vec<u8>> {
    let (mut request, mut pages) = (range(table), Vec::new());
    loop {
        let request_now = Request::new(&world.key, "GetRange", request.encode_to_vec()).signed(&world.key);
        let page: proto::GetRangeResponse = world.send(&request_now).await.message();
        pages.push(page.rows);
        match page.next_start_primary_key {
            Some(next) => request.inclusive_start_primary_key = Some(next),
            None => return pages,
        }
    }
}
