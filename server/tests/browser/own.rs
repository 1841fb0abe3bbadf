//! Each browser's interface beside WebDriver: Chromium's DevTools protocol, Firefox's WebDriver BiDi and scripts with its own rights.

use fantoccini::Client;
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::sync::Mutex;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use super::engine::{Engine, PATIENCE};

pub(crate) enum Own {
    Chromium(DevTools),
    Firefox(Box<Bidi>),
}

impl Own {
    /// That of a session, by its address at the driver.
    pub(crate) async fn of(engine: Engine, client: &Client, session: &str) -> Own {
        // A connection that waits for the next request would end with the test that opened it.
        let http = reqwest::Client::builder().pool_max_idle_per_host(0).build().expect("a client");
        let session = session.to_owned();
        match engine {
            Engine::Chromium => Own::Chromium(DevTools { http, session }),
            Engine::Firefox => {
                let url = client
                    .capabilities()
                    .and_then(|has| has.get("webSocketUrl")?.as_str().map(str::to_owned));
                let (socket, _) = connect_async(url.expect("BiDi")).await.expect("BiDi");
                Own::Firefox(Box::new(Bidi {
                    http,
                    session,
                    socket: Mutex::new((0, socket)),
                    before_pages: Mutex::default(),
                }))
            }
        }
    }
}

pub(crate) struct DevTools {
    http: reqwest::Client,
    session: String,
}

impl DevTools {
    pub(crate) async fn call(&self, command: &str, parameters: Value) -> Value {
        let call = json!({"cmd": command, "params": parameters}).to_string();
        let mut answer = post(&self.http, format!("{}/goog/cdp/execute", self.session), call).await;
        assert!(answer["value"]["error"].is_null(), "{command}: {answer}");
        answer["value"].take()
    }
}

pub(crate) struct Bidi {
    http: reqwest::Client,
    session: String,
    /// With the number of the last call.
    socket: Mutex<(u64, WebSocketStream<MaybeTlsStream<TcpStream>>)>,
    /// The ids of scripts that run before those of pages.
    before_pages: Mutex<Vec<Value>>,
}

impl Bidi {
    pub(crate) async fn call(&self, method: &str, parameters: Value) -> Value {
        let mut guard = self.socket.lock().await;
        let (id, socket) = &mut *guard;
        *id += 1;
        let call = json!({"id": id, "method": method, "params": parameters}).to_string();
        socket.send(Message::text(call)).await.expect("BiDi");
        let answered = async {
            loop {
                let frame = socket.next().await.expect("an answer").expect("an answer");
                let Message::Text(text) = frame else { continue };
                let answer: Value = serde_json::from_str(&text).expect("JSON");
                if answer["id"] == *id {
                    return answer;
                }
            }
        };
        let mut answer = timeout(PATIENCE, answered).await.unwrap_or_else(|_| panic!("{method}: no answer"));
        assert_eq!(answer["type"], "success", "{method}: {answer}");
        answer["result"].take()
    }

    /// Runs a script in every page before its own.
    pub(crate) async fn before_every_page(&self, script: &str) {
        let function = json!({"functionDeclaration": format!("() => {{ {script} }}")});
        let mut added = self.call("script.addPreloadScript", function).await;
        self.before_pages.lock().await.push(added["script"].take());
    }

    pub(crate) async fn nothing_before_pages(&self) {
        for script in self.before_pages.lock().await.drain(..) {
            self.call("script.removePreloadScript", json!({"script": script})).await;
        }
    }

    /// Where the scripts of WebDriver run from now on: `content` is the page, `chrome` the browser itself.
    pub(crate) async fn context(&self, context: &str) {
        let wanted = json!({"context": context}).to_string();
        let answer = post(&self.http, format!("{}/moz/context", self.session), wanted).await;
        assert!(answer["value"].is_null(), "{context}: {answer}");
    }
}

async fn post(http: &reqwest::Client, url: String, body: String) -> Value {
    let request = http.post(url).header("content-type", "application/json").body(body);
    let answer = request.send().await.expect("an answer").text().await.expect("an answer");
    serde_json::from_str(&answer).expect("JSON")
}
