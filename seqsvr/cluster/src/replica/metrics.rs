//! The metrics of a replica, in Prometheus's format.

use std::sync::Arc;
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use seqsvr_core::store::message::Question;

/// The upper bounds of the buckets of `seqsvr_store_sync_seconds`.
const SYNC_BUCKETS: [f64; 9] = [0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.05, 0.25];

/// The counters of one replica. Cheap to clone.
#[derive(Clone)]
pub(super) struct Metrics {
    registry: Arc<Registry>,
    questions: Family<QuestionKind, Counter>,
    syncs: Histogram,
    waiters: Gauge,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct QuestionKind {
    kind: &'static str,
}

/// Counts a read as waiting until it is dropped.
pub(super) struct Waits(Gauge);

impl Drop for Waits {
    fn drop(&mut self) {
        self.0.dec();
    }
}

impl Metrics {
    /// All at zero.
    pub(super) fn new() -> Self {
        let mut registry = Registry::default();
        let questions = Family::default();
        registry.register("seqsvr_store_questions", "Requests answered by this replica", questions.clone());
        let syncs = Histogram::new(SYNC_BUCKETS);
        registry.register(
            "seqsvr_store_sync_seconds",
            "Time to make a batch of changes durable, in seconds",
            syncs.clone(),
        );
        let waiters = Gauge::default();
        registry.register("seqsvr_store_waiters", "Readers that wait for the next change", waiters.clone());
        Self { registry: Arc::new(registry), questions, syncs, waiters }
    }

    /// One question was taken up.
    pub(super) fn asked(&self, question: &Question) {
        let kind = match question {
            Question::Claim { .. } => "claim",
            Question::Raise { .. } => "raise",
            Question::Release { .. } => "release",
            Question::Promise { .. } => "promise",
            Question::Write(_) => "write",
            Question::Read { .. } => "read",
            Question::Acting { .. } => "acting",
            Question::Copy => "copy",
            Question::Describe => "describe",
            Question::Seal { .. } => "seal",
            Question::Accept { .. } => "accept",
            Question::Install { .. } => "install",
        };
        self.questions.get_or_create(&QuestionKind { kind }).inc();
    }

    /// A batch was made durable.
    pub(super) fn synced(&self, took: Duration) {
        self.syncs.observe(took.as_secs_f64());
    }

    /// A read waits.
    pub(super) fn waits(&self) -> Waits {
        self.waiters.inc();
        Waits(self.waiters.clone())
    }

    /// All of them as text.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        encode(&mut text, &self.registry).expect("writing to a string does not fail");
        text
    }
}
