//! A whole server in the test's process: real router, port 0, and a real database of its own: SQLite or PostgreSQL.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tempfile::TempDir;
use tidemark::boot::{self, BootError, RunningServer};
use tidemark::config::Config;
use tidemark::domain::{Clock, Timestamp};
use tidemark::store::postgres::Replication;
use tidemark::store::sqlite::OpenError;
use tidemark_process::Version;
use tidemark_test_support::servers::postgres::durable_database;
pub(crate) use tidemark_test_support::until::PATIENCE;
use tidemark_test_support::until::until;
use uuid::Uuid;

pub(crate) mod contract;
mod database_clock;
pub(crate) mod distributed;
pub(crate) mod socket;

pub(crate) use socket::Socket;

/// When every test begins, in milliseconds since 1970.
const FIRST_MOMENT: i64 = 1_795_261_438_042;

/// Names are made in order, so that a failing test fails the same way again.
pub(crate) fn client_id(n: u128) -> String {
    Uuid::from_u128(0x1111_1111_1111_4111_8111_0000_0000_0000 + n).to_string()
}

/// The database that a server stores in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Database {
    Sqlite,
    Postgres,
    /// PostgreSQL with distributed tables.
    Distributed,
}

impl Database {
    /// The one that this run of the tests is asked to use.
    #[expect(clippy::disallowed_methods, reason = "an argument of the tests, not of the program")]
    pub(crate) fn asked() -> Database {
        match std::env::var("TEST_DATABASE").as_deref() {
            Err(_) | Ok("sqlite") => Database::Sqlite,
            Ok("postgres") => Database::Postgres,
            Ok("distributed") => Database::Distributed,
            Ok(other) => {
                panic!("TEST_DATABASE is sqlite, postgres or distributed, and not {other:?}")
            }
        }
    }

    /// Whether it is PostgreSQL.
    pub(crate) fn is_postgres(self) -> bool {
        self != Database::Sqlite
    }

    /// A server with the defaults, and passwords that cost little.
    pub(crate) async fn start(self) -> TestApp {
        self.start_with(|_| {}).await
    }

    /// The same, with the configuration changed.
    pub(crate) async fn start_with(self, change: impl FnOnce(&mut Config)) -> TestApp {
        self.start_late(Duration::ZERO, change).await
    }

    /// The same on PostgreSQL, where the server's role may not do what a test needs: this URL is that of the database's owner.
    pub(crate) async fn start_prepared(self, owner: &str, change: impl FnOnce(&mut Config)) -> TestApp {
        database_clock::begin(owner, FIRST_MOMENT).await;
        self.start_with(change).await
    }

    /// The same, with a wall clock that is ahead by this time.
    pub(crate) async fn start_late(
        self,
        clock_is_off: Duration,
        change: impl FnOnce(&mut Config),
    ) -> TestApp {
        TestApp::over(self, clock_is_off, change).await
    }
}

/// Whether this run of the tests uses PostgreSQL.
pub(crate) fn is_on_postgres() -> bool {
    Database::asked().is_postgres()
}

/// A server, and the way to talk to it.
pub(crate) struct TestApp {
    running: Option<RunningServer>,
    database: Database,
    pub(crate) config: Config,
    pub(crate) address: String,
    /// Where the metrics are, if they have an address of their own.
    pub(crate) metrics_address: Option<std::net::SocketAddr>,
    http: reqwest::Client,
    time: Arc<AtomicI64>,
    /// Dropped last: the files of the server.
    _place: TempDir,
}

/// Somebody who is logged in.
#[derive(Clone, Debug)]
pub(crate) struct Person {
    pub(crate) uid: u64,
    pub(crate) name: String,
    pub(crate) token: String,
}

/// An answer of the server.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: reqwest::header::HeaderMap,
    pub(crate) text: String,
}

impl Answer {
    /// The body, which must be JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    /// A header's text; empty when there is none.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// Checks that this is a refusal in full form, and returns its code.
    #[track_caller]
    pub(crate) fn refused(&self, status: u16) -> String {
        assert_eq!(self.status, status, "{}", self.text);
        assert_eq!(self.header("content-type"), "application/problem+json");
        let problem = self.json();
        assert_eq!(problem["status"], status);
        let code = problem["code"].as_str().expect("a code");
        assert_eq!(problem["type"], format!("/docs#code-{code}"));
        for field in ["title", "detail"] {
            assert!(problem[field].as_str().is_some_and(|text| !text.is_empty()), "{field} in {problem}");
        }
        assert!(problem["retryable"].is_boolean());
        problem["code"].as_str().expect("a code").to_owned()
    }

    /// Checks that it went well, and returns the body.
    #[track_caller]
    pub(crate) fn ok(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.text);
        if self.text.is_empty() { Value::Null } else { self.json() }
    }
}

impl TestApp {
    /// A server with the defaults, and passwords that cost little.
    pub(crate) async fn start() -> TestApp {
        TestApp::start_with(|_| {}).await
    }

    /// The same, with the configuration changed.
    pub(crate) async fn start_with(change: impl FnOnce(&mut Config)) -> TestApp {
        Database::asked().start_with(change).await
    }

    async fn over(database: Database, clock_is_off: Duration, change: impl FnOnce(&mut Config)) -> TestApp {
        let place = tempfile::tempdir().expect("a directory");
        let mut config = Config::default();
        config.server.listen = ([127, 0, 0, 1], 0).into();
        // One queue writes all copies of a message in one transaction: an answer means that everyone has it.
        config.queues.count = 1;
        config.storage.data_dir = place.path().join("data");
        match database {
            Database::Sqlite => {}
            Database::Postgres => config.storage.database_url = durable_database().await.into(),
            Database::Distributed => {
                config.storage.database_url = distributed::database().await.into();
                config.storage.replication = Replication::Synchronous;
            }
        }
        config.accounts.password_memory_kib = 8;
        change(&mut config);
        config.check().expect("a good configuration");
        let time = Arc::new(AtomicI64::new(FIRST_MOMENT + clock_is_off.as_millis() as i64));
        if database.is_postgres() {
            let storage = &config.storage;
            // A pooler's connections may be older than what is set here.
            let direct =
                if storage.listen_url.is_empty() { &storage.database_url } else { &storage.listen_url };
            database_clock::begin(direct.with_password(), FIRST_MOMENT).await;
        }
        let mut app = TestApp {
            running: None,
            database,
            address: String::new(),
            metrics_address: None,
            http: reqwest::Client::builder()
                .redirect(reqwest::redirect::Policy::none())
                .timeout(PATIENCE)
                .build()
                .expect("a client"),
            config,
            time,
            _place: place,
        };
        app.boot().await;
        app
    }

    async fn boot(&mut self) {
        let time = Arc::clone(&self.time);
        let clock = Clock::new(move || Timestamp(time.load(Ordering::Relaxed)));
        let mut started = None;
        // A program that a test beside this one starts holds what it inherits, the lock of the files that were closed a moment ago too,
        // until it has become that program.
        until("the database is not in use", async || {
            started = Some(boot::start(&self.config, clock.clone(), Version::default()).await);
            !matches!(started, Some(Err(BootError::Open(OpenError::InUse { .. }))))
        })
        .await;
        let running = started.expect("tried").expect("started");
        self.address = running.address().to_string();
        self.metrics_address = running.metrics_address();
        self.running = Some(running);
    }

    /// Moves the server's clock, and that of its database.
    pub(crate) async fn pass(&self, time: Duration) {
        TestApp::pass_together(&[self], time).await;
    }

    /// Moves the clocks of servers of one database, and that of the database.
    pub(crate) async fn pass_together(servers: &[&TestApp], time: Duration) {
        let own = || {
            for server in servers {
                server.time.fetch_add(time.as_millis() as i64, Ordering::Relaxed);
            }
        };
        if servers[0].database.is_postgres() {
            let url = &servers[0].config.storage.database_url;
            database_clock::pass(url.with_password(), time, own).await;
        } else {
            own();
        }
    }

    /// Stops it in good order.
    pub(crate) async fn stop(&mut self) {
        self.stop_within(PATIENCE).await;
    }

    /// Stops it in good order, which may take so long.
    pub(crate) async fn stop_within(&mut self, limit: Duration) {
        let running = self.running.take().expect("running");
        running.stop(limit).await.expect("stopped in time");
    }

    /// Waits until the server says that it must not serve on.
    pub(crate) async fn must_end(&self) -> String {
        let running = self.running.as_ref().expect("running");
        tokio::time::timeout(PATIENCE, running.must_end()).await.expect("noticed in time")
    }

    /// Starts it again after a stop, over the same files.
    pub(crate) async fn start_again(&mut self) {
        self.boot().await;
    }

    /// Stops it in good order and starts it again over the same files, on another port.
    pub(crate) async fn restart(&mut self) {
        self.stop().await;
        self.boot().await;
    }

    /// A request to be changed and sent.
    pub(crate) fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        self.http.request(method, format!("http://{}{path}", self.address))
    }

    /// Sends a request. The answer must be one that the description of the interface names.
    pub(crate) async fn send(&self, request: reqwest::RequestBuilder) -> Answer {
        let contract = contract::contract().await;
        let asked = request.try_clone().and_then(|request| request.build().ok());
        let answer = self.send_unjudged(request).await;
        if let Some(asked) = asked {
            let (method, path) = (asked.method(), asked.url().path());
            let body = asked.body().and_then(reqwest::Body::as_bytes);
            if let Err(wrong) = contract.judge(method, path, body, &answer) {
                panic!("{method} {path} was answered {} {}: {wrong}", answer.status, answer.text);
            }
        }
        answer
    }

    /// Sends a request, and takes any answer.
    pub(crate) async fn send_unjudged(&self, request: reqwest::RequestBuilder) -> Answer {
        let response = request.send().await.expect("an answer");
        let (status, headers) = (response.status(), response.headers().clone());
        Answer { status, headers, text: response.text().await.expect("a text") }
    }

    pub(crate) async fn get(&self, who: &Person, path: &str) -> Answer {
        self.send(self.request(Method::GET, path).bearer_auth(&who.token)).await
    }

    pub(crate) async fn post(&self, who: &Person, path: &str, body: Value) -> Answer {
        self.send(self.request(Method::POST, path).bearer_auth(&who.token).json(&body)).await
    }

    pub(crate) async fn put(&self, who: &Person, path: &str, body: Value) -> Answer {
        self.send(self.request(Method::PUT, path).bearer_auth(&who.token).json(&body)).await
    }

    pub(crate) async fn delete(&self, who: &Person, path: &str) -> Answer {
        self.send(self.request(Method::DELETE, path).bearer_auth(&who.token)).await
    }

    /// A request of somebody who is not logged in.
    pub(crate) async fn post_as_nobody(&self, path: &str, body: Value) -> Answer {
        self.send(self.request(Method::POST, path).json(&body)).await
    }

    pub(crate) async fn sign_up(&self, name: &str) -> Person {
        let body = json!({"name": name, "password": "correct horse"});
        person(self.post_as_nobody("/api/v1/accounts", body).await.ok(201))
    }

    pub(crate) async fn log_in(&self, name: &str) -> Person {
        let body = json!({"name": name, "password": "correct horse"});
        person(self.post_as_nobody("/api/v1/sessions", body).await.ok(201))
    }

    /// Says `text` to a person under the `n`th name, and returns the id of the sender's copy.
    pub(crate) async fn say(&self, from: &Person, to: &Person, n: u128, text: &str) -> u64 {
        let body = message(n, json!({"user": to.uid}), text);
        self.post(from, "/api/v1/messages", body).await.ok(201)["message_id"].as_u64().expect("an id")
    }

    /// All rows of `who`, oldest first.
    pub(crate) async fn rows(&self, who: &Person) -> Vec<Value> {
        let page = self.get(who, "/api/v1/range").await.ok(200);
        assert_eq!(page["next_start"], Value::Null);
        page["rows"].as_array().expect("rows").clone()
    }

    /// Opens a socket with the person's token.
    pub(crate) async fn socket(&self, who: &Person) -> Socket {
        Socket::open(&self.address, &format!("Bearer {}", who.token)).await
    }
}

/// A message as clients write it.
pub(crate) fn message(n: u128, to: Value, text: &str) -> Value {
    json!({"client_id": client_id(n), "to": to, "body": {"text": text}})
}

/// The texts of message rows.
pub(crate) fn texts(rows: &[Value]) -> Vec<&str> {
    rows.iter().filter_map(|row| row["body"]["text"].as_str()).collect()
}

fn person(account: Value) -> Person {
    Person {
        uid: account["uid"].as_u64().expect("a uid"),
        name: account["name"].as_str().expect("a name").to_owned(),
        token: account["token"].as_str().expect("a token").to_owned(),
    }
}
