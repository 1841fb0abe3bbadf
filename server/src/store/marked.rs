//! Rows that mark messages: pins and stars. Those that took a mark away stay, too, so that every device learns of it; so
//! whoever looks for the marks that stand walks past them, page by page, up to a limit.

use super::{MessageStore, StoreError};
use crate::domain::{Content, Entry, Uid};

/// Rows that are read at once.
const PAGE: usize = 1_000;

/// Rows that are looked at, also of such as took a mark away. Each is about another message.
pub const MOST_ROWS: usize = 10_000;

/// Rows of `uid` under compaction keys that begin with `prefix` of which `stands` is true: at least `enough`, or all of them; of the
/// first [`MOST_ROWS`].
pub async fn marked(
    store: &dyn MessageStore,
    uid: Uid,
    prefix: &str,
    enough: usize,
    stands: impl Fn(&Content) -> bool,
) -> Result<Vec<Entry>, StoreError> {
    let (mut found, mut after, mut looked) = (Vec::new(), prefix.to_owned(), 0);
    loop {
        let rows = store.newest_under(uid, prefix, &after, PAGE).await?;
        looked += rows.len();
        let is_last = rows.len() < PAGE;
        if let Some((key, _)) = rows.last() {
            after.clone_from(key);
        }
        found.extend(rows.into_iter().map(|(_, row)| row).filter(|row| stands(&row.content)));
        if is_last || found.len() >= enough || looked >= MOST_ROWS {
            return Ok(found);
        }
    }
}
