//! The health of one AllocSvr, judged by its answers to probes and their absence: dead after some misses in a row,
//! trusted again after some answers in a row, and after ever more of them when it dies again and again, so that a node
//! that flaps does not drag its sections to and fro. Pure.

use std::time::Duration;

use seqsvr_core::clock::Moment;

/// When a node counts as dead, and when as back.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HealthRules {
    /// Probes missed in a row until a node is dead.
    pub dead_after: u32,
    /// Answers in a row until it is trusted again after a first death. By default 15, which is 3 s: longer than others need to take
    /// over from a node, so that no section goes home while its taker still waits, and must be waited for anew.
    pub back_after: u32,
    /// The most answers in a row that are ever asked for; the number doubles with each death in uneasy times.
    pub back_most: u32,
    /// Deaths and restarts further apart than this have nothing to do with each other.
    pub calm: Duration,
    /// Restarts in uneasy times until a node that never misses a probe for long counts as dead all the same.
    pub restarts: u32,
    /// A node that answers, but for this long has not served sections that it could have, is set aside.
    pub unserved: Duration,
}

/// For how long a node is set aside at first; twice as long each further time, up to [`ASIDE_MOST`].
const ASIDE: Duration = Duration::from_secs(60);
/// The longest that a node is set aside without another try.
const ASIDE_MOST: Duration = Duration::from_secs(3_600);

impl Default for HealthRules {
    fn default() -> Self {
        Self {
            dead_after: 3,
            back_after: 15,
            back_most: 80,
            calm: Duration::from_secs(60),
            restarts: 4,
            unserved: Duration::from_secs(5),
        }
    }
}

/// The status of a node; the plan takes one for each node of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Status {
    /// Not heard of since this arbiter began to act, nor missed for long: keeps its sections, gains nothing.
    Unknown,
    /// It does not answer.
    Dead,
    /// This incarnation answers, but not for long enough to be trusted: keeps its sections, gains nothing while others can.
    Answering(u64),
    /// This incarnation serves.
    Live(u64),
}

/// The health of one node, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Health {
    state: HealthState,
    incarnation: u64,
    misses: u32,
    answers: u32,
    /// It has answered since its death, and not missed enough in a row to count as gone anew.
    there: bool,
    /// The last death or restart, and how many have come in a row without a calm time between them.
    trouble: Option<(Moment, u32)>,
    /// It answered, but did not serve.
    aside: Option<Aside>,
}

/// A life of a node that did not serve the sections it was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Aside {
    incarnation: u64,
    /// Until then it is given nothing.
    until: Moment,
    /// How often that has happened.
    times: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum HealthState {
    #[default]
    Unknown,
    Live,
    Dead,
}

impl Health {
    /// It answered a probe: this life of it serves.
    pub(crate) fn answered(&mut self, now: Moment, rules: &HealthRules, incarnation: u64) {
        match self.aside {
            Some(aside) if aside.incarnation != incarnation => {
                // The fault that kept the earlier life from serving may be mended.
                self.aside = None;
                self.state = HealthState::Unknown;
            }
            Some(aside) if now < aside.until => return self.left(),
            _ => {}
        }
        let restarted = self.state != HealthState::Unknown && incarnation != self.incarnation;
        self.incarnation = incarnation;
        self.misses = 0;
        self.there = true;
        self.answers = if restarted { 1 } else { self.answers.saturating_add(1) };
        let back = match self.state {
            HealthState::Unknown => true,
            HealthState::Live => !restarted || self.troubled(now, rules) < rules.restarts,
            HealthState::Dead => self.answers >= self.needed(rules),
        };
        self.state = if back { HealthState::Live } else { HealthState::Dead };
    }

    /// It did not answer in time, or says itself that it cannot serve.
    pub(crate) fn missed(&mut self, now: Moment, rules: &HealthRules) {
        self.answers = 0;
        self.misses = self.misses.saturating_add(1);
        if self.misses < rules.dead_after {
            return;
        }
        // A node that was never heard of has no bad record: its first answer will be a start, not a return.
        if self.state == HealthState::Live {
            self.troubled(now, rules);
        }
        self.there = false;
        self.state = HealthState::Dead;
    }

    /// It answers, but for too long has not served sections it was given: as good as dead until it is restarted, or for a while.
    pub(crate) fn unable(&mut self, now: Moment, incarnation: u64) {
        let before = self.aside.filter(|aside| aside.incarnation == incarnation);
        let times = before.map_or(0, |aside| aside.times) + 1;
        let length = (ASIDE * (1 << (times - 1).min(16))).min(ASIDE_MOST);
        self.incarnation = incarnation;
        self.aside = Some(Aside { incarnation, until: now + length, times });
        self.left();
    }

    /// Whether it answers, but is given nothing because it did not serve.
    pub(crate) fn is_aside(&self, now: Moment) -> bool {
        self.aside.is_some_and(|aside| now < aside.until)
    }

    /// It says that it is about to end: gone as of now, and no worse for it when it returns.
    pub(crate) fn left(&mut self) {
        self.answers = 0;
        self.there = false;
        self.state = HealthState::Dead;
    }

    /// Its state no longer counts, since it may be another life by now; its record stays.
    pub(crate) fn forget(&mut self) {
        *self = Self { trouble: self.trouble, aside: self.aside, ..Self::default() };
    }

    /// Whether it answered the last probe.
    pub(crate) fn answers(&self) -> bool {
        self.answers > 0
    }

    /// The status that the plan may count on.
    pub(crate) fn status(&self) -> Status {
        match self.state {
            HealthState::Unknown => Status::Unknown,
            HealthState::Live => Status::Live(self.incarnation),
            // A single miss says no more of a node that is not trusted than of one that is: where all are slow and none is
            // trusted, sections would move with every late answer, and none would be served.
            HealthState::Dead if self.there => Status::Answering(self.incarnation),
            HealthState::Dead => Status::Dead,
        }
    }

    /// Notes a death or restart, and answers how many came together.
    fn troubled(&mut self, now: Moment, rules: &HealthRules) -> u32 {
        let together = match self.trouble {
            Some((last, together)) if now.since(last) < rules.calm => together + 1,
            _ => 1,
        };
        self.trouble = Some((now, together));
        together
    }

    fn needed(&self, rules: &HealthRules) -> u32 {
        let Some((_, together)) = self.trouble else { return 1 };
        let doublings = together.saturating_sub(1).min(16);
        rules.back_after.saturating_mul(1 << doublings).min(rules.back_most)
    }
}
