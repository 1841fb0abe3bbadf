//! The index of words of a real server: killed while it is made, damaged, lost, asked to be made again. Searches find everything all the
//! time.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tidemark_test_support::until::until;
use tokio::process::Child;

use crate::sqlite::operation::{program, run, serve_with, terminate};
use crate::support::client_id;

/// Messages of one request, and requests: enough for several segments.
const BATCH: u128 = 200;
const BATCHES: u128 = 25;

/// A server, and somebody on it.
struct World {
    place: tempfile::TempDir,
    server: Option<(Child, String)>,
    http: reqwest::Client,
    token: String,
    uid: u64,
}

impl World {
    async fn new() -> World {
        let (place, http) = (tempfile::tempdir().expect("a directory"), reqwest::Client::new());
        let mut world = World { place, server: None, http, token: String::new(), uid: 0 };
        world.start().await;
        let account = json!({"name": "ann", "password": "correct horse"});
        let made = world.call("POST", "accounts", Some(account)).await;
        world.token = made["token"].as_str().expect("a token").to_owned();
        world.uid = made["uid"].as_u64().expect("a uid");
        world
    }

    async fn start(&mut self) {
        let mut program = program(self.place.path());
        for (name, value) in [
            ("ACCOUNTS__PASSWORD_MEMORY_KIB", "8"),
            ("LIMITS__SENDS_PER_ACCOUNT_PER_SECOND", "0"),
            ("LIMITS__READ_KIB_PER_ACCOUNT_PER_SECOND", "0"),
            ("STORAGE__FLUSH_ROWS", "500"),
        ] {
            program.env(format!("TIDEMARK_{name}"), value);
        }
        self.server = Some(serve_with(program).await);
    }

    async fn kill(&mut self) {
        let (mut child, _) = self.server.take().expect("running");
        child.kill().await.expect("killed");
    }

    async fn stop(&mut self) {
        let (child, _) = self.server.take().expect("running");
        assert_eq!(terminate(child).await, 0);
    }

    fn index(&self) -> PathBuf {
        self.place.path().join("data/search.db")
    }

    async fn get(&self, path: &str) -> reqwest::Response {
        let (_, address) = self.server.as_ref().expect("running");
        let request = self.http.get(format!("http://{address}/{path}")).bearer_auth(&self.token);
        let answer = request.send().await.expect("an answer");
        assert!(answer.status().is_success(), "{path}: {}", answer.status());
        answer
    }

    async fn call(&self, method: &str, path: &str, body: Option<Value>) -> Value {
        let (_, address) = self.server.as_ref().expect("running");
        let method = method.parse().expect("a method");
        let request = self.http.request(method, format!("http://{address}/api/v1/{path}"));
        let request = body.iter().fold(request.bearer_auth(&self.token), |request, body| request.json(body));
        let answer = request.send().await.expect("an answer");
        assert!(answer.status().is_success(), "{path}: {}", answer.status());
        serde_json::from_str(&answer.text().await.expect("a text")).unwrap_or_default()
    }

    /// Sends a batch of notes to oneself, each with a number of its own.
    async fn say(&self, batch: u128) {
        let message = |n: u128| {
            let text = format!("note {} of the tide 北京", batch * BATCH + n);
            json!({"client_id": client_id(batch * BATCH + n), "to": {"user": self.uid}, "body": {"text": text}})
        };
        let messages: Vec<Value> = (0..BATCH).map(message).collect();
        let answer = self.call("POST", "messages/batch", Some(json!({"messages": messages}))).await;
        let results = answer["results"].as_array().expect("results");
        assert!(results.iter().all(|result| result["message_id"].is_u64()), "{answer}");
    }

    /// How many messages a search finds on all its pages, and the first text.
    async fn found(&self, words: &str) -> (usize, String) {
        let (mut count, mut first, mut before) = (0, String::new(), String::new());
        loop {
            let page: Value = {
                let path = format!("api/v1/search?q={words}&limit=200{before}");
                serde_json::from_str(&self.get(&path).await.text().await.expect("a text")).expect("JSON")
            };
            let hits = page["hits"].as_array().expect("hits");
            if let (0, Some(hit)) = (count, hits.first()) {
                first = hit["row"]["body"]["text"].as_str().expect("a text").to_owned();
            }
            count += hits.len();
            match page["next_before"].as_u64() {
                Some(next) => before = format!("&before={next}"),
                None => return (count, first),
            }
        }
    }

    /// A figure of the index.
    async fn metric(&self, name: &str) -> f64 {
        let metrics = self.get("metrics").await.text().await.expect("a text");
        let line = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("{name} in {metrics}"))
    }

    /// Everything is found, by common words and by rare ones.
    async fn finds(&self, batches: u128) {
        let all = (batches * BATCH) as usize;
        let newest = format!("note {} of the tide 北京", all - 1);
        assert_eq!(self.found("tid").await, (all, newest));
        assert_eq!(self.found("%E5%8C%97%E4%BA%AC").await.0, all);
        assert_eq!(self.found("note%20137").await.1, "note 4137 of the tide 北京");
        assert_eq!(self.found("note%20high").await.0, 0);
    }
}

#[tokio::test]
async fn a_search_finds_everything_whatever_becomes_of_the_index() {
    let mut world = World::new().await;
    for batch in 0..BATCHES {
        world.say(batch).await;
        // In the middle of a segment, and of the next flush.
        if batch % 8 == 7 {
            world.kill().await;
            world.start().await;
        }
    }
    world.finds(BATCHES).await;
    let all = (BATCHES * BATCH) as f64;
    let indexed = async |world: &World| {
        until("it is indexed", async || world.metric("tidemark_search_walked").await == 1.0).await;
        until("nothing waits", async || world.metric("tidemark_search_waiting").await == 0.0).await;
        world.metric("tidemark_search_indexed_total").await
    };
    indexed(&world).await;
    world.finds(BATCHES).await;

    // Damaged under a server that runs, and before the next start.
    world.stop().await;
    spoil(&world.index());
    world.start().await;
    world.finds(BATCHES).await;
    until("it is made anew", async || world.metric("tidemark_search_indexed_total").await > all - 1_100.0)
        .await;
    world.finds(BATCHES).await;

    world.stop().await;
    fs::remove_file(world.index()).expect("removed");
    world.start().await;
    world.finds(BATCHES).await;
    assert!(indexed(&world).await > all - 1_100.0, "from nothing");

    let (code, said, errors) = run(world.place.path(), &["search", "rebuild"]).await;
    assert_eq!((code, &*said), (0, "the index is rebuilt\n"), "{errors}");
    assert!(world.metric("tidemark_search_indexed_total").await > 2.0 * (all - 1_100.0), "once more");
    world.finds(BATCHES).await;
    world.stop().await;
}

/// Overwrites what is in the middle of a file's pages.
fn spoil(file: &Path) {
    let mut bytes = fs::read(file).expect("there");
    for page in bytes.chunks_mut(4_096).skip(1) {
        page[100..200].fill(0x5a);
    }
    fs::write(file, bytes).expect("written");
}

#[tokio::test]
async fn without_an_installation_there_is_nothing_to_rebuild() {
    let place = tempfile::tempdir().expect("a directory");
    let (code, _, errors) = run(place.path(), &["search", "rebuild"]).await;
    assert!(code == 1 && errors.contains("no installation"), "{errors}");
}
