//! Files of messages in backups: a restore has those that its rows name, also such as are gone from the installation by then.

use std::path::Path;

use tidemark_client::{Draft, Http, RangeQuery, Recipient};
use tidemark_test_support::until::until;

use crate::sqlite::operation::{program, run, serve_with, terminate};

async fn serve(place: &Path, data: &str) -> (tokio::process::Child, String) {
    let mut program = program(place);
    program.args(["serve", "--data-dir", data]).env("TIDEMARK_ACCOUNTS__PASSWORD_MEMORY_KIB", "8");
    serve_with(program).await
}

#[tokio::test]
async fn a_restore_brings_back_the_files_that_its_rows_name() {
    let place = tempfile::tempdir().expect("a directory");
    let (child, address) = serve(place.path(), "data").await;
    let http = Http::new(&format!("http://{address}")).expect("an address");
    let ann = http.sign_up("ann", "correct horse battery").await.expect("signed up");
    let http = http.with_token(&ann.token);
    let file = http.upload("tide.txt", b"low tide").await.expect("uploaded");
    let draft = Draft::text(Recipient::User(ann.uid), "").with_files(&[file]);
    let row = http.send(&draft).await.expect("sent").message_id;
    let (code, said, errors) = run(place.path(), &["backup", "backups"]).await;
    assert_eq!(code, 0, "{errors}");
    assert!(said.contains("files: 0.0 MiB are new"), "{said}");

    // It is gone from the installation, and no later backup reads it there.
    std::fs::remove_dir_all(place.path().join("data/files")).expect("removed");
    until("it cannot be read", async || http.file(row, file).await.is_err()).await;
    let (code, _, errors) = run(place.path(), &["backup", "backups"]).await;
    assert_eq!(code, 0, "{errors}");
    assert_eq!(terminate(child).await, 0);

    let (code, said, errors) = run(place.path(), &["restore", "backups", "--data-dir", "new"]).await;
    assert_eq!(code, 0, "{errors}");
    assert!(said.contains("MiB of files are back") && !said.contains("missing"), "{said}");
    let (child, address) = serve(place.path(), "new").await;
    let http = Http::new(&format!("http://{address}")).expect("an address");
    let ann = http.log_in("ann", "correct horse battery").await.expect("logged in");
    let http = http.with_token(&ann.token);
    let rows = http.range(&RangeQuery::after(0)).await.expect("a page").rows;
    let named = rows.iter().find(|row| !row.files().is_empty()).expect("a row with a file");
    assert_eq!(http.file(named.message_id, file).await.expect("read"), b"low tide");
    assert_eq!(terminate(child).await, 0);
}
