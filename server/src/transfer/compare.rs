//! Whether the sequence is ahead of the rows, as it must be, and what is done when it is not.

use seqsvr_core::Sequencer;
use tracing::warn;

use super::error::TransferError;
use crate::domain::{MessageId, Uid};
use crate::store::{Directory, MessageStore};

/// Accounts that are read at a time.
const PAGE: usize = 1_000;
/// Of so many users in each section the rows are looked at by a sample: the first ones, who are there longest.
const SAMPLE: usize = 100;
/// Sections that a sample looks at.
const MOST_SECTIONS: usize = 1_000;

/// How closely to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// At some users of each section: what a start can afford. A sequence that it misses is found when it is next used.
    Sample,
    /// At every user.
    All,
}

/// The newest row of each section of `adjacent` users that has any, as far as `look` goes.
///
/// # Errors
/// When rows cannot be read.
pub async fn newest_rows(
    store: &dyn MessageStore,
    directory: &dyn Directory,
    adjacent: u32,
    look: Look,
) -> Result<Vec<(Uid, MessageId)>, TransferError> {
    let (page, most) = match look {
        Look::Sample => (SAMPLE, MOST_SECTIONS),
        Look::All => (PAGE, usize::MAX),
    };
    let section_of = |uid: Uid| uid.0 / adjacent.max(1);
    let (mut after, mut sections, mut rows) = (Uid(0), 0, Vec::new());
    let mut largest: Option<(Uid, MessageId)> = None;
    while sections < most {
        let accounts = directory.accounts(after, page).await?;
        let Some(section) = accounts.first().map(|account| section_of(account.uid)) else { break };
        let same = accounts.iter().map(|account| account.uid).filter(|uid| section_of(*uid) == section);
        let same: Vec<Uid> = same.collect();
        // In one query: a start waits for it.
        for (uid, newest) in same.iter().copied().zip(store.latest_ids(&same).await?) {
            if largest.is_none_or(|(_, known)| newest > known) {
                largest = Some((uid, newest));
            }
        }
        let last = same.last().copied().unwrap_or(after);
        // The section goes on when the whole page was of it, and all are looked at.
        let goes_on = look == Look::All
            && accounts.len() == page
            && accounts.last().is_some_and(|account| section_of(account.uid) == section);
        if goes_on {
            after = last;
            continue;
        }
        sections += 1;
        rows.extend(largest.take());
        let end = u64::from(section + 1) * u64::from(adjacent.max(1)) - 1;
        let Ok(end) = u32::try_from(end) else { break };
        after = Uid(end);
    }
    Ok(rows)
}

/// Compares the [`newest_rows`] with the sequence, and lets it go on above them where it is behind. Says in how many sections it was.
///
/// # Errors
/// When the sequence does not answer.
pub async fn overtake_rows(
    sequencer: &dyn Sequencer,
    newest: &[(Uid, MessageId)],
) -> Result<usize, TransferError> {
    let mut behind = 0;
    for &(uid, newest) in newest {
        behind += usize::from(overtake(sequencer, uid, newest).await?);
    }
    Ok(behind)
}

/// Whether it had to be done.
async fn overtake(sequencer: &dyn Sequencer, uid: Uid, newest: MessageId) -> Result<bool, TransferError> {
    let uid = seqsvr_core::Uid::new(uid.0);
    let last = sequencer.current(uid).await?;
    if last >= newest.get() {
        return Ok(false);
    }
    warn!(%uid, %newest, last, "the sequence is behind the rows of its section; it goes on above them");
    sequencer.advance(uid, newest.get()).await?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use seqsvr_core::Options;
    use seqsvr_core::alloc::Embedded;
    use seqsvr_core::store::Memory;

    use super::*;
    use crate::domain::Timestamp;
    use crate::store::NewAccount;
    use crate::store::conformance::told;
    use crate::store::memory::{MemoryDirectory, MemoryStore};

    const ADJACENT: u32 = 10_000;

    /// Users 19,950 to 21,099 and 50,000, each with rows up to the own uid: three sections, one of more than a page.
    async fn some_rows() -> (MemoryStore, MemoryDirectory) {
        let (store, directory) = (MemoryStore::new(), MemoryDirectory::new());
        for n in (19_950..21_100).chain([50_000]) {
            let account =
                NewAccount { name: n.to_string(), password_hash: String::new(), created_at: Timestamp(0) };
            assert!(directory.create_account(Uid(n), account, None).await.expect("memory"));
            told(&store, (Uid(n), n.into()), (Uid(7), n.into()), n.into()).await;
        }
        (store, directory)
    }

    #[tokio::test]
    async fn a_sequence_behind_the_rows_goes_on_above_them() {
        let (store, directory) = some_rows().await;
        let ceilings = Arc::new(Memory::new());
        let options = Options { section_size: ADJACENT, ..Options::default() };
        for (look, sections) in [(Look::All, 3), (Look::Sample, 0), (Look::All, 0)] {
            let sequences = Embedded::open(ceilings.clone(), options.clone()).await.expect("opens");
            let newest = newest_rows(&store, &directory, ADJACENT, look).await.expect("read");
            let behind = overtake_rows(&sequences, &newest).await.expect("compared");
            assert_eq!(behind, sections, "{look:?}");
            sequences.shutdown().await;
        }
        let sequences = Embedded::open(ceilings, options.clone()).await.expect("opens");
        for (uid, newest) in [(19_950, 19_999), (19_999, 19_999), (20_050, 21_099), (50_000, 50_000)] {
            let next = sequences.next(seqsvr_core::Uid::new(uid), 1).await.expect("granted").last;
            assert!(next > newest && next < newest + 20_000, "user {uid} got {next}");
        }
        let fresh = Embedded::open(Arc::new(Memory::new()), options).await.expect("opens");
        let newest = newest_rows(&store, &directory, ADJACENT, Look::Sample).await.expect("read");
        assert_eq!(overtake_rows(&fresh, &newest).await.expect("compared"), 3);
    }
}
