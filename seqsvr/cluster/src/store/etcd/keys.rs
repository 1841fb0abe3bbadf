//! The keys, and how their values are stored: short, since the keys of all sections are read at a start. Numbers are
//! big-endian, so that keys sort as sections do; the rest are messages of the wire.

use std::time::Duration;

use prost::Message;

use seqsvr_core::ids::SectionId;
use seqsvr_core::routing::Table;
use seqsvr_core::store::claims::{ClaimRun, Claims, Hands};
use seqsvr_core::store::configuration::LEASES;
use seqsvr_core::store::message::Held;
use seqsvr_core::store::{Layout, Moves, SetTerms, StoreError};
use seqsvr_rpc::v1;

/// The names of all keys of one Set.
#[derive(Clone, Debug)]
pub(super) struct Keys {
    pub(super) configuration: String,
    pub(super) layout: String,
    pub(super) hands: String,
    pub(super) term: String,
    pub(super) acting: String,
    /// The prefix of the keys that wake readers.
    pub(super) watched: String,
    pub(super) table: String,
    pub(super) released: String,
    ceiling: String,
}

impl Keys {
    pub(super) fn new(prefix: &str) -> Self {
        let key = |name: &str| format!("{prefix}/{name}");
        Self {
            configuration: key("configuration"),
            layout: key("layout"),
            hands: key("hands"),
            term: key("term"),
            acting: key("acting"),
            watched: key("t/"),
            table: key("t/table"),
            released: key("t/released"),
            ceiling: key("c"),
        }
    }

    /// The key of a section's ceiling.
    pub(super) fn ceiling(&self, section: SectionId) -> Vec<u8> {
        self.below(u64::from(section.get()))
    }

    /// The key behind the one of `section`, also of the last section.
    pub(super) fn behind(&self, section: SectionId) -> Vec<u8> {
        self.below(u64::from(section.get()) + 1)
    }

    fn below(&self, section: u64) -> Vec<u8> {
        let mut key = self.ceiling.clone().into_bytes();
        // Five bytes, so that there is a key behind the last section.
        key.extend_from_slice(&section.to_be_bytes()[3..]);
        key
    }

    /// The section whose ceiling a key is.
    pub(super) fn section(&self, key: &[u8]) -> Result<SectionId, StoreError> {
        let number = key.strip_prefix(self.ceiling.as_bytes()).and_then(|rest| rest.strip_prefix(&[0]));
        let number = number.and_then(|rest| rest.try_into().ok()).ok_or_else(|| damaged("a key"))?;
        Ok(SectionId::new(u32::from_be_bytes(number)))
    }
}

pub(super) fn number(value: &[u8]) -> Result<u64, StoreError> {
    value.try_into().map(u64::from_be_bytes).map_err(|_| damaged("a number"))
}

pub(super) fn from_layout(layout: Layout) -> Vec<u8> {
    v1::Layout { section_size: layout.section_size, step: layout.step }.encode_to_vec()
}

pub(super) fn layout(value: &[u8]) -> Result<Layout, StoreError> {
    let v1::Layout { section_size, step } = v1::Layout::decode(value).map_err(|_| damaged("the layout"))?;
    Ok(Layout { section_size, step })
}

/// As a configuration without members: those are etcd's matter.
pub(super) fn from_terms(terms: &SetTerms) -> Vec<u8> {
    let (first_uid, last_uid) = (*terms.uids.start(), *terms.uids.end());
    let lease_ms = terms.lease.as_millis() as u64;
    let layout = Some(terms.layout.into());
    let stored = v1::Configuration {
        number: 1,
        lease_ms,
        layout,
        first_uid,
        last_uid,
        ..v1::Configuration::default()
    };
    stored.encode_to_vec()
}

pub(super) fn terms(value: &[u8]) -> Result<SetTerms, StoreError> {
    let wrong = || damaged("the configuration");
    let stored = v1::Configuration::decode(value).map_err(|_| wrong())?;
    let layout = stored.layout.ok_or_else(wrong)?;
    let layout = Layout { section_size: layout.section_size, step: layout.step };
    let lease = Duration::from_millis(stored.lease_ms);
    if stored.number != 1 || stored.taking.is_some() || !LEASES.contains(&lease) {
        return Err(wrong());
    }
    let uids = stored.first_uid..=stored.last_uid;
    Ok(SetTerms { lease, layout, uids, moves: Moves::default() })
}

pub(super) fn from_table(table: &Table) -> Vec<u8> {
    v1::Table::from(table).encode_to_vec()
}

pub(super) fn table(value: &[u8]) -> Result<Table, StoreError> {
    let table = v1::Table::decode(value).map_err(|_| damaged("the table"))?;
    Table::try_from(table).map_err(|why| damaged(&format!("the table: {why}")))
}

/// A message that replicas send has the fields that are needed; its ceilings stay 0.
pub(super) fn from_claims(claims: &Claims) -> Vec<u8> {
    let run = |run: &ClaimRun| v1::SectionState {
        sections: Some(v1::SectionRange {
            first: run.sections.start().get(),
            last: run.sections.end().get(),
        }),
        ceiling: 0,
        owner: Some(run.hands.owner.owner.into()),
        released: run.hands.owner.released,
        earlier: run.hands.earlier.map(|held| held.owner.into()),
        earlier_released: run.hands.earlier.is_some_and(|held| held.released),
    };
    let sections = claims.runs().iter().map(run).collect();
    v1::CopyReply { sections, ..v1::CopyReply::default() }.encode_to_vec()
}

pub(super) fn claims(value: &[u8]) -> Result<Claims, StoreError> {
    let run = |state: v1::SectionState| {
        let sections = state.sections?;
        let held = |owner: v1::Owner, released| Some(Held { owner: owner.try_into().ok()?, released });
        let owner = held(state.owner?, state.released)?;
        let earlier = match state.earlier {
            Some(owner) => Some(held(owner, state.earlier_released)?),
            None => None,
        };
        let sections = SectionId::new(sections.first)..=SectionId::new(sections.last);
        Some(ClaimRun { sections, hands: Hands { owner, earlier } })
    };
    let stored = v1::CopyReply::decode(value).map_err(|_| damaged("the claims"))?;
    let runs: Option<Vec<ClaimRun>> = stored.sections.into_iter().map(run).collect();
    let claims = Claims::from_runs(runs.ok_or_else(|| damaged("the claims"))?);
    let apart = |pair: &[ClaimRun]| pair[0].sections.end() < pair[1].sections.start();
    let whole = claims.runs().iter().all(|run| run.sections.start() <= run.sections.end());
    if whole && claims.runs().windows(2).all(apart) { Ok(claims) } else { Err(damaged("the claims")) }
}

fn damaged(what: &str) -> StoreError {
    StoreError::Unavailable(format!(
        "etcd holds {what} that this program did not write; choose another prefix"
    ))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use seqsvr_core::ids::Epoch;
    use seqsvr_core::routing::{Assignment, Node, NodeState};
    use seqsvr_core::store::Owner;

    const EPOCH: Epoch = Epoch { term: 256, version: 3 };

    fn sections(first: u32, last: u32) -> std::ops::RangeInclusive<SectionId> {
        SectionId::new(first)..=SectionId::new(last)
    }

    /// The value of each key as this program writes it.
    fn written() -> [Vec<u8>; 3] {
        let table = Table {
            set: 0,
            version: EPOCH,
            section_size: 10_000,
            uids: 0..=99_999,
            nodes: vec![Node {
                name: "a".to_owned(),
                addr: "http://a:1".to_owned(),
                state: NodeState::Active,
            }],
            assignments: vec![Assignment {
                sections: sections(0, 9),
                node: 0,
                home: 0,
                incarnation: 7,
                epoch: EPOCH,
            }],
        };
        let held = |incarnation| Held { owner: Owner { incarnation, epoch: EPOCH }, released: false };
        let run = |first, last| ClaimRun {
            sections: sections(first, last),
            hands: Hands { owner: held(7), earlier: Some(held(6)) },
        };
        let claims = Claims::from_runs(vec![run(0, 4), run(5, 9)]);
        [from_table(&table), from_claims(&claims), from_layout(Layout { section_size: 10_000, step: 1_000 })]
    }

    /// Of [`written`], and of a Set's terms, in hex. They are messages of the wire, which may get fields that are left out here.
    const STORED: [&str; 4] = [
        "1205088002100318904e289f8d06320f0a0161120a687474703a2f2f613a313a0b1009280732050880021003",
        "221a0a0210041a090a05088002100310072a090a0508800210031006221c0a04080510091a090a050880021003\
         10072a090a0508800210031006",
        "08904e10e807",
        "080120d00f2a0608904e10e80730904e389f8d06",
    ];

    #[test]
    fn the_bytes_of_each_value_and_key_stay_as_they_are() {
        let hex = |bytes: &Vec<u8>| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let layout = Layout { section_size: 10_000, step: 1_000 };
        let lease = Duration::from_secs(2);
        let terms = SetTerms { lease, layout, uids: 10_000..=99_999, moves: Moves::default() };
        let mut values = written().to_vec();
        values.push(from_terms(&terms));
        assert_eq!(values.iter().map(hex).collect::<Vec<_>>(), STORED);
        assert_eq!(super::terms(&values[3]).unwrap(), terms);
        assert_eq!(number(&[0, 0, 0, 0, 0, 0, 1, 2]).unwrap(), 258);
        let keys = Keys::new("p");
        let names = [
            &keys.configuration,
            &keys.layout,
            &keys.hands,
            &keys.term,
            &keys.acting,
            &keys.table,
            &keys.released,
        ];
        let stored = ["configuration", "layout", "hands", "term", "acting", "t/table", "t/released"];
        assert_eq!(names.map(String::as_str), stored.map(|name| format!("p/{name}")));
        assert_eq!(keys.ceiling(SectionId::new(258)), b"p/c\0\0\0\x01\x02");
    }

    #[test]
    fn what_is_written_is_read() {
        let [of_table, of_claims, of_layout] = written();
        assert_eq!(from_table(&table(&of_table).unwrap()), of_table);
        assert_eq!(from_claims(&claims(&of_claims).unwrap()), of_claims);
        assert_eq!(from_layout(layout(&of_layout).unwrap()), of_layout);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        /// Another program may write the same keys.
        #[test]
        fn any_value_is_read_as_it_would_be_written_or_refused(
            which in 0..3usize, from in any::<prop::sample::Index>(), to in any::<prop::sample::Index>(),
            piece in prop::collection::vec(any::<u8>(), 0..16),
        ) {
            let mut value = written()[which].clone();
            let (from, to) = (from.index(value.len()), to.index(value.len()));
            value.splice(from.min(to)..from.max(to), piece);
            if let Ok(read) = table(&value) {
                prop_assert_eq!(&table(&from_table(&read)).unwrap(), &read);
            }
            if let Ok(read) = claims(&value) {
                prop_assert_eq!(claims(&from_claims(&read)).unwrap(), read.clone());
                let apart = |pair: &[ClaimRun]| pair[0].sections.end() < pair[1].sections.start();
                prop_assert!(read.runs().windows(2).all(apart), "no section has two owners");
            }
            let _ = layout(&value);
            let _ = number(&value);
        }
    }
}
