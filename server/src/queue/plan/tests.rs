//! Decisions about requests, without a store.

use super::*;
use crate::domain::{GroupChange, GroupSetting, GroupStep, History, Mute, Muted};
use crate::queue::GroupAction;
use uuid::Uuid;

mod keep;

const ANN: Uid = Uid(1);
const BOB: Uid = Uid(2);
const CAT: Uid = Uid(3);
const WALKERS: GroupId = GroupId(7);

fn facts() -> Facts {
    let people = [(ANN, "ann"), (BOB, "bob"), (CAT, "cat")];
    let step = GroupStep::Created { name: "walkers".into(), members: vec![ANN, BOB] };
    let group = Group::create(&GroupChange::of_step(WALKERS, 0, ANN, Timestamp(0), &step)).expect("a making");
    Facts {
        people: people.into_iter().map(|(uid, name)| (uid, name.to_owned())).collect(),
        groups: HashMap::from([(WALKERS, Arc::new(group))]),
        ..Facts::default()
    }
}

fn planner(facts: Facts) -> Planner {
    let limits = PlanLimits {
        text_characters: 10,
        members: 3,
        edit: Duration::from_secs(60),
        recall: Duration::from_secs(30),
        history: true,
        stars: 2,
    };
    Planner::new(facts, limits, Timestamp(5))
}

fn say(id: u128, to: Conversation, text: &str) -> Request {
    Request::Message(OutgoingMessage {
        client_id: ClientId(Uuid::from_u128(id)),
        to,
        text: text.into(),
        reply_to: None,
        forward: None,
        files: Vec::new(),
        mentions: Mentions::default(),
    })
}

fn refusal(decided: Result<Accept, NoWrite>) -> Option<SendError> {
    match decided {
        Err(NoWrite::Answer(answer)) => answer.err(),
        Ok(_) | Err(NoWrite::SameAs(_)) => None,
    }
}

#[test]
fn a_repetition_within_the_batch_shares_the_first_ones_answer() {
    let mut planner = planner(facts());
    let to = Conversation::User(BOB);
    assert!(planner.decide(0, ANN, &say(1, to, "hi")).is_ok());
    assert!(matches!(planner.decide(1, ANN, &say(1, to, "hi")), Err(NoWrite::SameAs(0))));
    let other = planner.decide(2, ANN, &say(1, to, "ho"));
    assert_eq!(refusal(other), Some(SendError::ClientIdReused));
    // The same id of another sender is another message.
    assert!(planner.decide(3, BOB, &say(1, to, "hi")).is_ok());
}

#[test]
fn the_first_answer_outlives_membership_and_limits() {
    let mut facts = facts();
    let to = Conversation::Group(WALKERS);
    let text = "far longer than the limit of ten";
    let record =
        IdempotencyRecord { message_id: MessageId::MAX, sent_at: Timestamp(1), digest: Digest::of(to, text) };
    facts.keys.insert((CAT, ClientId(Uuid::from_u128(1))), KeyState::Used(record));
    let mut planner = planner(facts);
    let Err(NoWrite::Answer(Ok(ack))) = planner.decide(0, CAT, &say(1, to, text)) else {
        panic!("the record answers");
    };
    assert_eq!((ack.message_id, ack.repeated), (MessageId::MAX, true));
    assert_eq!(refusal(planner.decide(1, CAT, &say(2, to, "hi"))), Some(SendError::UnknownGroup));
}

#[test]
fn who_is_mentioned_and_not_in_the_group_is_left_out() {
    let mut planner = planner(facts());
    let naming = |id, to, users: &[Uid]| {
        let Request::Message(message) = say(id, to, "hi") else { panic!("a message") };
        Request::Message(OutgoingMessage {
            mentions: Mentions { users: users.to_vec(), all: true },
            ..message
        })
    };
    let walkers = Conversation::Group(WALKERS);
    let request = naming(1, walkers, &[BOB, CAT, BOB]);
    let Ok(plan) = planner.decide(0, ANN, &request) else { panic!("a write") };
    assert_eq!(plan.content.body.mentions(), Mentions { users: vec![BOB], all: true });
    assert!(plan.content.counts_as_mention(BOB) && !plan.content.counts_as_mention(ANN));
    let other = planner.decide(1, ANN, &naming(1, walkers, &[BOB]));
    assert_eq!(refusal(other), Some(SendError::ClientIdReused), "who is mentioned is part of what is said");
    let Ok(plan) = planner.decide(2, ANN, &naming(2, Conversation::User(BOB), &[BOB])) else {
        panic!("a write")
    };
    assert_eq!(plan.content.body.as_json(), r#"{"text":"hi"}"#, "of two people nobody need be named");
}

fn post(n: u128, target: Conversation) -> Request {
    let client_id = (n > 0).then(|| ClientId(Uuid::from_u128(n)));
    let body = Body::text("hi", 10).expect("short");
    Request::Post(Post { client_id, receiver: BOB, target, kind: Kind::Message, body })
}

#[test]
fn a_post_is_for_its_receiver_alone_and_known_again() {
    let mut planner = planner(facts());
    for (n, target, epoch, version) in [
        (1, Conversation::User(BOB), MembershipEpoch(0), None),
        (2, Conversation::Group(WALKERS), MembershipEpoch(1), Some(1)),
        (0, Conversation::User(BOB), MembershipEpoch(0), None),
    ] {
        let Ok(plan) = planner.decide(n as usize, ANN, &post(n, target)) else { panic!("a write") };
        assert_eq!(plan.rows, [Recipient { uid: BOB, epoch }.row(MessageId::ZERO)]);
        assert_eq!((plan.group_version, plan.content.client_id.is_some()), (version, n > 0));
    }
    let again = planner.decide(3, ANN, &post(1, Conversation::User(BOB)));
    assert!(matches!(again, Err(NoWrite::SameAs(1))), "{again:?}");
    let other = planner.decide(4, ANN, &post(1, Conversation::Group(WALKERS)));
    assert_eq!(refusal(other), Some(SendError::ClientIdReused));
    let said = planner.decide(5, ANN, &say(1, Conversation::User(BOB), "hi"));
    assert_eq!(refusal(said), Some(SendError::ClientIdReused), "a message is something else");
    let outside = planner.decide(6, CAT, &post(6, Conversation::Group(WALKERS)));
    assert_eq!(refusal(outside), Some(SendError::UnknownGroup));
    let nobody = Post {
        receiver: Uid(9),
        ..match post(7, Conversation::User(Uid(9))) {
            Request::Post(post) => post,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(refusal(planner.decide(7, ANN, &Request::Post(nobody))), Some(SendError::UnknownUser(9)));
}

#[test]
fn a_post_passes_over_no_block() {
    for (permission, refused) in [
        (WritePermission::Blocked, SendError::Blocked),
        (WritePermission::Blocks, SendError::Blocks),
        (WritePermission::FriendsOnly, SendError::FriendsOnly),
    ] {
        let mut facts = facts();
        facts.permissions.insert((BOB, ANN), permission);
        let mut planner = planner(facts);
        let decided = planner.decide(0, ANN, &post(1, Conversation::User(BOB)));
        assert_eq!(refusal(decided), Some(refused));
        // Groups in common stay.
        let walk = planner.decide(1, ANN, &post(2, Conversation::Group(WALKERS)));
        assert!(walk.is_ok(), "{walk:?}");
    }
}

#[test]
fn a_note_to_oneself_is_one_copy() {
    let mut planner = planner(facts());
    let Ok(plan) = planner.decide(0, ANN, &say(1, Conversation::User(ANN), "hi")) else {
        panic!("a write");
    };
    assert_eq!(plan.rows.len(), 1);
}

#[test]
fn a_read_marker_only_grows_and_names_a_row_of_its_conversation() {
    let mut facts = facts();
    let id = |n| MessageId::new(n).expect("small");
    let with_bob = Conversation::User(BOB);
    let row = Arc::new(Content {
        kind: Kind::Message,
        sender: BOB,
        target: Conversation::User(ANN),
        client_id: Some(ClientId(Uuid::from_u128(1))),
        body: Body::text("hi", 10).expect("short"),
        sent_at: Timestamp(0),
    });
    facts.rows.extend([((ANN, id(4)), row.clone()), ((ANN, id(9)), row)]);
    let mut planner = planner(facts);
    let read = |n| Request::Read { conversation: with_bob, message_id: id(n) };
    assert!(planner.decide(0, ANN, &read(9)).is_ok());
    assert!(matches!(planner.decide(1, ANN, &read(4)), Err(NoWrite::Answer(Ok(_)))));
    assert_eq!(refusal(planner.decide(2, ANN, &read(5))), Some(SendError::NotInConversation));
    let elsewhere = Request::Read { conversation: Conversation::User(CAT), message_id: id(9) };
    assert_eq!(refusal(planner.decide(3, ANN, &elsewhere)), Some(SendError::NotInConversation));
}

#[test]
fn changes_of_one_batch_build_on_each_other() {
    let mut planner = planner(facts());
    let change = |n, action| Request::Group { client_id: ClientId(Uuid::from_u128(n)), gid: WALKERS, action };
    let Ok(added) = planner.decide(0, ANN, &change(1, GroupAction::Add(CAT))) else {
        panic!("a write");
    };
    assert_eq!(added.rows.len(), 3);
    let Ok(left) = planner.decide(1, BOB, &change(2, GroupAction::Remove(BOB))) else {
        panic!("a write");
    };
    assert_eq!(left.rows[0].receiver, BOB, "who leaves gets the row that says so");
    assert_eq!(left.change.map(|change| change.from_version), Some(2));
    let again = planner.decide(2, BOB, &change(3, GroupAction::Add(BOB)));
    assert_eq!(refusal(again), Some(SendError::UnknownGroup));
}

/// A joiner gets the own copy after the earlier messages, which only the writer reads.
#[test]
fn who_joins_a_group_with_a_visible_history_gets_it_first() {
    for (history, shows, expected) in
        [(History::Visible, true, Some(CAT)), (History::Hidden, true, None), (History::Visible, false, None)]
    {
        let mut facts = facts();
        let group = facts.groups.get_mut(&WALKERS).expect("there");
        Arc::make_mut(group).settings.history = history;
        let mut planner = planner(facts);
        planner.limits.history = shows;
        let action = GroupAction::Add(CAT);
        let add = Request::Group { client_id: ClientId(Uuid::from_u128(1)), gid: WALKERS, action };
        let Ok(added) = planner.decide(0, ANN, &add) else { panic!("a write") };
        assert_eq!(joiner(&added.content), expected);
    }
}

/// A message that Ann sent to Bob at 0 s, as Ann has it under id 4.
fn with_message() -> (Facts, MessageId) {
    let (mut facts, row) = (facts(), MessageId::new(4).expect("small"));
    let content = Content {
        kind: Kind::Message,
        sender: ANN,
        target: Conversation::User(BOB),
        client_id: Some(ClientId(Uuid::from_u128(1))),
        body: Body::text("hi", 10).expect("short"),
        sent_at: Timestamp(0),
    };
    facts.rows.insert((ANN, row), Arc::new(content));
    (facts, row)
}

fn amend(n: u128, message_id: MessageId, amendment: Amendment) -> Request {
    let client_id = ClientId(Uuid::from_u128(n));
    Request::Amend(Amend { client_id, conversation: Conversation::User(BOB), message_id, amendment })
}

#[test]
fn amendments_of_one_batch_build_on_each_other() {
    let (facts, row) = with_message();
    let mut planner = planner(facts);
    let edit = amend(2, row, Amendment::Edit("ho".to_owned()));
    let Ok(plan) = planner.decide(0, ANN, &edit) else { panic!("a write") };
    assert_eq!((plan.content.kind, plan.rows.len()), (Kind::Edit, 2));
    assert!(matches!(planner.decide(1, ANN, &edit), Err(NoWrite::SameAs(0))));
    let recall = planner.decide(2, ANN, &amend(3, row, Amendment::Recall));
    assert!(recall.is_ok());
    let late = planner.decide(3, ANN, &amend(4, row, Amendment::Edit("he".to_owned())));
    assert_eq!(refusal(late), Some(SendError::Recalled));
    let reply = Request::Message(OutgoingMessage {
        client_id: ClientId(Uuid::from_u128(5)),
        to: Conversation::User(BOB),
        text: "what?".into(),
        reply_to: Some(row),
        forward: None,
        files: Vec::new(),
        mentions: Mentions::default(),
    });
    assert_eq!(refusal(planner.decide(4, ANN, &reply)), Some(SendError::Recalled));
}

#[test]
fn only_a_message_with_this_text_is_forwarded_and_names_its_author() {
    let (mut facts, row) = with_message();
    let gone = MessageId::new(5).expect("small");
    let recalled = Content { kind: Kind::Recalled, ..Content::clone(&facts.rows[&(ANN, row)]) };
    facts.rows.insert((ANN, gone), Arc::new(recalled));
    let mut planner = planner(facts);
    let mut forward = |n: u128, text: &str, row| {
        let Request::Message(message) = say(n, Conversation::Group(WALKERS), text) else {
            panic!("a message")
        };
        planner.decide(n as usize, ANN, &Request::Message(OutgoingMessage { forward: Some(row), ..message }))
    };
    let Ok(plan) = forward(1, "hi", row) else { panic!("a write") };
    assert_eq!(plan.content.body.as_json(), r#"{"forwarded_from":1,"text":"hi"}"#);
    assert_eq!(refusal(forward(2, "no", row)), Some(SendError::OtherText));
    assert_eq!(refusal(forward(3, "hi", gone)), Some(SendError::Recalled));
    assert_eq!(refusal(forward(4, "hi", MessageId::MAX)), Some(SendError::NotInConversation));
    assert_eq!(refusal(forward(1, "hi", gone)), Some(SendError::ClientIdReused));
}

#[test]
fn what_a_person_may_not_amend_is_refused_by_its_reason() {
    let (mut facts, row) = with_message();
    let theirs =
        Content { sender: BOB, target: Conversation::User(ANN), ..Content::clone(&facts.rows[&(ANN, row)]) };
    let named = |content: Content| Arc::new(Content { client_id: None, ..content });
    let id = |n| MessageId::new(n).expect("small");
    facts.rows.insert((ANN, id(5)), Arc::new(theirs.clone()));
    facts.rows.insert((ANN, id(6)), named(theirs));
    let limits = PlanLimits {
        text_characters: 10,
        members: 3,
        edit: Duration::from_secs(60),
        recall: Duration::from_secs(30),
        history: true,
        stars: 2,
    };
    let mut planner = Planner::new(facts, limits, Timestamp(40_000));
    for (n, row, amendment, expected) in [
        (2, id(5), Amendment::Edit("no".into()), SendError::NotYours),
        (3, id(5), Amendment::Recall, SendError::NotYours),
        (4, row, Amendment::Recall, SendError::TooLate(Duration::from_secs(30))),
        (5, id(6), Amendment::React(vec!["👍".into()]), SendError::NoMessage),
        (6, id(9), Amendment::React(vec![]), SendError::NotInConversation),
        (7, row, Amendment::React(vec!["no".into()]), SendError::Emoji(crate::domain::EmojiError::NotEmoji)),
    ] {
        let decided = planner.decide(n as usize, ANN, &amend(n, row, amendment));
        assert_eq!(refusal(decided), Some(expected), "{n}");
    }
    let edit = planner.decide(8, ANN, &amend(8, row, Amendment::Edit("in time".into())));
    assert!(edit.is_ok());
    let react = planner.decide(9, ANN, &amend(9, id(5), Amendment::React(vec!["👍".into()])));
    assert!(react.is_ok());
}

/// The walkers with these settings, in which Bob said "hi" at 0 s, as he has it under id 4.
fn with_settings(settings: &[GroupSetting]) -> Facts {
    let mut facts = facts();
    let group = &facts.groups[&WALKERS];
    let settings = settings.iter().fold(group.settings.clone(), |known, setting| known.with(setting));
    let group = Group { settings, ..Group::clone(group) };
    facts.groups.insert(WALKERS, Arc::new(group));
    let content = Content {
        kind: Kind::Message,
        sender: BOB,
        target: Conversation::Group(WALKERS),
        client_id: Some(ClientId(Uuid::from_u128(99))),
        body: Body::text("hi", 10).expect("short"),
        sent_at: Timestamp(0),
    };
    facts.rows.insert((BOB, MessageId::new(4).expect("small")), Arc::new(content));
    facts
}

#[test]
fn whoever_is_muted_says_nothing_in_the_group_and_takes_back_all_the_same() {
    let walkers = Conversation::Group(WALKERS);
    let amend = |n, amendment| {
        let (client_id, message_id) = (ClientId(Uuid::from_u128(n)), MessageId::new(4).expect("small"));
        Request::Amend(Amend { client_id, conversation: walkers, message_id, amendment })
    };
    let muted = |end| [ANN, BOB].map(|uid| Muted { uid: uid.0, until: Mute::Until(Timestamp(end)) }).to_vec();
    let mut planner = planner(with_settings(&[GroupSetting::Muted(muted(65))]));
    let refused = SendError::Muted { end: Timestamp(65), wait: Duration::from_millis(60) };
    assert_eq!(refusal(planner.decide(0, BOB, &say(1, walkers, "hi"))), Some(refused.clone()));
    assert_eq!(refusal(planner.decide(1, BOB, &amend(2, Amendment::Edit("ho".into())))), Some(refused));
    assert!(planner.decide(2, BOB, &amend(3, Amendment::React(vec!["👍".into()]))).is_ok());
    assert!(planner.decide(3, BOB, &say(4, Conversation::User(ANN), "hi")).is_ok());
    assert!(planner.decide(4, BOB, &amend(5, Amendment::Recall)).is_ok());
    assert!(planner.decide(5, ANN, &say(6, walkers, "the owner")).is_ok());
    let ended =
        self::planner(with_settings(&[GroupSetting::Muted(muted(5))])).decide(0, BOB, &say(1, walkers, "hi"));
    assert!(ended.is_ok());
}

#[test]
fn a_slow_group_takes_one_message_of_a_member_in_its_time() {
    let walkers = Conversation::Group(WALKERS);
    let slow = || with_settings(&[GroupSetting::SlowSeconds(30)]);
    let refused = |wait| {
        let (slow, wait) = (Duration::from_secs(30), Duration::from_millis(wait));
        Some(SendError::SlowMode { slow, wait })
    };
    let mut planner = planner(slow());
    assert!(planner.decide(0, BOB, &say(1, walkers, "one")).is_ok());
    assert_eq!(refusal(planner.decide(1, BOB, &say(2, walkers, "two"))), refused(30_000));
    assert!(matches!(planner.decide(2, BOB, &say(1, walkers, "one")), Err(NoWrite::SameAs(0))));
    assert!(planner.decide(3, BOB, &say(3, Conversation::User(ANN), "two")).is_ok());
    for (at, id) in [(4, 4), (5, 5)] {
        assert!(planner.decide(at, ANN, &say(id, walkers, "mine")).is_ok(), "the owner is not slow");
    }
    // The planner's now is at 5 ms.
    for (before, expected) in [(-29_990, refused(5)), (-29_995, None), (60_000, refused(30_000))] {
        let facts = Facts { spoke: HashMap::from([((BOB, WALKERS), Timestamp(before))]), ..slow() };
        let decided = self::planner(facts).decide(0, BOB, &say(1, walkers, "one"));
        assert_eq!(refusal(decided), expected, "{before}");
    }
}

#[test]
fn a_deleted_account_gets_nothing_and_only_takes_back() {
    let gone = Facts { deleted: HashSet::from([BOB]), ..facts() };
    let mut planner = planner(gone);
    let (to_bob, walkers) = (Conversation::User(BOB), Conversation::Group(WALKERS));
    let publish = |id, kind, target, body, others: &[Uid]| {
        let client_id = ClientId(Uuid::from_u128(id));
        Request::Publish(Publish {
            client_id,
            kind,
            target,
            body,
            files: Vec::new(),
            others: others.to_vec(),
        })
    };
    let friend = |id, with: Uid, wanted| {
        let body = Body::friend(wanted, None).expect("short");
        publish(id, Kind::Friend, Conversation::User(with), body, &[with])
    };
    let refused = Some(SendError::AccountDeleted(BOB.0));
    for (at, who, request) in [
        (0, ANN, say(1, to_bob, "hi")),
        (1, ANN, friend(2, BOB, true)),
        (2, ANN, post(3, to_bob)),
        (3, BOB, say(4, Conversation::User(ANN), "hi")),
        (4, BOB, say(5, walkers, "hi")),
        (5, BOB, friend(6, ANN, true)),
    ] {
        assert_eq!(refusal(planner.decide(at, who, &request)), refused, "{request:?}");
    }
    let of = (BOB, ClientId(Uuid::from_u128(9)));
    let told = |decision| match decision {
        Ok(Accept { rows, .. }) => rows.iter().map(|row| row.receiver).collect(),
        Err(_) => Vec::new(),
    };
    planner.facts.wishes = HashMap::from([((BOB, ANN), true), ((ANN, BOB), true)]);
    assert_eq!(told(planner.decide(6, BOB, &friend(7, ANN, false))), [BOB, ANN]);
    let deletion = publish(8, Kind::Delete, Conversation::MOMENTS, Body::deletion(of), &[ANN]);
    assert_eq!(told(planner.decide(7, BOB, &deletion)), [BOB, ANN]);
    let like = |liked, id| publish(id, Kind::Like, Conversation::MOMENTS, Body::like(of, liked), &[ANN]);
    assert_eq!(refusal(planner.decide(8, BOB, &like(true, 10))), refused);
    assert_eq!(told(planner.decide(9, BOB, &like(false, 11))), [BOB, ANN]);
    // Others take their wish back for themselves alone.
    assert_eq!(told(planner.decide(10, ANN, &friend(12, BOB, false))), [ANN]);
    let leave = |uid| Request::Group {
        client_id: ClientId(Uuid::from_u128(13)),
        gid: WALKERS,
        action: GroupAction::Remove(uid),
    };
    assert_eq!(refusal(planner.decide(11, BOB, &leave(ANN))), refused);
    assert_eq!(told(planner.decide(12, BOB, &leave(BOB))), [BOB, ANN]);
    let add = GroupAction::Add(BOB);
    let add = Request::Group { client_id: ClientId(Uuid::from_u128(14)), gid: WALKERS, action: add };
    assert_eq!(refusal(planner.decide(13, ANN, &add)), refused);
}
