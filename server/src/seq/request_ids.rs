//! Ids of requests: snowflakes, so that they sort by time and tell the server apart, without storage.
//!
//! Owns the generator. Called for every request, through the function that the composition root hands to HTTP.

use std::sync::Arc;

use seqsvr_issuer::clock::{Clock, ClockOptions, Guard};
use seqsvr_issuer::machine::Fixed;
use seqsvr_issuer::snowflake::{Bits, DEFAULT_EPOCH, Layout, Snowflake, SnowflakeOptions};

/// The ids cannot be made; the text says why.
#[derive(Debug, thiserror::Error)]
#[error("[server] machine_id: {0}")]
pub struct RequestIdsError(String);

/// See the module. Cheap to clone.
#[derive(Clone)]
pub struct RequestIds(Arc<Snowflake>);

impl RequestIds {
    /// Ids of the server `machine_id`, 0 to 1,023: another one for each server of an installation.
    pub async fn open(machine_id: u32) -> Result<RequestIds, RequestIdsError> {
        let why = |error: &dyn std::fmt::Display| RequestIdsError(error.to_string());
        let clock = Clock::system();
        let layout = Layout::new(Bits::default(), DEFAULT_EPOCH, clock.wall()).map_err(|e| why(&e))?;
        let machine = Fixed::new(&layout, u64::from(machine_id)).map_err(|e| why(&e))?;
        // Without a file: an id that repeats after a restart under a clock set back harms nobody.
        let guard = Guard::open(ClockOptions::default(), clock, None).await.map_err(|e| why(&e))?;
        Ok(RequestIds(Arc::new(Snowflake::new(
            layout,
            SnowflakeOptions::default(),
            guard,
            Arc::new(machine),
        ))))
    }

    /// An id that no other request has. While the clock is held back it is drawn at random, beyond all snowflakes.
    pub fn next(&self) -> u64 {
        self.0.try_next().unwrap_or_else(|_| rand::random::<u64>() | 1 << 63)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn ids_grow_and_a_machine_out_of_range_is_refused() {
        let request_ids = RequestIds::open(7).await.expect("opened");
        let (first, second) = (request_ids.next(), request_ids.next());
        assert!(first < second && second < 1 << 63);
        assert_eq!(request_ids.0.decode(first).expect("a snowflake").worker, 7);
        let refused = RequestIds::open(1_024).await.err().expect("refused").to_string();
        assert!(refused.starts_with("[server] machine_id"), "{refused}");
    }
}
