//! Commands that an operator runs a second time, or with a file that was right before a change.

use super::*;
use seqsvr_core::store::backup::{RestoreError, Restoring, restore};

#[tokio::test]
async fn replacing_a_store_again_once_it_is_done_changes_nothing() {
    let stage = stage().await;
    let role = stage.role();
    role.establish(&terms()).await.unwrap();
    claim(&role, 1).await.unwrap();
    raise(&role, 1, 700).await;
    let done = stage.role().replace("s3", &stage.addrs[3]).await.unwrap();
    assert_eq!((done.configuration.number, done.already), (2, false));
    raise(&stage.role(), 1, 800).await;
    // By the same file, which still names the old one, and whether that answers or not.
    for _ in 0..2 {
        let again = stage.role().replace("s3", &stage.addrs[3]).await.unwrap();
        assert_eq!((again.configuration, again.already), (done.configuration.clone(), true));
        stage.handles[2].abort();
    }
    let other = stage.role().replace("s2", &stage.addrs[3]).await.unwrap_err().to_string();
    assert!(other.contains("s4"), "it is a member already: {other}");
    assert_eq!(claim(&stage.role(), 2).await.unwrap(), [800]);
}

#[tokio::test]
async fn a_backup_from_before_uids_were_given_away_is_refused_by_its_name() {
    let (stage, role) = set_of(0..=999_999).await;
    role.claim(&sections(0, 9), owner(1), LAYOUT).await.unwrap();
    let raised = [Ceiling { section: SectionId::new(3), max: 700 }];
    assert_eq!(role.raise(owner(1), &raised).await, [Ok(700)]);
    let before = role.backup().await.unwrap();
    operator(&stage).give(&MOVED, 0, 1).await.unwrap();

    let how = Restoring { ahead: 1_000, into_used: true };
    let stores = stage.role();
    let line = restore(&*stores, Some(&*stores), &before, how, 7).await.unwrap_err().to_string();
    let says =
        ["the uids 0 to 999999, and the Set has 0 to 499999", "seqsvr backup --uids", "Nothing was restored"];
    assert!(says.iter().all(|says| line.contains(says)), "{line}");
    let _ = role.read(&Revisions::default(), Duration::ZERO).await;
    assert_eq!(role.raise(owner(1), &raised).await, [Ok(700)], "its owner is not fenced");
    // One that was taken since is only refused for the arbiter, which was there a moment ago; also when the stored table still has
    // all uids.
    for version in [1, 2] {
        if version == 2 {
            written(&role, version, 0..=499_999).await.unwrap();
        }
        let since = role.backup().await.unwrap();
        assert_eq!(since.table.as_ref().map(|table| table.uids.clone()), Some(0..=499_999));
        let refused = restore(&*stores, Some(&*stores), &since, how, 8).await.unwrap_err();
        assert!(matches!(refused, RestoreError::Acting), "{refused}");
    }
}

/// The table that a backup has says which uids the restored Set serves.
#[tokio::test]
async fn a_backup_has_the_uids_of_the_set_before_an_arbiter_has_written_a_table_of_them() {
    let ((one, giver), (other, _)) = (set_of(0..=999_999).await, set_of(1_000_000..=1_999_999).await);
    giver.claim(&sections(0, 9), owner(1), LAYOUT).await.unwrap();
    let raised = [3, 7].map(|section| Ceiling { section: SectionId::new(section), max: 700 });
    assert_eq!(giver.raise(owner(1), &raised).await, [Ok(700), Ok(700)]);
    let moved = operator(&one).give(&MOVED, 0, 1).await.unwrap();
    operator(&other).take(&moved, &terms()).await.unwrap();

    let how = Restoring { ahead: 1_000, into_used: false };
    for (from, served, not) in [(&one, 3, 7), (&other, 7, 3)] {
        let backup = from.role().backup().await.unwrap();
        let new = stage().await;
        let fresh = new.role();
        let uids = backup.table.as_ref().expect("it has one").uids.clone();
        fresh.establish(&SetTerms { uids, moves: backup.moves.clone(), ..terms() }).await.unwrap();
        restore(&*fresh, Some(&*fresh), &backup, how, 9).await.unwrap();
        let restored = fresh.backup().await.unwrap();
        assert_eq!(restored.moves, backup.moves, "no file is used a second time");
        let ceiling = |section| {
            let has = |run: &std::ops::RangeInclusive<SectionId>| run.contains(&SectionId::new(section));
            restored.ceilings.iter().find(|(run, _)| has(run)).map(|(_, max)| *max)
        };
        assert_eq!((ceiling(served), ceiling(not)), (Some(1_700), None));
    }
}
