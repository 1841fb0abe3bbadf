//! Stored records can be read again; other bytes are refused.

use proptest::prelude::*;

use super::*;
use crate::domain::{FileId, Group, GroupSetting, GroupSettings, GroupStep, History, Keep, Mute, Role};
use crate::store::conformance::{id, read_marker, text_message};

/// A blob with a good header and this content.
fn sealed(content: &[u8]) -> Vec<u8> {
    let mut blob = vec![VERSION];
    blob.extend(&Sha256::digest(content)[..HEADER - 1]);
    blob.extend(content);
    blob
}

/// Any content, and such as is nearly good.
fn contents() -> impl Strategy<Value = Vec<u8>> {
    let bytes = || prop::collection::vec(any::<u8>(), 0..64);
    let nearly = (any::<prop::sample::Index>(), any::<prop::sample::Index>(), bytes()).prop_map(
        |(from, to, piece)| {
            let mut good = encode(&records()).split_off(HEADER);
            let (from, to) = (from.index(good.len()), to.index(good.len()));
            good.splice(from.min(to)..from.max(to), piece);
            good
        },
    );
    prop_oneof![bytes(), nearly]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    /// Also such as have a good checksum: what is decoded is written again as it was meant.
    #[test]
    fn any_bytes_are_a_batch_or_refused(content in contents()) {
        prop_assert_eq!(decode(&content).is_ok(), false, "without a header");
        let blob = sealed(&content);
        if let Ok(records) = decode(&blob) {
            prop_assert_eq!(decode(&encode(&records)), Ok(records));
        }
        if let Ok(open) = decode_open(&blob) {
            prop_assert_eq!(decode_open(&encode_open(&open)), Ok(open));
        }
    }
}

fn records() -> Vec<JournalRecord> {
    let (ann, bob) = (Uid(10_001), Uid(10_002));
    let accepted = |acceptance, content: Arc<Content>, change| JournalRecord::Accepted {
        acceptance: AcceptanceId(acceptance),
        digest: Digest::of(content.target, content.body.as_json()),
        content,
        rows: vec![(ann, id(7)), (bob, id(9))],
        rest: vec![Recipient { uid: bob, epoch: MembershipEpoch(3) }],
        change,
    };
    let gid = GroupId(5);
    let steps = [
        GroupStep::Created { name: "walkers".to_owned(), members: vec![ann, bob] },
        GroupStep::Added(bob, MembershipEpoch(2)),
        GroupStep::Removed(bob, MembershipEpoch(2)),
        GroupStep::Left(ann, MembershipEpoch(1)),
        GroupStep::Set(GroupSetting::Name("hikers".to_owned())),
        GroupStep::Set(GroupSetting::Topic("Sundays".to_owned())),
        GroupStep::Role(bob, Role::Owner),
        GroupStep::Banned(bob),
        GroupStep::Set(GroupSetting::History(History::Visible)),
        GroupStep::Set(GroupSetting::SlowSeconds(30)),
        GroupStep::Set(GroupSetting::Keep(Keep { seconds: 60, gone_before: 5 })),
        GroupStep::Set(GroupSetting::Picture(Some(FileId(uuid::Uuid::from_u128(7))))),
        GroupStep::Muted(bob, Mute::Until(Timestamp(6))),
        GroupStep::Unmuted(bob),
    ];
    let group = Group {
        gid,
        settings: GroupSettings::new("walkers".to_owned()),
        version: 8,
        members: [(ann, Role::Owner), (bob, Role::Member)]
            .map(|(uid, role)| Member {
                uid,
                epoch: MembershipEpoch(1),
                standing: Standing::In { role, since: 3 },
            })
            .to_vec(),
    };
    let change = |step: GroupStep| match step {
        GroupStep::Created { .. } => Some(GroupChange::of_step(gid, 0, ann, Timestamp(5), &step)),
        step => Some(group.change(ann, Timestamp(5), &step)),
    };
    let mut all: Vec<JournalRecord> = steps
        .map(|step| accepted(4, text_message(ann, Conversation::Group(gid), 2, "hé"), change(step)))
        .to_vec();
    all.push(accepted(1, read_marker(ann, Conversation::User(bob), 41), None));
    let rows = vec![(ann, MessageId::MAX), (bob, id(1))];
    let (acceptance, earlier) = (AcceptanceId(4), Vec::new());
    all.push(JournalRecord::Delivered { acceptance, earlier, rows, void: vec![bob] });
    let earlier = vec![(text_message(ann, Conversation::Group(gid), 2, "hé"), id(3))];
    all.push(JournalRecord::Delivered { acceptance, earlier, rows: vec![(bob, id(9))], void: Vec::new() });
    all.push(JournalRecord::Rows(table_rows()));
    all
}

/// A row under a number, one that is empty, and one that is deleted.
fn table_rows() -> RowsRecord {
    RowsRecord {
        table: TableId(300),
        partition_key: PartitionKey::of(Uid(10_001)),
        first: b"\x20ann\0\x01".as_slice().into(),
        last_id: Some(1_000),
        changes: vec![
            (b"\x20ann\0\x01\x10\x80\0\0\0\0\0\x03\xe8".as_slice().into(), Some(b"row".as_slice().into())),
            (b"\x20ann\0\x01z".as_slice().into(), Some(b"".as_slice().into())),
            (b"\x20ann\0\x01".as_slice().into(), None),
        ],
    }
}

#[test]
fn a_batch_survives_the_way_in_and_out() {
    assert_eq!(decode(&encode(&records())), Ok(records()));
    assert_eq!(decode(&encode(&[])), Ok(vec![]));
}

#[test]
fn an_open_acceptance_survives_the_way_in_and_out() {
    let owed = vec![Recipient { uid: Uid(7), epoch: MembershipEpoch(1) }];
    for ends in [None, Some((Uid(7), MembershipEpoch(1)))] {
        let content = text_message(Uid(1), Conversation::Group(GroupId(5)), 2, "hi");
        let open = SqlitePending { content, ends, owed: owed.clone() };
        assert_eq!(decode_open(&encode_open(&open)), Ok(open));
    }
}

#[test]
fn any_changed_bit_is_noticed() {
    let blob = encode(&records());
    for at in 0..blob.len() {
        let mut changed = blob.clone();
        changed[at] ^= 0x10;
        assert!(decode(&changed).is_err(), "byte {at}");
    }
    for length in 0..blob.len() {
        assert!(decode(&blob[..length]).is_err(), "cut at {length}");
    }
}

/// Each of [`records`] behind its header, and an open acceptance, in hex. They may never change; a second version gets bytes of its own.
const FIRST_VERSION: [&str; 19] = [
    "000401914e010501000000000000000000000000000000020e7b2274657874223a2268c3a9227d84f8b2e5bd683ebe26e67e\
     ca684b438f9b6e73ac2f5202914e07924e0901924e0301050001127b226e616d65223a2277616c6b657273227d02914e0101\
     0202924e0101000200",
    "000401914e010501000000000000000000000000000000020e7b2274657874223a2268c3a9227d84f8b2e5bd683ebe26e67e\
     ca684b438f9b6e73ac2f5202914e07924e0901924e030105080001924e0201001200",
    "000401914e010501000000000000000000000000000000020e7b2274657874223a2268c3a9227d84f8b2e5bd683ebe26e67e\
     ca684b438f9b6e73ac2f5202914e07924e0901924e030105080001924e0200030a01924e02",
    "000401914e010501000000000000000000000000000000020e7b2274657874223a2268c3a9227d84f8b2e5bd683ebe26e67e\
     ca684b438f9b6e73ac2f5202914e07924e0901924e030105080002914e01000000924e0101020601914e01",
    "000401914e010501000000000000000000000000000000020e7b2274657874223a2268c3a9227d84f8b2e5bd683ebe26e67e\
     ca684b438f9b6e73ac2f5202914e07924e0901924e0301050801117b226e616d65223a2268696b657273227d0000",
    "000401914e010501000000000000000000000000000000020e7b2274657874223a2268c3a9227d84f8b2e5bd683ebe26e67e\
     ca684b438f9b6e73ac2f5202914e07924e0901924e0301050801137b22746f706963223a2253756e64617973227d0000",
    "000401914e010501000000000000000000000000000000020e7b2274657874223a2268c3a9227d84f8b2e5bd683ebe26e67e\
     ca684b438f9b6e73ac2f5202914e07924e0901924e030105080002914e01010106924e0101020600",
    "000401914e010501000000000000000000000000000000020e7b2274657874223a2268c3a9227d84f8b2e5bd683ebe26e67e\
     ca684b438f9b6e73ac2f5202914e07924e0901924e030105080001924e0100040a01924e01",
    "000401914e010501000000000000000000000000000000020e7b2274657874223a2268c3a9227d84f8b2e5bd683ebe26e67e\
     ca684b438f9b6e73ac2f5202914e07924e0901924e0301050801157b22686973746f7279223a2276697369626c65227d0000",
    "000401914e010501000000000000000000000000000000020e7b2274657874223a2268c3a9227d84f8b2e5bd683ebe26e67e\
     ca684b438f9b6e73ac2f5202914e07924e0901924e0301050801137b22736c6f775f7365636f6e6473223a33307d0000",
    "000401914e010501000000000000000000000000000000020e7b2274657874223a2268c3a9227d84f8b2e5bd683ebe26e67e\
     ca684b438f9b6e73ac2f5202914e07924e0901924e0301050801277b226b656570223a7b227365636f6e6473223a36302c22\
     676f6e655f6265666f7265223a357d7d0000",
    "000401914e010501000000000000000000000000000000020e7b2274657874223a2268c3a9227d84f8b2e5bd683ebe26e67e\
     ca684b438f9b6e73ac2f5202914e07924e0901924e0301050801327b2270696374757265223a2230303030303030302d3030\
     30302d303030302d303030302d303030303030303030303037227d0000",
    "000401914e010501000000000000000000000000000000020e7b2274657874223a2268c3a9227d84f8b2e5bd683ebe26e67e\
     ca684b438f9b6e73ac2f5202914e07924e0901924e0301050801237b226d75746564223a5b7b22756964223a31303030322c\
     22756e74696c223a367d5d7d0000",
    "000401914e010501000000000000000000000000000000020e7b2274657874223a2268c3a9227d84f8b2e5bd683ebe26e67e\
     ca684b438f9b6e73ac2f5202914e07924e0901924e03010508010c7b226d75746564223a5b5d7d0000",
    "000102914e00924e000e7b22726561645f746f223a34317d80f8b2e5bd68dcda8c14c6c4e15922a1782fd9934b9c02914e07\
     924e0901924e0300",
    "01040002914effffffffffffff0f924e0101924e",
    "01040101914e010501000000000000000000000000000000020e7b2274657874223a2268c3a9227d84f8b2e5bd680301924e\
     0900",
    "02ac0204643839660620616e6e0001e807030f20616e6e00011080000000000003e80103726f770720616e6e00017a010006\
     20616e6e000100",
    "0101010501000000000000000000000000000000020d7b2274657874223a226869227d84f8b2e5bd6801070101ac0202",
];

#[test]
fn the_first_version_stays_as_it_is() {
    let open = SqlitePending {
        content: text_message(Uid(1), Conversation::Group(GroupId(5)), 2, "hi"),
        ends: Some((Uid(7), MembershipEpoch(1))),
        owed: vec![Recipient { uid: Uid(300), epoch: MembershipEpoch(2) }],
    };
    let mut blobs: Vec<Vec<u8>> =
        records().iter().map(|record| encode(std::slice::from_ref(record))).collect();
    blobs.push(encode_open(&open));
    let hex = |blob: &Vec<u8>| blob[HEADER..].iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    assert_eq!(blobs.iter().map(hex).collect::<Vec<_>>(), FIRST_VERSION);
    assert!(blobs.iter().all(|blob| *blob == sealed(&blob[HEADER..])));
}
