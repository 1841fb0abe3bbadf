//! A page of one inbox, and how it is filled: row after row, up to its limits and no further.
//!
//! Readers put the rows of a page into a [`Filling`], which says when to stop.

use super::changes::Changes;
use crate::domain::{Entry, PageLimit};

/// A page of one inbox.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// Rows in the direction asked for.
    pub rows: Vec<Entry>,
    /// Whether the range holds more rows behind them.
    pub more: bool,
}

impl Page {
    /// Takes rows up to `limit`.
    pub fn filled(rows: impl IntoIterator<Item = Entry>, limit: PageLimit) -> Page {
        let mut filling = Filling::new(limit);
        _ = rows.into_iter().all(|row| filling.push(row));
        filling.page()
    }
}

/// A page that is being filled.
#[derive(Debug)]
pub struct Filling {
    page: Page,
    limit: PageLimit,
    bytes: usize,
    changes: Changes,
}

impl Filling {
    /// An empty page.
    pub fn new(limit: PageLimit) -> Filling {
        Filling { page: Page::default(), limit, bytes: 0, changes: Changes::default() }
    }

    /// An empty page that takes rows as `changes` leave them, and passes over those whose place others have taken.
    pub(super) fn showing(limit: PageLimit, changes: Changes) -> Filling {
        Filling { changes, ..Filling::new(limit) }
    }

    /// Takes the next row if there is room for it; the first one is taken whatever it weighs. `false`: the page is full, and there is
    /// more.
    pub fn push(&mut self, row: Entry) -> bool {
        let Some(row) = self.changes.show(row) else { return true };
        self.bytes += row.weight();
        let first = self.page.rows.is_empty();
        if self.page.rows.len() == self.limit.rows || (self.bytes > self.limit.bytes && !first) {
            self.page.more = true;
        } else {
            self.page.rows.push(row);
        }
        !self.page.more
    }

    /// Whether a row had no room.
    pub fn is_full(&self) -> bool {
        self.page.more
    }

    /// How many rows to ask for: one more than there is room for, which tells whether there is more. As many as there are, where some
    /// may be passed over.
    pub fn wanted(&self) -> usize {
        if !self.changes.is_empty() {
            return i64::MAX as usize;
        }
        self.limit.rows.saturating_sub(self.page.rows.len()).saturating_add(1)
    }

    /// The page.
    pub fn page(self) -> Page {
        self.page
    }
}
