//! `tidemark backup --check` of what PostgreSQL's own tools have made.

use std::fs;

use tidemark_test_support::servers::postgres::Server;

use crate::api::transfer::{text, tidemark};

#[tokio::test]
async fn a_base_backup_is_checked_by_postgresqls_own_tool_and_its_age_told() {
    let server = Server::start();
    let copy = server.standby("");
    let place = tempfile::tempdir().expect("a directory");
    let made = copy.folder().join("data");
    let check = async || tidemark(place.path(), &["backup", "--check", text(&made)]).await;
    let (code, said) = check().await;
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("can be restored: the moment ") && said.contains(" 0 hours "), "{said}");
    let at = ["backup", "--check", text(&made), "--at", "2026-11-28T23:18:30Z"];
    let (code, said) = tidemark(place.path(), &at).await;
    assert!(code == 2 && said.contains("--at"), "{said}");

    let file = made.join("global/pg_control");
    let mut bytes = fs::read(&file).expect("readable");
    bytes[100] ^= 1;
    fs::write(&file, bytes).expect("written");
    let (code, said) = check().await;
    assert!(code == 1 && said.contains("global/pg_control") && said.contains("make another one"), "{said}");
    fs::remove_file(file).expect("removed");
    let (code, said) = check().await;
    assert!(code == 1 && said.contains("global/pg_control"), "{said}");
}
