//! Follows other servers of the same database: hears their hints, and looks up the changes that no hint told of.
//!
//! Owns nothing; one task runs it for as long as the server serves. A server that dies between its commit and its hint,
//! or a connection that breaks, would leave a device asleep for ever. So the inboxes of all connected users are
//! looked at once an interval, and after each gap at once; sessions in memory are compared with the database every ten
//! seconds.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval_at};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::{Accounts, Ephemerals};
use crate::domain::Uid;
use crate::log_limit::LogLimit;
use crate::notify::{Heard, Hint, Hints, Local};
use crate::queue::Watermarks;

/// Inboxes that one statement looks at.
const AT_ONCE: usize = 1_000;
/// How long a session that was ended on another server may go on here, if no hint comes.
const CONFIRM_EVERY: Duration = Duration::from_secs(10);

/// See the module.
pub struct Follow {
    /// Raised by hints of rows.
    pub watermarks: Watermarks,
    /// Wakes the connected devices.
    pub local: Local,
    /// Ends sessions here.
    pub accounts: Accounts,
    /// Tells devices here of names that have changed.
    pub ephemerals: Ephemerals,
    /// The hints of other servers.
    pub hints: Arc<dyn Hints>,
    /// How often everybody's inbox is looked at.
    pub look_every: Duration,
}

impl Follow {
    /// Follows until `stopping`.
    pub async fn run(self, stopping: CancellationToken) {
        let every = |period| {
            let mut ticks = interval_at(Instant::now() + period, period);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            ticks
        };
        let (mut look, mut confirm) = (every(self.look_every), every(CONFIRM_EVERY));
        let log = LogLimit::default();
        let forever = async {
            loop {
                tokio::select! {
                    heard = self.hints.hear() => match heard {
                        Heard::Hint(Hint::Rows(rows)) => {
                            for (uid, id) in rows {
                                self.watermarks.hear(uid, id);
                                self.local.wake(uid);
                            }
                        }
                        Heard::Hint(Hint::SessionEnded(hash)) => self.accounts.end_here(&hash),
                        Heard::Hint(Hint::SessionsEnded(uid)) => self.accounts.end_all_here(uid),
                        Heard::Hint(Hint::OtherSessionsEnded(uid, kept)) => {
                            self.accounts.end_others_here(uid, &kept);
                        }
                        Heard::Hint(Hint::Renamed(uid)) => {
                            self.accounts.forget_name(uid);
                            self.ephemerals.renamed(uid);
                        }
                        Heard::Hint(Hint::Everything) => self.look_at_everything(&log).await,
                        Heard::Gap => {
                            info!("hints of other servers may be lost; checking all inboxes and sessions");
                            self.look_at_everything(&log).await;
                        }
                    },
                    _ = look.tick() => self.look_at_inboxes(&log).await,
                    _ = confirm.tick() => self.confirm_sessions(&log).await,
                }
            }
        };
        stopping.run_until_cancelled(forever).await;
    }

    async fn look_at_everything(&self, log: &LogLimit) {
        self.accounts.forget_names();
        self.look_at_inboxes(log).await;
        self.confirm_sessions(log).await;
    }

    /// Wakes the connected whose inboxes have rows that no hint told of.
    async fn look_at_inboxes(&self, log: &LogLimit) {
        let watched: Vec<Uid> = self.local.watched();
        for some in watched.chunks(AT_ONCE) {
            match self.watermarks.look(some).await {
                Ok(moved) => moved.into_iter().for_each(|uid| self.local.wake(uid)),
                Err(error) => {
                    if let Some(left_out) = log.pass() {
                        warn!(%error, left_out, "the inboxes of connected users cannot be checked; trying again");
                    }
                    return;
                }
            }
        }
    }

    async fn confirm_sessions(&self, log: &LogLimit) {
        if let Err(error) = self.accounts.confirm().await
            && let Some(left_out) = log.pass()
        {
            warn!(%error, left_out, "sessions cannot be compared with the database; trying again");
        }
    }
}
