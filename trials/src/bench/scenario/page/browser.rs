//! A Chromium that is measured: its driver, and windows with profiles of their own.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep, timeout};

use crate::http::KeptAlive;
use crate::{Failure, Result};

/// How long anything may take before the run fails.
const PATIENCE: Duration = Duration::from_secs(120);
/// The slow line: milliseconds to the server and back, and bytes that go in a second, each way (1.6 Mbit/s).
const SLOW: (u32, i32) = (150, 200_000);
/// Between two looks at a page. The measured times are taken within the page.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// A chromedriver. Dropping it closes its windows and ends it.
pub(super) struct Driver {
    process: Child,
    port: u16,
    profiles: TempDir,
}

impl Driver {
    pub(super) async fn start() -> Result<Driver> {
        let profiles = tempfile::tempdir()?;
        let mut command = Command::new("chromedriver");
        command.arg("--port=0").env("TMPDIR", profiles.path());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
        let mut process = command.spawn().map_err(|error| {
            Failure::new(format!("chromedriver did not start ({error}); install Debian's chromium-driver"))
        })?;
        let output = process.stdout.take().ok_or_else(|| Failure::new("chromedriver has no output"))?;
        let mut lines = BufReader::new(output).lines();
        let listening = async {
            while let Some(line) = lines.next_line().await? {
                let port = line.strip_suffix('.').and_then(|line| line.rsplit_once("successfully on port "));
                if let Some(port) = port.and_then(|(_, port)| port.parse().ok()) {
                    return Ok(port);
                }
            }
            Err(Failure::new("chromedriver ended before it listened"))
        };
        let late = |_| Failure::new("chromedriver did not listen");
        let port = timeout(PATIENCE, listening).await.map_err(late)??;
        // A full pipe would stop it.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Ok(Driver { process, port, profiles })
    }

    /// A new window with a profile of its own, which runs `script` in every page before the page's own scripts.
    pub(super) async fn window(&self, script: &str) -> Result<Window> {
        let profile = tempfile::tempdir_in(self.profiles.path())?.keep();
        let arguments = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--disable-dev-shm-usage",
            "--lang=en-GB",
            "--window-size=1280,800",
            &format!("--user-data-dir={}", profile.display()),
        ];
        let wanted = json!({"browserName": "chrome", "goog:chromeOptions": {"args": arguments}});
        let driver = format!("127.0.0.1:{}", self.port);
        let wanted = json!({"capabilities": {"alwaysMatch": wanted}});
        let session = ask(&driver, "POST", "/session", &wanted).await?;
        let session = session["sessionId"].as_str().ok_or_else(|| Failure::new("a window has no session"))?;
        let window = Window { path: format!("/session/{session}"), driver };
        let source = json!({ "source": script });
        window.devtools("Page.addScriptToEvaluateOnNewDocument", &source).await?;
        Ok(window)
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // Killed, it would leave its windows behind; asked, it closes them first.
        if let Ok(mut stream) = TcpStream::connect(("127.0.0.1", self.port)) {
            let _ = stream.set_read_timeout(Some(PATIENCE));
            let _ =
                stream.write_all(b"GET /shutdown HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n");
            let _ = stream.read_to_end(&mut Vec::new());
        }
        let _ = self.process.start_kill();
    }
}

/// A window. It stays open until it is closed, or its driver ends.
pub(super) struct Window {
    driver: String,
    path: String,
}

/// A call of the driver at `HOST:PORT`, and the value of its answer.
async fn ask(driver: &str, method: &str, path: &str, body: &Value) -> Result<Value> {
    let body = body.to_string();
    let question = format!(
        "{method} {path} HTTP/1.1\r\nHost: {driver}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut connection = KeptAlive::open(driver).await?;
    let answer = connection.ask(question.as_bytes()).await?;
    let mut answer: Value = serde_json::from_slice(answer.body)?;
    Ok(answer["value"].take())
}

impl Window {
    async fn ask(&self, path: &str, body: &Value) -> Result<Value> {
        ask(&self.driver, "POST", &format!("{}{path}", self.path), body).await
    }

    pub(super) async fn close(self) -> Result<()> {
        ask(&self.driver, "DELETE", &self.path, &json!({})).await.map(drop)
    }

    pub(super) async fn goto(&self, url: &str) -> Result<()> {
        self.ask("/url", &json!({ "url": url })).await.map(drop)
    }

    pub(super) async fn reload(&self) -> Result<()> {
        self.ask("/refresh", &json!({})).await.map(drop)
    }

    /// Runs a script, which may `return` something.
    pub(super) async fn run(&self, script: &str) -> Result<Value> {
        self.ask("/execute/sync", &json!({"script": script, "args": []})).await
    }

    /// Runs a script that calls its one argument with the answer.
    pub(super) async fn run_async(&self, script: &str) -> Result<Value> {
        self.ask("/execute/async", &json!({"script": script, "args": []})).await
    }

    /// Waits until an expression is a number, and answers it.
    pub(super) async fn number(&self, expression: &str) -> Result<f64> {
        let script = format!("return {expression}");
        let end = Instant::now() + PATIENCE;
        loop {
            // A page that is just changing has no document to ask.
            if let Ok(value) = self.run(&script).await
                && let Some(number) = value.as_f64()
            {
                return Ok(number);
            }
            if Instant::now() > end {
                return Err(Failure::new(format!("the page never told {expression}")));
            }
            sleep(LOOK_AGAIN).await;
        }
    }

    /// Waits until an expression is true.
    pub(super) async fn until(&self, expression: &str) -> Result<()> {
        self.number(&format!("({expression}) ? 1 : null")).await.map(drop)
    }

    /// The first element that `css` names.
    pub(super) async fn element(&self, css: &str) -> Result<Element<'_>> {
        let found = self.ask("/element", &json!({"using": "css selector", "value": css})).await?;
        let id = found.as_object().and_then(|found| found.values().next()).and_then(Value::as_str);
        let id = id.ok_or_else(|| Failure::new(format!("the page has no {css}")))?;
        Ok(Element { window: self, id: id.to_owned() })
    }

    /// Cuts the window off from the network, or gives it back.
    pub(super) async fn offline(&self, offline: bool) -> Result<()> {
        self.network(offline, (0, -1)).await
    }

    /// From now on the server is at the other end of a slow line.
    pub(super) async fn slow(&self) -> Result<()> {
        self.network(false, SLOW).await
    }

    async fn network(&self, offline: bool, (latency, bytes): (u32, i32)) -> Result<()> {
        self.devtools("Network.enable", &json!({})).await?;
        let network = json!({"offline": offline, "latency": latency, "downloadThroughput": bytes, "uploadThroughput": bytes});
        self.devtools("Network.emulateNetworkConditions", &network).await
    }

    /// A call of the browser's own protocol.
    async fn devtools(&self, command: &str, parameters: &Value) -> Result<()> {
        self.ask("/goog/cdp/execute", &json!({"cmd": command, "params": parameters})).await.map(drop)
    }
}

/// An element of a page.
pub(super) struct Element<'a> {
    window: &'a Window,
    id: String,
}

impl Element<'_> {
    /// Types into it.
    pub(super) async fn send_keys(&self, keys: &str) -> Result<()> {
        self.window.ask(&format!("/element/{}/value", self.id), &json!({ "text": keys })).await.map(drop)
    }
}
