//! A machine id that is given and never changes: from the configuration, or a StatefulSet's ordinal. The giver of such ids sees to it that
//! no two processes have the same.

use crate::snowflake::{BadLayout, Layout, MachineId, Unheld};

/// A given machine id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fixed(u32);

impl Fixed {
    /// Checks a given id, or an [`ordinal`](super::ordinal).
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
    use crate::machine::ordinal;
    use crate::snowflake::{Bits, DEFAULT_EPOCH};

    #[test]
    fn an_ordinal_becomes_the_machine_id() {
        let layout = Layout::new(Bits::default(), DEFAULT_EPOCH, DEFAULT_EPOCH).unwrap();
        let fixed = Fixed::new(&layout, ordinal("tidemark-3.tidemark.svc").unwrap()).unwrap();
        assert_eq!(fixed.at(DEFAULT_EPOCH), Ok(3));
        assert!(Fixed::new(&layout, ordinal("tidemark-1024").unwrap()).is_err());
    }
}
