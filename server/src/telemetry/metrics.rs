//! The metrics of the server, by the names that docs/OPERATING.md lists, and their text form.

use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use tidemark_process::Version;

use super::TableMetrics;
use super::collectors::PollSeconds;

type Labels = [(&'static str, &'static str); 1];

/// Method and route; the route as it stands in the table of routes, so that there are few.
type OfRoute = [(&'static str, String); 2];

/// The same with the status.
type OfAnswer = [(&'static str, String); 3];

/// Seconds.
const REQUEST_BUCKETS: [f64; 6] = [0.005, 0.025, 0.1, 0.5, 2.5, 10.0];

/// The metrics of the HTTP layer. Labelled ones are looked up once, except for answers: counting is one atomic addition.
#[derive(Debug)]
pub struct Metrics {
    version: Version,
    registry: Registry,
    /// `tidemark_http_requests_total{method,route,status}`: answers over HTTP.
    requests: Family<OfAnswer, Counter>,
    /// `tidemark_http_request_seconds{method,route}`: from the head of a request to the head of its answer.
    request_seconds: Family<OfRoute, Histogram>,
    /// `tidemark_messages_total{path="http"}`: messages accepted over HTTP.
    pub messages_http: Counter,
    /// `tidemark_messages_total{path="websocket"}`: messages accepted over a WebSocket.
    pub messages_websocket: Counter,
    /// `tidemark_heartbeats_total{result="alive"}`: heartbeats of clients that were up to date.
    pub heartbeats_alive: Counter,
    /// `tidemark_heartbeats_total{result="entries"}`: heartbeats answered with rows.
    pub heartbeats_entries: Counter,
    /// `tidemark_cursors_ahead_total`: heartbeats beyond the latest id of their inbox.
    pub cursors_ahead: Counter,
    /// `tidemark_reading_pauses_total{reason="control_frames"}`: a WebSocket was not read for a while: too many pings or pongs.
    pub pauses_control_frames: Counter,
    /// `tidemark_reading_pauses_total{reason="sends"}`: the same: its account sends too fast.
    pub pauses_sends: Counter,
    /// `tidemark_passwords_refused_total`: log-ins and sign-ups that found no place in the line for hashing.
    pub passwords_refused: Counter,
    /// `tidemark_refusals_delayed_total`: requests that waited because too many of their address were refused.
    pub refusals_delayed: Counter,
    /// `tidemark_send_seconds`: from taking a send to its answer.
    pub send_seconds: Histogram,
    /// `tidemark_deliver_seconds`: from acceptance to handing the row to a connected receiver.
    pub deliver_seconds: Histogram,
    /// `tidemark_connections`: open WebSockets.
    pub connections: Gauge,
    /// The metrics of the tables' listener.
    pub tables: TableMetrics,
}

impl Metrics {
    /// Metrics at zero, with `tidemark_build_info{version,commit}`. `parts` add the metrics of other layers, at each scrape.
    pub fn new(version: Version, parts: Vec<Box<dyn Collector>>) -> Metrics {
        let mut registry = Registry::default();
        let messages = Family::<Labels, Counter>::default();
        let heartbeats = Family::<Labels, Counter>::default();
        // 50 µs to 13 s, each bucket 1.7 times the one before.
        let seconds = || Histogram::new(exponential_buckets(0.000_05, 1.7, 24));
        let (send_seconds, deliver_seconds, connections) = (seconds(), seconds(), Gauge::default());
        registry.register("tidemark_messages", "Messages accepted", messages.clone());
        registry.register("tidemark_heartbeats", "Heartbeats answered", heartbeats.clone());
        let cursors_ahead = Counter::default();
        let help = "Heartbeats beyond the latest id of their inbox: older files were restored, or a client is faulty";
        registry.register("tidemark_cursors_ahead", help, cursors_ahead.clone());
        let pauses = Family::<Labels, Counter>::default();
        let help = "WebSockets that were not read for a while, because of too many control frames or sends";
        registry.register("tidemark_reading_pauses", help, pauses.clone());
        let passwords_refused = Counter::default();
        let help =
            "Log-ins and sign-ups refused because too many passwords waited, in all or of their address";
        registry.register("tidemark_passwords_refused", help, passwords_refused.clone());
        let refusals_delayed = Counter::default();
        let help = "Requests that waited because too many of their address were refused";
        registry.register("tidemark_refusals_delayed", help, refusals_delayed.clone());
        registry.register(
            "tidemark_send_seconds",
            "Time from taking a send to its answer, in seconds",
            send_seconds.clone(),
        );
        registry.register(
            "tidemark_deliver_seconds",
            "Time from acceptance to handing the row to a connected receiver, in seconds",
            deliver_seconds.clone(),
        );
        registry.register("tidemark_connections", "Open WebSockets", connections.clone());
        let requests = Family::default();
        registry.register("tidemark_http_requests", "Requests answered", requests.clone());
        let request_seconds =
            Family::new_with_constructor((|| Histogram::new(REQUEST_BUCKETS)) as fn() -> Histogram);
        let help = "Time from the head of a request to the head of its answer, in seconds";
        registry.register("tidemark_http_request_seconds", help, request_seconds.clone());
        registry.register_collector(Box::new(PollSeconds));
        let tables = TableMetrics::new(&mut registry);
        for part in parts {
            registry.register_collector(part);
        }
        Metrics {
            version,
            registry,
            requests,
            request_seconds,
            messages_http: messages.get_or_create_owned(&[("path", "http")]),
            messages_websocket: messages.get_or_create_owned(&[("path", "websocket")]),
            heartbeats_alive: heartbeats.get_or_create_owned(&[("result", "alive")]),
            cursors_ahead,
            pauses_control_frames: pauses.get_or_create_owned(&[("reason", "control_frames")]),
            pauses_sends: pauses.get_or_create_owned(&[("reason", "sends")]),
            passwords_refused,
            refusals_delayed,
            heartbeats_entries: heartbeats.get_or_create_owned(&[("result", "entries")]),
            send_seconds,
            deliver_seconds,
            connections,
            tables,
        }
    }

    /// A request to `route`, as it stands in the table of routes, was answered.
    pub fn answered(&self, method: &str, route: &str, status: u16, took: Duration) {
        let (method, route) = (("method", method.to_owned()), ("route", route.to_owned()));
        let status = ("status", status.to_string());
        self.requests.get_or_create(&[method.clone(), route.clone(), status]).inc();
        self.request_seconds.get_or_create(&[method, route]).observe(took.as_secs_f64());
    }

    /// All metrics in the text form that Prometheus reads.
    pub fn to_text(&self) -> String {
        let mut text = self.version.metrics("tidemark");
        encode(&mut text, &self.registry).expect("writing into a string does not fail");
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_carry_the_promised_names() {
        let metrics = Metrics::new(Version::of(("0bd88b1f", "2026-11-26")), Vec::new());
        metrics.messages_http.inc();
        metrics.heartbeats_alive.inc();
        metrics.send_seconds.observe(0.001);
        metrics.answered("GET", "/ready", 200, Duration::from_millis(30));
        metrics.tables.answered("PutRow", "ok", Duration::from_millis(1));
        let text = metrics.to_text();
        let build =
            format!("tidemark_build_info{{version=\"{}\",commit=\"0bd88b1f\"}} 1", env!("CARGO_PKG_VERSION"));
        for line in [
            &build,
            "tidemark_messages_total{path=\"http\"} 1",
            "tidemark_http_requests_total{method=\"GET\",route=\"/ready\",status=\"200\"} 1",
            "tidemark_http_request_seconds_bucket{le=\"0.1\",method=\"GET\",route=\"/ready\"} 1",
            "tidemark_messages_total{path=\"websocket\"} 0",
            "tidemark_heartbeats_total{result=\"alive\"} 1",
            "tidemark_send_seconds_count 1",
            "tidemark_deliver_seconds_count 0",
            "tidemark_connections 0",
            "tidemark_table_requests_total{operation=\"PutRow\",result=\"ok\"} 1",
            "tidemark_table_seconds_count 1",
        ] {
            assert!(text.lines().any(|l| l == line), "{line} is missing in:\n{text}");
        }
    }
}
