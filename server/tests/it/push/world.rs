//! A push service of the tests' own, devices that read what it gets for them, and servers that trust its certificate.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::path::Path;
use std::sync::{Arc, Mutex};

use axum::body::{Body, to_bytes};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{HeaderMap, Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tempfile::TempDir;
use tidemark_test_support::servers::certificates::{self, Certificates};
use tidemark_test_support::until::PATIENCE;
use tokio::net::TcpListener;
use tokio::process::{Child, Command};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::sqlite::operation::{program, serve_with};
use crate::support::client_id;

/// An answer of the push service.
pub(super) enum ServiceReply {
    Status(u16),
    /// Elsewhere.
    Redirect(String),
    /// Nothing, ever.
    Hangs,
}

/// A push as it came.
#[derive(Debug)]
pub(super) struct Came {
    pub(super) path: String,
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
}

/// A push service on the loopback, over HTTPS.
pub(super) struct PushService {
    port: u16,
    came: UnboundedReceiver<Came>,
    replies: Arc<Mutex<VecDeque<ServiceReply>>>,
    certificates: Certificates,
    place: TempDir,
}

impl PushService {
    pub(super) async fn start() -> PushService {
        let place = tempfile::tempdir().expect("a directory");
        let certificates = certificates::issue(place.path());
        let chain = CertificateDer::pem_file_iter(&certificates.certificate).expect("a file");
        let chain = chain.collect::<Result<_, _>>().expect("certificates");
        let key = PrivateKeyDer::from_pem_file(&certificates.key).expect("a key");
        let tls = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .expect("a pair");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let (came, coming) = unbounded_channel();
        let replies = Arc::default();
        tokio::spawn(accept(listener, TlsAcceptor::from(Arc::new(tls)), came, Arc::clone(&replies)));
        PushService { port, came: coming, replies, certificates, place }
    }

    /// Its answers to the next pushes; after that it is 201.
    pub(super) fn says(&self, replies: impl IntoIterator<Item = ServiceReply>) {
        self.replies.lock().expect("unpoisoned").extend(replies);
    }

    /// The next push that comes.
    pub(super) async fn next(&mut self) -> Came {
        timeout(PATIENCE, self.came.recv()).await.expect("in time").expect("it runs")
    }

    /// Whether none has come that was not taken.
    pub(super) fn nothing_came(&mut self) -> bool {
        self.came.try_recv().is_err()
    }

    pub(super) fn endpoint(&self, name: &str) -> String {
        format!("https://127.0.0.1:{}/{name}", self.port)
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// A server over the data in `place`, or in this database, which may send pushes to the service and trusts its certificate.
    pub(super) async fn server(&self, place: &Path, database: Option<&str>) -> PushingServer {
        self.server_with(place, database, &[("PUSH__ALLOW", "127.0.0.1/32")]).await
    }

    /// The same with these settings.
    pub(super) async fn server_with(
        &self,
        place: &Path,
        database: Option<&str>,
        settings: &[(&str, &str)],
    ) -> PushingServer {
        let mut program = program(place);
        program.env("SSL_CERT_FILE", &self.certificates.authority);
        program.env("TIDEMARK_ACCOUNTS__PASSWORD_MEMORY_KIB", "8");
        program.env("TIDEMARK_LIMITS__SIGN_UPS_PER_ADDRESS_PER_MINUTE", "0");
        if let Some(url) = database {
            program.env("TIDEMARK_DATABASE_URL", url);
        }
        for (name, value) in settings {
            program.env(format!("TIDEMARK_{name}"), value);
        }
        let (child, address) = serve_with(program).await;
        PushingServer { child, address, http: reqwest::Client::new() }
    }

    /// A directory for the data of a server.
    pub(super) fn place(&self) -> &Path {
        self.place.path()
    }
}

async fn accept(
    listener: TcpListener,
    tls: TlsAcceptor,
    came: UnboundedSender<Came>,
    replies: Arc<Mutex<VecDeque<ServiceReply>>>,
) {
    while let Ok((stream, _)) = listener.accept().await {
        let (tls, came, replies) = (tls.clone(), came.clone(), Arc::clone(&replies));
        tokio::spawn(async move {
            let Ok(stream) = tls.accept(stream).await else { return };
            let answer = service_fn(|request| answer(request, &came, &replies));
            // A caller that gives up breaks the connection.
            _ = http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await;
        });
    }
}

async fn answer(
    request: Request<Incoming>,
    came: &UnboundedSender<Came>,
    replies: &Mutex<VecDeque<ServiceReply>>,
) -> Result<Response<Body>, Infallible> {
    let (head, body) = request.into_parts();
    let body = to_bytes(Body::new(body), 8_192).await.expect("a body").to_vec();
    let reply = replies.lock().expect("unpoisoned").pop_front().unwrap_or(ServiceReply::Status(201));
    came.send(Came { path: head.uri.path().to_owned(), headers: head.headers, body })
        .expect("the test waits");
    let answer = match reply {
        ServiceReply::Status(status) => Response::builder().status(status),
        ServiceReply::Redirect(to) => Response::builder().status(307).header("location", to),
        ServiceReply::Hangs => std::future::pending().await,
    };
    Ok(answer.body(Body::empty()).expect("an answer"))
}

/// A server of its own process. Dropping it kills it.
pub(super) struct PushingServer {
    pub(super) child: Child,
    pub(super) address: String,
    http: reqwest::Client,
}

/// Somebody who is logged in on one device.
pub(super) struct Owner {
    pub(super) uid: u64,
    pub(super) token: String,
}

impl PushingServer {
    /// Calls the API; the status, and the body if it is JSON.
    pub(super) async fn call(
        &self,
        who: Option<&Owner>,
        (method, path): (&str, &str),
        body: Option<Value>,
    ) -> (u16, Value) {
        let method = method.parse().expect("a method");
        let mut request = self.http.request(method, format!("http://{}/api/v1/{path}", self.address));
        if let Some(person) = who {
            request = request.bearer_auth(&person.token);
        }
        if let Some(body) = body {
            request = request.json(&body);
        }
        let answer = request.send().await.expect("an answer");
        let status = answer.status().as_u16();
        (status, serde_json::from_str(&answer.text().await.expect("a text")).unwrap_or_default())
    }

    pub(super) async fn sign_up(&self, name: &str) -> Owner {
        self.begin("accounts", name).await
    }

    /// Another device of the same person.
    pub(super) async fn log_in(&self, name: &str) -> Owner {
        self.begin("sessions", name).await
    }

    async fn begin(&self, path: &str, name: &str) -> Owner {
        let body = json!({"name": name, "password": "correct horse"});
        let (status, made) = self.call(None, ("POST", path), Some(body)).await;
        assert_eq!(status, 201, "{made}");
        let token = made["token"].as_str().expect("a token").to_owned();
        Owner { uid: made["uid"].as_u64().expect("a uid"), token }
    }

    /// Says something under the `n`th name; the id of the sender's copy.
    pub(super) async fn say(&self, from: &Owner, to: &Owner, n: u128) -> u64 {
        let body = json!({"client_id": client_id(n), "to": {"user": to.uid}, "body": {"text": "hello"}});
        let (status, sent) = self.call(Some(from), ("POST", "messages"), Some(body)).await;
        assert_eq!(status, 201, "{sent}");
        sent["message_id"].as_u64().expect("an id")
    }

    /// The latest id of a person.
    pub(super) async fn seq(&self, who: &Owner) -> u64 {
        self.call(Some(who), ("GET", "seq"), None).await.1["seq"].as_u64().expect("a number")
    }

    /// Subscribes the device, or says how far it has come.
    pub(super) async fn subscribe(&self, who: &Owner, device: &PushDevice, seq: Option<u64>) -> (u16, Value) {
        let keys = json!({"p256dh": device.p256dh, "auth": device.auth});
        let mut body = json!({"endpoint": device.endpoint, "expirationTime": null, "keys": keys});
        if let Some(seq) = seq {
            body["seq"] = seq.into();
        }
        self.call(Some(who), ("PUT", "sessions/current/push"), Some(body)).await
    }

    /// The device as the server knows it.
    pub(super) async fn push_state(&self, who: &Owner) -> Value {
        let (status, state) = self.call(Some(who), ("GET", "sessions/current/push"), None).await;
        assert_eq!(status, 200, "{state}");
        state
    }

    /// The value of a metric, as the line begins.
    pub(super) async fn metric(&self, name: &str) -> u64 {
        let answer =
            self.http.get(format!("http://{}/metrics", self.address)).send().await.expect("an answer");
        let text = answer.text().await.expect("a text");
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.expect("the metric").parse().expect("a number")
    }
}

/// A device with its keys.
pub(super) struct PushDevice {
    pub(super) endpoint: String,
    secret: String,
    p256dh: String,
    auth: String,
}

impl PushDevice {
    pub(super) async fn at(endpoint: String) -> PushDevice {
        let keys: Value = serde_json::from_str(&node(&["keys"]).await).expect("JSON");
        let key = |name: &str| keys[name].as_str().expect("a key").to_owned();
        PushDevice { endpoint, secret: key("secret"), p256dh: key("p256dh"), auth: key("auth") }
    }

    /// The text of a push, which was encrypted for this device.
    pub(super) async fn opens(&self, push: &Came) -> Value {
        let text = node(&["open", &self.secret, &self.auth, &URL_SAFE_NO_PAD.encode(&push.body)]).await;
        serde_json::from_str(&text).expect("JSON")
    }
}

async fn node(arguments: &[&str]) -> String {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/push/device.mjs");
    let output = Command::new("node").arg(script).args(arguments).output().await.expect("node runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}
