//! `snowflake`: ids on one thread, against what the format can hold: 4,096 in a millisecond. With more sequence bits
//! than a thread can use up, what one id costs.

use std::hint::{black_box, spin_loop};
use std::sync::Arc;
use std::time::{Duration, Instant};

use seqsvr_issuer::clock::{Clock, ClockOptions, Guard};
use seqsvr_issuer::machine::Fixed;
use seqsvr_issuer::snowflake::{Bits, DEFAULT_EPOCH, Layout, Snowflake, SnowflakeOptions};
use seqsvr_issuer::{Counter, Issuer};

use super::TAG;
use crate::bench::Context;
use crate::bench::report::{Sample, Target};
use crate::bench::scenario::Measured;
use crate::{Failure, Result};

/// Bits of which no thread uses up a millisecond: 2^20 ids.
const WIDE: Bits = Bits { time: 41, data_centre: 0, worker: 2, sequence: 20 };

pub(in crate::bench::scenario) struct Snowflakes {
    usual: Issuer,
    wide: Issuer,
    limit: f64,
}

impl Measured for Snowflakes {
    const NAME: &'static str = "snowflake";
    const ABOUT: &'static str = "issuer: snowflakes on one thread, against the format's own limit";

    async fn prepare(_: &Context) -> Result<Self> {
        let clock = Clock::system();
        let guard = Guard::open(ClockOptions::default(), clock.clone(), None).await?;
        let mut issuers = Vec::new();
        for bits in [Bits::default(), WIDE] {
            let layout = Layout::new(bits, DEFAULT_EPOCH, clock.wall())?;
            let machine = Arc::new(Fixed::new(&layout, 1)?);
            let snowflake = Snowflake::new(layout, SnowflakeOptions::default(), Arc::clone(&guard), machine);
            let builder = Issuer::builder().strategy(TAG, "snowflake", Arc::new(snowflake))?;
            issuers.push((builder.open().await?, layout.per_millisecond() as f64 * 1e3));
        }
        let [(usual, limit), (wide, _)] =
            <[_; 2]>::try_from(issuers).map_err(|_| Failure::new("two formats were opened"))?;
        Ok(Snowflakes { usual, wide, limit })
    }

    async fn measure(&mut self, context: &Context) -> Result<Vec<Sample>> {
        // Whole seconds, so that the part of a millisecond at either end counts for nothing.
        let lasting = Duration::from_millis(context.scaled(3_000) as u64);
        let usual = rate(&self.usual.counter(TAG)?, lasting).await?;
        let wide = rate(&self.wide.counter(TAG)?, lasting).await?;
        Ok(vec![
            Sample::new("12 sequence bits, one thread", usual, "ids/s")
                .against("4,096 in each millisecond", self.limit)
                .target(Target::RatioAtLeast(0.98)),
            Sample::new("20 sequence bits, one thread", 1e9 / wide, "ns"),
        ])
    }
}

/// Ids a second.
async fn rate(counter: &Counter, lasting: Duration) -> Result<f64> {
    // The first one may wait for the clock's horizon.
    let mut last = counter.next(1).await?.first();
    let mut made = 0_u64;
    let began = Instant::now();
    while !made.is_multiple_of(1_024) || began.elapsed() < lasting {
        // Full milliseconds are waited out here; whatever else keeps it from making ids ends the run below.
        let Ok(id) = counter.try_next() else {
            if began.elapsed() > lasting * 2 {
                return Err(Failure::new("no snowflakes are made; is the clock being set?"));
            }
            spin_loop();
            continue;
        };
        if black_box(id) <= last {
            return Err(Failure::new(format!("{id} came after {last}")));
        }
        last = id;
        made += 1;
    }
    Ok(made as f64 / began.elapsed().as_secs_f64())
}
