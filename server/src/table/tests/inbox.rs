//! The chat's inboxes as a table, over queues and rows in memory.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use tidemark_table::wire::plain_buffer::KeyPart;
use tidemark_table::wire::proto;
use tidemark_table::{ErrorCode, KeyValue, Value};
use uuid::Uuid;

use super::client::{
    Client, Key, get_request, integer, number, put, put_request, range_request, returning, row, rows, sent,
    text,
};
use super::{Options, World};
use crate::app::Messages;
use crate::domain::{Clock, MessageId, RangeQuery, Timestamp, Uid};
use crate::notify::Local;
use crate::queue::{self, QueueParts, Queues, Watermarks};
use crate::seq::Numbers;
use crate::store::memory::{MemoryStore, MemoryTables};
use crate::store::{Directory, MessageStore, NewAccount};
use crate::table::{MayPost, Posts, WithInboxes};

const BOT: Uid = Uid(10_001);
const ANN: Uid = Uid(10_002);
const BOB: Uid = Uid(10_003);

struct Inboxes {
    messages: Arc<MemoryStore>,
    client: Client,
}

impl Inboxes {
    async fn new() -> Inboxes {
        Inboxes::at_rate(Arc::new(|_| true)).await
    }

    async fn at_rate(may_post: MayPost) -> Inboxes {
        let messages = Arc::new(MemoryStore::new());
        let directory = Arc::new(Directory::in_memory());
        for (uid, name) in [(BOT, "bot"), (ANN, "ann"), (BOB, "bob")] {
            let account =
                NewAccount { name: name.into(), password_hash: String::new(), created_at: Timestamp(0) };
            assert!(directory.create_account(uid, account, None).await.expect("memory"), "free");
        }
        let store: Arc<dyn MessageStore> = messages.clone();
        let parts = QueueParts {
            numbers: Numbers::of_the_store(),
            store: Arc::clone(&store),
            directory,
            notifier: Arc::new(Local::new()),
            watermarks: Watermarks::new(Arc::clone(&store), 100),
            clock: Clock::new(|| Timestamp(7)),
            new_uuid: Arc::new(Uuid::nil),
            rates: None,
        };
        let queues = Queues::start(parts, queue::Options { queues: 2, ..queue::Options::default() });
        let both = WithInboxes::new(Arc::new(MemoryTables::new()), store);
        let world = World::over(Arc::new(both), Options::default());
        let service = world.service.with_posts(Posts::new(Messages::new(queues), 100, may_post));
        let mut client = Client::of(&service, "test");
        client.caller.inbox = Some(BOT);
        Inboxes { messages, client }
    }

    /// Puts a row, and tells the id that it got.
    async fn post(&self, receiver: Uid, columns: &[(&str, &str)]) -> i64 {
        let request = proto::PutRowRequest {
            return_content: returning(proto::ReturnType::PrimaryKey, &[]),
            ..post_request(receiver, columns)
        };
        let answer: proto::WriteRowResponse = self.client.call("PutRow", &request).await.expect("put");
        let (key, _) = row(&answer.row.expect("a row")).expect("a key");
        let partition = KeyValue::String(receiver.partition_key().to_string());
        match &key[..] {
            [first, KeyValue::Integer(uid), KeyValue::Integer(id)] => {
                assert_eq!((first, *uid), (&partition, i64::from(receiver.0)));
                *id
            }
            other => panic!("{other:?}"),
        }
    }

    async fn refused(&self, receiver: Uid, columns: &[(&str, &str)]) -> String {
        self.client.refusal("PutRow", &post_request(receiver, columns)).await.1
    }

    /// The receivers and ids of a range.
    async fn range(&self, forward: bool, start: Key, end: Key, limit: i32) -> (Vec<(i64, i64)>, bool) {
        let request =
            proto::GetRangeRequest { limit: Some(limit), ..range_request("inbox", forward, start, end) };
        let answer: proto::GetRangeResponse = self.client.call("GetRange", &request).await.expect("read");
        let place = |(key, _): (Vec<KeyValue>, _)| match key[..] {
            [_, KeyValue::Integer(uid), KeyValue::Integer(id)] => (uid, id),
            ref other => panic!("{other:?}"),
        };
        (rows(&answer.rows).into_iter().map(place).collect(), answer.next_start_primary_key.is_some())
    }
}

fn key(receiver: Uid, id: KeyPart) -> Key {
    let partition = receiver.partition_key();
    vec![
        ("partition_key".to_owned(), text(partition.as_str())),
        ("receiver".to_owned(), integer(receiver.0.into())),
        ("message_id".to_owned(), id),
    ]
}

fn every(bound: &KeyPart) -> Key {
    ["partition_key", "receiver", "message_id"].map(|name| (name.to_owned(), bound.clone())).to_vec()
}

fn post_request(receiver: Uid, columns: &[(&str, &str)]) -> proto::PutRowRequest {
    let cells = columns.iter().map(|(name, value)| put(name, Value::String((*value).to_owned()))).collect();
    put_request("inbox", key(receiver, KeyPart::AutoIncrement), cells)
}

#[tokio::test]
async fn a_message_is_put_into_an_inbox_and_read_as_the_chat_and_the_table_show_it() {
    let inboxes = Inboxes::new().await;
    let name = "00000000-0000-0000-0000-000000000005";
    let said = [("body", r#"{"text":"your order is on its way"}"#), ("client_id", name)];
    assert_eq!(inboxes.post(ANN, &said).await, 1);
    assert_eq!(inboxes.post(ANN, &said).await, 1, "known again");
    assert_eq!(inboxes.post(ANN, &[("kind", "app.order"), ("body", r#"{"total":3}"#)]).await, 2);
    assert_eq!(inboxes.post(ANN, &[("body", "a text that is no JSON")]).await, 3);

    let page = inboxes.messages.range(ANN, RangeQuery::after(MessageId::ZERO, 10)).await.expect("read");
    let seen: Vec<_> = page
        .rows
        .iter()
        .map(|entry| (entry.content.kind_name(), entry.content.body_json(), entry.conversation().to_string()))
        .collect();
    let with_bot = || "u:10001".to_owned();
    assert_eq!(
        seen,
        [
            ("message", r#"{"text":"your order is on its way"}"#, with_bot()),
            ("app.order", r#"{"total":3}"#, with_bot()),
            ("message", r#"{"text":"a text that is no JSON"}"#, with_bot()),
        ]
    );
    let own = inboxes.messages.range(BOT, RangeQuery::after(MessageId::ZERO, 10)).await.expect("read");
    assert!(own.rows.is_empty(), "no copy for the sender");

    let cells = inboxes.client.get("inbox", key(ANN, integer(1))).await.expect("there");
    let text = |name: &str, value: &str| (name.to_owned(), Value::String(value.to_owned()), 7);
    assert_eq!(
        cells,
        [
            text("body", r#"{"text":"your order is on its way"}"#),
            text("client_id", name),
            text("conversation", "u:10001"),
            text("kind", "message"),
            ("sender".to_owned(), Value::Integer(10_001), 7),
            text("sent_at", "1970-01-01T00:00:00.007Z"),
        ]
    );
    assert_eq!(inboxes.client.get("inbox", key(ANN, integer(9))).await, None);
    assert_eq!(inboxes.client.get("inbox", key(BOB, integer(1))).await, None);
}

#[tokio::test]
async fn a_post_above_the_rate_of_its_sender_is_stored_nowhere_and_may_come_again() {
    let left = AtomicUsize::new(2);
    let may_post = move |sender| {
        assert_eq!(sender, BOT);
        left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok()
    };
    let inboxes = Inboxes::at_rate(Arc::new(may_post)).await;
    assert!(inboxes.refused(ANN, &[("other", "x")]).await.starts_with("Invalid column name"));
    assert_eq!(inboxes.post(ANN, &[("body", "one")]).await, 1);
    assert_eq!(inboxes.post(BOB, &[("body", "two")]).await, 1);
    let refused = inboxes.client.refusal("PutRow", &post_request(ANN, &[("body", "three")])).await;
    let message = "Remaining capacity unit is not enough.".to_owned();
    assert_eq!(refused, (ErrorCode::NotEnoughCapacityUnit, message));
    let page = inboxes.messages.range(ANN, RangeQuery::after(MessageId::ZERO, 10)).await.expect("read");
    assert_eq!(page.rows.len(), 1);
}

#[tokio::test]
async fn ranges_run_over_all_inboxes_in_the_order_of_the_keys() {
    let inboxes = Inboxes::new().await;
    let mut all = Vec::new();
    for receiver in [ANN, BOB, BOT] {
        for n in 1..=3 {
            assert_eq!(inboxes.post(receiver, &[("body", "hi")]).await, n);
            all.push((receiver.partition_key(), i64::from(receiver.0), n));
        }
    }
    all.sort_unstable();
    let all: Vec<(i64, i64)> = all.into_iter().map(|(_, uid, id)| (uid, id)).collect();
    let downwards: Vec<_> = all.iter().rev().copied().collect();
    let (low, high) = (every(&KeyPart::InfMin), every(&KeyPart::InfMax));
    assert_eq!(inboxes.range(true, low.clone(), high.clone(), 100).await, (all.clone(), false));
    assert_eq!(inboxes.range(false, high.clone(), low.clone(), 100).await, (downwards.clone(), false));
    assert_eq!(inboxes.range(true, low.clone(), high.clone(), 4).await, (all[..4].to_vec(), true));
    let place = |(uid, id): (i64, i64)| key(Uid(uid as u32), integer(id));
    for from in 0..all.len() {
        let rest = inboxes.range(true, place(all[from]), high.clone(), 2).await.0;
        assert_eq!(rest, all[from..].iter().take(2).copied().collect::<Vec<_>>(), "from {from}");
        let rest = inboxes.range(false, place(downwards[from]), low.clone(), 2).await.0;
        assert_eq!(rest, downwards[from..].iter().take(2).copied().collect::<Vec<_>>(), "down from {from}");
        for to in from + 1..all.len() {
            let part = inboxes.range(true, place(all[from]), place(all[to]), 100).await;
            assert_eq!(part, (all[from..to].to_vec(), false), "{from} to {to}");
            let part = inboxes.range(false, place(all[to]), place(all[from]), 100).await;
            let expected: Vec<_> = all[from + 1..=to].iter().rev().copied().collect();
            assert_eq!(part, (expected, false), "{to} down to {from}");
        }
    }
    let one = inboxes.range(true, key(ANN, KeyPart::InfMin), key(ANN, KeyPart::InfMax), 100).await.0;
    assert_eq!(one, [1, 2, 3].map(|id| (i64::from(ANN.0), id)));
}

#[tokio::test]
async fn what_cannot_be_put_is_refused_by_name() {
    let inboxes = Inboxes::new().await;
    for (columns, told) in [
        (&[][..], "needs the column body"),
        (&[("body", "")], "Invalid body: the text is empty"),
        (&[("body", r#"{"text":"hi","x":1}"#)], "Invalid body: of a message it is"),
        (&[("body", "hi"), ("kind", "receipt")], "Invalid kind: 'receipt'"),
        (&[("body", "hi"), ("kind", "app.x")], "Invalid body: the body is not JSON"),
        (&[("body", "hi"), ("sender", "10002")], "Invalid column name: 'sender'"),
        (&[("body", "hi"), ("client_id", "5")], "Invalid client_id"),
        (&[("body", "hi"), ("conversation", "u:10003")], "Invalid conversation: it is u:10001"),
        (&[("body", "hi"), ("conversation", "g:7")], "This group does not exist"),
    ] {
        let refused = inboxes.refused(ANN, columns).await;
        assert!(refused.contains(told), "{refused}");
    }
    assert_eq!(inboxes.refused(Uid(9), &[("body", "hi")]).await, "User 9 does not exist.");
    let name = "00000000-0000-0000-0000-000000000005";
    inboxes.post(ANN, &[("body", "one"), ("client_id", name)]).await;
    let refused = inboxes.refused(ANN, &[("body", "other"), ("client_id", name)]).await;
    assert!(refused.starts_with("This client_id was already used"), "{refused}");

    let mut wrong = key(ANN, KeyPart::AutoIncrement);
    wrong[0].1 = text("0000");
    let body = vec![put("body", Value::String("hi".to_owned()))];
    let refused = inboxes.client.refusal("PutRow", &put_request("inbox", wrong, body.clone())).await.1;
    assert!(refused.starts_with("The partition_key of the receiver 10002 is "), "{refused}");
    let explicit = put_request("inbox", key(ANN, integer(7)), body);
    let refused = inboxes.client.refusal("PutRow", &explicit).await.1;
    assert!(refused.starts_with("message_id of the table inbox is assigned"), "{refused}");
    let a_number = put_request("inbox", key(ANN, KeyPart::AutoIncrement), vec![number("body", 1)]);
    let refused = inboxes.client.refusal("PutRow", &a_number).await.1;
    assert_eq!(refused, "The column body of the table inbox is a string.");

    let delete = proto::DeleteRowRequest {
        table_name: "inbox".to_owned(),
        primary_key: Some(tidemark_table::wire::plain_buffer::encode_sent(
            &tidemark_table::wire::plain_buffer::ReceivedRow {
                key: key(ANN, integer(1)),
                cells: Vec::new(),
                delete: true,
            },
        )),
        condition: super::client::ignore(),
        ..proto::DeleteRowRequest::default()
    };
    let refused = inboxes.client.refusal("DeleteRow", &delete).await;
    assert_eq!(refused.0, ErrorCode::UnsupportedOperation);
    assert!(inboxes.client.get("inbox", key(ANN, integer(1))).await.is_some());
    let drop = proto::DeleteTableRequest { table_name: "inbox".to_owned() };
    assert_eq!(inboxes.client.refusal("DeleteTable", &drop).await.0, ErrorCode::UnsupportedOperation);
}

#[tokio::test]
async fn a_batch_is_put_in_its_order_and_one_wrong_row_takes_no_other_with_it() {
    let inboxes = Inboxes::new().await;
    let row_of = |receiver, body: &str| {
        let cells = vec![put("body", Value::String(body.to_owned()))];
        proto::RowInBatchWrite {
            r#type: Some(proto::WriteType::Put as i32),
            row_change: Some(sent(key(receiver, KeyPart::AutoIncrement), cells)),
            condition: super::client::ignore(),
            return_content: None,
        }
    };
    let table = proto::TableInBatchWrite {
        table_name: "inbox".to_owned(),
        rows: vec![row_of(ANN, "one"), row_of(Uid(9), "nobody's"), row_of(ANN, "two"), row_of(BOB, "three")],
    };
    let other =
        proto::TableInBatchWrite { table_name: "orders".to_owned(), rows: vec![row_of(ANN, "not said")] };
    let mixed = proto::BatchWriteRowRequest {
        tables: vec![table.clone(), other],
        ..proto::BatchWriteRowRequest::default()
    };
    let refused = inboxes.client.refusal("BatchWriteRow", &mixed).await;
    assert_eq!(refused.0, ErrorCode::ParameterInvalid, "{}", refused.1);
    let batch = proto::BatchWriteRowRequest { tables: vec![table], ..proto::BatchWriteRowRequest::default() };
    let answer: proto::BatchWriteRowResponse =
        inboxes.client.call("BatchWriteRow", &batch).await.expect("answered");
    let done: Vec<bool> = answer.tables[0].rows.iter().map(|row| row.is_ok).collect();
    assert_eq!(done, [true, false, true, true]);
    let page = inboxes.messages.range(ANN, RangeQuery::after(MessageId::ZERO, 10)).await.expect("read");
    let bodies: Vec<_> = page.rows.iter().map(|entry| entry.content.body_json()).collect();
    assert_eq!(bodies, [r#"{"text":"one"}"#, r#"{"text":"two"}"#]);
}

#[tokio::test]
async fn only_a_key_for_inboxes_finds_them() {
    let inboxes = Inboxes::new().await;
    inboxes.post(ANN, &[("body", "hi")]).await;
    let names = async |client: &Client| {
        let answer: proto::ListTableResponse =
            client.call("ListTable", &proto::ListTableRequest {}).await.expect("listed");
        answer.table_names
    };
    assert_eq!(names(&inboxes.client).await, ["inbox"]);
    let mut other = inboxes.client.clone();
    other.caller.inbox = None;
    assert_eq!(names(&other).await, [""; 0]);
    let get = get_request("inbox", key(ANN, integer(1)));
    assert_eq!(other.refusal("GetRow", &get).await.0, ErrorCode::ObjectNotExist);
    assert_eq!(
        other.refusal("PutRow", &post_request(ANN, &[("body", "hi")])).await.0,
        ErrorCode::ObjectNotExist
    );
    let mut reader = inboxes.client.clone();
    reader.caller.may_write = false;
    assert_eq!(
        reader.refusal("PutRow", &post_request(ANN, &[("body", "hi")])).await.0,
        ErrorCode::NoPermissionAccess
    );
    assert!(reader.get("inbox", key(ANN, integer(1))).await.is_some());
}
