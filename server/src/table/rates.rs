//! How many operations on tables an instance may do: so many at once, and so many a second after them.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// See the module.
pub(super) struct OperationRates {
    a_second: u32,
    /// When the instance would have used nothing up.
    instances: Mutex<HashMap<String, Instant>>,
}

impl OperationRates {
    pub(super) fn new(a_second: u32) -> OperationRates {
        OperationRates { a_second: a_second.max(1), instances: Mutex::default() }
    }

    /// Counts one, if the instance may do one more now.
    pub(super) fn allow(&self, instance: &str) -> bool {
        let (now, each) = (Instant::now(), Duration::from_secs(1) / self.a_second);
        let mut instances = self.instances.lock().unwrap_or_else(PoisonError::into_inner);
        // An instance that has waited long enough needs no entry.
        instances.retain(|_, free| *free > now);
        let free = instances.get(instance).copied().unwrap_or(now) + each;
        let is_allowed = free - now <= each * self.a_second;
        if is_allowed {
            instances.insert(instance.to_owned(), free);
        }
        is_allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn ten_at_once_and_ten_a_second_each_instance() {
        let rates = OperationRates::new(10);
        let allowed = |count: usize| (0..count).filter(|_| rates.allow("a")).count();
        assert_eq!(allowed(15), 10);
        assert!(rates.allow("b"));
        tokio::time::advance(Duration::from_millis(200)).await;
        assert_eq!(allowed(15), 2);
        tokio::time::advance(Duration::from_secs(60)).await;
        assert_eq!(allowed(15), 10);
    }
}
