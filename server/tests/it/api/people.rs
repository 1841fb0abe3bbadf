//! `/me`, `/users`.

use serde_json::json;

use crate::support::{Person, TestApp, client_id};

/// The names that `person` finds with `part`.
async fn found(app: &TestApp, person: &Person, part: &str) -> Vec<String> {
    let found = app.get(person, &format!("/api/v1/users?name={part}")).await.ok(200);
    let names =
        found.as_array().expect("people").iter().map(|one| one["name"].as_str().expect("a name").to_owned());
    names.collect()
}

#[tokio::test]
async fn people_are_found_by_any_part_of_their_name() {
    let app = TestApp::start_with(|config| config.limits.search_results = 3).await;
    let ann = app.sign_up("Ann").await;
    for name in ["anna", "Joanna", "bob", "X", "Annika", "王小明"] {
        app.sign_up(name).await;
    }
    let shown = app.get(&ann, "/api/v1/users?name=aN").await.ok(200);
    assert_eq!(
        shown[1],
        json!({"uid": 10_002, "name": "anna"}),
        "what is begun with it comes first, by name"
    );
    assert_eq!(
        found(&app, &ann, "ANN").await,
        ["Ann", "anna", "Annika"],
        "no more than are shown, the whole name first"
    );
    assert_eq!(found(&app, &ann, "NNA").await, ["anna", "Joanna"]);
    assert_eq!(found(&app, &ann, "%E5%B0%8F%E6%98%8E").await, ["王小明"]);
    assert_eq!(found(&app, &ann, "x").await, ["X"], "one character finds the whole name");
    assert_eq!(found(&app, &ann, "b").await, Vec::<String>::new(), "and no part");
    for nobody in ["%25", "", "%20", "%00%00", "a%25"] {
        assert_eq!(found(&app, &ann, nobody).await, Vec::<String>::new(), "{nobody:?}");
    }
    assert_eq!(app.get(&ann, "/api/v1/users").await.refused(400), "invalid_query");
}

#[tokio::test]
async fn who_wants_to_be_found_by_the_whole_name_is_found_so_and_by_friends() {
    let app = TestApp::start().await;
    let [ann, bob, cat] = [app.sign_up("Ann").await, app.sign_up("Bobby").await, app.sign_up("Cat").await];
    let privacy = json!({"client_id": client_id(1), "value": {"found_by": "name"}});
    app.put(&bob, "/api/v1/settings/privacy", privacy).await.ok(201);
    assert_eq!(found(&app, &ann, "obb").await, Vec::<String>::new());
    assert_eq!(found(&app, &ann, "bob").await, Vec::<String>::new());
    assert_eq!(found(&app, &ann, "BOBBY").await, ["Bobby"]);
    assert_eq!(found(&app, &bob, "obb").await, ["Bobby"], "oneself");
    for (one, other) in [(&cat, &bob), (&bob, &cat)] {
        let wish = json!({"client_id": client_id(2), "wanted": true});
        app.put(one, &format!("/api/v1/friends/{}", other.uid), wish).await.ok(201);
    }
    assert_eq!(found(&app, &cat, "obb").await, ["Bobby"], "a friend");
    assert_eq!(found(&app, &ann, "obb").await, Vec::<String>::new());
}

#[tokio::test]
async fn nobody_lists_all_people_within_a_short_time() {
    let app = TestApp::start_with(|config| {
        config.limits.searches_per_account_per_minute = 3;
        config.limits.look_ups_per_account_per_minute = 4;
    })
    .await;
    let [ann, bob] = [app.sign_up("Ann").await, app.sign_up("Bob").await];
    for _ in 0..3 {
        assert_eq!(found(&app, &ann, "bo").await, ["Bob"]);
    }
    let refused = app.get(&ann, "/api/v1/users?name=bo").await;
    assert!(refused.header("retry-after").parse::<u32>().is_ok_and(|seconds| seconds > 0));
    assert_eq!(refused.refused(429), "rate_limited");
    assert_eq!(found(&app, &bob, "an").await, ["Ann"], "each has a rate of his own");
    app.get(&ann, "/api/v1/profiles?uids=10001,10002,10003").await.ok(200);
    app.get(&ann, "/api/v1/users/10002").await.ok(200);
    assert_eq!(app.get(&ann, "/api/v1/users/10002").await.refused(429), "rate_limited");
    assert_eq!(app.get(&ann, "/api/v1/profiles?uids=10002").await.refused(429), "rate_limited");
}

#[tokio::test]
async fn what_is_seen_of_several_people_is_answered_at_once() {
    let app = TestApp::start().await;
    let [ann, bob] = [app.sign_up("Ann").await, app.sign_up("Bob").await];
    let profile = json!({"client_id": client_id(1), "value": {"hue": 210, "about": "at sea"}});
    app.put(&bob, "/api/v1/settings/profile", profile).await.ok(201);
    let shown = app.get(&ann, "/api/v1/profiles?uids=10002,77,10001").await.ok(200);
    let bob = json!({"uid": 10_002, "name": "Bob", "hue": 210, "about": "at sea"});
    assert_eq!(shown, json!([bob, {"uid": 10_001, "name": "Ann"}]));
    let many = vec!["10001"; 101].join(",");
    for bad in ["", "a", "10001,", "-1", &many] {
        assert_eq!(
            app.get(&ann, &format!("/api/v1/profiles?uids={bad}")).await.refused(400),
            "invalid_query"
        );
    }
    assert_eq!(app.get(&ann, "/api/v1/profiles").await.refused(400), "invalid_query");
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

#[tokio::test]
async fn whom_one_puts_into_a_group_counts_as_looked_up() {
    let app = TestApp::start_with(|config| config.limits.look_ups_per_account_per_minute = 3).await;
    let [ann, bob, eve] = [app.sign_up("Ann").await, app.sign_up("Bob").await, app.sign_up("Eve").await];
    let body = json!({"name": "walkers", "members": [bob.uid, eve.uid]});
    let gid = app.post(&ann, "/api/v1/groups", body.clone()).await.ok(201)["gid"].clone();
    assert_eq!(app.post(&ann, "/api/v1/groups", body).await.refused(429), "rate_limited");
    let members = format!("/api/v1/groups/{gid}/members");
    assert_eq!(app.post(&ann, &members, json!({"uid": eve.uid})).await.refused(409), "already_member");
    assert_eq!(app.post(&ann, &members, json!({"uid": eve.uid})).await.refused(429), "rate_limited");
    app.post(&bob, &members, json!({"uid": ann.uid})).await.refused(409);
}
