//! The machine that it all ran on: a figure without its machine says nothing.

use std::fs;
use std::thread;

use super::report::ReportRow;

/// The scenario under which the machine's rows stand.
pub(super) const NAME: &str = "machine";

/// Rows of it.
pub(super) fn rows(quick: bool) -> Vec<ReportRow> {
    let cores = thread::available_parallelism().map_or(0, usize::from);
    let processor = field("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown processor".to_owned());
    let memory = field("/proc/meminfo", "MemTotal")
        .and_then(|text| text.split_whitespace().next()?.parse::<f64>().ok())
        .unwrap_or_default();
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut rows = vec![
        row(&format!("cores, {processor}, Linux {}", kernel.trim()), cores as f64, ""),
        row("memory", (memory / 1024.0 / 1024.0).round(), "GiB"),
    ];
    if quick {
        rows.push(row("of the work (quick)", 0.1, ""));
    }
    rows
}

fn row(metric: &str, value: f64, unit: &str) -> ReportRow {
    ReportRow {
        scenario: NAME.to_owned(),
        metric: metric.to_owned(),
        value,
        unit: unit.to_owned(),
        against: None,
        ratio: None,
        target: None,
        met: None,
        runs: 1,
    }
}

fn field(path: &str, key: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(key))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}
