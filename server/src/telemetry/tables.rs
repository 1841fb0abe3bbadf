//! The metrics of the tables' listener.

use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

type Labels = [(&'static str, &'static str); 2];

/// Requests to tables. Part of [`Metrics`](super::Metrics).
#[derive(Debug)]
pub struct TableMetrics {
    requests: Family<Labels, Counter>,
    seconds: Histogram,
}

impl TableMetrics {
    /// Metrics at zero, in `registry`.
    pub(super) fn new(registry: &mut Registry) -> TableMetrics {
        let requests = Family::<Labels, Counter>::default();
        // 50 µs to 13 s, each bucket 1.7 times the one before.
        let seconds = Histogram::new(exponential_buckets(0.000_05, 1.7, 24));
        let help = "Requests to tables answered, by operation and result";
        registry.register("tidemark_table_requests", help, requests.clone());
        let help = "Time from the head of a request to a table to its answer, in seconds";
        registry.register("tidemark_table_seconds", help, seconds.clone());
        TableMetrics { requests, seconds }
    }

    /// `tidemark_table_requests_total` and `tidemark_table_seconds`: a request was answered. `operation` is one of a few names, `result`
    /// is `ok` or the code of an error.
    pub fn answered(&self, operation: &'static str, result: &'static str, took: Duration) {
        self.requests.get_or_create(&[("operation", operation), ("result", result)]).inc();
        self.seconds.observe(took.as_secs_f64());
    }
}
