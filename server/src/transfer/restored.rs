//! The repair after files or a database were restored: a new history, and numbers beyond any that the lost
//! time can have used (I14).

use futures_util::future::try_join_all;
use seqsvr_core::Sequencer;

use super::error::TransferError;
use crate::domain::Timestamp;

/// By how much every ceiling is raised. The files that were restored do not say how many numbers were handed out since
/// they were saved; nobody receives ten million rows in a backup's age (a hundred a second for a day), and a sequence
/// has room for 900 million such raises below 2^53.
pub const MARGIN: u64 = 10_000_000;

/// In milliseconds since 1970.
const BEGINNING_OF_2026: i64 = 1_767_225_600_000;

/// From where a ceiling goes on whose file is lost: it may have been raised for users of whom the rows know nothing, and by an earlier such
/// restore. A thousand numbers for each second since 2026: no sequence gives more for long, so a later restore goes on beyond.
pub fn without_ceilings(now: Timestamp) -> u64 {
    now.0.saturating_sub(BEGINNING_OF_2026).max(0).cast_unsigned()
}

/// By how much the numbers of users, groups and invitations go on later, unless told otherwise: more than are given between two
/// backups.
pub const AHEAD: u32 = 100_000;

/// The most that they can be told to: uids end at 2^32.
pub const MOST_AHEAD: i64 = 1_000_000_000;

/// Ceilings that are raised in one go; the store makes one transaction of them.
const AT_ONCE: usize = 1_000;

/// Raises the ceiling of every range of `adjacent` users by [`MARGIN`] beyond what it is, and beyond `least`; also where nothing was ever
/// stored: users who signed up since the files were saved had numbers there. Says how many ranges there are.
///
/// # Errors
/// When a ceiling cannot be raised; running it again raises all of them once more.
pub async fn raise_all(sequencer: &dyn Sequencer, adjacent: u32, least: u64) -> Result<usize, TransferError> {
    let first_of_each: Vec<u32> = (0..=u32::MAX).step_by(adjacent as usize).collect();
    for some in first_of_each.chunks(AT_ONCE) {
        try_join_all(some.iter().map(|&first| raise(sequencer, seqsvr_core::Uid::new(first), least))).await?;
    }
    Ok(first_of_each.len())
}

async fn raise(sequencer: &dyn Sequencer, uid: seqsvr_core::Uid, least: u64) -> Result<(), TransferError> {
    let now = sequencer.current(uid).await?.max(least);
    Ok(sequencer.advance(uid, now + MARGIN).await?)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use seqsvr_core::alloc::Embedded;
    use seqsvr_core::store::Memory;
    use seqsvr_core::{Options, Uid};

    use super::*;

    async fn open(ceilings: &Arc<Memory>) -> Embedded {
        Embedded::open(ceilings.clone(), Options::default()).await.expect("opens")
    }

    #[tokio::test]
    async fn every_user_goes_on_beyond_the_margin_also_in_ranges_never_used() {
        let ceilings = Arc::new(Memory::new());
        let before = open(&ceilings).await;
        let used = before.next(Uid::new(10_001), 1).await.expect("granted").last;
        before.shutdown().await;

        let restored = open(&ceilings).await;
        assert_eq!(raise_all(&restored, 100_000, 0).await.expect("raised"), 42_950);
        restored.shutdown().await;

        let after = open(&ceilings).await;
        for (uid, least) in [(10_001, used + MARGIN), (10_002, MARGIN), (u32::MAX, MARGIN)] {
            let next = after.next(Uid::new(uid), 1).await.expect("granted").last;
            assert!(next > least, "user {uid} got {next}");
        }
    }

    #[tokio::test]
    async fn without_ceilings_a_later_restore_goes_on_beyond_what_was_given_after_an_earlier_one() {
        let newcomer = Uid::new(200_001);
        let mut given = 0;
        for second in [1_795_000_000, 1_795_000_060] {
            let ceilings = Arc::new(Memory::new());
            let restored = open(&ceilings).await;
            let least = without_ceilings(Timestamp(second * 1_000));
            raise_all(&restored, 100_000, least).await.expect("raised");
            restored.shutdown().await;
            let life = open(&ceilings).await;
            let next = life.next(newcomer, 1).await.expect("granted").last;
            assert!(next > given, "{next} after {given}");
            given = life.next(newcomer, 5_000).await.expect("granted").last;
            life.shutdown().await;
        }
    }
}
