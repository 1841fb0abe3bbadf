//! The service over a node in memory, in paused time.

use futures_util::{StreamExt, stream};

use super::*;
use crate::alloc::fixture::{FixtureNode, LEASE, SIZE, give};
use crate::alloc::record::DataDir;
use seqsvr_core::store::Memory;
use seqsvr_rpc::v1::sequence_server::Sequence;
use seqsvr_rpc::v1::stream_reply::Answer;
use seqsvr_rpc::v1::stream_request::Call;
use seqsvr_rpc::v1::{next_each_reply, next_reply};

const LIMITS: SequenceLimits = SequenceLimits { uids: 100, waiting: 4, streams: 2 };

/// The service of a node that serves the sections 0 to 4 of ten, warmed up for `uids`.
async fn service(uids: &[u32]) -> (SequenceService, FixtureNode, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("there is room");
    let data = DataDir::open(folder.path()).expect("nobody else has it");
    let store = Arc::new(Memory::new());
    let node = FixtureNode::start(&store, data.record(0), "a", 1);
    give(&store, 3, &[(0..=4, "a", 1, 1), (5..=9, "b", 2, 1)]).await;
    for &uid in uids {
        node.number(uid).await;
    }
    (SequenceService::new(vec![Arc::clone(&node.server)], LIMITS, CancellationToken::new()), node, folder)
}

async fn ask(service: &SequenceService, calls: Vec<Call>) -> Vec<v1::StreamReply> {
    let requests = calls.into_iter().zip(1..).map(|(call, id)| Ok(StreamRequest { id, call: Some(call) }));
    let permit = Arc::clone(&service.streams).try_acquire_owned().expect("there is room");
    let answers = Answers::new(service.clone(), stream::iter(requests.collect::<Vec<_>>()), permit);
    answers.map(|answer| answer.expect("the stream goes well")).collect().await
}

use v1::StreamRequest;

fn next(uid: u32) -> Call {
    Call::Next(v1::NextRequest { uid, count: 1, route: None })
}

fn each(uids: &[u32]) -> Call {
    Call::NextEach(v1::NextEachRequest { uids: uids.to_vec(), route: None })
}

fn number(reply: &v1::StreamReply) -> Option<u64> {
    match &reply.answer {
        Some(Answer::Next(v1::NextReply {
            outcome: Some(next_reply::Outcome::Granted(granted)), ..
        })) => Some(granted.last),
        _ => None,
    }
}

fn numbers(reply: &v1::StreamReply) -> Option<&[u64]> {
    match &reply.answer {
        Some(Answer::NextEach(v1::NextEachReply {
            outcome: Some(next_each_reply::Outcome::Granted(granted)),
            ..
        })) => Some(&granted.numbers),
        _ => None,
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_answers_every_request_and_numbers_grow() {
    let (service, _node, _folder) = service(&[1, 2]).await;
    let replies = ask(&service, (0..100).map(|_| next(1)).collect()).await;
    let mut ids: Vec<u64> = replies.iter().map(|reply| reply.id).collect();
    ids.sort_unstable();
    assert_eq!(ids, (1..=100).collect::<Vec<_>>());
    let mut granted: Vec<(u64, u64)> =
        replies.iter().map(|reply| (reply.id, number(reply).expect("granted"))).collect();
    granted.sort_unstable();
    assert!(granted.windows(2).all(|two| two[0].1 < two[1].1), "{granted:?}");
}

#[tokio::test(start_paused = true)]
async fn requests_that_wait_for_a_raise_are_answered_too_and_hold_up_nobody() {
    let (service, _node, _folder) = service(&[1]).await;
    // Section 2 was never raised; its uids wait, the others do not.
    let replies = ask(&service, vec![next(2 * SIZE), next(1), each(&[1, 3 * SIZE, 1])]).await;
    assert_eq!(replies[0].id, 2);
    assert_eq!(replies.len(), 3);
    let each = replies.iter().find_map(numbers).expect("granted");
    assert!(each.len() == 3 && each[0] < each[2], "{each:?}");
}

#[tokio::test(start_paused = true)]
async fn a_call_for_uids_of_many_sections_waits_for_one_raise() {
    let (_desk, node, _folder) = service(&[1]).await;
    let mut call = Each::new(vec![1, SIZE, 2 * SIZE, 3 * SIZE, 4 * SIZE, SIZE]);
    let Err(Denied::Later(mut rounds)) = call.proceed(&node.server.view()) else { panic!("it must wait") };
    rounds.changed().await.expect("the store answers");
    call.proceed(&node.server.view()).expect("all of them are raised");
    let (numbers, _) = call.take();
    assert_eq!(numbers.len(), 6);
    assert!(numbers[5] > numbers[1], "a uid that is there twice: {numbers:?}");
}

#[tokio::test(start_paused = true)]
async fn more_waiting_requests_than_allowed_are_asked_to_come_back() {
    let (service, node, _folder) = service(&[1]).await;
    let replies = ask(&service, (0..6).map(|uid| next(2 * SIZE + uid)).collect()).await;
    assert_eq!(replies.iter().filter_map(number).count(), LIMITS.waiting);
    assert!(node.server.refusals().contains(&("crowded", 2)));
}

#[tokio::test(start_paused = true)]
async fn one_uid_that_is_not_owned_refuses_the_whole_call_before_anything_is_allocated() {
    let (service, node, _folder) = service(&[1, 2]).await;
    let before = node.server.metrics().allocated;
    let replies = ask(&service, vec![each(&[1, 2, 5 * SIZE])]).await;
    let Some(Answer::NextEach(reply)) = &replies[0].answer else { panic!("{replies:?}") };
    assert!(matches!(reply.outcome, Some(next_each_reply::Outcome::NotOwner(_))), "{reply:?}");
    assert_eq!(node.server.metrics().allocated, before);
}

#[tokio::test(start_paused = true)]
async fn the_table_is_attached_only_for_callers_with_an_older_one() {
    let (service, _node, _folder) = service(&[1]).await;
    for (route, attached) in [
        (None, false),
        (Some(v1::Route { set: 0, term: 0, version: 0 }), true),
        (Some(v1::Route { set: 0, term: 1, version: 2 }), true),
        (Some(v1::Route { set: 0, term: 1, version: 3 }), false),
        (Some(v1::Route { set: 0, term: 2, version: 0 }), false),
    ] {
        for uid in [1, 5 * SIZE] {
            let request = v1::NextRequest { uid, count: 1, route };
            let single = service.next(Request::new(request)).await.unwrap().into_inner();
            assert_eq!(single.table.is_some(), attached, "{request:?}");
            let replies = ask(&service, vec![Call::Next(request)]).await;
            let Some(Answer::Next(streamed)) = &replies[0].answer else { panic!("{replies:?}") };
            assert_eq!(streamed.table, single.table);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_sends_each_table_once_however_many_requests_go_by_an_older_one() {
    let (service, _node, _folder) = service(&[1]).await;
    let route = Some(v1::Route { set: 0, term: 0, version: 0 });
    // Some are answered at once, some are refused, some wait for a raise.
    let uids = (0..300).map(|call| [1, 5 * SIZE, 2 * SIZE][call % 3] + call as u32 / 100);
    let calls = uids.map(|uid| Call::Next(v1::NextRequest { uid, count: 1, route })).collect();
    let replies = ask(&service, calls).await;
    let tables = |reply: &v1::StreamReply| match &reply.answer {
        Some(Answer::Next(next)) => usize::from(next.table.is_some()),
        other => panic!("{other:?}"),
    };
    assert_eq!((replies.len(), replies.iter().map(tables).sum::<usize>()), (300, 1));
    assert_eq!(tables(&replies[0]), 1, "the first to be sent");
}

#[tokio::test(start_paused = true)]
async fn after_the_lease_nothing_leaves_though_memory_would_give_it() {
    let (service, node, _folder) = service(&[1, 2]).await;
    node.task.abort();
    tokio::time::advance(LEASE).await;
    let replies = ask(&service, vec![next(1), each(&[1, 2])]).await;
    assert_eq!((replies.len(), replies.iter().find_map(number)), (2, None));
    assert!(replies.iter().find_map(numbers).is_none());
    let current = v1::CurrentRequest { uids: vec![1], route: None };
    let current = service.current(Request::new(current)).await.unwrap().into_inner();
    assert!(matches!(current.outcome, Some(v1::current_reply::Outcome::Unavailable(_))), "{current:?}");
    assert!(node.server.refusals().contains(&("lease", 3)));
}

#[tokio::test(start_paused = true)]
async fn wrong_requests_are_a_status_alone_and_an_outcome_on_a_stream() {
    let (service, _node, _folder) = service(&[1]).await;
    let wrong = [
        v1::NextRequest { uid: 1, count: 0, route: None },
        v1::NextRequest { uid: 10 * SIZE, count: 1, route: None },
        v1::NextRequest { uid: 1, count: 1, route: Some(v1::Route { set: 7, term: 0, version: 0 }) },
    ];
    for request in wrong {
        let status = service.next(Request::new(request)).await.expect_err("it is wrong");
        assert_eq!(status.code(), tonic::Code::InvalidArgument, "{status}");
        let replies = ask(&service, vec![Call::Next(request)]).await;
        let Some(Answer::Next(reply)) = &replies[0].answer else { panic!("{replies:?}") };
        assert!(matches!(reply.outcome, Some(next_reply::Outcome::Refused(_))), "{reply:?}");
    }
    let too_many = v1::NextEachRequest { uids: vec![1; 101], route: None };
    assert!(service.next_each(Request::new(too_many)).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn advancing_lets_a_uid_go_on_above() {
    let (service, _node, _folder) = service(&[1]).await;
    let advance = v1::AdvanceRequest { uid: 1, at_least: 1_000_000, route: None };
    service.advance(Request::new(advance)).await.unwrap();
    let replies = ask(&service, vec![next(1)]).await;
    assert_eq!(number(&replies[0]), Some(1_000_001));
    let current = v1::CurrentRequest { uids: vec![1], route: None };
    let current = service.current(Request::new(current)).await.unwrap().into_inner();
    let Some(v1::current_reply::Outcome::UpperBounds(bounds)) = current.outcome else {
        panic!("{current:?}")
    };
    assert_eq!(bounds.numbers, [1_000_001]);
}

#[tokio::test(start_paused = true)]
async fn a_stop_ends_streams_that_have_nothing_to_answer() {
    let (service, _node, _folder) = service(&[1]).await;
    let permit = Arc::clone(&service.streams).try_acquire_owned().expect("there is room");
    let request = StreamRequest { id: 1, call: Some(next(1)) };
    let requests = stream::iter([Ok(request)]).chain(stream::pending());
    let mut answers = Answers::new(service.clone(), requests, permit);
    assert_eq!(answers.next().await.map(|answer| answer.expect("it goes well").id), Some(1));
    service.stop.cancel();
    assert!(answers.next().await.is_none());
}
