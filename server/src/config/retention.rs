//! `[retention]`: how long rows are kept.

use serde::{Deserialize, Serialize};

use super::{ConfigError, MOST_SECONDS};

/// Nothing that is younger expires: it may be on its way to its receivers, or to devices that are connected.
const LEAST_SECONDS: u64 = 60;

/// When rows expire.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RetentionSection {
    /// Seconds for which messages, and what else was said or done, are kept; 0: for good.
    pub seconds: u64,
}

impl RetentionSection {
    /// Seconds for which rows are kept; `None`: for good.
    pub fn keep_seconds(&self) -> Option<u64> {
        (self.seconds > 0).then_some(self.seconds)
    }

    /// Whether the time is in range.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let RetentionSection { seconds } = *self;
        if seconds == 0 || (LEAST_SECONDS..=MOST_SECONDS).contains(&seconds) {
            return Ok(());
        }
        let why = format!(
            "is {seconds}; it may be 0, to keep everything, or {LEAST_SECONDS} to {MOST_SECONDS}: what is younger may still be on its way"
        );
        Err(ConfigError::Value { section: "retention", key: "seconds", why })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_that_would_delete_what_is_on_its_way_is_refused() {
        for (seconds, is_good) in [(0, true), (1, false), (59, false), (60, true), (MOST_SECONDS + 1, false)]
        {
            let checked = RetentionSection { seconds }.check();
            assert_eq!(checked.is_ok(), is_good, "{seconds}");
            if let Err(refused) = checked {
                let said = refused.to_string();
                assert!(
                    said.starts_with(&format!("[retention] seconds: is {seconds}; it may be 0")),
                    "{said}"
                );
            }
        }
    }
}
