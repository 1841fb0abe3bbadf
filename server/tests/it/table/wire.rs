//! Requests that no SDK sends: wrong, slow, cut off or too large; and the form of answers.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use prost::Message as _;
use tidemark_table::KeyValue;
use tidemark_table::wire::compress::{compress, decompress};
use tidemark_table::wire::plain_buffer::{KeyPart, decode_row};
use tidemark_table::wire::proto;
use tidemark_table::wire::sign::{Signer, content_md5};

use crate::table::raw::{Answer, Connection, Request};
use crate::table::world::{Key, World};

/// Puts `g` = "a" with the placeholder and `x` = 1; and a key of the same partition from the lowest to the highest `id`.
const PLACEHOLDER: &str = "75000000010304010000006705060000000301000000610ace030402000000696405010000000b0a6f020304010000007805090000000001000000000000000aad091d";
const LOWEST: &str = "75000000010304010000006705060000000301000000610ace03040200000069640501000000090a610941";
const HIGHEST: &str =
    "75000000010304010000006705060000000301000000610ace030402000000696405010000000a0a6809fc";

pub(crate) fn hex(text: &str) -> Vec<u8> {
    let pairs = text.as_bytes().chunks(2).map(|pair| str::from_utf8(pair).expect("ASCII"));
    pairs.map(|pair| u8::from_str_radix(pair, 16).expect("hex")).collect()
}

fn list(key: &Key) -> Request {
    Request::new(key, "ListTable", Vec::new())
}

pub(crate) fn put(table: &str) -> proto::PutRowRequest {
    proto::PutRowRequest {
        table_name: table.to_owned(),
        row: Some(hex(PLACEHOLDER)),
        condition: Some(proto::Condition { row_existence: Some(0), column_condition: None }),
        return_content: Some(proto::ReturnContent { return_type: Some(1), return_column_names: Vec::new() }),
        transaction_id: None,
    }
}

pub(crate) fn range(table: &str) -> proto::GetRangeRequest {
    proto::GetRangeRequest {
        table_name: table.to_owned(),
        direction: Some(0),
        max_versions: Some(1),
        inclusive_start_primary_key: Some(hex(LOWEST)),
        exclusive_end_primary_key: Some(hex(HIGHEST)),
        ..proto::GetRangeRequest::default()
    }
}

/// The number that a row was given.
pub(crate) fn assigned(row: &[u8]) -> i64 {
    match decode_row(row).expect("a row").key.as_slice() {
        [_, (_, KeyPart::Value(KeyValue::Integer(id)))] => *id,
        other => panic!("{other:?}"),
    }
}

/// Whether an answer to a call of `key` is signed, and right in all that clients look at.
#[track_caller]
fn check_signed(answer: &Answer, key: &Key, path: &str) {
    let signed: Vec<_> = answer
        .headers
        .iter()
        .filter(|(name, _)| name.starts_with("x-ots-"))
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    let signature = Signer::v2(&key.secret).sign_answer(path, &signed);
    assert_eq!(answer.headers["authorization"], format!("OTS {}:{signature}", key.id));
    assert_eq!(answer.headers["x-ots-contentmd5"], content_md5(&answer.body));
    assert_eq!(answer.headers["x-ots-contenttype"], "protocol buffer");
    let date = &answer.headers["x-ots-date"];
    assert!(date.len() == 27 && date.ends_with('Z') && date.as_bytes()[19] == b'.', "{date}");
}

#[tokio::test]
async fn answers_are_signed_and_refusals_of_those_who_may_call_are_too() {
    let world = World::start().await;
    let done = world.send(&list(&world.key).signed(&world.key)).await;
    done.message::<proto::ListTableResponse>();
    check_signed(&done, &world.key, "/ListTable");
    let missing = proto::DescribeTableRequest { table_name: "nowhere".to_owned() };
    let refused = world.call("DescribeTable", &missing).await;
    assert_eq!(refused.refused(404, "OTSObjectNotExist"), "Requested table does not exist.");
    check_signed(&refused, &world.key, "/DescribeTable");
    assert_ne!(done.headers["x-ots-requestid"], refused.headers["x-ots-requestid"]);
    let stranger = world.send(&list(&world.key).with("x-ots-signature", "AAAA")).await;
    assert_eq!(stranger.refused(403, "OTSAuthFailed"), "Signature mismatch.");
    assert!(!stranger.headers.contains_key("authorization"));
}

#[tokio::test]
async fn the_token_of_a_session_is_accepted_where_it_is_signed_with_the_rest() {
    let world = World::start().await;
    let signed = list(&world.key).with("x-ots-ststoken", "a token").signed(&world.key);
    world.send(&signed).await.message::<proto::ListTableResponse>();
    let added = list(&world.key).signed(&world.key).with("x-ots-ststoken", "a token");
    assert_eq!(world.send(&added).await.refused(403, "OTSAuthFailed"), "Signature mismatch.");
}

#[tokio::test]
async fn a_request_that_lacks_a_header_is_told_which() {
    let world = World::start().await;
    let names = ["date", "apiversion", "accesskeyid", "instancename", "contentmd5"]
        .map(|name| format!("x-ots-{name}"));
    for name in &names {
        let refused = world.send(&list(&world.key).without(name).signed(&world.key)).await;
        assert_eq!(refused.refused(400, "OTSParameterInvalid"), format!("Missing header: '{name}'."));
    }
    let refused = world.send(&list(&world.key)).await;
    assert_eq!(refused.refused(400, "OTSParameterInvalid"), "Missing header: 'x-ots-signature'.");
    let refused = world.send(&list(&world.key).with("x-ots-signaturev4", "AAAA")).await;
    assert_eq!(refused.refused(400, "OTSParameterInvalid"), "Missing header: 'x-ots-signdate'.");
}

#[tokio::test]
async fn what_is_no_operation_is_refused_by_its_name() {
    let world = World::start().await;
    let mut get = list(&world.key).signed(&world.key);
    get.method = "GET";
    world.send(&get).await.refused(405, "OTSMethodNotAllowed");
    for name in
        ["Search", "SQLQuery", "CreateIndex", "StartLocalTransaction", "PutTimeseriesData", "Nonsense"]
    {
        let refused = world.send(&Request::new(&world.key, name, Vec::new()).signed(&world.key)).await;
        assert_eq!(
            refused.refused(400, "OTSUnsupportedOperation"),
            format!("Unsupported operation: {name}.")
        );
    }
    let mut deep = list(&world.key);
    deep.path = "/a/ListTable".to_owned();
    world.send(&deep.signed(&world.key)).await.refused(400, "OTSUnsupportedOperation");
    let mut query = list(&world.key);
    query.path = "/ListTable?x=1".to_owned();
    world.send(&query.signed(&world.key)).await.refused(400, "OTSParameterInvalid");
}

#[tokio::test]
async fn a_head_that_says_the_wrong_thing_is_refused() {
    let world = World::start().await;
    let refused = |name: &'static str, value: &'static str| {
        let request = list(&world.key).with(name, value).signed(&world.key);
        let world = &world;
        async move { world.send(&request).await }
    };
    let text = refused("x-ots-date", "2026-11-22T01:02:03.000Z").await.refused(403, "OTSAuthFailed");
    assert_eq!(text, "Mismatch between system time and x-ots-date: 2026-11-22T01:02:03.000Z.");
    let text = refused("x-ots-date", "now").await.refused(400, "OTSParameterInvalid");
    assert_eq!(text, "Invalid date format: now.");
    refused("x-ots-apiversion", "2014-08-08").await.refused(400, "OTSParameterInvalid");
    let text = refused("x-ots-accesskeyid", "nobody").await.refused(403, "OTSAuthFailed");
    assert_eq!(text, "The AccessKeyID does not exist.");
    let text = refused("x-ots-instancename", "another").await.refused(403, "OTSAuthFailed");
    assert_eq!(text, "The instance is not found.");
    let text = refused("x-ots-contentmd5", "AAAAAAAAAAAAAAAAAAAAAA==").await.refused(403, "OTSAuthFailed");
    assert_eq!(text, "Mismatch between MD5 value of request body and x-ots-contentmd5 in header.");
    // Twice the same header: which one was signed?
    let twice = list(&world.key).signed(&world.key).with("X-Ots-Date", "2026-11-22T01:02:03.000Z");
    world.send(&twice).await.refused(400, "OTSParameterInvalid");
    let garbage = Request::new(&world.key, "GetRow", vec![0xFF; 100]).signed(&world.key);
    world.send(&garbage).await.refused(400, "OTSParameterInvalid");
}

#[tokio::test]
async fn a_body_that_is_slow_cut_off_or_too_large_is_refused() {
    let world = World::start_with(&[("TIDEMARK_SERVER__REQUEST_SECONDS", "1")]).await;
    let request = list(&world.key).signed(&world.key);
    let mut slow = Connection::open(&world.tables).await;
    slow.write(&request.bytes(10)).await.expect("open");
    slow.answer().await.expect("an answer").refused(408, "OTSRequestTimeout");
    let mut large = Connection::open(&world.tables).await;
    large.write(&request.bytes((5 << 20) + 1)).await.expect("open");
    large.answer().await.expect("before it is read").refused(413, "OTSRequestBodyTooLarge");
    let mut stranger = Connection::open(&world.tables).await;
    stranger.write(&list(&world.key).with("x-ots-signature", "AAAA").bytes(4 << 20)).await.expect("open");
    stranger.answer().await.expect("before it is read").refused(403, "OTSAuthFailed");
}

#[tokio::test]
async fn bodies_are_compressed_both_ways_where_a_client_asks_for_it() {
    let world = World::start().await;
    world.make_table("compressed").await;
    let described = proto::DescribeTableRequest { table_name: "compressed".to_owned() }.encode_to_vec();
    let ask = |body: Vec<u8>, size: usize| {
        Request::new(&world.key, "DescribeTable", body)
            .with("x-ots-request-compress-type", "deflate")
            .with("x-ots-request-compress-size", &size.to_string())
            .with("x-ots-response-compress-type", "deflate")
            .signed(&world.key)
    };
    let answer = world.send(&ask(compress(&described), described.len())).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.headers["x-ots-response-compress-type"], "deflate");
    let size: usize = answer.headers["x-ots-response-compress-size"].parse().expect("a number");
    check_signed(&answer, &world.key, "/DescribeTable");
    let message = decompress(&answer.body, size).expect("zlib");
    assert_eq!(message.len(), size);
    let message = proto::DescribeTableResponse::decode(&message[..]).expect("the message");
    assert_eq!(message.table_meta.table_name, "compressed");

    world.send(&ask(compress(&described), described.len() + 1)).await.refused(400, "OTSParameterInvalid");
    world.send(&ask(described.clone(), described.len())).await.refused(400, "OTSParameterInvalid");
    let bomb = compress(&vec![0; 64 << 20]);
    world.send(&ask(bomb.clone(), 64 << 20)).await.refused(413, "OTSRequestBodyTooLarge");
    world.send(&ask(bomb, 5 << 20)).await.refused(413, "OTSRequestBodyTooLarge");
    let other = Request::new(&world.key, "ListTable", Vec::new()).with("x-ots-request-compress-type", "gzip");
    world.send(&other.signed(&world.key)).await.refused(400, "OTSParameterInvalid");
}

#[tokio::test]
async fn a_row_that_came_compressed_is_stored() {
    let world = World::start().await;
    world.make_table("compressed").await;
    let body = put("compressed").encode_to_vec();
    let request = Request::new(&world.key, "PutRow", compress(&body))
        .with("x-ots-request-compress-type", "deflate")
        .with("x-ots-request-compress-size", &body.len().to_string())
        .signed(&world.key);
    let stored = world.send(&request).await.message::<proto::WriteRowResponse>();
    assert_eq!(assigned(&stored.row.expect("the key")), 1);
    let page: proto::GetRangeResponse = world.call("GetRange", &range("compressed")).await.message();
    assert_eq!(count_rows(&page.rows), 1);
}

#[tokio::test]
async fn a_connection_too_many_is_told_that_the_server_is_busy() {
    let world = World::start_with(&[("TIDEMARK_TABLE__CONNECTIONS", "1")]).await;
    let mut first = Connection::open(&world.tables).await;
    let request = list(&world.key).signed(&world.key).bytes(0);
    first.write(&request).await.expect("open");
    first.answer().await.expect("an answer").message::<proto::ListTableResponse>();
    let mut second = Connection::open(&world.tables).await;
    second.answer().await.expect("a word").refused(503, "OTSServerBusy");
    // The first one goes on.
    first.write(&request).await.expect("open");
    first.answer().await.expect("an answer").message::<proto::ListTableResponse>();
}

#[tokio::test]
async fn keys_open_their_own_instance_and_may_be_read_only_and_are_revoked() {
    let world = World::start().await;
    world.make_table("shared_name").await;
    let reader = world.make_key(&["--instance", "testing", "--read-only"]).await;
    let body = put("shared_name").encode_to_vec();
    let refused = world.send(&Request::new(&reader, "PutRow", body).signed(&reader)).await;
    refused.refused(403, "OTSNoPermissionAccess");
    let listed = world.send(&list(&reader).signed(&reader)).await;
    assert_eq!(listed.message::<proto::ListTableResponse>().table_names, ["shared_name"]);
    let other = world.make_key(&["--instance", "other"]).await;
    let listed = world.send(&list(&other).signed(&other)).await;
    assert!(listed.message::<proto::ListTableResponse>().table_names.is_empty());
    world.revoke(&reader).await;
    tidemark_test_support::until::until("the key is refused", async || {
        world.send(&list(&reader).signed(&reader)).await.status == 403
    })
    .await;
    world.send(&list(&other).signed(&other)).await.message::<proto::ListTableResponse>();
}

#[tokio::test]
async fn what_is_answered_is_counted() {
    let world = World::start().await;
    world.make_table("counted").await;
    world.call("PutRow", &put("counted")).await.message::<proto::WriteRowResponse>();
    world.call("PutRow", &put("nowhere")).await.refused(404, "OTSObjectNotExist");
    world.send(&Request::new(&world.key, "Nonsense", Vec::new()).signed(&world.key)).await;
    let metrics = reqwest::get(format!("{}/metrics", world.server.address())).await.expect("an answer");
    let metrics = metrics.text().await.expect("a text");
    let polls = "tidemark_poll_seconds_count{of=\"PutRow\"} ";
    let polls =
        metrics.lines().find_map(|line| line.strip_prefix(polls)).and_then(|count| count.parse().ok());
    assert!(polls.is_some_and(|count: u64| count >= 2), "no polls in {metrics}");
    for line in [
        "tidemark_table_requests_total{operation=\"PutRow\",result=\"ok\"} 1",
        "tidemark_table_requests_total{operation=\"PutRow\",result=\"OTSObjectNotExist\"} 1",
        "tidemark_table_requests_total{operation=\"other\",result=\"OTSUnsupportedOperation\"} 1",
        "tidemark_table_seconds_count 4",
    ] {
        assert!(metrics.lines().any(|found| found == line), "{line} is missing in {metrics}");
    }
}

#[tokio::test]
async fn a_client_that_closes_its_sending_side_gets_its_answer() {
    let world = World::start().await;
    world.make_table("half_closed").await;
    let request = Request::new(&world.key, "PutRow", put("half_closed").encode_to_vec()).signed(&world.key);
    let bytes = request.bytes(request.body.len());
    for id in 1..=20 {
        let mut connection = Connection::open(&world.tables).await;
        connection.write(&bytes).await.expect("open");
        connection.close_sending().await;
        let answer = connection.answer().await.expect("an answer");
        assert_eq!(assigned(&answer.message::<proto::WriteRowResponse>().row.expect("the key")), id);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_answers_everything_that_it_stores() {
    drain(World::start().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_answers_everything_that_it_stores_on_postgres() {
    drain(World::start_on_postgres().await).await;
}

/// Some clients repeat a put whose connection broke: a row that is stored without an answer would be there twice.
async fn drain(world: World) {
    world.make_table("drained").await;
    let stopped = Arc::new(AtomicBool::new(false));
    let clients: Vec<_> = (0..16)
        .map(|_| {
            let (address, stopped) = (world.tables.clone(), Arc::clone(&stopped));
            let request =
                Request::new(&world.key, "PutRow", put("drained").encode_to_vec()).signed(&world.key);
            tokio::spawn(async move {
                let bytes = request.bytes(request.body.len());
                let mut connection = Connection::open(&address).await;
                let mut ids = Vec::new();
                while connection.write(&bytes).await.is_ok() {
                    let Some(answer) = connection.answer().await else { break };
                    if answer.status == 200 {
                        let stored = answer.message::<proto::WriteRowResponse>();
                        ids.push(assigned(&stored.row.expect("the key")));
                    }
                    if answer.headers.get("connection").is_some_and(|said| said == "close") {
                        break;
                    }
                }
                assert!(stopped.load(Ordering::SeqCst), "only a stop ends a connection");
                ids
            })
        })
        .collect();
    // A body that never comes to its end does not hold up the stop.
    let mut halfway = Connection::open(&world.tables).await;
    let request = list(&world.key).signed(&world.key);
    halfway.write(&request.bytes(10)).await.expect("open");
    until_rows(&world, 300).await;
    stopped.store(true, Ordering::SeqCst);
    let data = world.stop().await;
    halfway.answer().await.expect("an answer").refused(503, "OTSServerBusy");
    let mut answered = BTreeSet::new();
    for client in clients {
        for id in client.await.expect("ran") {
            assert!(answered.insert(id), "{id} was given twice");
        }
    }
    let world = data.start_again().await;
    assert_eq!(rows(&world).await, answered.len());
}

async fn rows(world: &World) -> usize {
    let mut request = range("drained");
    let mut count = 0;
    loop {
        let page: proto::GetRangeResponse = world.call("GetRange", &request).await.message();
        count += count_rows(&page.rows);
        match page.next_start_primary_key {
            Some(next) => request.inclusive_start_primary_key = Some(next),
            None => return count,
        }
    }
}

/// Each row begins its key with the same cell.
fn count_rows(rows: &[u8]) -> usize {
    let first = hex("010304010000006705060000000301000000610ace");
    rows.windows(first.len()).filter(|window| *window == first).count()
}

async fn until_rows(world: &World, wanted: usize) {
    tidemark_test_support::until::until("rows are there", async || rows(world).await >= wanted).await;
}
