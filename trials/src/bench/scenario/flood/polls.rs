//! How long the polls of the server took, as its metrics tell it.

use std::collections::BTreeMap;

use crate::server::Server;
use crate::{Failure, Result};

const BUCKET: &str = "tidemark_poll_seconds_bucket{";

/// The polls of each kind so far, up to each bound in seconds.
#[derive(Debug, Default)]
pub(super) struct Polls(BTreeMap<String, Vec<(f64, u64)>>);

impl Polls {
    /// Asks the server.
    pub(super) async fn of(server: &Server) -> Result<Polls> {
        Polls::read(&server.http()?.metrics().await?)
            .filter(|polls| !polls.0.is_empty())
            .ok_or_else(|| Failure::new("the server's metrics tell of no polls"))
    }

    fn read(text: &str) -> Option<Polls> {
        let mut polls = Polls::default();
        for line in text.lines().filter_map(|line| line.strip_prefix(BUCKET)) {
            let (labels, count) = line.rsplit_once("} ")?;
            let label = |name: &str| {
                let (_, value) = labels.split_once(&format!("{name}=\""))?;
                value.split_once('"').map(|(value, _)| value)
            };
            let bound = label("le")?.replace("+Inf", "inf").parse().ok()?;
            let count = count.split_whitespace().next()?.parse().ok()?;
            polls.0.entry(label("of")?.to_owned()).or_default().push((bound, count));
        }
        Some(polls)
    }

    /// Since `before`: the bound below which all polls lay, in milliseconds, and of what the longest were.
    pub(super) fn longest_since(&self, before: &Polls) -> (f64, &str) {
        let mut longest = (0.0, "");
        for (of, counts) in &self.0 {
            let (mut below, earlier) = (0, before.0.get(of));
            for (at, (bound, count)) in counts.iter().enumerate() {
                // Beyond the last bound it is not known how far.
                let bound = if bound.is_finite() { *bound } else { counts[at.saturating_sub(1)].0 * 2.0 };
                let new = count - earlier.and_then(|earlier| earlier.get(at)).map_or(0, |(_, count)| *count);
                if new > below && bound * 1e3 > longest.0 {
                    longest = (bound * 1e3, of);
                }
                below = new;
            }
        }
        longest
    }

    /// Since `before`: the polls that took longer than so many milliseconds, which is one of the bounds, and all of them.
    pub(super) fn above_since(&self, before: &Polls, milliseconds: f64) -> (u64, u64) {
        let up_to = |counts: Option<&Vec<(f64, u64)>>, most: f64| {
            let counts = counts.into_iter().flatten().take_while(|(bound, _)| *bound <= most);
            counts.last().map_or(0, |(_, count)| *count)
        };
        let new = |of, counts, most| up_to(Some(counts), most) - up_to(before.0.get(of), most);
        let (mut above, mut all) = (0, 0);
        for (of, counts) in &self.0 {
            let of_all = new(of, counts, f64::INFINITY);
            all += of_all;
            above += of_all - new(of, counts, milliseconds / 1e3);
        }
        (above, all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_poll_of_all_kinds_is_found_among_the_new_ones() {
        let text = |counts: [u64; 6]| {
            let line = |(at, count): (usize, u64)| {
                let (le, of) = (["0.001", "0.002", "+Inf"][at % 3], ["/a{b}", "queue"][at / 3]);
                format!("tidemark_poll_seconds_bucket{{le=\"{le}\",of=\"{of}\"}} {count}\n")
            };
            let lines = counts.into_iter().enumerate().map(line);
            format!("# HELP tidemark_poll_seconds x\n{}", lines.collect::<String>())
        };
        let polls = |counts| Polls::read(&text(counts)).expect("polls");
        let before = polls([1, 2, 3, 4, 4, 4]);
        assert_eq!(polls([2, 3, 4, 5, 6, 6]).longest_since(&before), (2.0, "queue"));
        assert_eq!(polls([1, 2, 4, 4, 4, 4]).longest_since(&before), (4.0, "/a{b}"));
        assert_eq!(before.longest_since(&before), (0.0, ""));
        assert_eq!(polls([2, 3, 4, 5, 6, 8]).above_since(&before, 1.0), (3, 5));
        assert_eq!(polls([2, 3, 4, 5, 6, 8]).above_since(&before, 2.0), (2, 5));
    }
}
