//! `/accounts`, `/sessions`, `/me/password`, tickets.

use std::time::Duration;

use reqwest::Method;
use serde_json::json;
use tidemark::app::SignUp;

use crate::support::{Answer, Socket, TestApp};

#[tokio::test]
async fn signing_up_gives_a_uid_from_10001_and_a_token_that_works() {
    let app = TestApp::start().await;
    let (ann, bob) = (app.sign_up("Ann").await, app.sign_up(" Bob ").await);
    assert_eq!((ann.uid, bob.uid), (10_001, 10_002));
    assert_eq!(bob.name, "Bob", "trimmed");
    let me = app.get(&ann, "/api/v1/me").await.ok(200);
    assert_eq!((&me["uid"], &me["name"], &me["seq"]), (&json!(10_001), &json!("Ann"), &json!(0)));
    assert!(me["history"].is_string());
}

#[tokio::test]
async fn a_name_is_taken_whatever_its_case() {
    let app = TestApp::start().await;
    app.sign_up("Ann").await;
    let again =
        app.post_as_nobody("/api/v1/accounts", json!({"name": "ANN", "password": "correct horse"})).await;
    assert_eq!(again.refused(409), "name_taken");
}

/// Keyboards write the same letters in different ways.
#[tokio::test]
async fn a_name_and_a_password_are_the_same_in_every_normal_form() {
    let app = TestApp::start().await;
    let (composed, apart) = ("Zo\u{eb}", "Zoe\u{308}");
    let ask = async |path: &str, name: &str, password: String| {
        app.post_as_nobody(path, json!({ "name": name, "password": password })).await
    };
    let password = |name: &str, space: char| format!("{name}{space}correct horse");
    let made = ask("/api/v1/accounts", apart, password(apart, '\u{a0}')).await.ok(201);
    assert_eq!(made["name"], composed, "as it is kept");
    assert_eq!(ask("/api/v1/accounts", composed, password("a", ' ')).await.refused(409), "name_taken");
    for (name, other) in [(composed, apart), (apart, composed)] {
        let entered = ask("/api/v1/sessions", name, password(other, '\u{3000}')).await.ok(201);
        assert_eq!(entered["uid"], made["uid"]);
    }
    let bob = app.sign_up("Bob").await;
    for part in ["zoe%CC%88", "o%C3%AB", "oe%CC%88"] {
        let found = app.get(&bob, &format!("/api/v1/users?name={part}")).await.ok(200);
        assert_eq!(found[0]["uid"], made["uid"], "{part}");
    }
}

#[tokio::test]
async fn a_name_that_can_be_taken_for_another_one_is_refused() {
    let mut app = TestApp::start().await;
    app.sign_up("Ann Lee").await;
    let sign_up = async |app: &TestApp, name: &str| {
        app.post_as_nobody("/api/v1/accounts", json!({"name": name, "password": "correct horse"})).await
    };
    for look_alike in ["\u{410}nn Lee", "Ann L\u{435}e", "\u{ff21}nn Lee", "A\u{578}n Lee", "ANN \u{39b}ee"] {
        let refused = sign_up(&app, look_alike).await;
        match look_alike {
            // A capital lambda is no L.
            "ANN \u{39b}ee" => assert_eq!(refused.ok(201)["name"], look_alike),
            _ => assert_eq!(refused.refused(409), "name_resembles", "{look_alike}"),
        }
    }
    app.restart().await;
    assert_eq!(sign_up(&app, "Аnn Lее").await.refused(409), "name_resembles", "also after a restart");
    assert_eq!(
        sign_up(&app, "Анна").await.ok(201)["name"],
        "Анна",
        "a name in another script is one of its own"
    );
}

#[tokio::test]
async fn where_sign_up_is_closed_nobody_makes_an_account_and_those_who_have_one_log_in() {
    let mut app = TestApp::start().await;
    let page = async |app: &TestApp, path| app.send(app.request(Method::GET, path)).await.text;
    assert!(page(&app, "/login").await.contains("Create an account"));
    assert!(page(&app, "/sign-up").await.contains("new-password"));
    app.sign_up("ann").await;
    app.config.accounts.sign_up = SignUp::Closed;
    app.restart().await;
    for name in ["bob", "ann", ""] {
        let body = json!({"name": name, "password": "correct horse"});
        let refused = app.post_as_nobody("/api/v1/accounts", body).await;
        assert_eq!(refused.refused(403), "sign_up_closed", "{name}");
    }
    let ann = app.log_in("ann").await;
    assert_eq!(app.get(&ann, "/api/v1/users?name=b").await.ok(200), json!([]));
    for path in ["/login", "/sign-up"] {
        let page = page(&app, path).await;
        assert!(page.contains("New accounts are made by the person who runs this server."), "{page}");
        assert!(!page.contains("new-password") && !page.contains("href=\"/sign-up"), "{page}");
    }
}

#[tokio::test]
async fn names_and_passwords_that_cannot_be_are_refused() {
    let app = TestApp::start().await;
    for (name, password, code) in [
        ("", "correct horse", "bad_name"),
        ("a\u{0}b", "correct horse", "bad_name"),
        ("a\u{200b}b", "correct horse", "bad_name"),
        ("a\u{2066}b", "correct horse", "bad_name"),
        ("a  b", "correct horse", "bad_name"),
        (&"x".repeat(41), "correct horse", "bad_name"),
        ("ann", "short", "bad_password"),
        ("ann", &"x".repeat(201), "bad_password"),
    ] {
        let answer =
            app.post_as_nobody("/api/v1/accounts", json!({"name": name, "password": password})).await;
        assert_eq!(answer.refused(422), code, "{name:?}");
    }
}

#[tokio::test]
async fn a_refusal_says_what_to_choose_instead() {
    let app = TestApp::start().await;
    let ann = app.sign_up("ann").await;
    let gid = app.post(&ann, "/api/v1/groups", json!({"name": "walkers"})).await.ok(201)["gid"].clone();
    let current = app.get(&ann, "/api/v1/sessions").await.ok(200)[0]["id"].clone();
    let device = format!("/api/v1/sessions/{}", current.as_str().expect("an id"));
    let device = app.request(Method::PUT, &device).bearer_auth(&ann.token).json(&json!({"name": ""}));
    let sign_up = async |name: &str, password: &str| {
        app.post_as_nobody("/api/v1/accounts", json!({"name": name, "password": password})).await
    };
    let short = json!({"expires_in_seconds": 59});
    for (refused, detail) in [
        (sign_up("bob", "short").await, "choose a password of 8 to 200 characters"),
        (
            sign_up("", "correct horse").await,
            "choose a name of 1 to 40 visible characters, with single spaces between them",
        ),
        (app.send(device).await, "choose a name of 1 to 60 visible characters for the device"),
        (
            app.post(&ann, "/api/v1/sign-up-invites", short.clone()).await,
            "choose a time of 60 to 2592000 seconds and 1 to 10 accounts for the invitation",
        ),
        (
            app.post(&ann, &format!("/api/v1/groups/{gid}/invites"), short).await,
            "choose a time of 60 to 2592000 seconds and 1 to 1000 people for the invitation",
        ),
    ] {
        refused.refused(422);
        assert_eq!(refused.json()["detail"], detail);
    }
}

#[tokio::test]
async fn a_wrong_password_and_an_unknown_name_look_the_same() {
    let app = TestApp::start().await;
    app.sign_up("ann").await;
    let log_in = async |name: &str, password: &str| {
        app.post_as_nobody("/api/v1/sessions", json!({"name": name, "password": password})).await
    };
    let (wrong, unknown) = (log_in("ann", "incorrect horse").await, log_in("nobody", "correct horse").await);
    assert_eq!(wrong.refused(401), "wrong_credentials");
    // But for the names of the two requests.
    let reported = |answer: &Answer| {
        let mut reported = answer.json();
        reported["trace_id"] = json!(null);
        reported
    };
    assert_eq!(reported(&wrong), reported(&unknown));
    log_in(" ANN ", "correct horse").await.ok(201);
}

#[tokio::test]
async fn without_a_good_token_every_call_is_refused() {
    let app = TestApp::start().await;
    let ann = app.sign_up("ann").await;
    for (method, path) in [
        (Method::GET, "/api/v1/me"),
        (Method::GET, "/api/v1/users?name=a"),
        (Method::GET, "/api/v1/users/10001"),
        (Method::GET, "/api/v1/range"),
        (Method::GET, "/api/v1/seq"),
        (Method::GET, "/api/v1/conversations"),
        (Method::GET, "/api/v1/conversations/u:10001/messages"),
        (Method::GET, "/api/v1/groups/1"),
        (Method::POST, "/api/v1/messages"),
        (Method::POST, "/api/v1/messages/batch"),
        (Method::POST, "/api/v1/groups"),
        (Method::POST, "/api/v1/groups/1/members"),
        (Method::POST, "/api/v1/sessions/current/ticket"),
        (Method::PUT, "/api/v1/conversations/u:10001/read"),
        (Method::PUT, "/api/v1/me/password"),
        (Method::GET, "/api/v1/sessions"),
        (Method::DELETE, "/api/v1/sessions/00000000000000000000000000000000"),
        (Method::DELETE, "/api/v1/groups/1/members/10001"),
        (Method::DELETE, "/api/v1/sessions"),
        (Method::DELETE, "/api/v1/sessions/current"),
        (Method::GET, "/ws"),
    ] {
        let request = || app.request(method.clone(), path);
        for refused in [
            request(),
            request().bearer_auth("wrong"),
            request().header("authorization", &ann.token),
            request().header("authorization", "Bearer é"),
        ] {
            let answer = app.send(refused).await;
            assert_eq!(answer.refused(401), "unauthorized", "{method} {path}");
            assert_eq!(answer.header("www-authenticate"), "Bearer");
        }
    }
}

#[tokio::test]
async fn logging_out_ends_this_session_and_closes_its_sockets_alone() {
    let app = TestApp::start().await;
    let phone = app.sign_up("ann").await;
    let laptop = app.log_in("ann").await;
    let (mut phone_socket, mut laptop_socket) = (app.socket(&phone).await, app.socket(&laptop).await);
    phone_socket.begin().await;
    laptop_socket.begin().await;
    app.delete(&phone, "/api/v1/sessions/current").await.ok(204);
    assert_eq!(phone_socket.closed().await, 4401);
    assert_eq!(app.get(&phone, "/api/v1/me").await.refused(401), "unauthorized");
    app.get(&laptop, "/api/v1/me").await.ok(200);
    laptop_socket.heartbeat(0).await;
    laptop_socket.expect("alive").await;
}

#[tokio::test]
async fn logging_out_everywhere_closes_all_sockets_of_the_account_alone() {
    let app = TestApp::start().await;
    let phone = app.sign_up("ann").await;
    let laptop = app.log_in("ann").await;
    let bob = app.sign_up("bob").await;
    let mut sockets = [app.socket(&phone).await, app.socket(&laptop).await];
    let mut bobs = app.socket(&bob).await;
    bobs.begin().await;
    app.delete(&phone, "/api/v1/sessions").await.ok(204);
    for socket in &mut sockets {
        assert_eq!(socket.closed().await, 4401);
    }
    for ended in [&phone, &laptop] {
        app.get(ended, "/api/v1/me").await.refused(401);
    }
    bobs.heartbeat(0).await;
    bobs.expect("alive").await;
    app.log_in("ann").await;
}

#[tokio::test]
async fn a_changed_password_ends_all_other_sessions_of_the_account_alone() {
    let app = TestApp::start().await;
    let phone = app.sign_up("ann").await;
    let laptop = app.log_in("ann").await;
    let bob = app.sign_up("bob").await;
    let [mut phones, mut laptops, mut bobs] =
        [app.socket(&phone).await, app.socket(&laptop).await, app.socket(&bob).await];
    for socket in [&mut phones, &mut laptops, &mut bobs] {
        socket.begin().await;
    }
    let change = json!({"current": "correct horse", "new": "battery staple"});
    app.put(&phone, "/api/v1/me/password", change.clone()).await.ok(204);
    assert_eq!(laptops.closed().await, 4401);
    assert_eq!(app.get(&laptop, "/api/v1/me").await.refused(401), "unauthorized");
    app.get(&phone, "/api/v1/me").await.ok(200);
    for socket in [&mut phones, &mut bobs] {
        socket.heartbeat(0).await;
        socket.expect("alive").await;
    }
    let log_in = async |password: &str| {
        app.post_as_nobody("/api/v1/sessions", json!({"name": "ann", "password": password})).await
    };
    assert_eq!(log_in("correct horse").await.refused(401), "wrong_credentials");
    log_in("battery staple").await.ok(201);
    let again = app.put(&phone, "/api/v1/me/password", change).await;
    assert_eq!(again.refused(401), "wrong_credentials", "it is changed already");
}

#[tokio::test]
async fn a_password_is_changed_by_who_knows_it_into_one_that_can_be() {
    let app = TestApp::start_with(|config| config.limits.log_ins_per_name_per_minute = 1).await;
    let ann = app.sign_up("ann").await;
    let change = async |current: &str, new: &str| {
        app.put(&ann, "/api/v1/me/password", json!({"current": current, "new": new})).await
    };
    for (current, new, status, code) in [
        ("correct horse", "short", 422, "bad_password"),
        ("correct horse", &"x".repeat(201), 422, "bad_password"),
        ("incorrect horse", "battery staple", 401, "wrong_credentials"),
        (&"x".repeat(201), "battery staple", 401, "wrong_credentials"),
        ("", "battery staple", 401, "wrong_credentials"),
    ] {
        assert_eq!(change(current, new).await.refused(status), code, "{current:?} {new:?}");
    }
    for _ in 0..5 {
        change("guess guess", "battery staple").await.refused(401);
    }
    let limited = change("correct horse", "battery staple").await;
    assert_eq!(limited.refused(429), "rate_limited", "guesses count as attempts to log in");
    app.get(&ann, "/api/v1/me").await.ok(200);
    app.log_in("ann").await;
}

#[tokio::test]
async fn the_sessions_of_an_account_are_listed_newest_first_and_say_nothing_that_opens_one() {
    let app = TestApp::start_with(|config| {
        config.limits.listed_sessions = 2;
        config.accounts.session_days = 1;
    })
    .await;
    let phone = app.sign_up("ann").await;
    app.sign_up("bob").await;
    app.pass(Duration::from_secs(60)).await;
    let laptop = app.log_in("ann").await;
    let list = async |who| {
        let listed = app.get(who, "/api/v1/sessions").await.ok(200);
        listed.as_array().expect("a list").clone()
    };
    let listed = list(&phone).await;
    let of = |field: &str| listed.iter().map(|line| line[field].clone()).collect::<Vec<_>>();
    assert_eq!(of("current"), [json!(false), json!(true)]);
    assert_eq!(of("created_at"), ["2026-11-21T11:44:58.042Z", "2026-11-21T11:43:58.042Z"]);
    assert_eq!(of("expires_at"), ["2026-11-22T11:44:58.042Z", "2026-11-22T11:43:58.042Z"]);
    for id in of("id") {
        let id = id.as_str().expect("a text");
        assert!(!laptop.token.contains(id) && !phone.token.contains(id), "{id}");
        let as_token = app.request(Method::GET, "/api/v1/me").bearer_auth(id);
        assert_eq!(app.send(as_token).await.refused(401), "unauthorized");
    }
    app.pass(Duration::from_secs(1)).await;
    let third = app.log_in("ann").await;
    assert_eq!(list(&third).await.len(), 2, "at most as many as are configured");
    app.delete(&third, "/api/v1/sessions/current").await.ok(204);
    app.pass(Duration::from_secs(24 * 60 * 60 - 61)).await;
    assert_eq!(list(&laptop).await.len(), 1, "without those that have expired");
}

#[tokio::test]
async fn a_session_is_ended_from_another_one_of_the_same_account_alone() {
    let app = TestApp::start().await;
    let phone = app.sign_up("ann").await;
    let laptop = app.log_in("ann").await;
    let bob = app.sign_up("bob").await;
    let own = async |who| {
        let listed = app.get(who, "/api/v1/sessions").await.ok(200);
        let current = listed.as_array().expect("a list").iter().find(|line| line["current"] == true);
        format!("/api/v1/sessions/{}", current.expect("one")["id"].as_str().expect("a text"))
    };
    let (of_laptop, of_phone, of_bob) = (own(&laptop).await, own(&phone).await, own(&bob).await);
    let mut socket = app.socket(&laptop).await;
    socket.begin().await;
    assert_eq!(app.delete(&bob, &of_laptop).await.refused(404), "unknown_session");
    assert_eq!(app.delete(&phone, &of_bob).await.refused(404), "unknown_session");
    app.get(&laptop, "/api/v1/me").await.ok(200);
    app.delete(&phone, &of_laptop).await.ok(204);
    assert_eq!(socket.closed().await, 4401);
    assert_eq!(app.get(&laptop, "/api/v1/me").await.refused(401), "unauthorized");
    assert_eq!(app.delete(&phone, &of_laptop).await.refused(404), "unknown_session", "it ends once");
    app.get(&bob, "/api/v1/me").await.ok(200);
    assert_eq!(app.delete(&phone, "/api/v1/sessions/12").await.refused(400), "invalid_query");
    let ended = app.delete(&phone, &of_phone).await;
    ended.ok(204);
    assert!(ended.header("set-cookie").contains("Max-Age=0"), "its own one, as by logging out");
    app.get(&phone, "/api/v1/me").await.refused(401);
}

#[tokio::test]
async fn a_session_ends_with_its_time() {
    let app = TestApp::start_with(|config| config.accounts.session_days = 1).await;
    let ann = app.sign_up("ann").await;
    app.pass(Duration::from_secs(24 * 60 * 60 - 1)).await;
    app.get(&ann, "/api/v1/me").await.ok(200);
    app.pass(Duration::from_secs(1)).await;
    assert_eq!(app.get(&ann, "/api/v1/me").await.refused(401), "unauthorized");
}

#[tokio::test]
async fn the_sockets_of_a_session_end_with_its_time() {
    let app = TestApp::start_with(|config| {
        config.accounts.session_days = 1;
        config.server.heartbeat_seconds = 1;
        config.limits.frames_per_connection_per_second = 0;
    })
    .await;
    let ann = app.sign_up("ann").await;
    let mut socket = app.socket(&ann).await;
    socket.begin().await;
    app.pass(Duration::from_secs(24 * 60 * 60)).await;
    // It heartbeats as often as it gets an answer, so it is not closed for its silence.
    let code = loop {
        socket.try_send(r#"{"type":"heartbeat","seq":0}"#.to_owned()).await;
        if let Err(code) = socket.next().await {
            break code;
        }
    };
    assert_eq!(code, 4401);
}

#[tokio::test]
async fn accounts_and_sessions_survive_a_restart() {
    let mut app = TestApp::start().await;
    let ann = app.sign_up("ann").await;
    app.restart().await;
    app.get(&ann, "/api/v1/me").await.ok(200);
    assert!(app.sign_up("bob").await.uid > ann.uid);
}

#[tokio::test]
async fn a_ticket_opens_one_socket_within_its_time() {
    let app = TestApp::start().await;
    let ann = app.sign_up("ann").await;
    let ticket = async || {
        let given = app.post(&ann, "/api/v1/sessions/current/ticket", json!({})).await.ok(200);
        format!("/ws?ticket={}", given["ticket"].as_str().expect("a ticket"))
    };
    let first = ticket().await;
    let mut socket = Socket::dial(&app.address, &first, &[]).await.expect("opened");
    assert_eq!(socket.expect("welcome").await["uid"], ann.uid);
    assert_eq!(Socket::dial(&app.address, &first, &[]).await.err(), Some(401), "used up");
    let late = ticket().await;
    app.pass(Duration::from_secs(30)).await;
    assert_eq!(Socket::dial(&app.address, &late, &[]).await.err(), Some(401), "expired");
    assert_eq!(Socket::dial(&app.address, "/ws?ticket=wrong", &[]).await.err(), Some(401));
    let token = format!("/ws?ticket={}", ann.token);
    assert_eq!(Socket::dial(&app.address, &token, &[]).await.err(), Some(401), "a token is no ticket");

    let unused = ticket().await;
    app.delete(&ann, "/api/v1/sessions/current").await.ok(204);
    assert_eq!(socket.closed().await, 4401);
    assert_eq!(Socket::dial(&app.address, &unused, &[]).await.err(), Some(401), "logged out");
}
