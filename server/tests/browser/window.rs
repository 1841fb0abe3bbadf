//! One browser window with a profile of its own, driven over WebDriver, and the driver behind it.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Stdio;
use std::time::Duration;

use fantoccini::wd::Capabilities;
use fantoccini::{Client, ClientBuilder, Locator};
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep, timeout};

/// Far longer than anything here takes; a test that needs it has failed.
const PATIENCE: Duration = Duration::from_secs(30);
/// Between two looks at a page: the one place where another process is asked again and again.
const LOOK_AGAIN: Duration = Duration::from_millis(25);

pub(crate) const ENTER: &str = "\u{E007}";
pub(crate) const SHIFT_ENTER: &str = "\u{E008}\u{E007}\u{E000}";
pub(crate) const CONTROL_K: &str = "\u{E009}k\u{E000}";
pub(crate) const ALT_DOWN: &str = "\u{E00A}\u{E015}\u{E000}";
pub(crate) const DOWN: &str = "\u{E015}";
pub(crate) const ESCAPE: &str = "\u{E00C}";
pub(crate) const BACKSPACE: &str = "\u{E003}";

/// A chromedriver on a port that it chose. Dropping it closes its browsers and ends it.
pub(crate) struct Driver {
    process: Child,
    port: u16,
    /// Profiles and what else browsers leave behind; gone after them.
    place: TempDir,
}

impl Driver {
    pub(crate) async fn start() -> Driver {
        let place = tempfile::tempdir().expect("a folder");
        let mut command = Command::new("chromedriver");
        command
            .arg("--port=0")
            .env("TMPDIR", place.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut process = command
            .kill_on_drop(true)
            .spawn()
            .expect("chromedriver: install Debian's chromium and chromium-driver");
        let mut lines = BufReader::new(process.stdout.take().expect("its output")).lines();
        let listening = async {
            while let Some(line) = lines.next_line().await.expect("its output") {
                let port = line.strip_suffix('.').and_then(|line| line.rsplit_once("successfully on port "));
                if let Some((_, port)) = port {
                    return port.parse().expect("a port");
                }
            }
            panic!("chromedriver ended before it listened");
        };
        let port = timeout(PATIENCE, listening).await.expect("chromedriver listens");
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Driver { process, port, place }
    }

    fn address(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // Killed, it would leave its browsers behind; asked, it closes them first.
        if let Ok(mut stream) = TcpStream::connect(("127.0.0.1", self.port)) {
            let _ = stream.set_read_timeout(Some(PATIENCE));
            let _ =
                stream.write_all(b"GET /shutdown HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n");
            let _ = stream.read_to_end(&mut Vec::new());
        }
        let _ = self.process.start_kill();
    }
}

/// A window, and the way to look and type in it.
pub(crate) struct Window {
    client: Client,
    session: String,
    http: reqwest::Client,
}

impl Window {
    pub(crate) async fn open(driver: &Driver) -> Window {
        let profile = tempfile::tempdir_in(driver.place.path()).expect("a folder").keep();
        let arguments = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--disable-dev-shm-usage",
            "--hide-scrollbars",
            "--lang=en-GB",
            "--window-size=1280,800",
        ];
        let mut arguments = Vec::from(arguments.map(str::to_owned));
        arguments.push(format!("--user-data-dir={}", profile.display()));
        let wanted = json!({"browserName": "chrome", "goog:chromeOptions": {"args": arguments}});
        let Value::Object(wanted) = wanted else { unreachable!("an object was written") };
        let client = ClientBuilder::new(HttpConnector::new())
            .capabilities(Capabilities::from_iter(wanted))
            .connect(&driver.address())
            .await
            .expect("a window");
        let id = client.session_id().await.expect("a session").expect("a session");
        let session = format!("{}/session/{id}", driver.address());
        let window = Window { client, session, http: reqwest::Client::new() };
        window.size(1280, 800).await;
        window
    }

    pub(crate) async fn goto(&self, url: &str) {
        self.client.goto(url).await.expect("the page");
    }

    pub(crate) async fn reload(&self) {
        self.client.refresh().await.expect("the page");
    }

    pub(crate) async fn back(&self) {
        self.client.back().await.expect("the page before");
    }

    pub(crate) async fn title(&self) -> String {
        self.client.title().await.expect("a title")
    }

    /// Opens a second tab of the same browser and goes there.
    pub(crate) async fn new_tab(&self, url: &str) {
        let tab = self.client.new_window(true).await.expect("a tab");
        self.client.switch_to_window(tab.handle).await.expect("the tab");
        self.goto(url).await;
    }

    /// Closes the tab that is in front.
    pub(crate) async fn close_tab(&self) {
        self.client.close_window().await.expect("closed");
    }

    /// Goes to the tab that was opened at this place in the order, from 0.
    pub(crate) async fn tab(&self, place: usize) {
        let tabs = self.client.windows().await.expect("tabs");
        self.client.switch_to_window(tabs[place].clone()).await.expect("the tab");
    }

    /// Runs a script, which may `return` something.
    pub(crate) async fn run(&self, script: &str) -> Value {
        self.client.execute(script, Vec::new()).await.unwrap_or_else(|error| panic!("{script}: {error}"))
    }

    /// Runs a script that calls its one argument with the answer.
    pub(crate) async fn run_async(&self, script: &str) -> Value {
        self.client
            .execute_async(script, Vec::new())
            .await
            .unwrap_or_else(|error| panic!("{script}: {error}"))
    }

    /// Waits until an expression is true in the page.
    pub(crate) async fn until(&self, expression: &str) {
        let script = format!("return Boolean({expression})");
        let end = Instant::now() + PATIENCE;
        // A page that is just changing has no document to ask.
        while !matches!(self.client.execute(&script, Vec::new()).await, Ok(Value::Bool(true))) {
            assert!(Instant::now() < end, "never true: {expression}\nthe page says: {}", self.text().await);
            sleep(LOOK_AGAIN).await;
        }
    }

    async fn text(&self) -> String {
        self.run("return document.title + ' | ' + document.body.innerText").await.to_string()
    }

    /// Waits until a message with exactly this text is shown.
    pub(crate) async fn sees(&self, text: &str) {
        self.until(&format!("{} > 0", count(text))).await;
    }

    /// How many messages with exactly this text are shown.
    pub(crate) async fn copies(&self, text: &str) -> u64 {
        self.run(&format!("return {}", count(text))).await.as_u64().expect("a number")
    }

    pub(crate) async fn click(&self, css: &str) {
        let element = self.client.find(Locator::Css(css)).await.unwrap_or_else(|_| panic!("no {css}"));
        element.click().await.unwrap_or_else(|error| panic!("{css}: {error}"));
    }

    /// Types into an element.
    pub(crate) async fn write(&self, css: &str, keys: &str) {
        let element = self.client.find(Locator::Css(css)).await.unwrap_or_else(|_| panic!("no {css}"));
        element.send_keys(keys).await.unwrap_or_else(|error| panic!("{css}: {error}"));
    }

    /// Types to whatever has the focus.
    pub(crate) async fn press(&self, keys: &str) {
        let element = self.client.active_element().await.expect("a focus");
        element.send_keys(keys).await.expect("typed");
    }

    /// Clicks the conversation with this title in the list.
    pub(crate) async fn pick(&self, title: &str) {
        let row = format!(
            "[...document.querySelectorAll('#list a')].find((row) => row.querySelector('.title').textContent === {})",
            json!(title)
        );
        self.until(&row).await;
        self.run(&format!("{row}.click()")).await;
        self.until(&format!("document.getElementById('pane-title').textContent === {}", json!(title))).await;
    }

    /// The page's size in CSS pixels.
    pub(crate) async fn size(&self, width: u32, height: u32) {
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.devtools("Emulation.setDeviceMetricsOverride", size).await;
    }

    /// Cuts the browser off from the network, or gives it back.
    pub(crate) async fn offline(&self, offline: bool) {
        self.devtools("Network.enable", json!({})).await;
        let network =
            json!({"offline": offline, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1});
        self.devtools("Network.emulateNetworkConditions", network).await;
    }

    /// Runs a script in every page before its own.
    pub(crate) async fn before_every_page(&self, script: &str) {
        self.devtools("Page.addScriptToEvaluateOnNewDocument", json!({"source": script})).await;
    }

    /// A call of the browser's own protocol.
    pub(crate) async fn devtools(&self, command: &str, parameters: Value) -> Value {
        let call = json!({"cmd": command, "params": parameters}).to_string();
        let request = self.http.post(format!("{}/goog/cdp/execute", self.session)).body(call);
        let answer = request.send().await.expect("an answer").text().await.expect("an answer");
        let mut answer: Value = serde_json::from_str(&answer).expect("JSON");
        assert!(answer["value"]["error"].is_null(), "{command}: {answer}");
        answer["value"].take()
    }

    pub(crate) async fn picture(&self) -> Vec<u8> {
        self.client.screenshot().await.expect("a picture")
    }
}

fn count(text: &str) -> String {
    let same = format!("(words) => [...words.childNodes].some((node) => node.data === {})", json!(text));
    format!("[...document.querySelectorAll('.words')].filter({same}).length")
}
