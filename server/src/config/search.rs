//! `[search]`: the index of words.

use serde::{Deserialize, Serialize};

/// Whether words are indexed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SearchSection {
    /// Whether new rows are indexed. Without an index a search reads the rows, which takes longer the more there are.
    pub index: bool,
}

impl Default for SearchSection {
    fn default() -> SearchSection {
        SearchSection { index: true }
    }
}
