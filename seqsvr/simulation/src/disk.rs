//! A disk: what was written and not yet synced may survive a crash in part; what was synced survives whole. Kept as records: a
//! torn one is one that its checksum refuses, so it and everything behind it are not there any more.

use super::chance::Chance;

/// One append-only file, and what a crash leaves of it.
#[derive(Clone, Debug)]
pub(crate) struct Disk<T> {
    records: Vec<T>,
    synced: usize,
}

impl<T> Default for Disk<T> {
    fn default() -> Self {
        Self { records: Vec::new(), synced: 0 }
    }
}

impl<T> Disk<T> {
    /// Appends; durable only after the next [`sync`](Self::sync).
    pub(crate) fn write(&mut self, record: T) {
        self.records.push(record);
    }

    /// How much was written, to be told to [`sync`](Self::sync) later.
    pub(crate) fn written(&self) -> usize {
        self.records.len()
    }

    /// How much of it is durable.
    pub(crate) fn synced(&self) -> usize {
        self.synced
    }

    /// The records up to `until` are durable.
    pub(crate) fn sync(&mut self, until: usize) {
        self.synced = self.synced.max(until);
    }

    /// The machine ends: any part of what was not synced is lost.
    pub(crate) fn crash(&mut self, chance: &mut Chance) {
        let open = self.records.len() - self.synced;
        self.records.truncate(self.synced + chance.index(open + 1));
        self.synced = self.records.len();
    }

    /// The records that a reader finds.
    pub(crate) fn read(&self) -> &[T] {
        &self.records
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crash_leaves_what_was_synced() {
        let mut left = std::collections::BTreeSet::new();
        for seed in 0..200 {
            let mut disk = Disk::default();
            for record in 0..10 {
                disk.write(record);
            }
            disk.sync(4);
            disk.crash(&mut Chance::new(seed));
            assert!(disk.read().starts_with(&[0, 1, 2, 3]));
            left.insert(disk.read().len());
        }
        assert_eq!(left, (4..=10).collect(), "and any part of the rest");
    }
}
