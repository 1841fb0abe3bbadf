//! The settings of a holder, each with its default, checked once when it is opened.

use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use thiserror::Error;

use super::Instance;
use super::registry::MAX_VALUE;

/// The most machine ids that any format has.
pub(crate) const MOST_MACHINES: u32 = 1 << crate::snowflake::MOST_MACHINE_BITS;

/// Settings of a [`Holder`](super::Holder).
#[derive(Clone, Debug)]
pub struct HolderOptions {
    /// The name of this process.
    pub instance: Instance,
    /// The machine ids that may be given out: those of the format, or of one data centre.
    pub machines: Range<u32>,
    /// How long an id is held without a renewal, and so how long a start survives the registry's absence: 1 s to 30 days.
    /// Default 10 min. The id of an instance that died is free after it.
    pub lease: Duration,
    /// How long before its end the lease is no longer used: at least a tenth of it, since clocks' rates differ.
    /// Default 1 min.
    pub margin: Duration,
    /// How often the lease is renewed: at most half of what may be used of it. Default 2 min.
    pub renew_every: Duration,
    /// The pause after a failed renewal. Default 1 s.
    pub retry: Duration,
    /// How long one call of the registry may take. Default 5 s.
    pub call_timeout: Duration,
    /// Where the instance's file lies; without one, a start needs the registry and a restart gets another id. The clock
    /// guard's file is to lie in the same folder.
    pub folder: Option<PathBuf>,
    /// The mark of this process, if no file tells an earlier one: 0 to 2^63 - 1. Drawn at random by default.
    pub holder: u64,
}

impl HolderOptions {
    /// The defaults for a process of that name.
    pub fn new(instance: Instance, machines: Range<u32>, folder: Option<PathBuf>) -> Self {
        Self {
            instance,
            machines,
            lease: Duration::from_secs(600),
            margin: Duration::from_secs(60),
            renew_every: Duration::from_secs(120),
            retry: Duration::from_secs(1),
            call_timeout: Duration::from_secs(5),
            folder,
            holder: rand::random::<u64>() & MAX_VALUE,
        }
    }

    pub(super) fn check(&self) -> Result<(), BadHolderOption> {
        let bad = |name, problem: String| Err(BadHolderOption { name, problem });
        if self.machines.is_empty() || self.machines.end > MOST_MACHINES {
            return bad("machines", format!("{:?} is empty or goes beyond {MOST_MACHINES}", self.machines));
        }
        if !(Duration::from_secs(1)..=Duration::from_secs(30 * 86_400)).contains(&self.lease) {
            return bad("lease", format!("{:?} is not between 1 s and 30 days", self.lease));
        }
        if !(self.lease / 10..self.lease).contains(&self.margin) {
            return bad("margin", format!("set at least {:?}, a tenth of the lease", self.lease / 10));
        }
        let most = (self.lease - self.margin) / 2;
        if self.renew_every.is_zero() || self.renew_every > most {
            return bad("renew_every", format!("set more than zero and at most {most:?}"));
        }
        if self.retry.is_zero() || self.call_timeout.is_zero() {
            return bad("retry", "set retry and call_timeout to more than zero".to_owned());
        }
        if self.holder > MAX_VALUE {
            return bad("holder", format!("{} is larger than 2^63 - 1", self.holder));
        }
        Ok(())
    }
}

/// A setting that is out of its range.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("machine option {name}: {problem}")]
pub struct BadHolderOption {
    /// The field of [`HolderOptions`].
    pub name: &'static str,
    /// The problem and how to correct it.
    pub problem: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_out_of_range_are_named() {
        let good = HolderOptions::new(Instance::named("a").unwrap(), 0..1_024, None);
        assert_eq!(good.check(), Ok(()));
        let named = |options: HolderOptions| options.check().unwrap_err().name;
        assert_eq!(named(HolderOptions { machines: 5..5, ..good.clone() }), "machines");
        assert_eq!(named(HolderOptions { machines: 0..65_537, ..good.clone() }), "machines");
        assert_eq!(named(HolderOptions { lease: Duration::from_millis(999), ..good.clone() }), "lease");
        assert_eq!(named(HolderOptions { margin: Duration::from_secs(59), ..good.clone() }), "margin");
        assert_eq!(named(HolderOptions { margin: Duration::from_secs(600), ..good.clone() }), "margin");
        assert_eq!(
            named(HolderOptions { renew_every: Duration::from_secs(271), ..good.clone() }),
            "renew_every"
        );
        assert_eq!(named(HolderOptions { retry: Duration::ZERO, ..good.clone() }), "retry");
        assert_eq!(named(HolderOptions { holder: 1 << 63, ..good }), "holder");
    }
}
