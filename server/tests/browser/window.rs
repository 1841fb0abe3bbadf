//! One browser window with a profile of its own, driven over WebDriver. Its browser serves another one afterwards.

use std::sync::Arc;
use std::time::Duration;

use fantoccini::error::{CmdError, ErrorStatus};
use fantoccini::{Client, Locator};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::browsers::{Browser, Browsers};
use super::engine::{Engine, PATIENCE};
use super::own::Own;

/// Between two looks at a page: the one place where another process is asked again and again.
const LOOK_AGAIN: Duration = Duration::from_millis(25);

pub(crate) const ENTER: &str = "\u{E007}";
pub(crate) const SHIFT_ENTER: &str = "\u{E008}\u{E007}\u{E008}";
pub(crate) const CONTROL_K: &str = "\u{E009}k\u{E009}";
pub(crate) const CONTROL_F: &str = "\u{E009}f\u{E009}";
pub(crate) const ALT_DOWN: &str = "\u{E00A}\u{E015}\u{E00A}";
pub(crate) const DOWN: &str = "\u{E015}";
pub(crate) const UP: &str = "\u{E013}";
pub(crate) const RIGHT: &str = "\u{E014}";
pub(crate) const HOME: &str = "\u{E011}";
pub(crate) const END: &str = "\u{E010}";
pub(crate) const TAB: &str = "\u{E004}";
pub(crate) const ESCAPE: &str = "\u{E00C}";
pub(crate) const BACKSPACE: &str = "\u{E003}";

/// The colours that a person asks of all pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Colours {
    Light,
    Dark,
    /// The few of the system, whatever pages say.
    Forced,
}

pub(crate) const COLOURS: [Colours; 3] = [Colours::Light, Colours::Dark, Colours::Forced];

/// A window, and the way to look and type in it.
pub(crate) struct Window {
    /// There until the window is closed.
    browser: Option<Browser>,
    browsers: Arc<Browsers>,
}

impl Window {
    pub(crate) async fn open(browsers: &Arc<Browsers>, engine: Engine) -> Window {
        let browser = browsers.take(engine).await;
        let window = Window { browser: Some(browser), browsers: browsers.clone() };
        window.size(1280, 800).await;
        window
    }

    fn browser(&self) -> &Browser {
        self.browser.as_ref().expect("an open window")
    }

    fn client(&self) -> &Client {
        &self.browser().client
    }

    fn own(&self) -> &Own {
        &self.browser().own
    }

    pub(crate) async fn goto(&self, url: &str) {
        self.client().goto(url).await.expect("the page");
    }

    pub(crate) async fn reload(&self) {
        match self.own() {
            Own::Chromium(_) => self.client().refresh().await.expect("the page"),
            // Its driver reloads as Shift+F5 does, past the service worker.
            Own::Firefox(_) => {
                self.run("window.isOld = true; location.reload()").await;
                self.until("!window.isOld && document.readyState === 'complete'").await;
            }
        }
    }

    pub(crate) async fn back(&self) {
        self.client().back().await.expect("the page before");
    }

    pub(crate) async fn title(&self) -> String {
        self.client().title().await.expect("a title")
    }

    /// Opens a second tab of the same browser and goes there.
    pub(crate) async fn new_tab(&self, url: &str) {
        let tab = self.client().new_window(true).await.expect("a tab");
        self.client().switch_to_window(tab.handle).await.expect("the tab");
        self.goto(url).await;
    }

    /// Closes the tab that is in front.
    pub(crate) async fn close_tab(&self) {
        self.client().close_window().await.expect("closed");
    }

    /// Goes to the tab that was opened at this place in the order, from 0.
    pub(crate) async fn tab(&self, place: usize) {
        let tabs = self.client().windows().await.expect("tabs");
        self.client().switch_to_window(tabs[place].clone()).await.expect("the tab");
    }

    async fn tab_in_front(&self) -> String {
        self.client().window().await.expect("a tab").into()
    }

    /// Runs a script, which may `return` something.
    pub(crate) async fn run(&self, script: &str) -> Value {
        self.client().execute(script, Vec::new()).await.unwrap_or_else(|error| panic!("{script}: {error}"))
    }

    /// Runs a script that calls its one argument with the answer.
    pub(crate) async fn run_async(&self, script: &str) -> Value {
        self.client()
            .execute_async(script, Vec::new())
            .await
            .unwrap_or_else(|error| panic!("{script}: {error}"))
    }

    /// Waits until an expression is true in the page.
    pub(crate) async fn until(&self, expression: &str) {
        let script = format!("return Boolean({expression})");
        let end = Instant::now() + PATIENCE;
        // A page that is just changing has no document to ask.
        while !matches!(self.client().execute(&script, Vec::new()).await, Ok(Value::Bool(true))) {
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

    /// Clicks an element as a person does: once it can be clicked.
    pub(crate) async fn click(&self, css: &str) {
        let end = Instant::now() + PATIENCE;
        loop {
            let clicked = match self.client().find(Locator::Css(css)).await {
                Ok(element) => element.click().await,
                Err(error) => Err(error),
            };
            match clicked {
                Ok(()) => return,
                // It is about to come, to be shown, or to be replaced by another one.
                Err(CmdError::Standard(error)) if is_passing(&error.error) && Instant::now() < end => {}
                Err(error) => panic!("{css}: {error}\nthe page says: {}", self.text().await),
            }
            sleep(LOOK_AGAIN).await;
        }
    }

    /// Types into an element.
    pub(crate) async fn write(&self, css: &str, keys: &str) {
        let element = self.client().find(Locator::Css(css)).await.unwrap_or_else(|_| panic!("no {css}"));
        element.send_keys(keys).await.unwrap_or_else(|error| panic!("{css}: {error}"));
    }

    /// Types to whatever has the focus.
    pub(crate) async fn press(&self, keys: &str) {
        let element = self.client().active_element().await.expect("a focus");
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
        match self.own() {
            Own::Chromium(devtools) => {
                let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
                devtools.call("Emulation.setDeviceMetricsOverride", size).await;
            }
            Own::Firefox(bidi) => {
                let tab = self.tab_in_front().await;
                let size = json!({"context": tab, "viewport": {"width": width, "height": height}});
                bidi.call("browsingContext.setViewport", size).await;
            }
        }
    }

    /// Cuts the browser off from the network, or gives it back.
    pub(crate) async fn offline(&self, offline: bool) {
        match self.own() {
            Own::Chromium(devtools) => {
                devtools.call("Network.enable", json!({})).await;
                let network = json!({"offline": offline, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1});
                devtools.call("Network.emulateNetworkConditions", network).await;
            }
            Own::Firefox(_) => {
                self.browser().in_firefox(&format!("Services.io.offline = {offline}")).await;
            }
        }
    }

    /// From now on it takes so many milliseconds to the server and back, and so many kilobits go in a second, each way; in Chromium alone.
    pub(crate) async fn slow(&self, latency: u32, kilobits: u32) {
        self.devtools("Network.enable", json!({})).await;
        let bytes = kilobits * 1_000 / 8;
        let network = json!({"offline": false, "latency": latency, "downloadThroughput": bytes, "uploadThroughput": bytes});
        self.devtools("Network.emulateNetworkConditions", network).await;
    }

    /// Runs a script in every page before its own.
    pub(crate) async fn before_every_page(&self, script: &str) {
        match self.own() {
            Own::Chromium(devtools) => {
                devtools.call("Page.addScriptToEvaluateOnNewDocument", json!({"source": script})).await;
            }
            Own::Firefox(bidi) => {
                bidi.before_every_page(script).await;
            }
        }
    }

    /// The colours that the person wants of all pages.
    pub(crate) async fn colours(&self, colours: Colours) {
        match self.own() {
            Own::Chromium(devtools) => {
                let (name, value) = match colours {
                    Colours::Light => ("prefers-color-scheme", "light"),
                    Colours::Dark => ("prefers-color-scheme", "dark"),
                    Colours::Forced => ("forced-colors", "active"),
                };
                let media = json!({"features": [{"name": name, "value": value}]});
                devtools.call("Emulation.setEmulatedMedia", media).await;
            }
            Own::Firefox(_) => {
                // A selection is painted as people with such colours have it, who need contrast.
                let (scheme, forced) = match colours {
                    Colours::Light => (1, 0),
                    Colours::Dark => (0, 0),
                    Colours::Forced => (1, 2),
                };
                let set = format!(
                    "Services.prefs.setIntPref('layout.css.prefers-color-scheme.content-override', {scheme});
                     Services.prefs.setIntPref('browser.display.document_color_use', {forced});
                     Services.prefs.setStringPref('ui.highlight', '#1f4e9e');"
                );
                self.browser().in_firefox(&set).await;
            }
        }
        if colours == Colours::Forced {
            self.until("matchMedia('(forced-colors: active)').matches").await;
        }
        // The page hears of it when it is painted.
        self.run_async("requestAnimationFrame(() => requestAnimationFrame(() => arguments[0](true)))").await;
    }

    /// Gives the pages of an address the right to show notifications, as if the person had said yes.
    pub(crate) async fn allow_notifications(&self) {
        match self.own() {
            Own::Chromium(devtools) => {
                let wanted = json!({"permissions": ["notifications"]});
                devtools.call("Browser.grantPermissions", wanted).await;
            }
            Own::Firefox(bidi) => {
                let origin = self.run("return location.origin").await;
                let wanted =
                    json!({"descriptor": {"name": "notifications"}, "state": "granted", "origin": origin});
                bidi.call("permissions.setPermission", wanted).await;
            }
        }
    }

    /// Lets pages read and write the clipboard, as if the person had said yes; in Chromium alone.
    pub(crate) async fn allow_clipboard(&self) {
        let permissions = json!({"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]});
        self.devtools("Browser.grantPermissions", permissions).await;
    }

    /// The text on the clipboard.
    pub(crate) async fn clipboard(&self) -> String {
        let read = "const done = arguments[0]; navigator.clipboard.readText().then(done)";
        self.run_async(read).await.as_str().expect("a text").to_owned()
    }

    /// A call of Chromium's own protocol, for tests that run nowhere else.
    pub(crate) async fn devtools(&self, command: &str, parameters: Value) -> Value {
        match self.own() {
            Own::Chromium(devtools) => devtools.call(command, parameters).await,
            Own::Firefox(_) => panic!("{command}: this test runs in Chromium alone"),
        }
    }

    pub(crate) async fn picture(&self) -> Vec<u8> {
        self.client().screenshot().await.expect("a picture")
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        // A test that has failed may leave anything behind; then the browser is closed.
        if let Some(browser) = self.browser.take()
            && !std::thread::panicking()
        {
            self.browsers.give_back(browser);
        }
    }
}

/// An expression for how many messages with exactly this text are shown.
pub(crate) fn count(text: &str) -> String {
    let same = format!("(words) => [...words.childNodes].some((node) => node.data === {})", json!(text));
    format!("[...document.querySelectorAll('.words')].filter({same}).length")
}

/// Whether the reason why an element was not clicked may be gone at the next look.
fn is_passing(reason: &ErrorStatus) -> bool {
    matches!(
        reason,
        ErrorStatus::NoSuchElement
            | ErrorStatus::ElementNotInteractable
            | ErrorStatus::ElementClickIntercepted
            | ErrorStatus::StaleElementReference
    )
}
