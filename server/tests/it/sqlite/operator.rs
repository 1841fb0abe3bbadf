//! An operator's work on accounts, by the program.

use std::process::Stdio;

use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::time::timeout;

use crate::sqlite::operation::{program, run, serve, terminate};
use crate::support::{PATIENCE, Socket};

#[tokio::test]
async fn an_operator_looks_after_accounts_while_the_server_is_stopped() {
    let place = tempfile::tempdir().expect("a directory");
    let (child, address) = serve(place.path()).await;
    let http = reqwest::Client::new();
    let log_in = async |address: &str, path: &str, password: &str| {
        let body = json!({"name": "Ann", "password": password});
        let answer =
            http.post(format!("http://{address}/api/v1/{path}")).json(&body).send().await.expect("an answer");
        answer.status().as_u16()
    };
    assert_eq!(log_in(&address, "accounts", "correct horse").await, 201);
    assert_eq!(terminate(child).await, 0);

    let (code, out, _) = run(place.path(), &["user", "list"]).await;
    assert_eq!((code, out.as_str()), (0, "10001\tAnn\n"));
    let (code, out, _) = run(place.path(), &["user", "reset-password", "ann"]).await;
    assert_eq!(code, 0);
    let password = out.trim().to_owned();
    assert_eq!(run(place.path(), &["user", "disable", "ann"]).await.0, 0);
    let (_, out, _) = run(place.path(), &["user", "list"]).await;
    assert_eq!(out, "10001\tAnn\tdisabled\n");
    let (code, _, reported) = run(place.path(), &["user", "disable", "nobody"]).await;
    assert!(code == 1 && reported.contains("no account has the name nobody"), "{reported}");

    let (child, address) = serve(place.path()).await;
    assert_eq!(log_in(&address, "sessions", &password).await, 401, "disabled");
    assert_eq!(terminate(child).await, 0);
    assert_eq!(run(place.path(), &["user", "enable", "ann"]).await.0, 0);
    let (child, address) = serve(place.path()).await;
    assert_eq!(log_in(&address, "sessions", "correct horse").await, 401, "the old password");
    assert_eq!(log_in(&address, "sessions", &password).await, 201);
    assert_eq!(terminate(child).await, 0);
}

#[tokio::test]
async fn an_operator_looks_after_accounts_while_the_server_serves() {
    let place = tempfile::tempdir().expect("a directory");
    let (child, address) = serve(place.path()).await;
    let http = reqwest::Client::new();
    let log_in = async |path: &str, password: &str| {
        let body = json!({"name": "ann", "password": password});
        let answer = http.post(format!("http://{address}/api/v1/{path}")).json(&body).send().await;
        let answer = answer.expect("an answer");
        let status = answer.status().as_u16();
        let token = answer.json::<serde_json::Value>().await.expect("JSON")["token"].clone();
        (status, format!("Bearer {}", token.as_str().unwrap_or_default()))
    };
    let socket = async |bearer: &str| {
        let headers = [("authorization", bearer)];
        let mut socket = Socket::dial(&address, "/ws", &headers).await.expect("opened");
        socket.expect("welcome").await;
        socket
    };
    let (_, bearer) = log_in("accounts", "correct horse").await;
    let mut opened = socket(&bearer).await;
    let (code, out, reported) = run(place.path(), &["user", "reset-password", "ann"]).await;
    assert_eq!(code, 0, "{reported}");
    assert_eq!(opened.closed().await, 4401, "the running server ends what is open");
    assert_eq!(log_in("sessions", "correct horse").await.0, 401);
    let (status, bearer) = log_in("sessions", out.trim()).await;
    assert_eq!(status, 201);
    let mut opened = socket(&bearer).await;
    assert_eq!(run(place.path(), &["user", "disable", "ann"]).await.0, 0);
    assert_eq!(opened.closed().await, 4401);
    let (_, listed, _) = run(place.path(), &["user", "list"]).await;
    assert_eq!(listed, "10001\tann\tdisabled\n");
    let (code, path, reported) = run(place.path(), &["user", "invite", "--uses", "3"]).await;
    assert!(code == 0 && path.starts_with("/sign-up?invite="), "{path} {reported}");
    let list = async || run(place.path(), &["user", "invite", "--list"]).await.1;
    let listed = list().await;
    let (id, rest) = listed.split_once('\t').expect("a line");
    assert!(id.len() == 32 && rest.starts_with("3 of 3\t"), "{listed}");
    let (code, other, _) = run(place.path(), &["user", "invite"]).await;
    assert_eq!((code, list().await.lines().count()), (0, 2));
    for ended in [id, other.trim()] {
        let (code, out, reported) = run(place.path(), &["user", "invite", "--end", ended]).await;
        assert_eq!((code, out.as_str()), (0, "the invitation is ended\n"), "{reported}");
    }
    assert_eq!(list().await, "");
    let (code, _, reported) = run(place.path(), &["user", "invite", "--end", id]).await;
    assert!(code == 1 && reported.contains("there is no such invitation"), "{reported}");
    assert_eq!(terminate(child).await, 0);
}

#[tokio::test]
async fn an_operator_deletes_an_account_while_the_server_serves() {
    let place = tempfile::tempdir().expect("a directory");
    let (child, address) = serve(place.path()).await;
    let http = reqwest::Client::new();
    let post = async |path: &str| {
        let body = json!({"name": "Ann", "password": "correct horse"});
        let answer = http.post(format!("http://{address}/api/v1/{path}")).json(&body).send().await;
        answer.expect("an answer")
    };
    let made = post("accounts").await.json::<serde_json::Value>().await.expect("JSON");
    let bearer = format!("Bearer {}", made["token"].as_str().expect("a token"));
    let mut socket = Socket::dial(&address, "/ws", &[("authorization", &bearer)]).await.expect("opened");
    socket.expect("welcome").await;
    let (code, _, reported) = run(place.path(), &["user", "delete", "ann"]).await;
    assert!(code == 1 && reported.contains("the typed name is not the account's"), "{reported}");
    let (code, _, reported) = run(place.path(), &["user", "delete", "nobody", "--yes"]).await;
    assert!(code == 1 && reported.contains("no account has the name nobody"), "{reported}");

    let mut asked = program(place.path());
    let mut asked = asked.args(["user", "delete", "Ann"]).stdin(Stdio::piped()).spawn().expect("started");
    asked.stdin.take().expect("piped").write_all(b"Ann\n").await.expect("written");
    let output = timeout(PATIENCE, asked.wait_with_output()).await.expect("in time").expect("run");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "10001 is deleted\n");
    assert_eq!(socket.closed().await, 4401, "the running server ends what is open");
    assert_eq!(post("sessions").await.status(), 401);
    assert_eq!(post("accounts").await.status(), 409, "the name stays taken");
    let (code, out, _) = run(place.path(), &["user", "delete", "ann", "--yes"]).await;
    assert_eq!((code, out.as_str()), (0, "10001 is deleted\n"), "once more changes nothing");
    for what in ["enable", "disable", "reset-password"] {
        let (code, _, reported) = run(place.path(), &["user", what, "ann"]).await;
        assert!(code == 1 && reported.contains("the account ann is deleted"), "{what}: {reported}");
    }
    let (_, listed, _) = run(place.path(), &["user", "list"]).await;
    assert_eq!(listed, "10001\tAnn\tdeleted\n");
    assert_eq!(terminate(child).await, 0);
}

#[tokio::test]
async fn an_operator_makes_accounts_while_the_server_serves() {
    let place = tempfile::tempdir().expect("a directory");
    let (child, address) = serve(place.path()).await;
    let http = reqwest::Client::new();
    let call = async |path: &str, name: &str, password: &str| {
        let body = json!({"name": name, "password": password});
        let answer = http.post(format!("http://{address}/api/v1/{path}")).json(&body).send();
        let answer = answer.await.expect("an answer");
        (answer.status().as_u16(), answer.json::<serde_json::Value>().await.expect("JSON")["uid"].clone())
    };
    assert_eq!(call("accounts", "ann", "correct horse").await, (201, json!(10_001)));
    let (code, out, reported) = run(place.path(), &["user", "add", " Bob "]).await;
    assert_eq!(code, 0, "{reported}");
    let (status, bob) = call("sessions", "bob", out.trim()).await;
    assert_eq!(status, 201, "the printed password: {out}");

    let add = async |name: &str, input: &str| {
        let mut command = program(place.path());
        command.args(["user", "add", name, "--password-stdin"]).stdin(Stdio::piped());
        let mut child = command.spawn().expect("started");
        let mut stdin = child.stdin.take().expect("piped");
        stdin.write_all(input.as_bytes()).await.expect("written");
        drop(stdin);
        let output = timeout(PATIENCE, child.wait_with_output()).await.expect("in time").expect("run");
        let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
        (output.status.code().expect("an exit code"), text(output.stdout), text(output.stderr))
    };
    let (code, out, reported) = add("cem", "battery staple\nnot this\n").await;
    assert_eq!(code, 0, "{reported}");
    let (status, cem) = call("sessions", "cem", "battery staple").await;
    assert_eq!((status, out), (201, format!("{cem} is added\n")));
    let (status, dea) = call("accounts", "dea", "correct horse").await;
    assert_eq!(status, 201);
    let uids: std::collections::HashSet<String> = [&bob, &cem, &dea].map(ToString::to_string).into();
    assert!(uids.len() == 3 && !uids.contains("10001"), "each has a uid of its own: {uids:?}");
    for (name, input, part) in [
        ("ANN", "correct horse", "the name is taken"),
        ("eve", "short", "choose a password of 8 to 200 characters"),
        ("eve", "", "choose a password of 8 to 200 characters"),
        ("", "correct horse", "choose a name of 1 to 40 visible characters"),
    ] {
        let (code, out, reported) = add(name, input).await;
        assert_eq!((code, out.as_str()), (1, ""), "{name:?}: {reported}");
        assert!(reported.lines().count() == 1 && reported.contains(part), "{name:?}: {reported}");
    }
    assert_eq!(terminate(child).await, 0);
    let (_, listed, _) = run(place.path(), &["user", "list"]).await;
    assert_eq!(listed.lines().count(), 4, "{listed}");
    assert_eq!(run(place.path(), &["user", "add", "fay"]).await.0, 0, "and while it is stopped");
}

#[tokio::test]
async fn devices_that_watch_somebody_are_told_of_a_name_that_an_operator_gives() {
    let place = tempfile::tempdir().expect("a directory");
    let (child, address) = serve(place.path()).await;
    let http = reqwest::Client::new();
    let sign_up = async |name: &str| {
        let body = json!({"name": name, "password": "correct horse"});
        let made = http.post(format!("http://{address}/api/v1/accounts")).json(&body).send().await;
        made.expect("an answer").json::<serde_json::Value>().await.expect("JSON")
    };
    let (ann, bob) = (sign_up("Ann").await, sign_up("Bob").await);
    let bearer = format!("Bearer {}", bob["token"].as_str().expect("a token"));
    let mut watching = Socket::dial(&address, "/ws", &[("authorization", &bearer)]).await.expect("opened");
    watching.begin().await;
    watching.send(&json!({"type": "presence", "of": [ann["uid"]]})).await;
    watching.expect("presence").await;
    let (code, _, reported) = run(place.path(), &["user", "rename", "ann", "Anna"]).await;
    assert_eq!(code, 0, "{reported}");
    assert_eq!(watching.expect("person").await, json!({"type": "person", "uid": ann["uid"]}));
    assert_eq!(terminate(child).await, 0);
}

#[tokio::test]
async fn programs_are_told_in_json() {
    let place = tempfile::tempdir().expect("a directory");
    let (child, _) = serve(place.path()).await;
    let told = async |arguments: &[&str]| {
        let (code, out, reported) = run(place.path(), &[&["user", "--json"], arguments].concat()).await;
        assert_eq!(code, 0, "{reported}");
        let lines = out.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON"));
        lines.collect::<Vec<_>>()
    };
    let added = told(&["add", "ann"]).await;
    let uid = &added[0]["uid"];
    assert!(added[0]["password"].as_str().is_some_and(|password| password.len() >= 8), "{added:?}");
    assert_eq!(told(&["list"]).await, [json!({"uid": uid, "name": "ann", "state": "enabled"})]);
    assert!(told(&["reset-password", "ann"]).await[0]["password"].is_string());
    assert_eq!(told(&["disable", "ann"]).await, [json!({"uid": uid, "state": "disabled"})]);
    assert_eq!(told(&["list"]).await[0]["state"], "disabled");
    let made = &told(&["invite", "--uses", "3"]).await[0];
    assert!(made["path"].as_str().is_some_and(|path| path.starts_with("/sign-up?invite=")), "{made}");
    let open = &told(&["invite", "--list"]).await[0];
    assert_eq!((&open["id"], &open["expires_at"]), (&made["id"], &made["expires_at"]));
    assert_eq!((&open["uses_left"], &open["uses"]), (&json!(3), &json!(3)));
    told(&["invite", "--end", made["id"].as_str().expect("an id")]).await;
    assert!(told(&["invite", "--list"]).await.is_empty());
    assert_eq!(terminate(child).await, 0);
}

#[tokio::test]
async fn an_operator_reads_and_closes_reports_while_the_server_serves() {
    let place = tempfile::tempdir().expect("a directory");
    let (child, address) = serve(place.path()).await;
    let http = reqwest::Client::new();
    let post = async |path: &str, token: &str, body: serde_json::Value| {
        let request = http.post(format!("http://{address}/api/v1/{path}")).bearer_auth(token).json(&body);
        request.send().await.expect("an answer").json::<serde_json::Value>().await.unwrap_or_default()
    };
    let mut tokens = Vec::new();
    for name in ["ann", "bob"] {
        let made = post("accounts", "", json!({"name": name, "password": "correct horse"})).await;
        tokens.push(made["token"].as_str().expect("a token").to_owned());
    }
    let id = |n: u128| crate::support::client_id(n);
    let said = json!({"client_id": id(1), "to": {"user": 10_001}, "body": {"text": "one\ntwo\tthree"}});
    post("messages", &tokens[1], said).await;
    let report = |n, text| json!({"client_id": id(n), "reason": "harassment", "text": text});
    post("conversations/u:10002/messages/1/report", &tokens[0], report(2, "he threatens me")).await;
    post("users/10002/report", &tokens[0], report(3, "")).await;

    let (code, out, reported) = run(place.path(), &["reports", "list"]).await;
    assert_eq!(code, 0, "{reported}");
    let lines: Vec<Vec<&str>> = out.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!(
        lines[0][2..],
        ["harassment", "10001 ann", "10002 bob", "directly", "he threatens me", r"one\ntwo\tthree"]
    );
    assert_eq!(lines[1][2..], ["harassment", "10001 ann", "10002 bob", "-", "", ""]);
    assert_eq!(run(place.path(), &["reports", "close", "1"]).await.0, 0);
    let (code, _, reported) = run(place.path(), &["reports", "close", "9"]).await;
    assert!(code == 1 && reported.contains("there is no report 9"), "{reported}");
    let (_, out, _) = run(place.path(), &["reports", "list"]).await;
    assert!(out.starts_with("2\t") && out.lines().count() == 1, "{out}");
    let (_, out, _) = run(place.path(), &["reports", "list", "--all", "--json"]).await;
    let first: serde_json::Value = serde_json::from_str(out.lines().next().expect("a line")).expect("JSON");
    assert_eq!((&first["closed"], &first["message"]["text"]), (&json!(true), &json!("one\ntwo\tthree")));
    assert_eq!((&first["reporter"]["name"], &first["about"]["uid"]), (&json!("ann"), &json!(10_002)));
    assert_eq!(terminate(child).await, 0);
}
