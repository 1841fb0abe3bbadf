//! The task of one Set in an AllocSvr: carries out the decisions of the core, on the stores and in memory, and reports
//! the outcomes to it. Owns the core, the section groups and every call under way; the role starts one for each Set.
//! Requests go through its `SetServer`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use futures_util::future::join_all;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use super::node::{Action, Node, NodeEvent, NodeRules, Serving};
use super::rates::{self, Counts, SectionRates};
use super::record::ServingRecord;
use super::runs::Runs;
use super::set_server::{ClockReader, Given, SetServer, Tally};
use super::view::{Gone, ServedView};
use crate::store::Stores;
use seqsvr_core::alloc::metrics::Counters;
use seqsvr_core::alloc::section_group::{Means, SectionGroup};
use seqsvr_core::clock::Moment;
use seqsvr_core::config::Options;
use seqsvr_core::ids::SectionId;
use seqsvr_core::store::tables::{Reading, Revisions};
use seqsvr_core::store::{Claimed, Owner, StoreError};

/// Sections lost to newer owners whose news may wait for the core; a section that does not fit is closed all the same.
const LOST_AT_A_TIME: usize = 1_024;

/// Another reason why the table cannot be read is logged no sooner than this after the one before.
const TELL_AGAIN: Duration = Duration::from_secs(1);

/// The settings of one Set in an AllocSvr.
pub struct Settings {
    /// The number of the Set.
    pub set: u32,
    /// The rules of the core.
    pub rules: NodeRules,
    /// How numbers are handed out and ceilings raised.
    pub options: Options,
    /// How long the arbiter has to move the sections elsewhere before a stop ends them.
    pub drain_wait: Duration,
    /// Reads the clock.
    pub clock: ClockReader,
}

/// See the module.
pub struct Shell {
    settings: Settings,
    core: Node,
    server: Arc<SetServer>,
    stores: Stores,
    record: ServingRecord,
    groups: Vec<(Arc<SectionGroup>, Runs)>,
    serials: u64,
    /// Views that may still be in use.
    used: Vec<Gone>,
    /// Waits for the end of views through which something was taken that is unloaded by now.
    draining: usize,
    work: JoinSet<TaskOutcome>,
    lost: (mpsc::Sender<Lost>, mpsc::Receiver<Lost>),
    rates: SectionRates,
    /// Whether the last read succeeded, so that only changes are logged.
    reading: Option<bool>,
    /// When and why it was last logged that a read failed.
    unread: Option<(Moment, String)>,
}

/// A section that a newer owner has claimed, and under which assignment it was served here.
type Lost = (Owner, SectionId);

enum TaskOutcome {
    Event(NodeEvent),
    Drained,
    Counted(Counts),
}

impl Shell {
    /// The task, not yet running, and where requests are answered.
    pub fn new(settings: Settings, stores: Stores, record: ServingRecord) -> (Self, Arc<SetServer>) {
        let (view, gone) = ServedView::new(1, settings.options.section_size, None, &Runs::default(), &[]);
        let server = Arc::new(SetServer {
            set: settings.set,
            node: settings.rules.name.clone(),
            incarnation: settings.rules.incarnation,
            options: settings.options.clone(),
            view: ArcSwap::from_pointee(view),
            clock: settings.clock,
            counters: Arc::<Counters>::default(),
            retired: AtomicU64::new(0),
            tally: Tally::default(),
            tables_read_until: AtomicU64::new(0),
            tables_read_since: AtomicU64::new(0),
            given: ArcSwap::default(),
            unclaimed: ArcSwapOption::empty(),
            draining: false.into(),
            rates: ArcSwap::default(),
        });
        let shell = Self {
            core: Node::new(settings.rules.clone(), record.load()),
            server: Arc::clone(&server),
            settings,
            stores,
            record,
            groups: Vec::new(),
            serials: 1,
            used: vec![gone],
            draining: 0,
            work: JoinSet::new(),
            lost: mpsc::channel(LOST_AT_A_TIME),
            rates: SectionRates::new(),
            reading: None,
            unread: None,
        };
        (shell, server)
    }

    /// Serves until `stop`. Then it asks for its sections to be moved, in its answers to probes, and ends when they have moved
    /// elsewhere or that took too long; sections that it still has then are unloaded and released.
    pub async fn run(mut self, stop: CancellationToken) {
        self.feed(NodeEvent::Start);
        let mut ticks = interval(rates::EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut drain_by: Option<Instant> = None;
        let mut stopped = false;
        while !(stopped && self.core.is_stopped()) {
            let wake = self.core.wake_at().map(|at| at.since(self.now()));
            tokio::select! {
                Some(done) = self.work.join_next() => match done {
                    Ok(done) => self.done(done),
                    Err(error) => error!(%error, "a call panicked"),
                },
                Some((owner, section)) = self.lost.1.recv() => self.feed(NodeEvent::Lost { owner, section }),
                () = sleep(wake.unwrap_or_default()), if wake.is_some() => self.feed(NodeEvent::Wake),
                _ = ticks.tick() => {
                    let groups = self.groups.clone();
                    self.work.spawn_blocking(move || TaskOutcome::Counted(rates::count(&groups)));
                }
                () = stop.cancelled(), if drain_by.is_none() => {
                    self.server.draining.store(true, Ordering::Release);
                    drain_by = Some(Instant::now() + self.settings.drain_wait);
                }
                () = sleep_until(drain_by.unwrap_or_else(Instant::now)), if drain_by.is_some() && !stopped => {
                    stopped = true;
                    self.feed(NodeEvent::Stop);
                }
            }
            if drain_by.is_some() && !stopped && self.groups.is_empty() {
                stopped = true;
                self.feed(NodeEvent::Stop);
            }
        }
    }

    fn now(&self) -> Moment {
        (self.settings.clock)()
    }

    fn done(&mut self, done: TaskOutcome) {
        match done {
            TaskOutcome::Event(event) => self.feed(event),
            TaskOutcome::Drained => {
                self.draining -= 1;
                if self.draining == 0 {
                    self.feed(NodeEvent::Drained);
                }
            }
            TaskOutcome::Counted(counts) => self.server.rates.store(Arc::new(self.rates.note(counts))),
        }
    }

    /// Carries out one step of the core. The served sections change before the deadline does.
    fn feed(&mut self, event: NodeEvent) {
        if let NodeEvent::Read { asked, outcome } = &event {
            self.note_reading(*asked, outcome);
        }
        if let NodeEvent::Claimed { owner, outcome } = &event {
            self.note_claim(*owner, outcome);
        }
        let before = self.core.table().cloned();
        let now = self.now();
        let actions = self.core.on(now, event);
        let mut changed = before.as_ref().map(Arc::as_ptr) != self.core.table().map(Arc::as_ptr);
        let mut unloaded = Vec::new();
        for action in actions {
            match action {
                Action::Read { revisions, wait } => self.read(revisions, wait),
                Action::Claim { sections, owner } => self.claim(Runs::new(sections), owner),
                Action::Record(serving) => self.save(serving),
                Action::Serve { owner, sections, claimed } => {
                    self.serve(owner, Runs::new(sections), &claimed);
                    changed = true;
                }
                Action::Unload { owner, sections } => {
                    unloaded.extend(self.unload(owner, &Runs::new(sections)));
                    changed = true;
                }
                Action::Release { owner, sections } => self.release(owner, Runs::new(sections)),
            }
        }
        if changed {
            self.show();
        }
        if !unloaded.is_empty() {
            self.close(&unloaded);
            self.drain();
        }
        self.server.view().set_deadline(self.core.lease_until());
        let given = Given { all: self.core.held().count(), waiting: self.core.waiting() };
        if given != **self.server.given() {
            self.server.given.store(Arc::new(given));
        }
    }

    /// Replaces the view. Requests that look at the old one keep its deadline.
    fn show(&mut self) {
        self.serials += 1;
        let size = self.settings.options.section_size;
        let table = self.core.table().cloned();
        let served: Vec<_> = self.groups.iter().filter(|(_, served)| !served.is_empty()).cloned().collect();
        let (view, gone) = ServedView::new(self.serials, size, table, &self.core.held(), &served);
        self.used.retain_mut(|used| {
            matches!(used.try_recv(), Err(tokio::sync::oneshot::error::TryRecvError::Empty))
        });
        self.used.push(gone);
        view.set_deadline(self.core.lease_until());
        self.server.view.store(Arc::new(view));
    }

    /// Waits until no request looks at a view older than the newest.
    fn drain(&mut self) {
        let newest = self.used.pop();
        let older = std::mem::take(&mut self.used);
        self.used.extend(newest);
        self.draining += 1;
        self.work.spawn(async move {
            join_all(older).await;
            TaskOutcome::Drained
        });
    }

    fn serve(&mut self, owner: Owner, sections: Runs, claimed: &Claimed) {
        info!(set = self.settings.set, epoch = %owner.epoch, %sections, "serving");
        let lost = self.lost.0.clone();
        let means = Means {
            store: Arc::clone(&self.stores.sections),
            options: Options { store_timeout: self.core.lease(), ..self.settings.options.clone() },
            counters: Arc::clone(&self.server.counters),
            // When there is no room the section is closed all the same, and the table will tell.
            lost: Box::new(move |section| {
                let _ = lost.try_send((owner, section));
            }),
        };
        let (group, raiser) = SectionGroup::begin(means, owner, sections.ranges(), claimed);
        // Ends with the section group.
        drop(raiser);
        self.groups.push((Arc::new(group), sections));
    }

    /// Removes sections from the next view, and returns the ones to close once that view is shown.
    fn unload(&mut self, owner: Owner, sections: &Runs) -> Vec<(Arc<SectionGroup>, Runs)> {
        info!(set = self.settings.set, epoch = %owner.epoch, %sections, "unloading");
        let mut unloaded = Vec::new();
        for (group, served) in &mut self.groups {
            let lost = served.intersection(sections);
            if group.shared().owner == owner && !lost.is_empty() {
                *served = served.difference(&lost);
                unloaded.push((Arc::clone(group), lost));
            }
        }
        unloaded
    }

    /// Requests that still look at an older view take nothing more; a section group without sections ends with the last of them.
    fn close(&mut self, unloaded: &[(Arc<SectionGroup>, Runs)]) {
        for (group, sections) in unloaded {
            for run in sections.ranges() {
                group.shared().fence(run.clone());
            }
        }
        let retired = &self.server.retired;
        self.groups.retain(|(group, served)| {
            if served.is_empty() {
                retired.fetch_add(group.shared().allocated(), Ordering::AcqRel);
            }
            !served.is_empty()
        });
    }

    fn read(&mut self, revisions: Revisions, wait: Duration) {
        let (stores, set) = (self.stores.clone(), self.settings.set);
        let layout = self.settings.rules.layout;
        let (asked, allowed) = (self.now(), wait + self.core.lease());
        // Only a takeover waits for the release of the earlier owner.
        let takes_over = !self.core.waiting().is_empty();
        self.work.spawn(async move {
            let read = async {
                let reading = match takes_over {
                    true => stores.tables.read(&revisions, wait).await?,
                    false => stores.tables.read_table(&revisions, wait).await?,
                };
                let reading = fitting(reading, set, layout.section_size)?;
                // Nothing is served by a table before it is known that all go by the same layout.
                if reading.table.is_some() {
                    stores.agree(layout).await?;
                }
                Ok(reading)
            };
            let outcome = timeout(allowed, read).await.unwrap_or_else(|_| Err(late(allowed)));
            TaskOutcome::Event(NodeEvent::Read { asked, outcome })
        });
    }

    fn claim(&mut self, sections: Runs, owner: Owner) {
        let (store, layout) = (Arc::clone(&self.stores.sections), self.settings.rules.layout);
        let allowed = self.core.lease();
        self.work.spawn(async move {
            let claimed = timeout(allowed, store.claim(sections.ranges(), owner, layout)).await;
            let outcome = claimed.unwrap_or_else(|_| Err(late(allowed)));
            TaskOutcome::Event(NodeEvent::Claimed { owner, outcome })
        });
    }

    fn save(&mut self, serving: Vec<Serving>) {
        let record = self.record.clone();
        let (incarnation, lease) = (self.settings.rules.incarnation, self.core.lease());
        self.work.spawn(async move {
            let saving = tokio::task::spawn_blocking(move || record.save(incarnation, &serving));
            let cost = "serving without the record; the next start waits until this lease ends";
            match timeout(lease / 2, saving).await {
                Ok(Ok(Ok(()))) => {}
                Ok(Ok(Err(error))) => error!(%error, "the record of serving cannot be written; {cost}"),
                Ok(Err(error)) => error!(%error, "the record of serving cannot be written; {cost}"),
                Err(_) => {
                    error!(waited = ?(lease / 2), "the record of serving was not written in time; {cost}")
                }
            }
            // A record that lacks something, or is of an earlier life, costs its reader a wait, never a number.
            TaskOutcome::Event(NodeEvent::Recorded)
        });
    }

    fn release(&mut self, owner: Owner, sections: Runs) {
        let store = Arc::clone(&self.stores.sections);
        let allowed = self.core.lease();
        self.work.spawn(async move {
            let released = timeout(allowed, store.release(sections.ranges(), owner)).await;
            let outcome = released.unwrap_or_else(|_| Err(late(allowed)));
            TaskOutcome::Event(NodeEvent::Released { owner, outcome })
        });
    }

    fn note_reading(&mut self, asked: Moment, outcome: &Result<Reading, StoreError>) {
        let set = self.settings.set;
        match outcome {
            Ok(reading) => {
                let lease = reading.bounds.as_ref().map_or(self.settings.rules.lease, |bounds| bounds.lease);
                let until = asked + lease;
                if self.server.is_lapsed() {
                    self.server.tables_read_since.store(self.now().as_nanos(), Ordering::Release);
                }
                self.server.tables_read_until.store(until.as_nanos(), Ordering::Release);
                if self.reading.replace(true) != Some(true) {
                    info!(set, "the routing table is read");
                }
            }
            Err(error) => {
                let (now, why) = (self.now(), error.to_string());
                let is_new = self.reading.replace(false) != Some(false);
                let told =
                    self.unread.as_ref().is_some_and(|(at, told)| *told == why || now < *at + TELL_AGAIN);
                if is_new || !told {
                    warn!(set, %error, "the routing table cannot be read; trying again");
                    self.unread = Some((now, why));
                }
            }
        }
    }

    fn note_claim(&mut self, owner: Owner, outcome: &Result<Claimed, StoreError>) {
        let why = outcome.as_ref().err().map(ToString::to_string);
        let before = self.server.unclaimed.load_full();
        // The same reason is told once.
        if let Some(error) = why.as_ref().filter(|why| Some(*why) != before.as_deref()) {
            warn!(set = self.settings.set, epoch = %owner.epoch, error, "sections cannot be claimed; trying again");
        }
        self.server.unclaimed.store(why.map(Arc::new));
    }
}

/// A reading of the right Set, in sections of the right size.
fn fitting(reading: Reading, set: u32, section_size: u32) -> Result<Reading, StoreError> {
    match &reading.table {
        Some(table) if table.set != set || table.section_size != section_size => {
            Err(StoreError::Unavailable(format!(
                "the table is of Set {} in sections of {}, but Set {set} and section_size = {section_size} are configured; \
                 correct number and section_size in [[sets]]",
                table.set, table.section_size
            )))
        }
        _ => Ok(reading),
    }
}

fn late(allowed: Duration) -> StoreError {
    StoreError::Unavailable(format!("no answer within {allowed:?}"))
}

#[cfg(test)]
mod tests;
