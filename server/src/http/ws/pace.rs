//! A client that sends too much is not read for a while: its frames stay in the buffers of TCP and cost the server
//! nothing. Everything else of the connection goes on. Owned by the session.

use std::future::pending;
use std::pin::Pin;
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use tokio::time::{Instant, Sleep, sleep};

use crate::config::LimitsSection;
use crate::http::limits::Rate;
use crate::telemetry::Metrics;

/// Pings and pongs from one connection in a second; beyond it nothing is read from it for a while.
const CONTROL_FRAMES: u32 = 10;

/// How fast one connection is read.
#[derive(Debug)]
pub(super) struct ReadPace {
    /// How fast pings and pongs may come, and when their allowance is whole again.
    control_frames: (Rate, std::time::Instant),
    /// The same of frames that are refused.
    faults: (Rate, std::time::Instant),
    /// Until when nothing is read. Boxed, since idle connections have none.
    pause: Option<Pin<Box<Sleep>>>,
}

impl ReadPace {
    pub(super) fn new(limits: &LimitsSection, now: Instant) -> ReadPace {
        let control_frames = Rate::new(CONTROL_FRAMES, Duration::from_secs(1));
        let faults = Rate::new(limits.faults_per_connection_per_minute, Duration::from_secs(60));
        let now = now.into_std();
        ReadPace { control_frames: (control_frames, now), faults: (faults, now), pause: None }
    }

    /// A ping or pong has come.
    pub(super) fn control_frame(&mut self, now: Instant, metrics: &Metrics) {
        let (rate, whole) = &mut self.control_frames;
        let wait = rate.spend(whole, 1, now.into_std());
        self.begin(wait, &metrics.pauses_control_frames);
    }

    /// Counts a frame that is refused. Says whether the connection may go on.
    pub(super) fn may_fault(&mut self, now: Instant) -> bool {
        let (rate, whole) = &mut self.faults;
        rate.take(whole, 1, now.into_std()).is_ok()
    }

    /// A send was taken, and its account is so far ahead of its rate.
    pub(super) fn sent(&mut self, wait: Duration, metrics: &Metrics) {
        self.begin(wait, &metrics.pauses_sends);
    }

    fn begin(&mut self, wait: Duration, counter: &Counter) {
        if !wait.is_zero() {
            counter.inc();
            self.pause = Some(Box::pin(sleep(wait)));
        }
    }

    /// Whether nothing is to be read now.
    pub(super) fn is_paused(&self) -> bool {
        self.pause.is_some()
    }

    /// Resolves when the pause is over; without one it never does.
    pub(super) async fn resume(&mut self) {
        match &mut self.pause {
            Some(pause) => pause.await,
            None => pending().await,
        }
        self.pause = None;
    }
}
