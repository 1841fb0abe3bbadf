//! Every valid message survives the wire; one that breaks a rule is refused.

use std::sync::Arc;
use std::time::Duration;

use prost::Message;

use super::*;
use seqsvr_core::ids::Epoch;
use seqsvr_core::routing::{Assignment, Node, NodeState, Table};
use seqsvr_core::store::configuration::{Given, Taking};
use seqsvr_core::store::message::{Answer, Earlier, Question};
use seqsvr_core::store::message::{Copy, Description, Held, Misaddressed, Raised, SectionState};
use seqsvr_core::store::{Configuration, Configured, Member, Move, Moves, Owner};
use v1::store_reply::Reply;
use v1::store_request::Request;

const LAYOUT: Layout = Layout { section_size: 100_000, step: 10_000 };
const OWNER: Owner = Owner { epoch: Epoch { term: 7, version: 3 }, incarnation: u64::MAX };

fn sections(first: u32, last: u32) -> RangeInclusive<SectionId> {
    SectionId::new(first)..=SectionId::new(last)
}

fn to(section: u32, max: u64) -> Ceiling {
    Ceiling { section: SectionId::new(section), max }
}

fn some_table() -> Arc<Table> {
    let node =
        Node { name: "a1".to_owned(), addr: "http://10.0.0.1:1".to_owned(), state: NodeState::Drained };
    let version = Epoch { term: 7, version: 3 };
    let one = Assignment { sections: sections(2, 9), node: 0, home: 0, incarnation: 5, epoch: version };
    Arc::new(Table {
        set: 4,
        version,
        section_size: 100_000,
        uids: 0..=999_999,
        nodes: vec![node],
        assignments: vec![one],
    })
}

fn over_the_wire(question: &Question) -> Result<Question, WireError> {
    let request = v1::StoreRequest { request: Some(question.into()), ..v1::StoreRequest::default() };
    let read = v1::StoreRequest::decode(request.encode_to_vec().as_slice()).unwrap();
    read.request.unwrap().try_into()
}

fn claim(sections: Vec<RangeInclusive<SectionId>>) -> Question {
    Question::Claim { sections, owner: OWNER, layout: LAYOUT }
}

fn configuration(number: u64) -> Arc<Configuration> {
    let member = |id: u64| Member { id, name: format!("s{id}"), addr: format!("http://s{id}:1") };
    let lease = Duration::from_secs(2);
    let members = (1..=3).map(member).collect();
    let taking = Taking { uids: 100_000..=199_999, by: Move { from: 7, number: 9 } };
    let taking = number.is_multiple_of(4).then_some(taking);
    let given = Given { uids: 200_000..=299_999, to: 4, number: 2 };
    let moves = Moves { given: vec![given], taken: vec![Move { from: 5, number: 6 }] };
    let uids = 0..=99_999;
    Arc::new(Configuration { number, members, write: 2, lease, layout: LAYOUT, uids, taking, moves })
}

fn some_copy() -> Copy {
    let owner = Some(Held { owner: OWNER, released: true });
    let before = Owner { epoch: Epoch { term: 1, version: 1 }, incarnation: 2 };
    let earlier = Some(Held { owner: before, released: false });
    Copy {
        promised: 9,
        table: Some(some_table()),
        layout: Some(LAYOUT),
        sections: vec![
            (sections(0, 3), SectionState { ceiling: 0, owner, earlier: None }),
            (sections(4, 4), SectionState { ceiling: MAX_CEILING, owner, earlier }),
        ],
        configured: Configured {
            current: Some(configuration(3)),
            ballot: 8,
            accepted: Some((7, configuration(4))),
        },
    }
}

#[test]
fn questions_survive_the_wire() {
    let wait = Duration::from_millis(500);
    for question in [
        claim(vec![sections(5, 42_949), sections(0, 3)]),
        Question::Raise { owner: OWNER, ceilings: vec![to(4, MAX_CEILING), to(0, 1), to(4, 0)] },
        Question::Release { owner: OWNER, sections: vec![sections(0, 0)] },
        Question::Promise { term: u64::MAX },
        Question::Write(some_table()),
        Question::Read { revision: u64::MAX, wait, releases: true },
        Question::Read { revision: 1, wait, releases: false },
        Question::Acting { term: 3 },
        Question::Copy,
        Question::Describe,
        Question::Seal { number: 3, ballot: 9 },
        Question::Accept { number: 3, ballot: 9, next: configuration(4) },
        Question::Install { next: configuration(4), copy: Arc::new(some_copy()) },
    ] {
        assert_eq!(over_the_wire(&question), Ok(question));
    }
}

#[test]
fn answers_survive_the_wire() {
    let acting = Some(Duration::from_millis(3));
    for answer in [
        Answer::Claimed {
            ceilings: vec![to(3, 10), to(42_949, MAX_CEILING)],
            earlier: vec![Earlier { sections: sections(0, 9), owner: OWNER, released: true }],
        },
        Answer::Outclaimed(OWNER.epoch),
        Answer::OtherLayout(LAYOUT),
        Answer::Raised(vec![Raised::Confirmed(1), Raised::Smaller(0), Raised::NotOwner(Epoch::default())]),
        Answer::Released,
        Answer::Promised(None),
        Answer::Promised(Some(some_table())),
        Answer::Outranked(4),
        Answer::Written,
        Answer::Newer(OWNER.epoch),
        Answer::Table { revision: 1, table: Some(some_table()), promised: 7, acting },
        Answer::Table { revision: 1, table: None, promised: 0, acting: None },
        Answer::Acting(5),
        Answer::Copy(some_copy()),
        Answer::Copy(Copy::default()),
        Answer::Described(Description {
            name: "s1".to_owned(),
            id: u64::MAX,
            layout: Some(LAYOUT),
            configuration: Some(configuration(3)),
            sealed: true,
        }),
        Answer::Sealed { accepted: Some((4, configuration(4))), copy: some_copy() },
        Answer::Accepted,
        Answer::Outbid(8),
        Answer::Installed,
        Answer::Misaddressed { why: Misaddressed::Newer, configuration: Some(configuration(4)) },
        Answer::Misaddressed { why: Misaddressed::Unconfigured, configuration: None },
    ] {
        let reply = v1::StoreReply { reply: Some((&answer).into()) };
        let read = v1::StoreReply::decode(reply.encode_to_vec().as_slice()).unwrap();
        assert_eq!(Answer::try_from(read.reply.unwrap()), Ok(answer));
    }
}

#[test]
fn questions_that_break_a_rule_are_refused() {
    let nobody = Owner { epoch: Epoch::default(), incarnation: 1 };
    let tiny = Layout { section_size: 9_999, step: 10_000 };
    let behind = Arc::new(Table { uids: 0..=999_998, ..Table::clone(&some_table()) });
    let too_many = (0..=MOST_SECTIONS as u32).map(|one| sections(one, one)).collect();
    for question in [
        claim(vec![sections(3, 2)]),
        claim(vec![sections(4, 9), sections(0, 4)]),
        claim(vec![sections(0, 42_950)]),
        Question::Claim { sections: vec![], owner: nobody, layout: LAYOUT },
        Question::Claim { sections: vec![], owner: OWNER, layout: tiny },
        Question::Raise { owner: OWNER, ceilings: vec![to(0, MAX_CEILING + 1)] },
        Question::Raise { owner: OWNER, ceilings: vec![to(0, 1); MOST_SECTIONS + 1] },
        Question::Release { owner: OWNER, sections: too_many },
        Question::Write(behind),
    ] {
        assert!(over_the_wire(&question).is_err(), "{question:?}");
    }
    let uneven = v1::RaiseRequest { owner: Some(OWNER.into()), sections: vec![1, 2], ceilings: vec![1] };
    assert!(Question::try_from(Request::Raise(uneven)).is_err());
    let nameless = v1::RaiseRequest { owner: None, sections: vec![1], ceilings: vec![1] };
    assert_eq!(Question::try_from(Request::Raise(nameless)), Err(WireError::Missing("owner")));
}

#[test]
fn answers_that_break_a_rule_are_refused() {
    let backwards = Copy { sections: some_copy().sections.into_iter().rev().collect(), ..some_copy() };
    let mut too_new = some_copy();
    too_new.sections[1].1.owner =
        too_new.sections[1].1.earlier.replace(Held { owner: OWNER, released: false });
    let mut unowned = some_copy();
    unowned.sections[0].1.owner = None;
    for copy in [backwards, too_new, unowned] {
        assert!(Answer::try_from(Reply::from(&Answer::Copy(copy))).is_err());
    }
    assert!(Answer::try_from(Reply::Claim(v1::ClaimReply { outcome: None })).is_err());
    assert!(Answer::try_from(Reply::Refused("damaged".to_owned())).is_err());
}

#[test]
fn the_largest_messages_fit() {
    let all = (0..MOST_SECTIONS as u32).map(|one| to(one, MAX_CEILING)).collect();
    let raise = Request::from(&Question::Raise { owner: OWNER, ceilings: all });
    assert!(
        v1::StoreRequest { cluster: "c".repeat(64), set: 1, request: Some(raise), address: None }
            .encoded_len()
            < LARGEST_QUESTION
    );
    let state = some_copy().sections[1].1;
    let all = (0..429_497).map(|one| (sections(one, one), state)).collect();
    let copy = Reply::from(&Answer::Copy(Copy { sections: all, ..some_copy() }));
    assert!(v1::StoreReply { reply: Some(copy) }.encoded_len() < LARGEST_ANSWER);
    // The figure to reach for a Set that covers every uid: 2 MB for each replica.
    let ceilings = (0..42_950).map(|one| to(one, 1 << 40)).collect();
    let earlier =
        (0..42_950).map(|one| Earlier { sections: sections(one, one), owner: OWNER, released: false });
    let claimed = Reply::from(&Answer::Claimed { ceilings, earlier: earlier.collect() });
    assert!(v1::StoreReply { reply: Some(claimed) }.encoded_len() < 2 << 20);
}
