//! A server that is killed while it clears a deleted account: the next start goes on, and nothing is left half done.

use std::path::Path;

use serde_json::{Value, json};
use tidemark_test_support::until::until;
use tokio::process::Child;

use crate::sqlite::operation::{program, serve_with, terminate};
use crate::support::client_id;

const MOMENTS: u128 = 400;

async fn serve(place: &Path) -> (Child, String) {
    let mut program = program(place);
    for (name, value) in [
        ("ACCOUNTS__PASSWORD_MEMORY_KIB", "8"),
        ("LIMITS__SENDS_PER_ACCOUNT_PER_SECOND", "0"),
        ("LIMITS__READ_KIB_PER_ACCOUNT_PER_SECOND", "0"),
        ("STORAGE__FLUSH_ROWS", "1"),
    ] {
        program.env(format!("TIDEMARK_{name}"), value);
    }
    serve_with(program).await
}

struct Caller {
    http: reqwest::Client,
    address: String,
    token: String,
}

impl Caller {
    async fn call(&self, method: &str, path: &str, body: Option<Value>) -> Value {
        let method = method.parse().expect("a method");
        let request = self.http.request(method, format!("http://{}/api/v1/{path}", self.address));
        let request = request.bearer_auth(&self.token);
        let request = body.iter().fold(request, |request, body| request.json(body));
        let answer = request.send().await.expect("an answer");
        assert!(answer.status().is_success(), "{path}: {}", answer.status());
        let text = answer.text().await.expect("a text");
        serde_json::from_str(&text).unwrap_or_default()
    }

    /// How many rows of that kind the person has of somebody's moments.
    async fn of_kind(&self, kind: &str) -> usize {
        let page = self.call("GET", "range?limit=1000", None).await;
        let rows = page["rows"].as_array().expect("rows");
        rows.iter().filter(|row| row["conversation"] == "u:0" && row["kind"] == kind).count()
    }
}

async fn sign_up(address: &str, name: &str) -> (Caller, u64) {
    let mut caller =
        Caller { http: reqwest::Client::new(), address: address.to_owned(), token: String::new() };
    let account = json!({"name": name, "password": "correct horse"});
    let made = caller.call("POST", "accounts", Some(account)).await;
    caller.token = made["token"].as_str().expect("a token").to_owned();
    (caller, made["uid"].as_u64().expect("a uid"))
}

#[tokio::test]
async fn a_server_that_is_killed_in_the_middle_of_it_leaves_nothing_half_deleted() {
    let place = tempfile::tempdir().expect("a directory");
    let (mut child, address) = serve(place.path()).await;
    let (ann, of_ann) = sign_up(&address, "ann").await;
    let (mut bob, of_bob) = sign_up(&address, "bob").await;
    for (who, with) in [(&ann, of_bob), (&bob, of_ann)] {
        let wish = json!({"client_id": client_id(1), "wanted": true});
        who.call("PUT", &format!("friends/{with}"), Some(wish)).await;
    }
    let gid =
        ann.call("POST", "groups", Some(json!({"name": "us", "members": [of_bob]}))).await["gid"].clone();
    for n in 0..MOMENTS {
        let moment = json!({"client_id": client_id(100 + n), "text": "sun"});
        ann.call("POST", "moments", Some(moment)).await;
    }
    ann.call("POST", "me/delete", Some(json!({"password": "correct horse"}))).await;
    until("it has begun", async || bob.of_kind("deleted").await > 0).await;
    child.kill().await.expect("killed");

    let (child, address) = serve(place.path()).await;
    bob.address = address;
    assert!(bob.of_kind("moment").await > 0, "it was killed in the middle");
    until("all moments are taken back", async || bob.of_kind("moment").await == 0).await;
    assert_eq!(bob.of_kind("deleted").await, MOMENTS as usize);
    until("the group is his", async || {
        bob.call("GET", &format!("groups/{gid}"), None).await["role"] == "owner"
    })
    .await;
    let friends = bob.call("GET", "friends", None).await;
    assert_eq!(
        (&friends["friends"][0]["theirs"], &friends["friends"][0]["deleted"]),
        (&json!(false), &json!(true))
    );

    let tables = rusqlite::Connection::open(place.path().join("data/tidemark.db")).expect("opened");
    let number =
        |sql: &str| tables.query_row(sql, [of_ann.cast_signed()], |row| row.get::<_, i64>(0)).expect("asked");
    until("nothing is left", async || number("SELECT cleared FROM accounts WHERE uid = ?") == 1).await;
    for (table, owner) in [
        ("entries", "receiver"),
        ("compaction_keys", "receiver"),
        ("conversations", "owner"),
        ("sent", "sender"),
    ] {
        assert_eq!(number(&format!("SELECT count(*) FROM {table} WHERE {owner} = ?")), 0, "{table}");
    }
    assert!(number("SELECT last_id FROM heads WHERE receiver = ?") > MOMENTS as i64, "no id comes twice");
    assert_eq!(terminate(child).await, 0);
}
