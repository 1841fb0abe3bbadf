//! Backups of a store, and their way into another one.

use super::{LAYOUT, MAX_CEILING, claim, owner, raise, range, to};
use crate::ids::Epoch;
use crate::store::backup::{Backup, RestoreError, Restoring, restore};
use crate::store::{Memory, SectionStore};

const AHEAD: Restoring = Restoring { ahead: 1_000_000, into_used: false };

async fn put(store: &dyn SectionStore, backup: &Backup, how: Restoring) -> Result<u64, RestoreError> {
    restore(store, None, backup, how, 77).await.map(|restored| restored.term)
}

pub async fn what_is_restored_is_far_ahead_of_what_was_handed_out_since(store: &dyn SectionStore) {
    assert!(!store.backup().await.unwrap().is_used());
    claim(store, 0, 9, owner(1, 1)).await;
    assert_eq!(raise(store, owner(1, 1), 4, 10_000).await, Ok(10_000));
    assert_eq!(raise(store, owner(1, 1), 5, 10_000).await, Ok(10_000));
    let backup = store.backup().await.unwrap();
    assert_eq!((backup.layout, backup.newest), (Some(LAYOUT), owner(1, 1).epoch));
    assert_eq!(backup.ceilings, [(range(4, 5), 10_000)]);
    // Changes that no backup knows of: a new owner, a raise, and a section that had none before.
    claim(store, 4, 9, owner(2, 2)).await;
    assert_eq!(raise(store, owner(2, 2), 4, 900_000).await, Ok(900_000));
    assert_eq!(raise(store, owner(2, 2), 7, 500_000).await, Ok(500_000));

    assert!(matches!(put(store, &backup, AHEAD).await, Err(RestoreError::Used)));
    assert!(matches!(put(store, &Backup::default(), AHEAD).await, Err(RestoreError::Nothing)));
    let far = Restoring { ahead: MAX_CEILING, into_used: true };
    assert!(matches!(put(store, &backup, far).await, Err(RestoreError::TooFar(_))));
    let again = Restoring { into_used: true, ..AHEAD };
    let term = put(store, &backup, again).await.expect("it is restored");
    assert!(raise(store, owner(2, 2), 4, 2_000_000).await.is_err(), "earlier owners are fenced");
    let now = store.backup().await.unwrap();
    assert_eq!(now.newest.term, term);
    assert_eq!(
        now.ceilings,
        [(range(0, 3), 1_000_000), (range(4, 5), 1_010_000), (range(6, 42_949), 1_000_000)]
    );
    // The next owner waits for nobody.
    let next = crate::store::Owner { epoch: Epoch { term: term + 256, version: 3 }, incarnation: 5 };
    let claimed = claim(store, 4, 4, next).await;
    assert_eq!(claimed.ceilings, [to(4, 1_010_000)]);
    assert!(claimed.earlier.iter().all(|earlier| earlier.released), "{claimed:?}");
    let once_more = put(store, &backup, again).await.expect("repeated");
    assert!(once_more > term, "terms go on");
}

pub async fn a_new_store_takes_the_backup_of_another(store: &dyn SectionStore) {
    let source = Memory::new();
    claim(&source, 0, 42_949, owner(1, 1)).await;
    assert_eq!(raise(&source, owner(1, 1), 42_949, 30_000).await, Ok(30_000));
    put(store, &source.backup().await.unwrap(), AHEAD).await.expect("it is restored");
    let now = store.backup().await.unwrap();
    assert_eq!(now.ceilings, [(range(0, 42_948), 1_000_000), (range(42_949, 42_949), 1_030_000)]);
    assert!(now.newest > owner(1, 1).epoch);
}
