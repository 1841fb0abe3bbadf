//! How a batch lies in the journal. Stored, must stay stable: a server must read what an older one wrote.
//!
//! A blob is a version byte, the first eight bytes of SHA-256 over the rest, and the batch's records one after the
//! other in postcard. These types are apart from the domain's, so that those may change; a change here needs a new
//! version and the old reader kept. A delivery names its acceptance, so a body is stored once however wide its fan-out.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use crate::domain::{
    Body, ClientId, Content, Conversation, Digest, GroupChange, GroupId, GroupStep, Kind, MembershipEpoch,
    MessageId, Timestamp, Uid,
};
use crate::store::sqlite::ledger::{JournalRecord, Open};
use crate::store::{AcceptanceId, Recipient};

const VERSION: u8 = 1;
const HEADER: usize = 9;

/// A blob that is not what this server, or an older one, wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(in crate::store::sqlite) enum RecordError {
    /// Shorter than its header.
    #[error("a record is cut off")]
    Short,
    /// Written by a newer server.
    #[error("a record has version {0}, which is unknown here; run the newer version")]
    Version(u8),
    /// Bits have changed.
    #[error("a record's checksum is wrong")]
    Checksum,
    /// The checksum is right, the content is not.
    #[error("a record cannot be decoded")]
    Malformed,
}

#[derive(Serialize, Deserialize)]
enum StoredRecord<'a> {
    #[serde(borrow)]
    Accepted(StoredAcceptance<'a>),
    Delivered {
        acceptance: u64,
        rows: Vec<(u32, u64)>,
        void: Vec<u32>,
    },
}

#[derive(Serialize, Deserialize)]
struct StoredAcceptance<'a> {
    acceptance: u64,
    #[serde(borrow)]
    content: StoredContent<'a>,
    digest: [u8; 16],
    rows: Vec<(u32, u64)>,
    rest: Vec<(u32, u32)>,
    change: Option<StoredChange<'a>>,
}

#[derive(Serialize, Deserialize)]
struct StoredContent<'a> {
    kind: u8,
    sender: u32,
    target: StoredTarget,
    client_id: Option<[u8; 16]>,
    body: &'a str,
    sent_at: i64,
}

#[derive(Serialize, Deserialize)]
enum StoredTarget {
    User(u32),
    Group(u64),
}

#[derive(Serialize, Deserialize)]
struct StoredChange<'a> {
    gid: u64,
    from_version: u64,
    #[serde(borrow)]
    step: StoredStep<'a>,
}

#[derive(Serialize, Deserialize)]
enum StoredStep<'a> {
    Created { name: &'a str, members: Vec<u32> },
    Added(u32, u32),
    Removed(u32, u32),
    Left(u32, u32),
}

#[derive(Serialize, Deserialize)]
struct StoredOpen<'a> {
    #[serde(borrow)]
    content: StoredContent<'a>,
    ends: Option<(u32, u32)>,
    owed: Vec<(u32, u32)>,
}

/// The blob of a batch.
pub(in crate::store::sqlite) fn encode(records: &[JournalRecord]) -> Vec<u8> {
    seal(records.iter().map(stored_record))
}

/// The batch in a blob.
pub(in crate::store::sqlite) fn decode(blob: &[u8]) -> Result<Vec<JournalRecord>, RecordError> {
    let mut rest = unseal(blob)?;
    let mut records = Vec::new();
    while !rest.is_empty() {
        let (stored, after) = postcard::take_from_bytes(rest).map_err(|_| RecordError::Malformed)?;
        records.push(record(stored).ok_or(RecordError::Malformed)?);
        rest = after;
    }
    Ok(records)
}

/// The blob of an acceptance with copies owed, for the table of the pending ones.
pub(in crate::store::sqlite) fn encode_open(open: &Open) -> Vec<u8> {
    let ends = open.ends.map(|(uid, epoch)| (uid.0, epoch.0));
    seal(
        [StoredOpen { content: stored_content(&open.content), ends, owed: recipients(&open.owed) }]
            .into_iter(),
    )
}

/// The acceptance in such a blob.
pub(in crate::store::sqlite) fn decode_open(blob: &[u8]) -> Result<Open, RecordError> {
    let stored: StoredOpen<'_> = postcard::from_bytes(unseal(blob)?).map_err(|_| RecordError::Malformed)?;
    let content = Arc::new(content(stored.content).ok_or(RecordError::Malformed)?);
    let ends = stored.ends.map(|(uid, epoch)| (Uid(uid), MembershipEpoch(epoch)));
    Ok(Open { content, ends, owed: to_recipients(stored.owed) })
}

fn seal<T: Serialize>(records: impl Iterator<Item = T>) -> Vec<u8> {
    let mut blob = vec![0; HEADER];
    for record in records {
        blob = postcard::to_extend(&record, blob).expect("plain data into memory");
    }
    blob[0] = VERSION;
    let check = Sha256::digest(&blob[HEADER..]);
    blob[1..HEADER].copy_from_slice(&check[..HEADER - 1]);
    blob
}

fn unseal(blob: &[u8]) -> Result<&[u8], RecordError> {
    let (header, rest) = blob.split_at_checked(HEADER).ok_or(RecordError::Short)?;
    if header[0] != VERSION {
        return Err(RecordError::Version(header[0]));
    }
    if header[1..] != Sha256::digest(rest)[..HEADER - 1] {
        return Err(RecordError::Checksum);
    }
    Ok(rest)
}

fn stored_record(record: &JournalRecord) -> StoredRecord<'_> {
    match record {
        JournalRecord::Accepted { acceptance, content, digest, rows, rest, change } => {
            StoredRecord::Accepted(StoredAcceptance {
                acceptance: acceptance.0,
                content: stored_content(content),
                digest: digest.0,
                rows: numbered(rows),
                rest: recipients(rest),
                change: change.as_ref().map(stored_change),
            })
        }
        JournalRecord::Delivered { acceptance, rows, void } => StoredRecord::Delivered {
            acceptance: acceptance.0,
            rows: numbered(rows),
            void: void.iter().map(|uid| uid.0).collect(),
        },
    }
}

fn record(stored: StoredRecord<'_>) -> Option<JournalRecord> {
    Some(match stored {
        StoredRecord::Accepted(stored) => JournalRecord::Accepted {
            acceptance: AcceptanceId(stored.acceptance),
            content: Arc::new(content(stored.content)?),
            digest: Digest(stored.digest),
            rows: to_numbered(stored.rows)?,
            rest: to_recipients(stored.rest),
            change: stored.change.map(change),
        },
        StoredRecord::Delivered { acceptance, rows, void } => JournalRecord::Delivered {
            acceptance: AcceptanceId(acceptance),
            rows: to_numbered(rows)?,
            void: void.into_iter().map(Uid).collect(),
        },
    })
}

fn stored_content(content: &Content) -> StoredContent<'_> {
    StoredContent {
        kind: content.kind.code(),
        sender: content.sender.0,
        target: match content.target {
            Conversation::User(uid) => StoredTarget::User(uid.0),
            Conversation::Group(gid) => StoredTarget::Group(gid.0),
        },
        client_id: content.client_id.map(|client_id| *client_id.0.as_bytes()),
        body: content.body.as_json(),
        sent_at: content.sent_at.0,
    }
}

fn content(stored: StoredContent<'_>) -> Option<Content> {
    Some(Content {
        kind: Kind::from_code(stored.kind)?,
        sender: Uid(stored.sender),
        target: match stored.target {
            StoredTarget::User(uid) => Conversation::User(Uid(uid)),
            StoredTarget::Group(gid) => Conversation::Group(GroupId(gid)),
        },
        client_id: stored.client_id.map(|bytes| ClientId(Uuid::from_bytes(bytes))),
        body: Body::from_stored(stored.body),
        sent_at: Timestamp(stored.sent_at),
    })
}

fn stored_change(change: &GroupChange) -> StoredChange<'_> {
    let step = match &change.step {
        GroupStep::Created { name, members } => {
            StoredStep::Created { name, members: members.iter().map(|uid| uid.0).collect() }
        }
        GroupStep::Added(uid, epoch) => StoredStep::Added(uid.0, epoch.0),
        GroupStep::Removed(uid, epoch) => StoredStep::Removed(uid.0, epoch.0),
        GroupStep::Left(uid, epoch) => StoredStep::Left(uid.0, epoch.0),
    };
    StoredChange { gid: change.gid.0, from_version: change.from_version, step }
}

fn change(stored: StoredChange<'_>) -> GroupChange {
    let step = match stored.step {
        StoredStep::Created { name, members } => {
            GroupStep::Created { name: name.to_owned(), members: members.into_iter().map(Uid).collect() }
        }
        StoredStep::Added(uid, epoch) => GroupStep::Added(Uid(uid), MembershipEpoch(epoch)),
        StoredStep::Removed(uid, epoch) => GroupStep::Removed(Uid(uid), MembershipEpoch(epoch)),
        StoredStep::Left(uid, epoch) => GroupStep::Left(Uid(uid), MembershipEpoch(epoch)),
    };
    GroupChange { gid: GroupId(stored.gid), from_version: stored.from_version, step }
}

fn numbered(rows: &[(Uid, MessageId)]) -> Vec<(u32, u64)> {
    rows.iter().map(|(uid, id)| (uid.0, id.get())).collect()
}

fn to_numbered(rows: Vec<(u32, u64)>) -> Option<Vec<(Uid, MessageId)>> {
    let nonzero = |(uid, id)| Some((Uid(uid), MessageId::new(id).filter(|id| *id > MessageId::ZERO)?));
    rows.into_iter().map(nonzero).collect()
}

fn recipients(list: &[Recipient]) -> Vec<(u32, u32)> {
    list.iter().map(|to| (to.uid.0, to.epoch.0)).collect()
}

fn to_recipients(list: Vec<(u32, u32)>) -> Vec<Recipient> {
    list.into_iter().map(|(uid, epoch)| Recipient { uid: Uid(uid), epoch: MembershipEpoch(epoch) }).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
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
        ];
        let change = |step| Some(GroupChange { gid, from_version: 8, step });
        let mut all: Vec<JournalRecord> = steps
            .map(|step| accepted(4, text_message(ann, Conversation::Group(gid), 2, "hé"), change(step)))
            .to_vec();
        all.push(accepted(1, read_marker(ann, Conversation::User(bob), 41), None));
        let rows = vec![(ann, MessageId::MAX), (bob, id(1))];
        all.push(JournalRecord::Delivered { acceptance: AcceptanceId(4), rows, void: vec![bob] });
        all
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
            let open = Open { content, ends, owed: owed.clone() };
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
    const FIRST_VERSION: [&str; 7] = [
        "000401914e010501000000000000000000000000000000020e7b2274657874223a2268c3a9227d84f8b2e5bd68\
         3ebe26e67eca684b438f9b6e73ac2f5202914e07924e0901924e03010508000777616c6b65727302914e924e",
        "000401914e010501000000000000000000000000000000020e7b2274657874223a2268c3a9227d84f8b2e5bd68\
         3ebe26e67eca684b438f9b6e73ac2f5202914e07924e0901924e0301050801924e02",
        "000401914e010501000000000000000000000000000000020e7b2274657874223a2268c3a9227d84f8b2e5bd68\
         3ebe26e67eca684b438f9b6e73ac2f5202914e07924e0901924e0301050802924e02",
        "000401914e010501000000000000000000000000000000020e7b2274657874223a2268c3a9227d84f8b2e5bd68\
         3ebe26e67eca684b438f9b6e73ac2f5202914e07924e0901924e0301050803914e01",
        "000102914e00924e000e7b22726561645f746f223a34317d80f8b2e5bd68dcda8c14c6c4e15922a1782fd9934b\
         9c02914e07924e0901924e0300",
        "010402914effffffffffffff0f924e0101924e",
        "0101010501000000000000000000000000000000020d7b2274657874223a226869227d84f8b2e5bd6801070101\
         ac0202",
    ];

    #[test]
    fn the_first_version_stays_as_it_is() {
        let open = Open {
            content: text_message(Uid(1), Conversation::Group(GroupId(5)), 2, "hi"),
            ends: Some((Uid(7), MembershipEpoch(1))),
            owed: vec![Recipient { uid: Uid(300), epoch: MembershipEpoch(2) }],
        };
        let mut blobs: Vec<Vec<u8>> =
            records().iter().map(|record| encode(std::slice::from_ref(record))).collect();
        blobs.push(encode_open(&open));
        let hex =
            |blob: &Vec<u8>| blob[HEADER..].iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        assert_eq!(blobs.iter().map(hex).collect::<Vec<_>>(), FIRST_VERSION);
        assert!(blobs.iter().all(|blob| *blob == sealed(&blob[HEADER..])));
    }
}
