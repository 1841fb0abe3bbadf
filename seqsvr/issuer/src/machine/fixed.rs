//! A machine id that is given and never changes. The giver of such ids sees to it that no two processes have the same.

use crate::snowflake::{BadLayout, Layout, MachineId, Unheld};

/// A given machine id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fixed(u32);

impl Fixed {
    /// Checks a given id.
    ///
    /// # Errors
    ///
    /// [`BadLayout::Machine`] when the format has no room for it.
    pub fn new(layout: &Layout, id: u64) -> Result<Self, BadLayout> {
        layout.machine(id).map(Self)
    }

    /// Checks a given data centre and worker.
    ///
    /// # Errors
    ///
    /// [`BadLayout::Machine`] when the format has no room for one of them.
    pub fn worker(layout: &Layout, data_centre: u64, worker: u64) -> Result<Self, BadLayout> {
        layout.worker(data_centre, worker).map(Self)
    }
}

impl MachineId for Fixed {
    fn at(&self, _wall: u64) -> Result<u32, Unheld> {
        Ok(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snowflake::{Bits, DEFAULT_EPOCH};

    #[test]
    fn an_id_beyond_the_format_is_refused() {
        let layout = Layout::new(Bits::default(), DEFAULT_EPOCH, DEFAULT_EPOCH).unwrap();
        let fixed = Fixed::new(&layout, 3).unwrap();
        assert_eq!(fixed.at(DEFAULT_EPOCH), Ok(3));
        assert!(Fixed::new(&layout, 1_024).is_err());
    }
}
