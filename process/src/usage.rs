//! Processor time, memory and files of the process, by the names that Prometheus has for them: read from `/proc` at each look at the
//! metrics.

use std::fmt::{Display, Write as _};
use std::fs;

use rustix::param::{clock_ticks_per_second, page_size};
use rustix::process::{Resource, getrlimit};

/// Fields of `/proc/self/stat`.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    /// Of processor time, for itself and in the kernel.
    ticks: u64,
    threads: u64,
    /// Since the machine started.
    started: u64,
    resident_pages: u64,
}

impl Stat {
    /// `None` for a text of another form.
    fn parse(text: &str) -> Option<Stat> {
        // The second field is the name of the program, in parentheses, and may hold anything.
        let (_, after) = text.rsplit_once(") ")?;
        let fields: Vec<&str> = after.split(' ').collect();
        let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
        Some(Stat {
            ticks: number(11)? + number(12)?,
            threads: number(17)?,
            started: number(19)?,
            resident_pages: number(21)?,
        })
    }
}

/// When the machine started, in seconds since 1970.
fn machine_started() -> Option<u64> {
    let text = fs::read_to_string("/proc/stat").ok()?;
    text.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()
}

/// `process_cpu_seconds_total`, `process_resident_memory_bytes`, `process_threads`, `process_open_fds`, `process_max_fds` and
/// `process_start_time_seconds` of this process, as lines that Prometheus reads. A value that cannot be read is left out.
pub fn usage() -> String {
    let mut text = String::new();
    let mut add = |name: &str, kind: &str, help: &str, value: &dyn Display| {
        let sample = if kind == "counter" { "_total" } else { "" };
        writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name}{sample} {value}")
            .expect("a string");
    };
    if let Some(stat) = fs::read_to_string("/proc/self/stat").ok().and_then(|text| Stat::parse(&text)) {
        let seconds = |ticks: u64| ticks as f64 / clock_ticks_per_second() as f64;
        let resident = stat.resident_pages.saturating_mul(page_size() as u64);
        add("process_cpu_seconds", "counter", "Processor time in seconds", &seconds(stat.ticks));
        add("process_resident_memory_bytes", "gauge", "Resident memory in bytes", &resident);
        add("process_threads", "gauge", "Threads of the process", &stat.threads);
        if let Some(machine) = machine_started() {
            let started = machine as f64 + seconds(stat.started);
            add("process_start_time_seconds", "gauge", "Start time in seconds since 1970", &started);
        }
    }
    if let Ok(open) = fs::read_dir("/proc/self/fd") {
        // One of them is that of the folder itself.
        add("process_open_fds", "gauge", "Open files and connections", &open.count().saturating_sub(1));
    }
    if let Some(most) = getrlimit(Resource::Nofile).current {
        add("process_max_fds", "gauge", "Limit of open files and connections", &most);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_may_be_called_anything() {
        let text =
            "7 (a) b (c) S 1 2 3 4 5 6 7 8 9 10 150 50 13 14 20 0 3 0 9000 1000000 42 18446744073709551615";
        assert_eq!(
            Stat::parse(text),
            Some(Stat { ticks: 200, threads: 3, started: 9_000, resident_pages: 42 })
        );
        assert_eq!(Stat::parse("7 (a) S 1 2"), None);
        assert_eq!(Stat::parse(""), None);
    }

    #[test]
    fn the_process_tells_what_it_takes() {
        let text = usage();
        let value = |name: &str| -> f64 {
            let line = text.lines().find(|line| line.split(' ').next() == Some(name));
            let value = line.and_then(|line| line.rsplit(' ').next()).and_then(|value| value.parse().ok());
            value.unwrap_or_else(|| panic!("{name} is missing in:\n{text}"))
        };
        assert!(value("process_cpu_seconds_total") >= 0.0);
        assert!(value("process_resident_memory_bytes") > 1e5);
        assert!(value("process_threads") >= 1.0);
        assert!(value("process_open_fds") >= 3.0 && value("process_open_fds") < value("process_max_fds"));
        // After this was written.
        assert!(value("process_start_time_seconds") > 1.7e9);
    }
}
