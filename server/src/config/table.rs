//! `[table]`: where tables with an auto-increment key column are served, in the wire protocol of Tablestore.

use serde::{Deserialize, Serialize};

use super::{ConfigError, Listen, within};

/// Where tables are served, and what one caller may ask for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TableSection {
    /// The address to serve on; port 0 picks a free one. Empty: tables are not served.
    pub listen: String,
    /// KiB a second that the requests with one access key read and write; those beyond wait, and are refused where that takes more than five
    /// seconds. 0: any number. Rows and requests count beside their bytes.
    pub kib_per_key_per_second: u32,
    /// Open connections.
    pub connections: usize,
}

impl Default for TableSection {
    fn default() -> Self {
        TableSection { listen: String::new(), kib_per_key_per_second: 16_384, connections: 1_000 }
    }
}

impl TableSection {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        within("table", "kib_per_key_per_second", self.kib_per_key_per_second, 0..=100_000_000)?;
        within("table", "connections", self.connections, 1..=100_000)?;
        self.address().map(drop)
    }

    /// Where tables are served; `None`: nowhere.
    ///
    /// # Errors
    /// When `listen` is no address.
    pub fn address(&self) -> Result<Option<Listen>, ConfigError> {
        if self.listen.is_empty() {
            return Ok(None);
        }
        let wrong = |why| ConfigError::Value { section: "table", key: "listen", why };
        self.listen.parse().map(Some).map_err(wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_an_address_is_refused_by_name() {
        let section = TableSection { listen: "nowhere".into(), ..TableSection::default() };
        let said = section.check().expect_err("no port").to_string();
        assert!(said.starts_with("[table] listen: `nowhere` is no address"), "{said}");
    }
}
