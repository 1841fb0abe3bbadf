//! `[table]`: where tables with an auto-increment key column are served, in the wire protocol of Tablestore.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{ConfigError, Listen, within};

/// Where tables are served when they are, and no address is named.
const DEFAULT_ADDRESS: ([u8; 4], u16) = ([127, 0, 0, 1], 8081);

/// Where tables are served, and what one caller may ask for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TableSection {
    /// Whether tables are served. An address in `listen` says so, too.
    pub enabled: bool,
    /// The address to serve on; port 0 picks a free one. Empty: 127.0.0.1:8081, if `enabled`.
    pub listen: String,
    /// Open connections.
    pub connections: usize,
    /// How long the head of a request may take, from the opening of its connection or from the answer before it: so an idle connection
    /// is closed after this time.
    pub head_seconds: u32,
    /// How long the body of a request may take.
    pub body_seconds: u32,
    /// Bytes of the body of a request, also after it was decompressed.
    pub body_bytes: usize,
    /// Bytes of bodies and answers that are held in memory at the same time.
    pub buffered_bytes: usize,
    /// How far the clock of a client may differ from that of the server.
    pub clock_seconds: u32,
    /// Tables of an instance.
    pub tables: usize,
    /// Operations on tables, such as CreateTable, a second and instance.
    pub table_operations_per_second: u32,
    /// KiB a second that the requests with one access key read and write; those beyond wait, and are refused where that takes more than five
    /// seconds. 0: any number. Rows and requests count beside their bytes.
    pub kib_per_key_per_second: u32,
    /// Tables that are kept in memory for a second after they were looked up.
    pub remembered_tables: usize,
    /// Writers: how many commits of rows may be under way.
    pub writers: usize,
    /// Writes that may wait for one writer before new ones are refused.
    pub length: usize,
    /// Bytes of the writes that may wait, for all writers or past them for the store.
    pub waiting_bytes: usize,
    /// Rows after which a commit takes no further write.
    pub batch_rows: usize,
    /// Bytes after which a commit takes no further write.
    pub batch_bytes: usize,
    /// How often what is past its TTL, and what is left of deleted tables, is removed.
    pub sweep_seconds: u32,
    /// Rows that are looked at each time.
    pub sweep_rows: usize,
    /// Rows of deleted tables that one transaction removes.
    pub forget_rows: usize,
    /// Bytes that ComputeSplitPointsBySize looks at.
    pub split_bytes: u64,
}

impl Default for TableSection {
    fn default() -> Self {
        TableSection {
            enabled: false,
            listen: String::new(),
            connections: 1_000,
            head_seconds: 60,
            body_seconds: 30,
            body_bytes: 5 << 20,
            buffered_bytes: 128 << 20,
            clock_seconds: 900,
            tables: 64,
            table_operations_per_second: 10,
            kib_per_key_per_second: 16_384,
            remembered_tables: 1_024,
            writers: 4,
            length: 1_024,
            waiting_bytes: 64 << 20,
            batch_rows: 1_024,
            batch_bytes: 8 << 20,
            sweep_seconds: 10,
            sweep_rows: 10_000,
            forget_rows: 1_000,
            split_bytes: 1 << 30,
        }
    }
}

impl TableSection {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        within("table", "connections", self.connections, 1..=100_000)?;
        within("table", "head_seconds", self.head_seconds, 1..=3_600)?;
        within("table", "body_seconds", self.body_seconds, 1..=3_600)?;
        within("table", "body_bytes", self.body_bytes, 65_536..=64 << 20)?;
        within("table", "buffered_bytes", self.buffered_bytes, self.body_bytes..=64 << 30)?;
        within("table", "clock_seconds", self.clock_seconds, 1..=86_400)?;
        within("table", "tables", self.tables, 1..=100_000)?;
        within("table", "table_operations_per_second", self.table_operations_per_second, 1..=100_000)?;
        within("table", "kib_per_key_per_second", self.kib_per_key_per_second, 0..=100_000_000)?;
        within("table", "remembered_tables", self.remembered_tables, 1..=1_000_000)?;
        within("table", "writers", self.writers, 1..=256)?;
        // There must be room for a batch of 200 rows, and for all that one request brings.
        within("table", "length", self.length, 200..=1_000_000)?;
        within("table", "waiting_bytes", self.waiting_bytes, self.body_bytes * 2..=64 << 30)?;
        within("table", "batch_rows", self.batch_rows, 1..=100_000)?;
        within("table", "batch_bytes", self.batch_bytes, 1..=64 << 20)?;
        within("table", "sweep_seconds", self.sweep_seconds, 1..=86_400)?;
        within("table", "sweep_rows", self.sweep_rows, 1..=10_000_000)?;
        within("table", "forget_rows", self.forget_rows, 1..=100_000)?;
        within("table", "split_bytes", self.split_bytes, 1..=1 << 50)?;
        self.address().map(drop)
    }

    /// The address to serve tables on; `None`: they are not served.
    ///
    /// # Errors
    ///
    /// It cannot be one.
    pub fn address(&self) -> Result<Option<Listen>, ConfigError> {
        let wrong = |why| ConfigError::Value { section: "table", key: "listen", why };
        match (self.enabled, self.listen.is_empty()) {
            (_, false) => self.listen.parse().map(Some).map_err(wrong),
            (true, true) => Ok(Some(Listen::from(DEFAULT_ADDRESS))),
            (false, true) => Ok(None),
        }
    }

    /// How long the head of a request may take.
    pub fn head(&self) -> Duration {
        Duration::from_secs(self.head_seconds.into())
    }

    /// How long the body of a request may take.
    pub fn body(&self) -> Duration {
        Duration::from_secs(self.body_seconds.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(enabled: bool, listen: &str) -> Option<String> {
        let section = TableSection { enabled, listen: listen.into(), ..TableSection::default() };
        section.address().expect("good").map(|address| address.to_string())
    }

    #[test]
    fn tables_are_off_until_they_are_switched_on_or_have_an_address() {
        assert_eq!(address(false, ""), None);
        assert_eq!(address(true, "").as_deref(), Some("127.0.0.1:8081"));
        assert_eq!(address(false, "127.0.0.1:0").as_deref(), Some("127.0.0.1:0"));
        assert_eq!(address(true, "[::1]:9000").as_deref(), Some("[::1]:9000"));
    }

    #[test]
    fn what_cannot_be_an_address_is_refused_by_name() {
        let section = TableSection { listen: "nowhere".into(), ..TableSection::default() };
        let said = section.check().expect_err("no port").to_string();
        assert!(said.starts_with("[table] listen: `nowhere` is no address"), "{said}");
    }
}
