//! Tests that every store must pass; each implementation runs them.

use serde_json::value::RawValue;

use super::Store;
use crate::sync::{Position, StoreChange};
use crate::wire::{Conversation, Entry, Kind};

/// A row with this id and a body that needs escaping.
pub(crate) fn row(message_id: u64) -> Entry {
    Entry {
        partition_key: "d9d4".to_owned(),
        receiver: 10_001,
        message_id,
        kind: Kind::Message,
        conversation: Conversation::User(10_002),
        sender: 10_002,
        client_id: None,
        body: RawValue::from_string(format!(r#"{{"text":"line\n{message_id}"}}"#)).expect("JSON"),
        sent_at: "2026-01-01T00:00:00Z".to_owned(),
    }
}

pub(super) fn position(history: &str, cursor: u64) -> Position {
    Position { history: Some(history.to_owned()), cursor }
}

/// Walks `store`, which is empty, through every kind of change; `rows` reads all its rows.
pub(super) async fn run<S: Store>(mut store: S, rows: impl Fn(&S) -> Vec<Entry>) {
    assert_eq!(store.load().await.expect("loads"), Position::default());

    store.apply(&StoreChange::Reset { history: "a".to_owned() }).await.expect("resets");
    assert_eq!(store.load().await.expect("loads"), position("a", 0));

    for (ids, cursor) in [(vec![1, 5], 5), (vec![], 7), (vec![9, 20], 20)] {
        let new = ids.into_iter().map(row).collect();
        store.apply(&StoreChange::Append { rows: new, cursor }).await.expect("appends");
        assert_eq!(store.load().await.expect("loads"), position("a", cursor));
    }
    assert_eq!(rows(&store), [1, 5, 9, 20].map(row));

    store.apply(&StoreChange::None).await.expect("does nothing");
    store.apply(&StoreChange::Lower { cursor: 9 }).await.expect("lowers");
    assert_eq!(store.load().await.expect("loads"), position("a", 9));
    assert_eq!(rows(&store), [1, 5, 9].map(row));

    store.apply(&StoreChange::Append { rows: vec![row(12)], cursor: 12 }).await.expect("appends");
    assert_eq!(rows(&store), [1, 5, 9, 12].map(row));

    store.apply(&StoreChange::Reset { history: "b".to_owned() }).await.expect("resets");
    assert_eq!(store.load().await.expect("loads"), position("b", 0));
    assert_eq!(rows(&store), []);
}
