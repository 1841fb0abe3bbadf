//! Changes as they lie in the journal, byte for byte.

use std::ops::RangeInclusive;
use std::time::Duration;

use seqsvr_core::ids::{Epoch, SectionId};
use seqsvr_core::routing::{Assignment, Node, NodeState};
use seqsvr_core::store::configuration::{Given, Taking};
use seqsvr_core::store::message::{Copy, Held, SectionState};
use seqsvr_core::store::{Ceiling, Configuration, Configured, Layout, Member, Move, Moves, Owner};

use super::super::journal;
use super::*;

const LAYOUT: Layout = Layout { section_size: 100_000, step: 10_000 };
const OWNER: Owner = Owner { epoch: Epoch { term: 7, version: 3 }, incarnation: u64::MAX };

/// Each change of [`changes`], in hex.
const STORED: &str = include_str!("stored.txt");

fn sections(first: u32, last: u32) -> RangeInclusive<SectionId> {
    SectionId::new(first)..=SectionId::new(last)
}

fn some_table() -> Table {
    let node = |name: &str, state| Node { name: name.to_owned(), addr: format!("http://{name}:1"), state };
    let assignment =
        Assignment { sections: sections(2, 9), node: 1, home: 0, incarnation: 5, epoch: OWNER.epoch };
    Table {
        set: 4,
        version: OWNER.epoch,
        section_size: LAYOUT.section_size,
        uids: 100_000..=999_999,
        nodes: vec![node("a", NodeState::Drained), node("b", NodeState::Active)],
        assignments: vec![assignment],
    }
}

fn configuration(taking: Option<Taking>) -> Arc<Configuration> {
    let members = vec![Member { id: u64::MAX, name: "s1".to_owned(), addr: "http://s1:1".to_owned() }];
    let lease = Duration::from_millis(2_000);
    let uids = 100_000..=999_999;
    let given = Given { uids: 200_000..=299_999, to: 4, number: 2 };
    let moves = Moves { given: vec![given], taken: vec![Move { from: 5, number: 6 }] };
    Arc::new(Configuration { number: 2, members, write: 1, lease, layout: LAYOUT, uids, taking, moves })
}

fn whole(configured: Configured) -> StateChange {
    let earlier =
        Held { owner: Owner { epoch: Epoch { term: 6, version: 9 }, incarnation: 4 }, released: true };
    let state = SectionState {
        ceiling: 30_000,
        owner: Some(Held { owner: OWNER, released: false }),
        earlier: Some(earlier),
    };
    StateChange::Whole(Box::new(Copy {
        promised: 8,
        table: Some(Arc::new(some_table())),
        layout: Some(LAYOUT),
        sections: vec![(sections(2, 4), state), (sections(5, 9), SectionState { earlier: None, ..state })],
        configured,
    }))
}

/// One of each kind, with every field.
pub(in crate::replica) fn changes() -> Vec<(&'static str, StateChange)> {
    let taking = Taking { uids: 100_000..=199_999, by: Move { from: 7, number: 9 } };
    let accepted = Some((4, configuration(Some(taking))));
    vec![
        (
            "claim",
            StateChange::Claim {
                sections: vec![sections(0, 9), sections(11, 11)],
                owner: OWNER,
                layout: LAYOUT,
            },
        ),
        ("raise", StateChange::Raise(vec![Ceiling { section: SectionId::new(4), max: 10_000 }])),
        ("release", StateChange::Release { owner: OWNER, sections: vec![sections(0, 0), sections(2, 4)] }),
        ("promise", StateChange::Promise(8)),
        ("table", StateChange::Write(Arc::new(some_table()))),
        ("whole", whole(Configured::default())),
        ("taking", whole(Configured { current: Some(configuration(None)), ballot: 5, accepted })),
    ]
}

/// A change of a wire message, in the part that the journal uses, must not change the bytes on disk.
#[test]
fn the_bytes_of_each_change_stay_as_they_are() {
    let hex = |bytes: Vec<u8>| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let written: Vec<String> = changes()
        .iter()
        .map(|(name, change)| format!("{name} {}", hex(journal::batch(std::slice::from_ref(change)))))
        .collect();
    assert_eq!(written, STORED.lines().collect::<Vec<_>>(), "{}", written.join("\n"));
}

#[test]
fn changes_survive_the_journal() {
    for (name, change) in changes() {
        assert_eq!(StateChange::try_from(Request::from(&change)), Ok(change), "{name}");
    }
    assert!(StateChange::try_from(Request::Copy(v1::CopyRequest {})).is_err());
}
