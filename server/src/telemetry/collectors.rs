//! Metrics of other layers, read at each scrape: the queues' depths, the sequence service, and how long polls take.

use std::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use seqsvr_client::{Client, ClientMetrics};
use seqsvr_core::alloc::{Embedded, RAISE_BUCKETS};

use crate::app::{Due, IndexState, Push};
use crate::queue::Queues;
use crate::seq::{Numbers, Sequences};
use crate::store::MessageStore;
use crate::workers::{self, BOUNDS};

/// `tidemark_queue_depth{queue}`: requests that wait in each queue; `tidemark_sections_without_numbers` and `tidemark_owed_bytes`:
/// sections of the uid space that get no numbers now, and the messages that wait for them.
pub struct QueueDepths(pub Queues);

impl fmt::Debug for QueueDepths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("QueueDepths")
    }
}

impl Collector for QueueDepths {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let whole = |count: usize| ConstGauge::<i64>::new(i64::try_from(count).unwrap_or(i64::MAX));
        let help = "Sections whose users get no ids now";
        gauge(&mut encoder, "tidemark_sections_without_numbers", help, whole(self.0.sections_out()))?;
        let help = "Bytes of messages that wait for ids of their receivers";
        gauge(&mut encoder, "tidemark_owed_bytes", help, whole(self.0.owed_bytes()))?;
        let mut depths = encoder.encode_descriptor(
            "tidemark_queue_depth",
            "Requests waiting in a queue",
            None,
            MetricType::Gauge,
        )?;
        for (queue, depth) in self.0.depths().enumerate() {
            whole(depth).encode(depths.encode_family(&[("queue", queue.to_string())])?)?;
        }
        Ok(())
    }
}

/// `tidemark_storage_ready`, `tidemark_commits_refused`, `tidemark_flushes_failed`, `tidemark_rows_set_aside`,
/// `tidemark_seconds_since_commit` (absent before the first one), `tidemark_storage_free_bytes`, `tidemark_storage_damaged_pages`, on
/// SQLite `tidemark_backup_timestamp_seconds` (absent before the first backup), and on PostgreSQL
/// `tidemark_database_connections{pool,state}`.
pub struct StoreHealth(pub Arc<dyn MessageStore>);

impl fmt::Debug for StoreHealth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StoreHealth")
    }
}

impl Collector for StoreHealth {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let health = self.0.health();
        let ready = ConstGauge::<i64>::new(i64::from(health.trouble.is_none()));
        gauge(&mut encoder, "tidemark_storage_ready", "1: commits are stored; 0: they are refused", ready)?;
        for (name, help, count) in [
            ("tidemark_commits_refused", "Commits that were not stored", health.refused_commits),
            (
                "tidemark_flushes_failed",
                "Flushes into the tables that failed and are tried again",
                health.failed_flushes,
            ),
            ("tidemark_rows_set_aside", "Rows that the tables did not take", health.set_aside),
        ] {
            counter(&mut encoder, name, help, count)?;
        }
        if let Some(since) = health.since_commit {
            let since = ConstGauge::<f64>::new(since.as_secs_f64());
            gauge(
                &mut encoder,
                "tidemark_seconds_since_commit",
                "Time since the last commit, in seconds",
                since,
            )?;
        }
        let damaged = ConstGauge::<i64>::new(i64::try_from(health.damaged.len()).unwrap_or(i64::MAX));
        let help = "Damaged pages in the database's files, of those that were read";
        gauge(&mut encoder, "tidemark_storage_damaged_pages", help, damaged)?;
        if let Some(free) = health.free_bytes {
            let free = ConstGauge::<i64>::new(i64::try_from(free).unwrap_or(i64::MAX));
            gauge(&mut encoder, "tidemark_storage_free_bytes", "Free space beside the database", free)?;
        }
        if let Some(moment) = health.last_backup {
            let moment = ConstGauge::<f64>::new(moment.0 as f64 / 1_000.0);
            let help = "Moment of the last good backup, in seconds since 1970";
            gauge(&mut encoder, "tidemark_backup_timestamp_seconds", help, moment)?;
        }
        if !health.pools.is_empty() {
            let help = "Connections to the database";
            let mut family =
                encoder.encode_descriptor("tidemark_database_connections", help, None, MetricType::Gauge)?;
            for pool in &health.pools {
                for (state, count) in [("most", pool.most), ("open", pool.open), ("idle", pool.idle)] {
                    let count = ConstGauge::<i64>::new(i64::try_from(count).unwrap_or(i64::MAX));
                    count.encode(family.encode_family(&[("pool", pool.name), ("state", state)])?)?;
                }
            }
        }
        Ok(())
    }
}

/// `tidemark_search_indexed_total`, `tidemark_search_waiting` and `tidemark_search_lag_seconds`: rows that this server has indexed,
/// inboxes with rows enough for the index, and for how long the first of them has waited; `tidemark_search_walked`: how far the walk over
/// all inboxes is that finds what nobody told of.
pub struct IndexLag(pub Arc<Due>);

impl fmt::Debug for IndexLag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("IndexLag")
    }
}

impl Collector for IndexLag {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let IndexState { waiting, behind, indexed, walked } = self.0.now();
        counter(&mut encoder, "tidemark_search_indexed", "Messages that this server has indexed", indexed)?;
        let waiting = ConstGauge::<i64>::new(i64::try_from(waiting).unwrap_or(i64::MAX));
        gauge(&mut encoder, "tidemark_search_waiting", "Inboxes that wait to be indexed", waiting)?;
        let walked = ConstGauge::<f64>::new(walked);
        let help = "Share of all inboxes that the indexer has come through on its last walk";
        gauge(&mut encoder, "tidemark_search_walked", help, walked)?;
        let behind = ConstGauge::<f64>::new(behind);
        gauge(
            &mut encoder,
            "tidemark_search_lag_seconds",
            "For how long the first of them has waited",
            behind,
        )
    }
}

/// `tidemark_sequence_overtaken_total`: sequences that were found behind the rows of their inboxes, and advanced.
pub struct Overtaken(pub Numbers);

impl fmt::Debug for Overtaken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Overtaken")
    }
}

impl Collector for Overtaken {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let help = "Sequences found behind the rows of their inboxes, and advanced";
        counter(&mut encoder, "tidemark_sequence_overtaken", help, self.0.overtaken())
    }
}

/// `tidemark_pushes_total{result}`: `sent`, `failed` and `forgotten`; `tidemark_pushes_waiting`: people whose devices are still to be looked
/// at, and pushes under way.
pub struct PushMetrics(pub Push);

impl fmt::Debug for PushMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PushMetrics")
    }
}

impl Collector for PushMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let now = self.0.counts();
        let waiting = ConstGauge::<i64>::new(i64::try_from(now.waiting).unwrap_or(i64::MAX));
        let help = "People whose devices are looked at next, and pushes under way";
        gauge(&mut encoder, "tidemark_pushes_waiting", help, waiting)?;
        let help = "Pushes: taken by a push service, not taken, and subscriptions forgotten";
        let mut pushes = encoder.encode_descriptor("tidemark_pushes", help, None, MetricType::Counter)?;
        for (result, count) in [("sent", now.sent), ("failed", now.failed), ("forgotten", now.forgotten)] {
            ConstCounter::new(count).encode(pushes.encode_family(&[("result", result)])?)?;
        }
        Ok(())
    }
}

/// The `seqsvr_…` metrics of the embedded sequence service, or those of a cluster's client; none where the database assigns the ids.
pub struct SequenceMetrics(pub Option<Sequences>);

impl fmt::Debug for SequenceMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SequenceMetrics")
    }
}

impl Collector for SequenceMetrics {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        match &self.0 {
            Some(Sequences::Embedded(embedded)) => of_embedded(embedded, encoder),
            Some(Sequences::Cluster(cluster)) => of_cluster(cluster.client(), encoder),
            None => Ok(()),
        }
    }
}

/// `tidemark_poll_seconds{of}`: how long the polls of a task kept a worker of the runtime.
#[derive(Debug)]
pub(super) struct PollSeconds;

impl Collector for PollSeconds {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let help = "How long polls kept a worker of the runtime; one of a millisecond or more by the processor time that its thread used";
        let mut family =
            encoder.encode_descriptor("tidemark_poll_seconds", help, None, MetricType::Histogram)?;
        for (of, times) in workers::times() {
            let counts = times.counts();
            let buckets: Vec<(f64, u64)> = BOUNDS.into_iter().chain([f64::INFINITY]).zip(counts).collect();
            let (sum, count) = (times.sum().as_secs_f64(), counts.iter().sum());
            let labels = [("of", of)];
            let mut one = family.encode_family(&labels)?;
            one.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)?;
        }
        Ok(())
    }
}

fn of_cluster(client: &Client, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
    let ClientMetrics { numbers, frames, retries, not_owner, unavailable, lost, tables, regressions } =
        client.metrics();
    for (name, help, count) in [
        ("seqsvr_client_numbers", "Numbers taken from the cluster", numbers),
        ("seqsvr_client_frames", "Requests sent; calls at the same time share one", frames),
        ("seqsvr_client_retries", "Attempts beyond the first", retries),
        ("seqsvr_client_not_owner", "Refusals because another process serves the uid", not_owner),
        ("seqsvr_client_unavailable", "Refusals for the moment", unavailable),
        ("seqsvr_client_lost", "Requests without an answer", lost),
        ("seqsvr_client_tables", "Newer routing tables received", tables),
        (
            "seqsvr_client_regressions",
            "Answers below an earlier one; anything but 0 is an alarm",
            regressions,
        ),
    ] {
        counter(&mut encoder, name, help, count)?;
    }
    Ok(())
}

fn of_embedded(embedded: &Embedded, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
    let now = embedded.metrics();
    counter(&mut encoder, "seqsvr_allocated", "Numbers handed out", now.allocated)?;
    counter(&mut encoder, "seqsvr_raises", "Ceilings that were confirmed", now.raises)?;
    // One process, one table: its version is that of the epoch, and the file lock is a lease without an end.
    let version = i64::try_from(embedded.epoch().version).unwrap_or(i64::MAX);
    gauge(&mut encoder, "seqsvr_route_version", "Version of the assignment", ConstGauge::new(version))?;
    let lease = ConstGauge::new(f64::INFINITY);
    gauge(
        &mut encoder,
        "seqsvr_lease_remaining_seconds",
        "Time until serving would stop, in seconds",
        lease,
    )?;
    let buckets: Vec<(f64, u64)> =
        RAISE_BUCKETS.into_iter().chain([f64::INFINITY]).zip(now.raise_buckets).collect();
    let help = "Duration of a call that raises ceilings, in seconds";
    let mut seconds = encoder.encode_descriptor("seqsvr_raise_seconds", help, None, MetricType::Histogram)?;
    seconds.encode_histogram::<NoLabelSet>(now.raise_time.as_secs_f64(), now.raise_calls, &buckets, None)?;
    let mut refusals =
        encoder.encode_descriptor("seqsvr_refusals", "Calls refused", None, MetricType::Counter)?;
    for (reason, count) in [
        ("unavailable", now.refused_unavailable),
        ("exhausted", now.refused_exhausted),
        ("count", now.refused_count),
        ("fenced", now.refused_fenced),
        ("stopped", now.refused_stopped),
    ] {
        ConstCounter::new(count).encode(refusals.encode_family(&[("reason", reason)])?)?;
    }
    Ok(())
}

fn gauge<N>(encoder: &mut DescriptorEncoder<'_>, name: &str, help: &str, value: ConstGauge<N>) -> fmt::Result
where
    ConstGauge<N>: EncodeMetric,
{
    value.encode(encoder.encode_descriptor(name, help, None, MetricType::Gauge)?)
}

fn counter(encoder: &mut DescriptorEncoder<'_>, name: &str, help: &str, value: u64) -> fmt::Result {
    let value = ConstCounter::new(value);
    value.encode(encoder.encode_descriptor(name, help, None, MetricType::Counter)?)
}
