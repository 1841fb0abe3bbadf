//! Search by the Rust client.

use std::path::Path;

use tidemark_client::{Conversation, Draft, Kind, Recipient, SearchQuery};
use tidemark_trials::server::Server;

#[tokio::test]
async fn a_client_searches_page_by_page() {
    let data = tempfile::tempdir().expect("a folder");
    let binary = Path::new(env!("CARGO_BIN_EXE_tidemark"));
    let server = Server::start(binary, data.path()).await.expect("starts");
    let http = server.http().expect("an address");
    let ann = http.sign_up("ann", "a long enough password").await.expect("signed up");
    let http = http.with_token(&ann.token);
    for text in ["Low tide", "去北京", "High tide"] {
        http.send(&Draft::text(Recipient::User(ann.uid), text)).await.expect("sent");
    }
    let mut query = SearchQuery {
        words: Some("TID".to_owned()),
        conversation: Some(Conversation::User(ann.uid)),
        sender: Some(ann.uid),
        from: Some(0),
        to: Some(9_000_000_000_000),
        limit: Some(1),
        before: None,
    };
    let mut marks = Vec::new();
    loop {
        let page = http.search(&query).await.expect("found");
        assert!(page.complete);
        marks.extend(page.hits.into_iter().map(|hit| (hit.row.kind, hit.marks)));
        query.before = page.next_before;
        if query.before.is_none() {
            break;
        }
    }
    assert_eq!(marks, [(Kind::Message, vec![(5, 8)]), (Kind::Message, vec![(4, 7)])]);
    let refused = http.search(&SearchQuery::default()).await.expect_err("refused");
    assert!(refused.to_string().contains("write a word"), "{refused}");
    server.stop().await.expect("stopped");
}
