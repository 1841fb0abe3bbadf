//! The devices that are connected to this server, and how far each has come.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::app::tokens::TokenHash;
use crate::domain::{MessageId, Uid};

/// Devices that have left and are remembered until the directory knows. Of more of them it is found out later what they have.
const MOST_LEFT: usize = 100_000;

/// See the module. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct Devices(Arc<Mutex<DeviceTable>>);

#[derive(Default)]
struct DeviceTable {
    here: HashMap<TokenHash, Arc<DeviceHere>>,
    left: Vec<Come>,
}

struct DeviceHere {
    uid: Uid,
    /// It has the rows up to this id, by whichever of its connections.
    synced: AtomicU64,
    /// So much of that the directory knows.
    kept: AtomicU64,
    /// The directory does not know that it is connected.
    is_new: AtomicBool,
    connections: AtomicUsize,
}

/// How far a device has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Come {
    pub(super) token_hash: TokenHash,
    pub(super) uid: Uid,
    pub(super) synced: MessageId,
}

/// A connection of a device. Dropping it ends the connection.
pub struct ConnectedDevice {
    devices: Devices,
    token_hash: TokenHash,
    device: Arc<DeviceHere>,
}

impl ConnectedDevice {
    /// The device has the rows up to this id.
    pub fn has(&self, synced: MessageId) {
        self.device.synced.fetch_max(synced.get(), Ordering::Relaxed);
    }
}

impl Drop for ConnectedDevice {
    fn drop(&mut self) {
        let mut table = self.devices.table();
        if self.device.connections.fetch_sub(1, Ordering::Relaxed) > 1 {
            return;
        }
        table.here.remove(&self.token_hash);
        if table.left.len() < MOST_LEFT {
            table.left.push(self.device.come(self.token_hash));
        }
    }
}

impl DeviceHere {
    fn come(&self, token_hash: TokenHash) -> Come {
        let synced = MessageId::new(self.synced.load(Ordering::Relaxed)).unwrap_or_default();
        Come { token_hash, uid: self.uid, synced }
    }
}

impl Devices {
    fn table(&self) -> MutexGuard<'_, DeviceTable> {
        // Each change is complete before anything can panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection of this device of `uid` begins.
    pub(super) fn connected(&self, token_hash: TokenHash, uid: Uid) -> ConnectedDevice {
        let mut table = self.table();
        let device = table.here.entry(token_hash).or_insert_with(|| {
            let (synced, kept) = (AtomicU64::new(0), AtomicU64::new(0));
            let connections = AtomicUsize::new(0);
            Arc::new(DeviceHere { uid, synced, kept, is_new: AtomicBool::new(true), connections })
        });
        device.connections.fetch_add(1, Ordering::Relaxed);
        ConnectedDevice { devices: self.clone(), token_hash, device: Arc::clone(device) }
    }

    /// Whether this device is connected here.
    pub(super) fn is_here(&self, token_hash: &TokenHash) -> bool {
        self.table().here.contains_key(token_hash)
    }

    /// Those that have left since the last time, without those that are back.
    pub(super) fn take_left(&self) -> Vec<Come> {
        let mut table = self.table();
        let left = std::mem::take(&mut table.left);
        left.into_iter().filter(|come| !table.here.contains_key(&come.token_hash)).collect()
    }

    /// The directory could not be told.
    pub(super) fn put_back(&self, left: Vec<Come>) {
        let mut table = self.table();
        let room = MOST_LEFT.saturating_sub(table.left.len());
        table.left.extend(left.into_iter().take(room));
    }

    /// Those that have connected since the last time.
    pub(super) fn take_new(&self) -> Vec<Come> {
        self.those(|device| device.is_new.swap(false, Ordering::Relaxed))
    }

    /// Those that have come further since the last time; with `all`, everyone.
    pub(super) fn take_moved(&self, all: bool) -> Vec<Come> {
        self.those(|device| {
            let synced = device.synced.load(Ordering::Relaxed);
            device.kept.swap(synced, Ordering::Relaxed) != synced || all
        })
    }

    fn those(&self, is_one: impl Fn(&DeviceHere) -> bool) -> Vec<Come> {
        let table = self.table();
        let those = table.here.iter().filter(|(_, device)| is_one(device));
        those.map(|(token_hash, device)| device.come(*token_hash)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u64) -> MessageId {
        MessageId::new(number).expect("in range")
    }

    #[test]
    fn a_device_is_here_as_long_as_it_has_a_connection() {
        let devices = Devices::default();
        let (one, other) = (devices.connected([1; 32], Uid(7)), devices.connected([1; 32], Uid(7)));
        one.has(id(5));
        other.has(id(3));
        drop(one);
        assert!(devices.is_here(&[1; 32]) && devices.take_left().is_empty());
        drop(other);
        assert!(!devices.is_here(&[1; 32]));
        let left = Come { token_hash: [1; 32], uid: Uid(7), synced: id(5) };
        assert_eq!(devices.take_left(), [left]);
        devices.put_back(vec![left]);
        let _back = devices.connected([1; 32], Uid(7));
        assert_eq!(devices.take_left(), [], "it is back");
    }

    #[test]
    fn what_has_changed_is_told_once() {
        let devices = Devices::default();
        let device = devices.connected([1; 32], Uid(7));
        assert_eq!((devices.take_new().len(), devices.take_new().len()), (1, 0));
        assert_eq!(devices.take_moved(false), []);
        device.has(id(4));
        assert_eq!(devices.take_moved(false), [Come { token_hash: [1; 32], uid: Uid(7), synced: id(4) }]);
        assert_eq!((devices.take_moved(false).len(), devices.take_moved(true).len()), (0, 1));
    }
}
