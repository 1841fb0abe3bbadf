//! The browsers that the tests run in, and the driver of each: chromedriver of Debian, geckodriver of crates.io.
//!
//! `TEST_BROWSER=firefox` runs any test in Firefox; without it the tests run in Chromium.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::Stdio;
use std::sync::LazyLock;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use super::packages::{installed, run};
pub(crate) use tidemark_test_support::until::PATIENCE;

/// How long a driver may take to close its browser: geckodriver ends one by force after a minute.
const SHUTDOWN: Duration = Duration::from_secs(90);

/// The variable that names the browser.
pub(crate) const VARIABLE: &str = "TEST_BROWSER";

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Engine {
    Chromium,
    Firefox,
}

impl Engine {
    /// The one that this run is for.
    pub(crate) fn chosen() -> Engine {
        match std::env::var_os(VARIABLE).as_deref().and_then(std::ffi::OsStr::to_str) {
            None | Some("chromium") => Engine::Chromium,
            Some("firefox") => Engine::Firefox,
            Some(other) => panic!("{VARIABLE} is chromium or firefox, not {other}"),
        }
    }

    fn command(self) -> Command {
        match self {
            Engine::Chromium => {
                let mut command = Command::new("chromedriver");
                command.arg("--port=0");
                command
            }
            Engine::Firefox => {
                let mut command = Command::new(GECKODRIVER.as_path());
                // Preferences and the network are set by scripts of the browser itself.
                command.args(["--port=0", "--websocket-port=0", "--allow-system-access"]);
                command
            }
        }
    }

    /// The port, if it is in this line of the driver's output.
    fn port(self, line: &str) -> Option<u16> {
        let (_, port) = match self {
            Engine::Chromium => line.strip_suffix('.')?.rsplit_once("successfully on port ")?,
            Engine::Firefox => line.rsplit_once("Listening on 127.0.0.1:")?,
        };
        Some(port.parse().expect("a port"))
    }

    /// The capabilities asked of the driver for a browser; its profile is in that folder.
    pub(crate) fn capabilities(self, profile: &Path) -> Value {
        match self {
            Engine::Chromium => {
                let mut arguments = Vec::from(CHROMIUM.map(str::to_owned));
                arguments.push(format!("--user-data-dir={}", profile.display()));
                json!({"browserName": "chrome", "goog:chromeOptions": {"args": arguments}})
            }
            Engine::Firefox => json!({"browserName": "firefox", "webSocketUrl": true,
            "moz:firefoxOptions": {"binary": "/usr/bin/firefox-esr", "args": ["-headless"], "prefs": {
                "intl.accept_languages": "en-GB, en",
                // JSON is a page like any other.
                "devtools.jsonview.enabled": false,
                // There is no network but this machine's; without it, offline is what people know.
                "network.disable-localhost-when-offline": true,
                "network.manage-offline-status": false,
                "dom.webnotifications.requireuserinteraction": false,
                "alerts.useSystemBackend": false,
                // Nothing moves while a test looks at it.
                "ui.prefersReducedMotion": 1,
            }}}),
        }
    }
}

const CHROMIUM: [&str; 13] = [
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
    // Nothing moves while a test looks at it.
    "--force-prefers-reduced-motion",
    "--window-size=1280,800",
];

/// Debian has none: built once, from crates.io.
static GECKODRIVER: LazyLock<std::path::PathBuf> = LazyLock::new(|| {
    let folder = installed("geckodriver-0.37.1", |folder| {
        let mut cargo = std::process::Command::new(env!("CARGO"));
        cargo.args(["install", "--quiet", "--locked", "--debug", "--version", "0.37.1", "--root"]);
        // Nobody looks into it: built without what debuggers need, which is a quarter faster.
        cargo.env("CARGO_PROFILE_DEV_DEBUG", "false");
        run(cargo.arg(folder).arg("geckodriver"));
    });
    folder.join("bin/geckodriver")
});

/// The driver of one browser, on a port that it chose. Dropping it closes the browser and ends it.
pub(crate) struct Driver {
    process: Child,
    port: u16,
    /// Set when there is a browser to close.
    pub(crate) session: Option<String>,
    /// The profile and what else a browser leaves behind; gone after it.
    pub(crate) place: TempDir,
}

impl Driver {
    pub(crate) async fn start(engine: Engine) -> Driver {
        let place = tempfile::tempdir().expect("a folder");
        let mut command = engine.command();
        command.env("TMPDIR", place.path()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command
            .kill_on_drop(true)
            .spawn()
            .expect("the driver: install Debian's chromium, chromium-driver and firefox-esr");
        let mut lines = BufReader::new(process.stdout.take().expect("its output")).lines();
        let listening = async {
            while let Some(line) = lines.next_line().await.expect("its output") {
                if let Some(port) = engine.port(&line) {
                    return port;
                }
            }
            panic!("the driver ended before it listened");
        };
        let port = timeout(PATIENCE, listening).await.expect("the driver listens");
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Driver { process, port, session: None, place }
    }

    pub(crate) fn address(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // Killed, it would leave its browser behind; asked, it closes it first.
        let asked = self.session.as_ref().map(|id| {
            let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
            stream.set_read_timeout(Some(SHUTDOWN))?;
            write!(
                stream,
                "DELETE /session/{id} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: close\r\n\r\n",
                self.port
            )?;
            // One answer; the connection may stay.
            stream.read(&mut [0; 512])
        });
        drop(asked);
        let _ = self.process.start_kill();
    }
}
