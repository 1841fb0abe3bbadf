//! How long processes had the processor, as Linux counts it.

use std::fs;

use rustix::param::clock_ticks_per_second;

use crate::{Failure, Result};

/// Seconds of one process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seconds {
    /// Its own.
    pub(crate) own: f64,
    /// Those of its children that have ended.
    pub(crate) of_ended: f64,
    parent: u32,
}

/// Seconds of a process that runs.
pub(crate) fn of_process(pid: u32) -> Result<Seconds> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    parse(&text).ok_or_else(|| Failure::new(format!("/proc/{pid}/stat is not understood: {text}")))
}

/// Seconds of a process that runs, and of all children that it has and had.
pub(crate) fn of_family(pid: u32) -> Result<f64> {
    let Seconds { own, of_ended, .. } = of_process(pid)?;
    let others = fs::read_dir("/proc")?.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    // One that ends between the two looks is counted a moment later, with those that have ended.
    let children = others.filter_map(|other| of_process(other).ok()).filter(|other| other.parent == pid);
    Ok(own + of_ended + children.map(|child| child.own + child.of_ended).sum::<f64>())
}

/// The line of `/proc/PID/stat`: the name, in parentheses, may hold anything.
fn parse(text: &str) -> Option<Seconds> {
    let (_, rest) = text.rsplit_once(')')?;
    let words: Vec<&str> = rest.split_whitespace().collect();
    let ticks = |at: usize| words.get(at)?.parse::<f64>().ok();
    let second = clock_ticks_per_second() as f64;
    Some(Seconds {
        parent: words.get(1)?.parse().ok()?,
        own: (ticks(11)? + ticks(12)?) / second,
        of_ended: (ticks(13)? + ticks(14)?) / second,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_system_is_understood_whatever_the_name() {
        let second = clock_ticks_per_second();
        let line = format!("7 (a) b c) S 42 7 7 0 -1 0 1 2 3 4 {second} {second} {second} 0 20 0 1 0");
        let seconds = parse(&line).expect("understood");
        assert_eq!((seconds.parent, seconds.own, seconds.of_ended), (42, 2.0, 1.0));
        assert!(parse("7 (a) S 42").is_none());
    }

    #[test]
    fn this_process_is_part_of_its_own_family() {
        let own = of_process(std::process::id()).expect("runs");
        assert!(of_family(std::process::id()).expect("runs") >= own.own);
    }
}
