//! The chat's inboxes as a table, with the real program: put from the command line, read by the chat.

use std::path::Path;

use serde_json::{Value, json};
use tidemark_test_support::servers::certificates::issue;
use tidemark_test_support::servers::haproxy::Proxy;
use tokio::process::Command;

use crate::table::world::{PROGRAM, World, output};

/// The output of `tidemark table …`, as JSON: one object a line.
async fn table(world: &World, key: &crate::table::world::Key, arguments: &[&str]) -> Vec<Value> {
    let printed = output(command(world, key, arguments)).await;
    printed.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| json!(line))).collect()
}

fn command(world: &World, key: &crate::table::world::Key, arguments: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    command.arg("table").args(arguments);
    command.env("TIDEMARK_TABLE_ENDPOINT", format!("http://{}", world.tables));
    command.env("TIDEMARK_TABLE_INSTANCE", &key.instance);
    command.env("TIDEMARK_TABLE_ACCESS_KEY_ID", &key.id);
    command.env("TIDEMARK_TABLE_ACCESS_KEY_SECRET", &key.secret);
    command
}

async fn refused(world: &World, key: &crate::table::world::Key, arguments: &[&str]) -> String {
    let done = command(world, key, arguments).output().await.expect("the program is there");
    assert!(!done.status.success(), "{arguments:?}");
    String::from_utf8(done.stderr).expect("text")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_puts_rows_into_an_inbox_and_its_devices_get_them() {
    let world = World::start().await;
    let http = reqwest::Client::new();
    let url = |path: &str| format!("{}{path}", world.server.address());
    let mut people = Vec::new();
    for name in ["the bot", "ann"] {
        let account = json!({"name": name, "password": "a long enough password"});
        let made = http.post(url("/api/v1/accounts")).json(&account).send().await.expect("answered");
        people.push(made.json::<Value>().await.expect("JSON"));
    }
    let (bot, ann) = (people[0]["uid"].to_string(), people[1]["uid"].to_string());
    let key = world.make_key(&["--instance", "bots", "--inbox", &bot]).await;
    let partition = tidemark::domain::Uid(ann.parse().expect("a uid")).partition_key().to_string();

    assert_eq!(table(&world, &key, &["ls"]).await, [json!("inbox")]);
    let body = "body={\"text\":\"your order is on its way\"}";
    let put = ["put", "inbox", &partition, &ann, "+", body];
    let put = table(&world, &key, &put).await;
    assert_eq!(put[0]["key"]["message_id"], 1);
    let order = ["put", "inbox", &partition, &ann, "+", "kind=app.order", "body={\"total\":3}"];
    assert_eq!(table(&world, &key, &order).await[0]["key"]["message_id"], 2);

    let token = people[1]["token"].as_str().expect("a token");
    let range = url("/api/v1/range?start=1&end=INF_MAX&limit=10&direction=forward");
    let page: Value =
        http.get(range).bearer_auth(token).send().await.expect("answered").json().await.expect("JSON");
    let rows = page["rows"].as_array().expect("rows");
    let seen: Vec<_> = rows.iter().map(|row| (&row["kind"], &row["body"], &row["conversation"])).collect();
    let with_bot = json!(format!("u:{bot}"));
    let (message, app) = (json!("message"), json!("app.order"));
    let (text, total) = (json!({"text": "your order is on its way"}), json!({"total": 3}));
    assert_eq!(seen, [(&message, &text, &with_bot), (&app, &total, &with_bot)]);

    let read = table(&world, &key, &["range", "inbox", &partition, &ann, "--from", "2"]).await;
    assert_eq!(read.len(), 1);
    assert_eq!((&read[0]["columns"]["kind"], &read[0]["columns"]["body"]), (&app, &json!("{\"total\":3}")));
    let one = table(&world, &key, &["get", "inbox", &partition, &ann, "1"]).await;
    assert_eq!(one[0]["columns"]["sender"].to_string(), bot);
    let backward = table(&world, &key, &["range", "inbox", "--backward", "--limit", "1"]).await;
    assert_eq!(backward[0]["key"]["message_id"], 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_command_line_asks_wrongly_is_refused_in_one_line() {
    let world = World::start().await;
    let key = world.make_key(&["--instance", "bots", "--read-only"]).await;
    for (arguments, told) in [
        (&["describe", "orders"][..], "OTSObjectNotExist"),
        (&["get", "inbox", "a"], "OTSObjectNotExist"),
        (&["get", "orders"], "--help"),
    ] {
        let line = refused(&world, &key, arguments).await;
        assert!(line.contains(told) && line.trim_end().lines().count() == 1, "{line}");
    }
    let stranger = crate::table::world::Key { secret: "wrong".to_owned(), ..key };
    let line = refused(&world, &stranger, &["ls"]).await;
    assert!(line.contains("OTSAuthFailed") && !line.contains("wrong"), "{line}");
    let mut nowhere = command(&world, &stranger, &["ls"]);
    nowhere.env("TIDEMARK_TABLE_ENDPOINT", "http://127.0.0.1:1");
    let done = nowhere.output().await.expect("the program is there");
    let line = String::from_utf8(done.stderr).expect("text");
    assert!(line.contains("http://127.0.0.1:1 cannot be reached"), "{line}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_command_reaches_tables_behind_a_proxy_with_tls_whose_certificate_it_trusts() {
    let world = World::start().await;
    let (uid, _) = world.sign_up("ann").await;
    let key = world.make_key(&["--instance", "bots", "--inbox", &uid.to_string()]).await;
    let folder = tempfile::tempdir().expect("a folder");
    let certificates = issue(folder.path());
    let proxy = Proxy::with_tls(&certificates, &world.tables);
    let asking = |endpoint: String, trusted: &Path| {
        let mut ask = command(&world, &key, &["ls"]);
        ask.env("TIDEMARK_TABLE_ENDPOINT", endpoint).env("SSL_CERT_FILE", trusted).env_remove("SSL_CERT_DIR");
        ask
    };
    let secure = format!("https://{}", proxy.address());
    let printed = output(asking(secure.clone(), &certificates.authority)).await;
    assert_eq!(printed, "inbox\n");
    let other = tempfile::tempdir().expect("a folder");
    let line = |done: std::process::Output| String::from_utf8(done.stderr).expect("text");
    let stranger = asking(secure.clone(), &issue(other.path()).authority).output().await.expect("runs");
    assert!(!stranger.status.success());
    let refused = line(stranger);
    assert!(refused.contains(&secure) && refused.contains("certificate"), "{refused}");
    let plain = asking(proxy.url(), &certificates.authority).output().await.expect("runs");
    assert!(!plain.status.success());
    assert!(line(plain).contains(&proxy.url()));
}
