//! A real server, a driver, and people: some in windows, some only over HTTP.

use std::num::NonZero;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::thread::available_parallelism;
use std::time::Duration;

use tempfile::TempDir;
use tidemark::boot;
use tidemark::config::Config;
use tidemark::domain::{Clock, Timestamp};
use tidemark_client::{Draft, Error, Http, RangeQuery, Recipient};
use tidemark_process::Version;
use tidemark_test_support::gate::Gate;
use tidemark_test_support::ports::free_port;
use tidemark_trials::server::Server;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;
use tokio::sync::{Semaphore, SemaphorePermit};
use uuid::Uuid;

use super::browsers::Browsers;
use super::engine::{Engine, PATIENCE};
use super::window::{CONTROL_K, ENTER, Window};

pub(crate) const PASSWORD: &str = "a long enough password";

/// One test for each core, since a browser fills one; beside them, one in Firefox (`firefox`).
static TURNS: LazyLock<Semaphore> = LazyLock::new(|| {
    let cores = available_parallelism().map_or(1, NonZero::get);
    Semaphore::new(if Engine::chosen() == Engine::Firefox { 1 } else { cores.min(MOST_AT_ONCE) })
});

/// However many cores there are.
const MOST_AT_ONCE: usize = 4;

/// The right to use browsers.
pub(crate) struct Turn {
    /// Shared with the tests that wait.
    browsers: Arc<Browsers>,
    _permit: SemaphorePermit<'static>,
}

impl Turn {
    pub(crate) async fn come() -> Turn {
        let browsers = Browsers::shared();
        Turn { browsers, _permit: TURNS.acquire().await.expect("never closed") }
    }
}

/// Everything that a test of the page needs.
pub(crate) struct World {
    pub(crate) server: Server,
    /// Where windows find it: its own address, or that of a gate before it.
    entrance: String,
    data: TempDir,
    turn: Turn,
}

/// Somebody with an account.
pub(crate) struct Person {
    pub(crate) uid: u32,
    pub(crate) http: Http,
}

impl Person {
    /// Says something to another person, over HTTP.
    pub(crate) async fn tells(&self, other: &Person, text: &str) {
        self.send(Recipient::User(other.uid), text).await;
    }

    pub(crate) async fn send(&self, to: Recipient, text: &str) {
        let draft = Draft::text(to, text);
        while_busy(async || self.http.send(&draft).await).await;
    }

    /// Makes a group with these members.
    pub(crate) async fn group(&self, name: &str, members: &[u32]) -> u64 {
        static MADE: AtomicU64 = AtomicU64::new(1);
        let key = Uuid::from_u64_pair(u64::from(self.uid), MADE.fetch_add(1, Ordering::Relaxed));
        while_busy(async || self.http.create_group_as(key, name, members).await).await
    }
}

/// Asks a server again that is busy for the moment.
async fn while_busy<T>(call: impl AsyncFn() -> Result<T, Error>) -> T {
    loop {
        match call().await {
            Err(busy) if busy.is_retryable() => {}
            done => break done.expect("done"),
        }
    }
}

/// Makes the person in the window and these people friends; each of those posts a moment.
pub(crate) async fn befriend(window: &Window, uid: u32, people: &[&Person]) {
    for person in people {
        let key = Uuid::from_u128(u128::from(uid) << 32 | u128::from(person.uid));
        person.http.befriend(key, uid, true).await.expect("asked");
        let wish = format!(
            "const done = arguments[0], body = JSON.stringify({{ client_id: crypto.randomUUID(), wanted: true }});
             fetch('/api/v1/friends/{}', {{ method: 'PUT', headers: {{ 'content-type': 'application/json' }}, body }})
               .then((answer) => done(answer.status));",
            person.uid
        );
        assert_eq!(window.run_async(&wish).await, 201);
        person
            .http
            .post_moment(Uuid::from_u128(key.as_u128() << 64), "Low tide is at **ten**", &[])
            .await
            .expect("posted");
    }
}

impl World {
    pub(crate) async fn start() -> World {
        let turn = Turn::come().await;
        let data = tempfile::tempdir().expect("a folder");
        let server = Server::start(binary(), data.path()).await.expect("starts");
        World::of(server, data, turn)
    }

    /// With tables, and where they are served.
    pub(crate) async fn with_tables() -> (World, String) {
        let turn = Turn::come().await;
        let data = tempfile::tempdir().expect("a folder");
        let tables = format!("127.0.0.1:{}", free_port());
        let settings = [("TIDEMARK_TABLE__LISTEN", tables.clone())];
        let server = Server::start_with(&settings, 0, binary(), data.path()).await.expect("starts");
        (World::of(server, data, turn), format!("http://{tables}"))
    }

    /// With sign-up by invitation alone.
    pub(crate) async fn by_invitation() -> World {
        World::with_sign_up("invitation").await
    }

    /// Where people make accounts in this way (`[accounts] sign_up`).
    pub(crate) async fn with_sign_up(way: &str) -> World {
        let turn = Turn::come().await;
        let data = tempfile::tempdir().expect("a folder");
        let settings = [("TIDEMARK_ACCOUNTS__SIGN_UP", way.to_owned())];
        let server = Server::start_with(&settings, 0, binary(), data.path()).await.expect("starts");
        World::of(server, data, turn)
    }

    /// Makes an account as an operator does.
    pub(crate) async fn add(&self, name: &str) {
        let mut command = Command::new(binary());
        command.args(["user", "add", name, "--password-stdin"]).arg("--data-dir").arg(self.data.path());
        let mut child = command.stdin(Stdio::piped()).spawn().expect("started");
        let mut stdin = child.stdin.take().expect("piped");
        stdin.write_all(PASSWORD.as_bytes()).await.expect("written");
        drop(stdin);
        assert!(child.wait().await.expect("run").success());
    }

    /// Makes an account an operator's, as a command does.
    pub(crate) async fn make_operator(&self, name: &str) {
        let mut command = Command::new(binary());
        command.args(["user", "operator", name, "on"]).arg("--data-dir").arg(self.data.path());
        let done = command.output().await.expect("ran");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }

    fn of(server: Server, data: TempDir, turn: Turn) -> World {
        let entrance = server.address().to_owned();
        World { server, entrance, data, turn }
    }

    /// The same, with a gate through which all windows reach the server.
    pub(crate) async fn behind_a_gate() -> (World, Gate) {
        let mut world = World::start().await;
        let gate = Gate::before(world.entrance.trim_start_matches("http://")).await;
        world.entrance = format!("http://{}", gate.address());
        (world, gate)
    }

    /// Ends the server as a power cut would.
    pub(crate) async fn kill_server(self) -> Gone {
        let World { server, data, turn, .. } = self;
        let port = server.port().expect("a port");
        server.kill().await.expect("killed");
        Gone { port, data, turn }
    }

    /// Stops the server in good order.
    pub(crate) async fn stop_server(self) -> Gone {
        let World { server, data, turn, .. } = self;
        let port = server.port().expect("a port");
        assert!(server.stop().await.expect("stopped").success());
        Gone { port, data, turn }
    }

    /// Makes an access key of tables: its id and its secret.
    pub(crate) async fn access_key(&self, arguments: &[&str]) -> (String, String) {
        let mut command = Command::new(binary());
        command.args(["table", "key", "create", "--json"]).args(arguments);
        let done = command.arg("--data-dir").arg(self.data.path()).output().await.expect("ran");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        let made: serde_json::Value = serde_json::from_slice(&done.stdout).expect("JSON");
        let text = |name: &str| made[name].as_str().expect(name).to_owned();
        (text("access_key_id"), text("access_key_secret"))
    }

    /// An address of the page.
    pub(crate) fn at(&self, path: &str) -> String {
        format!("{}{path}", self.entrance)
    }

    /// An account without a window.
    pub(crate) async fn person(&self, name: &str) -> Person {
        let http = self.server.http().expect("an address");
        let account = http.sign_up(name, PASSWORD).await.expect("signed up");
        Person { uid: account.uid, http: http.with_token(&account.token) }
    }

    pub(crate) async fn window(&self) -> Window {
        Window::open(&self.turn.browsers, Engine::chosen()).await
    }

    /// A window of somebody who has just created an account.
    pub(crate) async fn newcomer(&self, name: &str) -> Window {
        self.enter(name, "accounts").await
    }

    /// A window of somebody who has an account and has just logged in.
    pub(crate) async fn visitor(&self, name: &str) -> Window {
        self.enter(name, "sessions").await
    }

    /// Makes the call that the card makes; the tests of `first_run` use the card itself.
    async fn enter(&self, name: &str, path: &str) -> Window {
        let window = self.window().await;
        // A page that loads nothing.
        window.goto(&self.at("/health")).await;
        let enter = format!(
            "const done = arguments[0], headers = {{ 'content-type': 'application/json' }};
             fetch('/api/v1/{path}', {{ method: 'POST', headers, body: JSON.stringify({}) }}).then((answer) => done(answer.ok));",
            serde_json::json!({"name": name, "password": PASSWORD})
        );
        assert_eq!(window.run_async(&enter).await, true, "{name} comes in");
        window.goto(&self.at("/")).await;
        connected(&window).await;
        window
    }

    /// Logs somebody who has an account in with the card of this window.
    pub(crate) async fn log_in(&self, window: &Window, name: &str) {
        self.use_card(window, name, "/login").await;
    }

    /// Makes an account with the card of this window.
    pub(crate) async fn sign_up(&self, window: &Window, name: &str) {
        self.use_card(window, name, "/sign-up").await;
    }

    async fn use_card(&self, window: &Window, name: &str, card: &str) {
        window.goto(&self.at(card)).await;
        window.until("document.getElementById('sign-in')").await;
        window.write("#name", name).await;
        window.write("#password", &format!("{PASSWORD}{ENTER}")).await;
        connected(window).await;
    }
}

/// A world whose server is dead.
pub(crate) struct Gone {
    port: u16,
    data: TempDir,
    turn: Turn,
}

impl Gone {
    /// Where the server was, and will be again.
    pub(crate) fn address(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// A copy of the server's files.
    pub(crate) fn copy_files(&self) -> TempDir {
        let copy = tempfile::tempdir().expect("a folder");
        copy_folder(self.data.path(), copy.path());
        copy
    }

    /// Puts files back that were copied before, and says so, as an operator would.
    pub(crate) async fn put_back(&mut self, files: TempDir) {
        self.data = files;
        let mut restored = Command::new(binary());
        restored.arg("restored").arg("--data-dir").arg(self.data.path());
        let done = restored.stdin(Stdio::null()).output().await.expect("ran");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }

    /// What was said so long ago: the server is there meanwhile, in this process, by a clock that is behind.
    pub(crate) async fn ago(self, age: Duration, said: impl AsyncFnOnce()) -> Gone {
        let mut config = Config::default();
        config.server.listen = ([127, 0, 0, 1], self.port).into();
        config.storage.data_dir = self.data.path().to_owned();
        let (now, age) = (Clock::system(), age.as_millis() as i64);
        let clock = Clock::new(move || Timestamp(now.now().0 - age));
        let running = boot::start(&config, clock, Version::default()).await.expect("started");
        said().await;
        running.stop(PATIENCE).await.expect("stopped in time");
        self
    }

    /// Starts the server again, at the same address over the same data.
    pub(crate) async fn restart(self) -> World {
        self.restart_with(&[]).await
    }

    /// The same with these settings, named as in the environment.
    pub(crate) async fn restart_with(self, settings: &[(&str, String)]) -> World {
        let Gone { port, data, turn } = self;
        let server = Server::start_with(settings, port, binary(), data.path()).await.expect("starts again");
        World { entrance: server.address().to_owned(), server, data, turn }
    }
}

/// The number of the person in the window.
pub(crate) async fn uid_of(window: &Window) -> u32 {
    let uid = window.run("return Number(document.body.dataset.uid)").await.as_u64().expect("a uid");
    u32::try_from(uid).expect("a uid")
}

/// The name of the database in which the browser keeps the data of the person in the window.
pub(crate) async fn database_of(window: &Window) -> String {
    let name = window.run("return `tidemark-${document.body.dataset.account}`").await;
    name.as_str().expect("a name").to_owned()
}

/// Waits until the page has been told how far the server is: it is connected, and in step.
pub(crate) async fn connected(window: &Window) {
    window.until("document.getElementById('app') && document.body.dataset.phase === 'open'").await;
}

/// How often a text lies in somebody's inbox, by the server's own account.
pub(crate) async fn stored(person: &Person, text: &str) -> usize {
    let page = person.http.range(&RangeQuery::after(0)).await.expect("rows");
    page.rows.iter().filter(|row| row.body.get().contains(text)).count()
}

/// Finds somebody with Ctrl+K and opens the conversation.
pub(crate) async fn find(window: &Window, name: &str) {
    window.press(CONTROL_K).await;
    window.until("document.getElementById('find').open").await;
    window.write("#find-text", name).await;
    window.until("document.querySelector('#find-list li')").await;
    window.write("#find-text", ENTER).await;
    window.until(&format!("document.getElementById('pane-title').textContent === '{name}'")).await;
}

/// Opens a section of the settings.
pub(crate) async fn open_settings(window: &Window, section: &str) {
    window.run(&format!("location.hash = 'settings/{section}'")).await;
    window
        .until(&format!(
            "document.getElementById('settings').open && document.getElementById('settings-{section}').checkVisibility()"
        ))
        .await;
}

/// Opens the panel of the open conversation.
pub(crate) async fn open_about(window: &Window) {
    window.until("!document.getElementById('open-about').hidden").await;
    window.click("#open-about").await;
    window.until("document.getElementById('about').checkVisibility()").await;
}

/// Opens the menu of the person of the open conversation, in the panel.
pub(crate) async fn open_person(window: &Window) {
    open_about(window).await;
    window.click("#about-more").await;
    window.until("document.querySelector('#actions:popover-open button')").await;
}

/// Types a message into the open conversation and sends it.
pub(crate) async fn say(window: &Window, text: &str) {
    window.write("#text", &format!("{text}{ENTER}")).await;
    window.sees(text).await;
}

fn copy_folder(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        if entry.file_type().expect("a type").is_dir() {
            std::fs::create_dir(&target).expect("a folder");
            copy_folder(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).expect("copied");
        }
    }
}

fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_tidemark"))
}
