//! A `seqsvr issuer` process behind TLS and a token: its HTTP side and its commands.

#![allow(clippy::unwrap_used, reason = "a test whose stage cannot be set fails")]

#[path = "support/issuer.rs"]
mod issuer;

use std::fs;
use std::future::poll_fn;
use std::path::{Path, PathBuf};
use std::process::Command;

use axum::body::{Body, to_bytes};
use issuer::{Process, get as get_plain, take};
use tidemark_test_support::servers::certificates::{self, Certificates};
use tidemark_test_support::servers::redis::RedisServer as Redis;
use tonic::codegen::{Service, http};
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint};

const TOKEN: &str = "correct-horse-battery";

fn write(path: PathBuf, text: &str) -> PathBuf {
    fs::write(&path, text).unwrap();
    path
}

/// Of the process, and of somebody else.
fn own_and_foreign(folder: &Path) -> [Certificates; 2] {
    ["own", "foreign"].map(|name| {
        fs::create_dir(folder.join(name)).unwrap();
        certificates::issue(&folder.join(name))
    })
}

/// A process that shows these certificates.
fn start(folder: &Path, certificates: &Certificates) -> Process {
    let token = write(folder.join("token"), TOKEN);
    let Certificates { certificate, key, .. } = certificates;
    let text = format!(
        "listen = \"127.0.0.1:0\"\n[security]\ncertificate = {certificate:?}\nkey = {key:?}\ntoken_file = {token:?}\n\
         [issuer]\ndatabase = \"memory\"\n[issuer.tags.order]\nstart = 100\n"
    );
    Process::start(&write(folder.join("issuer.toml"), &text))
}

async fn connect(process: &Process, certificates: &Certificates) -> Result<Channel, tonic::transport::Error> {
    let authority = Certificate::from_pem(fs::read_to_string(&certificates.authority).unwrap());
    let endpoint = Endpoint::from_shared(format!("https://{}", process.addr)).unwrap();
    endpoint.tls_config(ClientTlsConfig::new().ca_certificate(authority)).unwrap().connect().await
}

/// Over HTTP/2, which is all that the port speaks behind TLS.
async fn post(channel: &mut Channel, token: Option<&str>) -> (u16, String) {
    let mut request = http::Request::post("/v1/ids/order");
    if let Some(token) = token {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    let body = tonic::body::Body::new(Body::from("{\"count\": 2}"));
    poll_fn(|context| channel.poll_ready(context)).await.unwrap();
    let answer = channel.call(request.body(body).unwrap()).await.unwrap();
    let status = answer.status().as_u16();
    let bytes = to_bytes(Body::new(answer.into_body()), 1 << 16).await.unwrap();
    (status, String::from_utf8(bytes.to_vec()).unwrap())
}

#[tokio::test]
async fn over_tls_numbers_are_for_callers_with_the_token() {
    let folder = tempfile::tempdir().unwrap();
    let [own, foreign] = own_and_foreign(folder.path());
    let process = start(folder.path(), &own);
    let mut channel = connect(&process, &own).await.unwrap();
    for token in [None, Some("wrong")] {
        let (status, text) = post(&mut channel, token).await;
        assert_eq!(status, 401, "{text}");
        assert!(text.contains("\"code\":\"unauthenticated\"") && !text.contains("ids"), "{text}");
    }
    let answer = post(&mut channel, Some(TOKEN)).await;
    assert_eq!(answer, (200, "{\"biz_tag\":\"order\",\"ids\":[\"100\",\"101\"]}".to_owned()));
    assert!(connect(&process, &foreign).await.is_err(), "signed by somebody else");
    let addr = process.addr.clone();
    let plain = tokio::task::spawn_blocking(move || take(&addr, 1)).await.unwrap();
    assert_eq!(plain, None, "nothing is said in plain text");
}

#[test]
fn commands_bring_the_token_over_tls() {
    let folder = tempfile::tempdir().unwrap();
    let [own, foreign] = own_and_foreign(folder.path());
    let process = start(folder.path(), &own);
    let wrong = write(folder.path().join("wrong"), "another-token-altogether");
    let right = folder.path().join("token");
    let issue = |authority: &Path, token: &Path| {
        let output = Command::new(env!("CARGO_BIN_EXE_seqsvr"))
            .args(["issue", "order", "--server", &format!("https://{}", process.addr), "--authority"])
            .arg(authority)
            .arg("--token-file")
            .arg(token)
            .output()
            .unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    assert_eq!(issue(&own.authority, &right), (Some(0), "100\n".to_owned(), String::new()));
    for (authority, token, why) in
        [(&own.authority, &wrong, "token"), (&foreign.authority, &right, "certificate")]
    {
        let (code, numbers, error) = issue(authority, token);
        assert_eq!((code, numbers.as_str()), (Some(1), ""), "{error}");
        assert!(error.contains(why) && error.lines().count() == 1, "{error}");
    }
}

#[test]
fn a_redis_is_reached_over_tls_if_the_system_trusts_who_signed_its_certificate() {
    let folder = tempfile::tempdir().unwrap();
    let [own, foreign] = own_and_foreign(folder.path());
    let redis = Redis::start_with_tls(&own);
    let text = format!(
        "listen = \"127.0.0.1:0\"\n[issuer]\ndatabase = \"memory\"\nredis = [{:?}]\n\
         [issuer.tags.order]\nstrategy = \"redis\"\n",
        redis.tls_url()
    );
    let config = write(folder.path().join("issuer.toml"), &text);
    let process = Process::start_in(&config, &[("SSL_CERT_FILE", &own.authority)]);
    assert_eq!(take(&process.addr, 2).unwrap().len(), 2);
    let process = Process::start_in(&config, &[("SSL_CERT_FILE", &foreign.authority)]);
    assert_eq!(take(&process.addr, 2).unwrap().len(), 2, "from memory");
    let (_, text) = get_plain(&process.addr, "/v1/tags").unwrap();
    assert!(text.contains("certificate"), "{text}");
}
