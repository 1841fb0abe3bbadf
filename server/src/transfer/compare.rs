//! Whether the sequence is ahead of the rows, as it must be, and what is done when it is not.

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt, TryStreamExt, stream};
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

/// Sections whose samples are looked up at the same time; a start waits for all of them.
const AT_A_TIME: usize = 4;

/// The latest id of some users of one section, and whose it is.
type Largest = Result<Option<(Uid, MessageId)>, TransferError>;

/// How closely to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// At some users of each section: what a start can afford. A sequence that it misses is found when it is next used.
    Sample,
    /// At every user.
    All,
}

/// The latest id of each section of `adjacent` users that has any, as far as `look` goes.
///
/// # Errors
/// When rows cannot be read.
pub async fn latest_ids(
    store: &dyn MessageStore,
    directory: &Directory,
    adjacent: u32,
    look: Look,
) -> Result<Vec<(Uid, MessageId)>, TransferError> {
    match look {
        Look::Sample => latest_of_samples(store, directory, adjacent.max(1)).await,
        Look::All => latest_of_all(store, directory, adjacent.max(1)).await,
    }
}

async fn latest_of_samples(
    store: &dyn MessageStore,
    directory: &Directory,
    adjacent: u32,
) -> Result<Vec<(Uid, MessageId)>, TransferError> {
    let mut samples: Vec<BoxFuture<'_, Largest>> = Vec::new();
    let mut after = Uid(0);
    while samples.len() < MOST_SECTIONS {
        let uids = uids_after(directory, after, SAMPLE).await?;
        let Some(section) = uids.first().map(|uid| uid.0 / adjacent) else { break };
        let same = uids.into_iter().filter(|uid| uid.0 / adjacent == section).collect();
        samples.push(largest(store, same).boxed());
        let Some(last) = last_of(section, adjacent) else { break };
        after = last;
    }
    let largest: Vec<Option<_>> = stream::iter(samples).buffered(AT_A_TIME).try_collect().await?;
    Ok(largest.into_iter().flatten().collect())
}

async fn latest_of_all(
    store: &dyn MessageStore,
    directory: &Directory,
    adjacent: u32,
) -> Result<Vec<(Uid, MessageId)>, TransferError> {
    let mut rows: Vec<(Uid, MessageId)> = Vec::new();
    let mut after = Uid(0);
    loop {
        let uids = uids_after(directory, after, PAGE).await?;
        let Some(&last) = uids.last() else { return Ok(rows) };
        for of_section in uids.chunk_by(|one, next| one.0 / adjacent == next.0 / adjacent) {
            let Some(found) = largest(store, of_section.to_vec()).await? else { continue };
            // A section may go on from the page before.
            match rows.last_mut().filter(|(uid, _)| uid.0 / adjacent == found.0.0 / adjacent) {
                Some(known) if known.1 < found.1 => *known = found,
                Some(_) => {}
                None => rows.push(found),
            }
        }
        after = last;
    }
}

async fn uids_after(directory: &Directory, after: Uid, most: usize) -> Result<Vec<Uid>, TransferError> {
    let accounts = directory.accounts(after, most).await?;
    Ok(accounts.into_iter().map(|account| account.uid).collect())
}

/// The largest of the latest ids of `uids`, in one query, and whose it is.
async fn largest(store: &dyn MessageStore, uids: Vec<Uid>) -> Largest {
    let latest = store.latest_ids(&uids).await?;
    Ok(uids.into_iter().zip(latest).max_by_key(|(_, latest)| *latest))
}

/// The last uid of a section; `None` where the uid space ends before it.
fn last_of(section: u32, adjacent: u32) -> Option<Uid> {
    let next = (u64::from(section) + 1) * u64::from(adjacent);
    u32::try_from(next - 1).ok().map(Uid)
}

/// Compares the [`latest_ids`] with the sequence, and lets it go on above them where it is behind. Says in how many sections it was.
///
/// # Errors
/// When the sequence does not answer.
pub async fn overtake_rows(
    sequencer: &dyn Sequencer,
    latest: &[(Uid, MessageId)],
) -> Result<usize, TransferError> {
    let mut behind = 0;
    for &(uid, latest) in latest {
        behind += usize::from(overtake(sequencer, uid, latest).await?);
    }
    Ok(behind)
}

/// Whether it had to be done.
async fn overtake(sequencer: &dyn Sequencer, uid: Uid, latest: MessageId) -> Result<bool, TransferError> {
    let uid = seqsvr_core::Uid::new(uid.0);
    let last = sequencer.current(uid).await?;
    if last >= latest.get() {
        return Ok(false);
    }
    warn!(%uid, %latest, last, "the sequence is behind the rows of its section; it continues above them");
    sequencer.advance(uid, latest.get()).await?;
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
    use crate::store::conformance::send_text;
    use crate::store::memory::MemoryStore;

    const ADJACENT: u32 = 10_000;

    /// Users 19,950 to 21,099 and 50,000, each with rows up to the own uid: three sections, one of more than a page.
    async fn some_rows() -> (MemoryStore, Directory) {
        let (store, directory) = (MemoryStore::new(), Directory::in_memory());
        for n in (19_950..21_100).chain([50_000]) {
            let account =
                NewAccount { name: n.to_string(), password_hash: String::new(), created_at: Timestamp(0) };
            assert!(directory.create_account(Uid(n), account, None).await.expect("memory"));
            send_text(&store, (Uid(n), n.into()), (Uid(7), n.into()), n.into()).await;
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
            let latest = latest_ids(&store, &directory, ADJACENT, look).await.expect("read");
            let behind = overtake_rows(&sequences, &latest).await.expect("compared");
            assert_eq!(behind, sections, "{look:?}");
            sequences.shutdown().await;
        }
        let sequences = Embedded::open(ceilings, options.clone()).await.expect("opens");
        for (uid, latest) in [(19_950, 19_999), (19_999, 19_999), (20_050, 21_099), (50_000, 50_000)] {
            let next = sequences.next(seqsvr_core::Uid::new(uid), 1).await.expect("granted").last;
            assert!(next > latest && next < latest + 20_000, "user {uid} got {next}");
        }
        let fresh = Embedded::open(Arc::new(Memory::new()), options).await.expect("opens");
        let latest = latest_ids(&store, &directory, ADJACENT, Look::Sample).await.expect("read");
        assert_eq!(overtake_rows(&fresh, &latest).await.expect("compared"), 3);
    }
}
