//! Logs and metrics for operators: log lines on standard error and metrics for Prometheus.
//!
//! Logs never hold a message's text, a password or a token. Metrics are made once, in [`Metrics::new`], and
//! handed to the parts that count; nothing here is global but the subscriber of `tracing`.

mod collectors;
mod logs;
mod metrics;
mod tables;

pub use collectors::{IndexLag, Overtaken, PushMetrics, QueueDepths, SequenceMetrics, StoreHealth};
pub use logs::start;
pub use metrics::Metrics;
pub use tables::TableMetrics;
