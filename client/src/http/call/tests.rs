//! Calls at two addresses that answer as the test says: a proxy without a server behind it, a connection that ends
//! before the answer.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::Http;

/// One address: what it answers to everything, and what it was asked so far.
struct FakeAddress {
    base: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl FakeAddress {
    /// Answers with this status and body; without a status, ends the connection once it was asked.
    async fn answering(status: Option<u16>, body: &'static str) -> FakeAddress {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let base = format!("http://{}", listener.local_addr().expect("bound"));
        let asked = Arc::new(Mutex::new(Vec::new()));
        let place = FakeAddress { base, asked: Arc::clone(&asked) };
        tokio::spawn(async move {
            while let Ok((mut caller, _)) = listener.accept().await {
                let asked_for = question(&mut caller).await;
                let line = asked_for.lines().next().unwrap_or_default().trim_end_matches(" HTTP/1.1");
                asked.lock().expect("nobody panics with it").push(line.to_owned());
                if let Some(status) = status {
                    let length = body.len() + usize::from(body == CUT_OFF);
                    let text = format!(
                        "HTTP/1.1 {status} -\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
                    );
                    // The caller may have gone.
                    let _ = caller.write_all(text.as_bytes()).await;
                }
            }
        });
        place
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().expect("nobody panics with it").clone()
    }
}

/// A whole request, its body included: closing a connection with unread bytes would reset it.
async fn question(caller: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.and_then(|number| number.parse().ok()).unwrap_or(0) {
                return text.into_owned();
            }
        }
        assert_ne!(caller.read_buf(&mut bytes).await.expect("a whole request"), 0);
    }
}

/// An address at which nothing listens.
async fn nobody() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    format!("http://{}", listener.local_addr().expect("bound"))
}

/// Calls whose first try goes to the first of the two.
fn in_this_order(first: &str, second: &str) -> Http {
    loop {
        let http = Http::any_of(&[first, second]).expect("addresses");
        if http.servers().in_use() == 0 {
            return http;
        }
    }
}

/// The body of an answer that ends too early.
const CUT_OFF: &str = "{";
const SEQ: &str = r#"{"seq":7,"history":"h"}"#;

#[tokio::test]
async fn a_proxy_without_a_server_is_passed_over_and_the_next_call_begins_elsewhere() {
    for status in [502, 503, 504] {
        let (broken, good) = (
            FakeAddress::answering(Some(status), "<html>").await,
            FakeAddress::answering(Some(200), SEQ).await,
        );
        let http = in_this_order(&broken.base, &good.base);
        assert_eq!(http.seq().await.expect("answered").seq, 7);
        assert_eq!(http.seq().await.expect("answered").seq, 7);
        assert_eq!((broken.asked().len(), good.asked().len()), (1, 2), "{status}");
        assert_eq!(good.asked()[0], "GET /api/v1/seq");
    }
}

#[tokio::test]
async fn when_all_fail_each_was_asked_once_and_the_error_is_returned() {
    let places = [FakeAddress::answering(Some(503), "").await, FakeAddress::answering(None, "").await];
    let http = in_this_order(&places[0].base, &places[1].base);
    assert!(matches!(http.seq().await, Err(Error::Transport(_))));
    assert_eq!(places.map(|place| place.asked().len()), [1, 1]);
}

#[tokio::test]
async fn an_answer_that_is_cut_off_is_none() {
    let (cut, good) =
        (FakeAddress::answering(Some(200), CUT_OFF).await, FakeAddress::answering(Some(200), SEQ).await);
    assert_eq!(in_this_order(&cut.base, &good.base).seq().await.expect("answered").seq, 7);
    let alone = Http::new(&cut.base).expect("an address").seq().await.expect_err("no answer");
    assert!(alone.is_retryable(), "{alone:?}");
}

#[tokio::test]
async fn a_refusal_is_an_answer_and_asks_nobody_else() {
    for status in [400, 401, 404, 409, 429, 500] {
        let (first, second) =
            (FakeAddress::answering(Some(status), "").await, FakeAddress::answering(Some(200), SEQ).await);
        let error = in_this_order(&first.base, &second.base).seq().await.expect_err("refused");
        assert_eq!((error.status(), second.asked().len()), (Some(status), 0));
    }
}

#[tokio::test]
async fn what_would_be_made_twice_goes_elsewhere_only_when_nothing_was_asked() {
    let account = r#"{"uid":1,"name":"ann","token":"t"}"#;
    for lost in [FakeAddress::answering(None, "").await, FakeAddress::answering(Some(503), "").await] {
        let good = FakeAddress::answering(Some(201), account).await;
        let http = in_this_order(&lost.base, &good.base);
        http.sign_up("ann", "p").await.expect_err("nobody knows");
        assert_eq!(good.asked().len(), 0);
        http.create_group("g", &[]).await.expect_err("another answer, of the second address");
        assert_eq!(good.asked(), ["POST /api/v1/groups"], "the next call begins elsewhere");
    }
    let good = FakeAddress::answering(Some(201), account).await;
    let http = in_this_order(&nobody().await, &good.base);
    assert_eq!(http.sign_up("ann", "p").await.expect("made").uid, 1);
}

#[tokio::test]
async fn a_repeated_change_that_is_there_already_is_done() {
    let lost = FakeAddress::answering(None, "").await;
    let member = FakeAddress::answering(Some(409), r#"{"code":"already_member"}"#).await;
    in_this_order(&lost.base, &member.base).add_member(1, 2).await.expect("the first try made it");
    in_this_order(&member.base, &lost.base).add_member(1, 2).await.expect_err("it was so before");
    in_this_order(&nobody().await, &member.base)
        .add_member(1, 2)
        .await
        .expect_err("the first try reached nobody");
    let gone = FakeAddress::answering(Some(401), r#"{"code":"unauthorized"}"#).await;
    in_this_order(&lost.base, &gone.base).log_out().await.expect("the first try ended it");
    in_this_order(&lost.base, &gone.base).me().await.expect_err("no token");
}
