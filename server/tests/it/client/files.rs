//! Files by the Rust client.

use tidemark_client::{Draft, Http, RangeQuery, Recipient};

use crate::support::TestApp;

#[tokio::test]
async fn a_file_is_uploaded_named_and_read() {
    let app = TestApp::start().await;
    let http = Http::new(&format!("http://{}", app.address)).expect("an address");
    let ann = http.sign_up("ann", "correct horse battery").await.expect("signed up");
    let http = http.with_token(&ann.token);
    let bytes: Vec<u8> = (0..9_000_000_u32).map(|n| (n % 241) as u8).collect();
    let id = http.upload("tide.bin", &bytes).await.expect("uploaded");
    let draft = Draft::text(Recipient::User(ann.uid), "").with_files(&[id]);
    let sent = http.send(&draft).await.expect("sent");
    let rows = http.range(&RangeQuery::after(0)).await.expect("a page").rows;
    let [file] = &rows[0].files()[..] else { panic!("{rows:?}") };
    assert_eq!((file.id, &*file.name, file.size), (id, "tide.bin", 9_000_000));
    assert!(http.file(sent.message_id, id).await.expect("read") == bytes);
    let refused = http.upload("../x", b"x").await.expect_err("refused");
    assert_eq!(refused.code(), Some("bad_file_name"));
    assert_eq!(
        http.preview(sent.message_id, id, "small").await.expect_err("none").code(),
        Some("unknown_file")
    );
}
