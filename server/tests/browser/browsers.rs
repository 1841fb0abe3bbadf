//! Browsers that serve one window after the other: to start one costs more than what most tests do with it.
//!
//! A browser with its driver and profile belongs to one window at a time. The next window finds one empty tab, nothing that was stored,
//! and nothing that was emulated. All are closed when no test runs and none waits for its turn.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use fantoccini::wd::{Capabilities, TimeoutConfiguration};
use fantoccini::{Client, ClientBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Value, json};
use tidemark_test_support::until::PATIENCE;
use tokio::runtime::{Builder, Runtime};

use super::engine::{Driver, Engine};
use super::own::Own;

/// Browsers that wait for a window. Two people are enough for most tests.
const MOST_SPARE: usize = 4;

static SHARED: Mutex<Weak<Browsers>> = Mutex::new(Weak::new());

pub(crate) struct Browsers {
    spare: Mutex<Vec<Browser>>,
    /// Connections to browsers outlive the test that opened them.
    runtime: Option<Runtime>,
}

/// One of them, with its driver.
pub(crate) struct Browser {
    pub(crate) client: Client,
    /// Commands that WebDriver does not offer.
    pub(crate) own: Own,
    _driver: Driver,
}

impl Browsers {
    /// Those of the tests that run or wait now.
    pub(crate) fn shared() -> Arc<Browsers> {
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        shared.upgrade().unwrap_or_else(|| {
            let runtime =
                Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
            let browsers = Arc::new(Browsers { spare: Mutex::default(), runtime: Some(runtime) });
            *shared = Arc::downgrade(&browsers);
            browsers
        })
    }

    fn spare(&self) -> std::sync::MutexGuard<'_, Vec<Browser>> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One like new.
    pub(crate) async fn take(&self, engine: Engine) -> Browser {
        let spare = self.spare().pop();
        if let Some(browser) = spare
            && browser.renew().await.is_some()
        {
            return browser;
        }
        let runtime = self.runtime.as_ref().expect("a runtime");
        runtime.spawn(Browser::start(engine)).await.expect("a browser")
    }

    /// The window that had it is closed.
    pub(crate) fn give_back(&self, browser: Browser) {
        let mut spare = self.spare();
        if spare.len() < MOST_SPARE {
            spare.push(browser);
        }
    }
}

impl Drop for Browsers {
    fn drop(&mut self) {
        self.spare().clear();
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Browser {
    async fn start(engine: Engine) -> Browser {
        let mut driver = Driver::start(engine).await;
        let Value::Object(wanted) = engine.capabilities(&driver.place.path().join("profile")) else {
            unreachable!("an object was written")
        };
        let client = ClientBuilder::new(HttpConnector::new())
            .capabilities(Capabilities::from_iter(wanted))
            .connect(&driver.address())
            .await
            .expect("a window");
        // A script has 30 s otherwise, which axe may need on a busy machine.
        let patience = TimeoutConfiguration::new(Some(PATIENCE), None, None);
        client.update_timeouts(patience).await.expect("patience");
        let id = client.session_id().await.expect("a session").expect("a session");
        let own = Own::of(engine, &client, &format!("{}/session/{id}", driver.address())).await;
        driver.session = Some(id);
        Browser { client, own, _driver: driver }
    }

    /// Leaves one empty tab, and nothing of what was stored, allowed or emulated; `None`: it does not answer any more.
    async fn renew(&self) -> Option<()> {
        let tabs = self.client.windows().await.ok()?;
        let empty = self.client.new_window(true).await.ok()?;
        for tab in tabs {
            self.client.switch_to_window(tab).await.ok()?;
            self.client.close_window().await.ok()?;
        }
        self.client.switch_to_window(empty.handle).await.ok()?;
        match &self.own {
            Own::Chromium(devtools) => {
                devtools.call("Network.clearBrowserCookies", json!({})).await;
                devtools.call("Network.clearBrowserCache", json!({})).await;
                devtools
                    .call("Storage.clearDataForOrigin", json!({"origin": "*", "storageTypes": "all"}))
                    .await;
                devtools.call("Browser.resetPermissions", json!({})).await;
                // A new tab has the focus in its address bar.
                devtools.call("Page.bringToFront", json!({})).await;
            }
            Own::Firefox(bidi) => {
                bidi.nothing_before_pages().await;
                bidi.context("chrome").await;
                let renewed = self.client.execute_async(RENEW_FIREFOX, Vec::new()).await;
                bidi.context("content").await;
                renewed.ok()?;
            }
        }
        Some(())
    }

    /// Runs a script with the rights of Firefox itself.
    pub(crate) async fn in_firefox(&self, script: &str) -> Value {
        let Own::Firefox(bidi) = &self.own else { panic!("this test runs in Firefox alone") };
        bidi.context("chrome").await;
        let answer = self.client.execute(script, Vec::new()).await;
        bidi.context("content").await;
        answer.unwrap_or_else(|error| panic!("{script}: {error}"))
    }
}

const RENEW_FIREFOX: &str = "const done = arguments[0];
    Services.io.offline = false;
    for (const name of ['layout.css.prefers-color-scheme.content-override', 'browser.display.document_color_use', 'ui.highlight']) {
      Services.prefs.clearUserPref(name);
    }
    Services.clearData.deleteData(Ci.nsIClearDataService.CLEAR_ALL, () => done(true));";
