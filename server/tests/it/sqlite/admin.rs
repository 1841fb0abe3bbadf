//! The pages of operators, who is made one by a command, and the audit log.

use std::path::Path;

use reqwest::Method;
use reqwest::redirect::Policy;
use serde_json::{Value, json};

use crate::sqlite::operation::{run, serve, terminate};
use crate::support::Socket;

/// A server, and what is asked of it.
struct Site {
    home: String,
    http: reqwest::Client,
}

/// An answer: its status, where it leads, and its text.
struct Answer {
    status: u16,
    location: String,
    text: String,
}

impl Site {
    fn of(address: &str) -> Site {
        let http = reqwest::Client::builder().redirect(Policy::none()).build().expect("a client");
        Site { home: format!("http://{address}"), http }
    }

    /// Makes an account: its uid and its token.
    async fn sign_up(&self, name: &str) -> (u64, String) {
        let body = json!({"name": name, "password": "correct horse"});
        let answer = self.http.post(format!("{}/api/v1/accounts", self.home)).json(&body).send().await;
        let made: Value = answer.expect("an answer").json().await.expect("JSON");
        let token = made["token"].as_str().expect("a token").to_owned();
        (made["uid"].as_u64().expect("a uid"), token)
    }

    /// A request of a browser with this session; `form`: what a form of a page of `origin` sends.
    async fn ask(&self, token: &str, path: &str, form: Option<(&str, &str)>) -> Answer {
        let method = if form.is_some() { Method::POST } else { Method::GET };
        let mut request = self.http.request(method, format!("{}{path}", self.home));
        if !token.is_empty() {
            request = request.header("cookie", format!("tidemark_session={token}"));
        }
        if let Some((origin, body)) = form {
            let content = "application/x-www-form-urlencoded";
            request = request.header("origin", origin).header("content-type", content).body(body.to_owned());
        }
        let answer = request.send().await.expect("an answer");
        let location = answer.headers().get("location").map(|to| to.to_str().expect("a text").to_owned());
        let status = answer.status().as_u16();
        Answer { status, location: location.unwrap_or_default(), text: answer.text().await.expect("a text") }
    }

    async fn see(&self, token: &str, path: &str) -> String {
        let page = self.ask(token, path, None).await;
        assert_eq!(page.status, 200, "{path}: {}", page.text);
        page.text
    }

    async fn send(&self, token: &str, path: &str, form: &str) -> Answer {
        self.ask(token, path, Some((&self.home, form))).await
    }

    /// A call of the API.
    async fn call(&self, token: &str, method: Method, path: &str, body: Value) -> Value {
        let request = self.http.request(method, format!("{}/api/v1/{path}", self.home)).bearer_auth(token);
        let answer = request.json(&body).send().await.expect("an answer");
        assert!(answer.status().is_success(), "{path}: {}", answer.status());
        answer.json().await.unwrap_or_default()
    }

    async fn socket(&self, token: &str) -> Socket {
        let address = self.home.trim_start_matches("http://");
        Socket::open(address, &format!("Bearer {token}")).await
    }
}

/// What the audit log says, newest first: who, what, to whom, in which group.
async fn audited(place: &Path) -> Vec<(Value, String, Value, Value)> {
    let (code, out, reported) = run(place, &["audit", "--json"]).await;
    assert_eq!(code, 0, "{reported}");
    let line = |line: &str| {
        let line: Value = serde_json::from_str(line).expect("JSON");
        let action = line["action"].as_str().expect("a word").to_owned();
        (line["by_name"].clone(), action, line["name"].clone(), line["gid"].clone())
    };
    out.lines().map(line).collect()
}

#[tokio::test]
async fn an_operator_finds_people_ends_their_sessions_and_locks_accounts() {
    let place = tempfile::tempdir().expect("a directory");
    let (child, address) = serve(place.path()).await;
    let site = Site::of(&address);
    let (_, ann) = site.sign_up("Ann").await;
    let (bob_uid, bob) = site.sign_up("<b>Bob</b>").await;
    let of_bob = format!("/admin/people/{bob_uid}");

    // For everybody else there is no such page.
    let nobody = site.ask("", "/admin", None).await;
    assert_eq!((nobody.status, nobody.location.as_str()), (303, "/login?next=/admin"));
    for path in ["/admin", "/admin/audit", &of_bob] {
        assert_eq!(site.ask(&ann, path, None).await.status, 404, "{path}");
    }
    assert_eq!(site.send(&ann, &of_bob, "do=lock").await.status, 404);
    assert_eq!(run(place.path(), &["user", "operator", "ann", "on"]).await.1, "10001 is an operator\n");

    let page = site.see(&ann, "/admin?q=bob").await;
    assert!(page.contains(&format!("href=\"{of_bob}\"")) && !page.contains("<b>Bob"), "{page}");
    assert!(page.contains("Everybody who reaches this server may make one"), "{page}");
    assert!(site.see(&ann, &format!("/admin?q={bob_uid}")).await.contains(&of_bob));
    assert!(site.see(&ann, "/admin?q=nobody").await.contains("Nobody found."));
    let page = site.see(&ann, &of_bob).await;
    assert!(page.contains("Lock the account") && page.contains("1 session,"), "{page}");

    // One session, then all of them.
    let mut socket = site.socket(&bob).await;
    let (_, rest) = page.split_once("name=\"session\" value=\"").expect("a button");
    let (id, _) = rest.split_once('"').expect("an id");
    let ended = site.send(&ann, &of_bob, &format!("session={id}")).await;
    assert_eq!((ended.status, ended.location.as_str()), (303, of_bob.as_str()));
    assert_eq!(socket.closed().await, 4401);
    assert!(site.see(&ann, &of_bob).await.contains("The person is logged in nowhere."));
    let log_in = async || {
        let body = json!({"name": "<b>Bob</b>", "password": "correct horse"});
        let answer = site.http.post(format!("{}/api/v1/sessions", site.home)).json(&body).send().await;
        answer.expect("an answer").json::<Value>().await.expect("JSON")["token"].clone()
    };
    let bob = log_in().await;
    let mut socket = site.socket(bob.as_str().expect("a token")).await;
    assert_eq!(site.send(&ann, &of_bob, "do=end").await.status, 303);
    assert_eq!(socket.closed().await, 4401);
    assert_eq!(site.send(&ann, &of_bob, "do=lock").await.status, 303);
    assert_eq!(log_in().await, Value::Null);
    assert!(site.see(&ann, &of_bob).await.contains("Unlock the account"));
    assert_eq!(site.send(&ann, &of_bob, "do=unlock").await.status, 303);
    assert_ne!(log_in().await, Value::Null);

    // Another site's form, a form that is none, and the account of an operator.
    let foreign = site.ask(&ann, &of_bob, Some(("https://evil.example", "do=lock"))).await;
    assert_eq!(foreign.status, 403);
    for wrong in ["", "do=dance", "do=lock&session=x", "session=x"] {
        assert_eq!(site.send(&ann, &of_bob, wrong).await.status, 400, "{wrong:?}");
    }
    assert_eq!(site.send(&ann, "/admin/people/10001", "do=lock").await.status, 403);
    assert_eq!(site.send(&ann, "/admin/people/77", "do=lock").await.status, 404);
    assert_eq!(site.ask(&ann, "/admin/people/77", None).await.status, 404);

    let page = site.see(&ann, "/admin/audit").await;
    assert!(page.contains("account unlocked") && page.contains("&#60;b&#62;Bob"), "{page}");
    let (by_ann, bob) = (json!("Ann"), json!("<b>Bob</b>"));
    let lines = audited(place.path()).await;
    let done: Vec<&str> = lines.iter().map(|(_, what, ..)| what.as_str()).collect();
    let expected = ["account_unlocked", "account_locked", "sessions_ended", "session_ended", "operator_made"];
    assert_eq!(done, expected);
    assert!(lines[..4].iter().all(|(by, _, to, _)| (by, to) == (&by_ann, &bob)), "{lines:?}");
    assert_eq!((&lines[4].0, &lines[4].2), (&Value::Null, &by_ann));

    assert_eq!(run(place.path(), &["user", "operator", "ann", "off"]).await.1, "10001 is no operator\n");
    assert_eq!(site.ask(&ann, "/admin", None).await.status, 404);
    assert_eq!(terminate(child).await, 0);
}

#[tokio::test]
async fn an_operator_reads_reports_and_closes_them() {
    let place = tempfile::tempdir().expect("a directory");
    let (child, address) = serve(place.path()).await;
    let site = Site::of(&address);
    let ((_, ann), (bob, of_bob)) = (site.sign_up("Ann").await, site.sign_up("Bob").await);
    let (_, eve) = site.sign_up("<i>Eve</i>").await;
    assert_eq!(site.ask(&ann, "/admin/reports", None).await.status, 404);
    assert_eq!(run(place.path(), &["user", "operator", "ann", "on"]).await.0, 0);
    assert!(site.see(&ann, "/admin/reports").await.contains("There is no open report."));

    let key = |n: u128| uuid::Uuid::from_u128(n);
    let said = json!({"to": {"user": 10_003}, "client_id": key(1), "kind": "message", "body": {"text": "buy <b>this</b>"}});
    site.call(&of_bob, Method::POST, "messages", said).await;
    let about = format!("users/{bob}/report");
    let wrong = json!({"client_id": key(2), "reason": "harassment", "text": "he & his \"jokes\""});
    site.call(&eve, Method::POST, &about, wrong).await;
    let spam = json!({"client_id": key(3), "reason": "spam", "text": ""});
    site.call(&eve, Method::POST, &format!("conversations/u:{bob}/messages/1/report"), spam).await;

    let page = site.see(&ann, "/admin/reports").await;
    assert!(!page.contains("<b>this") && !page.contains("<i>Eve"), "words of strangers are text: {page}");
    for shown in ["harassment", "his &#34;jokes&#34;", "spam", "this", "to the reporter"] {
        assert!(page.contains(shown), "{shown}: {page}");
    }
    let of_person = format!("/admin/people/{bob}");
    assert_eq!(site.see(&ann, &of_person).await.matches("Close report").count(), 2);
    for wrong in ["", "close=", "close=x", "close=-1"] {
        assert_eq!(site.send(&ann, "/admin/reports", wrong).await.status, 400, "{wrong:?}");
    }
    assert_eq!(site.send(&ann, "/admin/reports", "close=99").await.status, 404);
    assert_eq!(site.send(&of_bob, "/admin/reports", "close=1").await.status, 404);
    let foreign = site.ask(&ann, "/admin/reports", Some(("https://evil.example", "close=1"))).await;
    assert_eq!(foreign.status, 403);
    for _ in 0..2 {
        let closed = site.send(&ann, "/admin/reports", "close=1").await;
        assert_eq!((closed.status, closed.location.as_str()), (303, "/admin/reports"));
    }
    assert_eq!(run(place.path(), &["reports", "close", "2"]).await.0, 0);
    assert!(site.see(&ann, "/admin/reports").await.contains("There is no open report."));
    let page = site.see(&ann, &of_person).await;
    assert!(page.matches(", closed").count() == 2 && !page.contains("Close report"), "{page}");
    let lines = audited(place.path()).await;
    let closed = |by| (by, "report_closed".to_owned(), json!("Bob"), Value::Null);
    assert_eq!(lines[..2], [closed(Value::Null), closed(json!("Ann"))]);
    assert_eq!(lines.len(), 3);
    assert_eq!(terminate(child).await, 0);
}

#[tokio::test]
async fn what_commands_and_administrators_of_groups_do_is_noted() {
    let place = tempfile::tempdir().expect("a directory");
    let (child, address) = serve(place.path()).await;
    let site = Site::of(&address);
    let ((_, ann), (bob, of_bob)) = (site.sign_up("Ann").await, site.sign_up("Bob").await);
    let made = site.call(&ann, Method::POST, "groups", json!({"name": "us", "members": [bob]})).await;
    let gid = made["gid"].as_u64().expect("a number");
    let member = format!("groups/{gid}/members/{bob}");
    let ban = format!("groups/{gid}/bans/{bob}");
    // What is so already is not noted again.
    let twice = async |method: Method, path: &str, body: Value| {
        for _ in 0..2 {
            site.call(&ann, method.clone(), path, body.clone()).await;
        }
    };
    twice(Method::PUT, &format!("{member}/role"), json!({"role": "administrator"})).await;
    twice(Method::PUT, &format!("{member}/mute"), json!({})).await;
    twice(Method::DELETE, &format!("{member}/mute"), Value::Null).await;
    site.call(&ann, Method::DELETE, &member, Value::Null).await;
    twice(Method::PUT, &ban, Value::Null).await;
    twice(Method::DELETE, &ban, Value::Null).await;
    // Leaving is done to nobody.
    site.call(&ann, Method::POST, &format!("groups/{gid}/members"), json!({"uid": bob})).await;
    site.call(&of_bob, Method::DELETE, &member, Value::Null).await;
    for command in [
        &["user", "add", "Cem"][..],
        &["user", "rename", "Cem", "Cemal"],
        &["user", "reset-password", "Cemal"],
        &["user", "disable", "Cemal"],
        &["user", "enable", "Cemal"],
        &["user", "delete", "Cemal", "--yes"],
    ] {
        let (code, _, reported) = run(place.path(), command).await;
        assert_eq!(code, 0, "{command:?}: {reported}");
    }
    let lines = audited(place.path()).await;
    let of_command = |what: &str| (Value::Null, what.to_owned(), json!("Deleted account"), Value::Null);
    let in_group = |what: &str| (json!("Ann"), what.to_owned(), json!("Bob"), json!(gid));
    let expected = [
        of_command("account_deleted"),
        of_command("account_unlocked"),
        of_command("account_locked"),
        of_command("password_reset"),
        of_command("account_renamed"),
        of_command("account_added"),
        in_group("ban_lifted"),
        in_group("member_banned"),
        in_group("member_removed"),
        in_group("mute_lifted"),
        in_group("member_muted"),
        in_group("role_changed"),
    ];
    assert_eq!(lines, expected);
    let (_, out, _) = run(place.path(), &["audit", "--most", "1"]).await;
    assert!(
        out.ends_with("\ta command\taccount_deleted\tDeleted account\n") && out.lines().count() == 1,
        "{out}"
    );
    assert_eq!(terminate(child).await, 0);
}
