//! The rules one by one, and all of them together against a server's rows.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::store::conformance::row;
use crate::store::{MemoryStore, Store};

fn entries(after: u64, ids: &[u64], synced: u64) -> Entries {
    Entries { rows: ids.iter().copied().map(row).collect(), after, synced, more: false }
}

fn at(cursor: u64) -> SyncState {
    SyncState::new(Position { history: Some("h".to_owned()), cursor })
}

#[test]
fn rows_that_continue_the_cursor_are_appended() {
    let change = at(41).on_entries(entries(41, &[42, 50], 50)).expect("in order");
    assert_eq!(change, StoreChange::Append { rows: vec![row(42), row(50)], cursor: 50 });
}

#[test]
fn rows_behind_a_hole_are_not_stored() {
    assert_eq!(at(41).on_entries(entries(45, &[46], 46)).expect("in order"), StoreChange::None);
}

#[test]
fn rows_that_are_there_already_are_dropped() {
    let change = at(42).on_entries(entries(40, &[41, 42, 43], 43)).expect("in order");
    assert_eq!(change, StoreChange::Append { rows: vec![row(43)], cursor: 43 });
}

#[test]
fn rows_never_lower_the_cursor() {
    assert_eq!(at(50).on_entries(entries(40, &[41, 42], 42)).expect("in order"), StoreChange::None);
}

#[test]
fn a_gap_moves_the_cursor_all_the_same() {
    let change = at(41).on_entries(entries(41, &[], 10_041)).expect("in order");
    assert_eq!(change, StoreChange::Append { rows: vec![], cursor: 10_041 });
}

#[test]
fn a_smaller_latest_id_is_believed_when_alive_says_it() {
    assert_eq!(at(50).on_alive(41, "h"), StoreChange::Lower { cursor: 41 });
    assert_eq!(
        at(50).on_alive(0, "h"),
        StoreChange::Lower { cursor: 0 },
        "rows have expired that never came"
    );
    assert_eq!(at(50).on_alive(50, "h"), StoreChange::None);
    assert_eq!(at(50).on_alive(60, "h"), StoreChange::None);
}

#[test]
fn another_history_clears_everything() {
    let reset = StoreChange::Reset { history: "other".to_owned() };
    assert_eq!(at(50).on_welcome("other"), reset);
    assert_eq!(at(50).on_alive(60, "other"), reset);
    let mut sync = at(50);
    sync.stored(&reset);
    assert_eq!(sync.position(), &Position { history: Some("other".to_owned()), cursor: 0 });
}

#[test]
fn a_first_contact_starts_at_nothing() {
    let sync = SyncState::new(Position::default());
    assert_eq!(sync.on_welcome("h"), StoreChange::Reset { history: "h".to_owned() });
}

#[test]
fn an_unstored_change_moves_nothing() {
    let sync = at(41);
    let first = sync.on_entries(entries(41, &[42], 42)).expect("in order");
    assert_eq!(sync.position().cursor, 41);
    // The frame after the one that could not be stored is behind a hole now.
    assert_eq!(sync.on_entries(entries(42, &[43], 43)).expect("in order"), StoreChange::None);
    assert_eq!(sync.on_entries(entries(41, &[42], 42)).expect("in order"), first);
}

#[test]
fn rows_out_of_order_or_out_of_bounds_are_refused() {
    for bad in [entries(0, &[2, 1], 2), entries(0, &[1, 1], 2), entries(3, &[3], 4), entries(0, &[5], 4)] {
        assert!(at(0).on_entries(bad).is_err());
    }
}

/// Something that may happen to a device between two looks at it.
#[derive(Clone, Debug)]
enum Happening {
    /// The server commits a row this far above the last.
    Commit { gap: u64 },
    /// The device heartbeats and the answer arrives; the store may fail.
    Beat { limit: usize, store_fails: bool },
    /// The last answer arrives once more.
    Repeat { store_fails: bool },
    /// An older answer arrives late.
    Late { which: usize },
    /// The newest `lost` rows vanish from the server without a new name for its history.
    Forget { lost: usize },
    /// The data is replaced and gets a new name.
    Restore,
}

fn happenings() -> impl Strategy<Value = Vec<Happening>> {
    let one = prop_oneof![
        4 => (1..5_000_u64).prop_map(|gap| Happening::Commit { gap }),
        4 => (1..4_usize, prop::bool::weighted(0.2))
            .prop_map(|(limit, store_fails)| Happening::Beat { limit, store_fails }),
        1 => any::<bool>().prop_map(|store_fails| Happening::Repeat { store_fails }),
        1 => any::<usize>().prop_map(|which| Happening::Late { which }),
        1 => (0..3_usize).prop_map(|lost| Happening::Forget { lost }),
        1 => Just(Happening::Restore),
    ];
    prop::collection::vec(one, 1..80)
}

/// A server's rows, and the device that follows them.
struct SyncWorld {
    rows: BTreeSet<u64>,
    life: u64,
    device: SyncState,
    store: MemoryStore,
    /// Frames of this life of the data, as they were sent.
    frames: Vec<Entries>,
}

impl SyncWorld {
    fn latest(&self) -> u64 {
        self.rows.last().copied().unwrap_or(0)
    }

    async fn apply(&mut self, change: StoreChange, store_fails: bool) {
        if !store_fails {
            self.store.apply(&change).await.expect("memory does not fail");
            self.device.stored(&change);
        }
    }

    async fn beat(&mut self, limit: usize, store_fails: bool) {
        let (cursor, latest) = (self.device.position().cursor, self.latest());
        let connection = cursor.min(latest);
        let ids: Vec<u64> = self.rows.range(connection + 1..).take(limit).copied().collect();
        let change = match ids.last() {
            Some(synced) if cursor <= latest => {
                let frame = entries(connection, &ids, *synced);
                self.frames.push(frame.clone());
                self.device.on_entries(frame).expect("in order")
            }
            _ => self.device.on_alive(latest, &self.life.to_string()),
        };
        self.apply(change, store_fails).await;
    }

    async fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Commit { gap } => {
                self.rows.insert(self.latest() + gap);
            }
            Happening::Beat { limit, store_fails } => self.beat(limit, store_fails).await,
            Happening::Repeat { store_fails } => {
                if let Some(frame) = self.frames.last().cloned() {
                    let change = self.device.on_entries(frame).expect("in order");
                    self.apply(change, store_fails).await;
                }
            }
            Happening::Late { which } => {
                if !self.frames.is_empty() {
                    let frame = self.frames[which % self.frames.len()].clone();
                    let change = self.device.on_entries(frame).expect("in order");
                    self.apply(change, false).await;
                }
            }
            Happening::Forget { lost } => {
                for _ in 0..lost {
                    self.rows.pop_last();
                }
                // Connections do not survive it, so neither do frames; the device hears of it before anything else.
                self.frames.clear();
                let change = self.device.on_alive(self.latest(), &self.life.to_string());
                self.apply(change, false).await;
            }
            Happening::Restore => {
                self.life += 1;
                self.rows.clear();
                self.frames.clear();
                let change = self.device.on_welcome(&self.life.to_string());
                self.apply(change, false).await;
            }
        }
        let held: Vec<u64> = self.store.rows().iter().map(|row| row.message_id).collect();
        let cursor = self.device.position().cursor;
        let owed: Vec<u64> = self.rows.range(..=cursor).copied().collect();
        assert_eq!(held, owed, "the store holds exactly the server's rows up to the cursor {cursor}");
        assert_eq!(self.store.position(), *self.device.position());
    }
}

proptest! {
    #[test]
    fn the_store_holds_exactly_the_rows_up_to_the_cursor_whatever_happens(steps in happenings()) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            let position = Position { history: Some("0".to_owned()), cursor: 0 };
            let mut world = SyncWorld {
                rows: BTreeSet::new(),
                life: 0,
                device: SyncState::new(position.clone()),
                store: MemoryStore::at(position),
                frames: Vec::new(),
            };
            for step in steps {
                world.happen(step).await;
            }
            // In the end it always arrives.
            for _ in 0..=world.rows.len() + 1 {
                world.beat(1, false).await;
            }
            assert_eq!(world.device.position().cursor, world.latest());
        });
    }
}
