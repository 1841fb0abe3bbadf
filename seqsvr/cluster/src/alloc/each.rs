//! One number for each of many uids: all or nothing, though single ones may have to wait for a raise. Owned by the
//! request while it waits.

use super::view::{Denied, ServedView};
use seqsvr_core::ids::{Epoch, Uid};

/// The request and what it has so far.
pub(crate) struct Each {
    uids: Vec<u32>,
    numbers: Vec<u64>,
    /// Adjacent numbers of one epoch.
    epochs: Vec<(u32, Epoch)>,
    /// The view through which the numbers were taken.
    serial: u64,
    /// Whether all uids have asked for the raises that they need.
    asked: bool,
}

impl Each {
    /// A number for each of `uids`, in order.
    pub(crate) fn new(uids: Vec<u32>) -> Self {
        let numbers = Vec::with_capacity(uids.len());
        Self { uids, numbers, epochs: Vec::with_capacity(1), serial: 0, asked: false }
    }

    /// The uids that get a number each.
    pub(crate) fn uids(&self) -> &[u32] {
        &self.uids
    }

    /// Goes on from where it had to wait. If the view has changed meanwhile, it begins anew: the numbers taken become
    /// gaps, since their owner may be another by now.
    pub(crate) fn proceed(&mut self, view: &ServedView) -> Result<(), Denied> {
        if self.serial != view.serial() {
            self.serial = view.serial();
            self.numbers.clear();
            self.epochs.clear();
            // One that is not served here refuses the whole call before anything is allocated.
            for &uid in &self.uids {
                view.group(Uid::new(uid))?;
            }
        }
        for &uid in &self.uids[self.numbers.len()..] {
            let granted = match view.take(Uid::new(uid), 1) {
                Ok(granted) => granted,
                Err(denied) => return Err(self.wait(view, denied)),
            };
            self.numbers.push(granted.last);
            match self.epochs.last_mut() {
                Some((count, epoch)) if *epoch == granted.epoch => *count += 1,
                _ => self.epochs.push((1, granted.epoch)),
            }
        }
        Ok(())
    }

    /// Before a first wait all uids that are left ask for their raises, so that these come together and not one after the other.
    /// Numbers taken by that become gaps: each uid gets its number in its turn.
    #[cold]
    fn wait(&mut self, view: &ServedView, denied: Denied) -> Denied {
        if matches!(denied, Denied::Later(_)) && !self.asked {
            self.asked = true;
            for &uid in &self.uids[self.numbers.len()..] {
                let _ = view.take(Uid::new(uid), 1);
            }
        }
        denied
    }

    /// The numbers in the order of the uids, and the epochs of adjacent ones.
    pub(crate) fn take(&mut self) -> (Vec<u64>, Vec<(u32, Epoch)>) {
        (std::mem::take(&mut self.numbers), std::mem::take(&mut self.epochs))
    }
}
