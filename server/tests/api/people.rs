//! `/me`, `/users`.

use serde_json::json;

use crate::support::TestApp;

#[tokio::test]
async fn people_are_found_by_the_beginning_of_their_name() {
    let app = TestApp::start_with(|config| config.limits.search_results = 2).await;
    let ann = app.sign_up("Ann").await;
    for name in ["anna", "Annika", "bob"] {
        app.sign_up(name).await;
    }
    let found = app.get(&ann, "/api/v1/users?name=aN").await.ok(200);
    assert_eq!(found, json!([{"uid": 10_001, "name": "Ann"}, {"uid": 10_002, "name": "anna"}]));
    assert_eq!(app.get(&ann, "/api/v1/users?name=%25").await.ok(200), json!([]));
    assert_eq!(app.get(&ann, "/api/v1/users?name=").await.ok(200), json!([]), "nothing asked, nobody told");
    assert_eq!(app.get(&ann, "/api/v1/users").await.refused(400), "invalid_query");
}

#[tokio::test]
async fn a_person_is_shown_by_uid() {
    let app = TestApp::start().await;
    let ann = app.sign_up("Ann").await;
    let shown = app.get(&ann, "/api/v1/users/10001").await.ok(200);
    assert_eq!(shown, json!({"uid": 10_001, "name": "Ann"}));
    assert_eq!(app.get(&ann, "/api/v1/users/77").await.refused(404), "unknown_user");
    assert_eq!(app.get(&ann, "/api/v1/users/ann").await.refused(400), "invalid_query");
}
