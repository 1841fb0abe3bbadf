//! A Prometheus of one test's own (Debian `prometheus`), with rules that the repository ships, thirty times as fast as they are
//! shipped: every interval, every `for:` and every range is divided by thirty.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::Value;

use crate::ports::free_port;

use super::{Hanging, folder, give_away, until_ready};

/// By what times are divided.
const FASTER: u64 = 30;

/// Milliseconds between two looks, where nothing is configured: one minute.
const INTERVAL: u64 = 60_000 / FASTER;

/// A server. Dropping it ends it.
pub struct Prometheus {
    _hanging: Hanging,
    port: u16,
}

impl Prometheus {
    /// Starts one that watches the servers at `targets` (`HOST:PORT`) as those of `job`, by these rules.
    ///
    /// # Panics
    /// When a time in the rules is not understood, or Prometheus does not take them.
    pub fn watching(job: &str, targets: &[&str], rules: &str) -> Self {
        let (port, folder) = (free_port(), folder("prometheus"));
        let rules = rules.lines().map(faster).collect::<Vec<_>>().join("\n");
        let configuration = format!(
            "global: {{scrape_interval: {INTERVAL}ms, scrape_timeout: {INTERVAL}ms, evaluation_interval: {INTERVAL}ms}}\n\
             rule_files: [rules.yml]\n\
             scrape_configs:\n  - {{job_name: {job}, static_configs: [{{targets: {targets:?}}}]}}\n"
        );
        for (name, text) in [("rules.yml", rules), ("prometheus.yml", configuration)] {
            let file = folder.join(name);
            fs::write(&file, text).expect("the folder is there");
            give_away(&file);
        }
        let kept = folder.display();
        let line = format!(
            "prometheus --config.file={kept}/prometheus.yml --storage.tsdb.path={kept}/data \
             --web.listen-address=127.0.0.1:{port} --log.level=warn"
        );
        let hanging = Hanging::start(line, "TERM", folder.clone());
        let prometheus = Self { _hanging: hanging, port };
        until_ready("Prometheus", &folder, || {
            prometheus.get("/-/ready").is_some_and(|text| text.contains(" 200 "))
        });
        prometheus
    }

    /// Whether this rule fires for the server at `target`.
    ///
    /// # Panics
    /// When it does not answer.
    pub fn tells(&self, rule: &str, target: &str) -> bool {
        let answer = self.get("/api/v1/alerts").expect("it answers");
        let (_, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
        let told: Value = serde_json::from_str(body).expect("JSON");
        let alerts = told["data"]["alerts"].as_array().expect("a list");
        alerts.iter().any(|alert| {
            let labels = &alert["labels"];
            alert["state"] == "firing" && labels["alertname"] == rule && labels["instance"] == target
        })
    }

    /// Head and body of what it answers.
    fn get(&self, path: &str) -> Option<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        write!(stream, "GET {path} HTTP/1.0\r\n\r\n").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        Some(answer)
    }
}

/// A line of rules whose times are divided.
fn faster(line: &str) -> String {
    if let Some((before, time)) = line.split_once("for: ") {
        return format!("{before}for: {}", divided(time));
    }
    let mut parts = line.split('[');
    let mut made = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (time, after) = part.split_once(']').expect("what is opened is closed");
        made += &format!("[{}]{after}", divided(time));
    }
    made
}

fn divided(time: &str) -> String {
    let (number, unit) = time.split_at(time.len() - 1);
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        _ => panic!("{time} is no time in seconds, minutes or hours"),
    };
    let number: u64 = number.parse().unwrap_or_else(|_| panic!("{time} is no time"));
    format!("{}ms", number * seconds * 1_000 / FASTER)
}
