//! A Chromium that is measured: its driver, and windows with profiles of their own.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Stdio;
use std::time::Duration;

use fantoccini::elements::Element;
use fantoccini::wd::Capabilities;
use fantoccini::{Client, ClientBuilder, Locator};
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep, timeout};

use crate::bench::http::KeptAlive;
use crate::{Failure, Result};

/// How long anything may take before the run fails.
const PATIENCE: Duration = Duration::from_secs(120);
/// Between two looks at a page. What is measured is timed within the page.
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
        let Value::Object(wanted) =
            json!({"browserName": "chrome", "goog:chromeOptions": {"args": arguments}})
        else {
            return Err(Failure::new("capabilities are an object"));
        };
        let address = format!("http://127.0.0.1:{}", self.port);
        let client = ClientBuilder::new(HttpConnector::new())
            .capabilities(Capabilities::from_iter(wanted))
            .connect(&address)
            .await?;
        let session = client.session_id().await?.ok_or_else(|| Failure::new("a window has no session"))?;
        let window = Window { client, driver: format!("127.0.0.1:{}", self.port), session };
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

/// A window.
pub(super) struct Window {
    client: Client,
    driver: String,
    session: String,
}

impl Window {
    pub(super) async fn goto(&self, url: &str) -> Result<()> {
        Ok(self.client.goto(url).await?)
    }

    pub(super) async fn reload(&self) -> Result<()> {
        Ok(self.client.refresh().await?)
    }

    /// Runs a script, which may `return` something.
    pub(super) async fn run(&self, script: &str) -> Result<Value> {
        Ok(self.client.execute(script, Vec::new()).await?)
    }

    /// Runs a script that calls its one argument with the answer.
    pub(super) async fn run_async(&self, script: &str) -> Result<Value> {
        Ok(self.client.execute_async(script, Vec::new()).await?)
    }

    /// Waits until an expression is a number, and answers it.
    pub(super) async fn number(&self, expression: &str) -> Result<f64> {
        let script = format!("return {expression}");
        let end = Instant::now() + PATIENCE;
        loop {
            // A page that is just changing has no document to ask.
            if let Ok(value) = self.client.execute(&script, Vec::new()).await
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

    pub(super) async fn element(&self, css: &str) -> Result<Element> {
        Ok(self.client.find(Locator::Css(css)).await?)
    }

    /// Cuts the window off from the network, or gives it back.
    pub(super) async fn offline(&self, offline: bool) -> Result<()> {
        self.devtools("Network.enable", &json!({})).await?;
        let network =
            json!({"offline": offline, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1});
        self.devtools("Network.emulateNetworkConditions", &network).await
    }

    /// A call of the browser's own protocol.
    async fn devtools(&self, command: &str, parameters: &Value) -> Result<()> {
        let call = json!({"cmd": command, "params": parameters}).to_string();
        let question = format!(
            "POST /session/{}/goog/cdp/execute HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{call}",
            self.session,
            self.driver,
            call.len()
        );
        let mut connection = KeptAlive::open(&self.driver).await?;
        let answer = connection.ask(question.as_bytes()).await?;
        let answer: Value = serde_json::from_slice(answer.body)?;
        if answer["value"]["error"].is_null() {
            return Ok(());
        }
        Err(Failure::new(format!("{command}: {answer}")))
    }
}
