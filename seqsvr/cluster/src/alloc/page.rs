//! The metrics of an AllocSvr as Prometheus text. They are read from its servers at each request of the page, and every
//! value has the number of its Set as a label. Called by the role.

use std::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

use super::set_server::SetServer;
use seqsvr_core::alloc::metrics::{Metrics, RAISE_BUCKETS};

/// The page.
pub fn render(servers: &[Arc<SetServer>]) -> String {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(SetMetrics(servers.to_vec())));
    let mut text = String::new();
    encode(&mut text, &registry).expect("writing to a string does not fail");
    text
}

/// Where a counter is read.
type Count = fn(&Metrics) -> u64;
/// Where a gauge is read.
type Gauge = fn(&SetServer) -> f64;

struct SetMetrics(Vec<Arc<SetServer>>);

impl fmt::Debug for SetMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SetMetrics")
    }
}

impl Collector for SetMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let servers: Vec<(String, &SetServer, Metrics)> =
            self.0.iter().map(|server| (server.set.to_string(), &**server, server.metrics())).collect();
        let counters: [(&str, &str, Count); 3] = [
            ("seqsvr_allocated", "Numbers handed out", |metrics| metrics.allocated),
            ("seqsvr_raises", "Ceilings that were confirmed", |metrics| metrics.raises),
            ("seqsvr_raises_failed", "Ceilings that were not confirmed", |metrics| metrics.raises_failed),
        ];
        for (name, help, value) in counters {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            for (set, _, metrics) in &servers {
                let label = [("set", set.as_str())];
                ConstCounter::new(value(metrics)).encode(family.encode_family(&label)?)?;
            }
        }
        let gauges: [(&str, &str, Gauge); 4] = [
            ("seqsvr_sections_given", "Sections that the routing table assigns to this process", |server| {
                f64::from(server.given().all)
            }),
            ("seqsvr_sections_unserved", "Assigned sections that are not served yet", |server| {
                f64::from(if server.is_lapsed() { server.given().all } else { server.given().unserved() })
            }),
            ("seqsvr_lease_remaining_seconds", "Time until serving stops, in seconds", |server| {
                server.lease_remaining().as_secs_f64()
            }),
            ("seqsvr_route_version", "Version of the routing table", |server| {
                server.view().table().map_or(0.0, |table| table.version.version as f64)
            }),
        ];
        for (name, help, value) in gauges {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            for (set, server, _) in &servers {
                let label = [("set", set.as_str())];
                ConstGauge::new(value(server)).encode(family.encode_family(&label)?)?;
            }
        }
        let help = "Duration of a call that raises ceilings, in seconds";
        let mut seconds =
            encoder.encode_descriptor("seqsvr_raise_seconds", help, None, MetricType::Histogram)?;
        for (set, _, metrics) in &servers {
            let bounds = RAISE_BUCKETS.into_iter().chain([f64::INFINITY]);
            let buckets: Vec<(f64, u64)> = bounds.zip(metrics.raise_buckets).collect();
            let sum = metrics.raise_time.as_secs_f64();
            let label = [("set", set.as_str())];
            let mut encoder = seconds.encode_family(&label)?;
            encoder.encode_histogram::<NoLabelSet>(sum, metrics.raise_calls, &buckets, None)?;
        }
        let mut refusals =
            encoder.encode_descriptor("seqsvr_refusals", "Requests refused", None, MetricType::Counter)?;
        for (set, server, _) in &servers {
            for (reason, count) in server.refusals() {
                let labels = [("set", set.as_str()), ("reason", reason)];
                ConstCounter::new(count).encode(refusals.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }
}
