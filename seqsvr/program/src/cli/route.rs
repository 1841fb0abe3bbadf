//! `seqsvr route`: the nodes and their sections, as a picture that fits the terminal or as JSON.

use std::fmt::Write as _;
use std::io;

use clap::Args;
use serde_json::{Value, json};

use super::ExitError;
use super::caller::{CallerArgs, not_answered};
use seqsvr_client::Client;
use seqsvr_client::status::AllocatorStatus;
use seqsvr_core::ids::SectionId;
use seqsvr_core::routing::{NodeState, Table};

/// Where there is no terminal.
const WIDTH: usize = 100;
/// Names of nodes in the strip; the 53rd begins anew.
const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

const EXAMPLES: &str = "\
Examples:
  seqsvr route --config client.toml
  seqsvr route --set 1 --json
`seqsvr status` shows more: arbiters, stores, leases, and why something is not served.";

/// The flags of the command.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct RouteArgs {
    /// Show only this Set
    #[arg(long, value_name = "NUMBER")]
    set: Option<u32>,
    #[command(flatten)]
    caller: CallerArgs,
}

/// Prints the tables; fails, after the others, when one cannot be had.
pub(super) async fn run(args: RouteArgs) -> Result<(), ExitError> {
    let client = args.caller.client()?;
    let sets = args.set.map_or_else(|| client.set_numbers(), |set| vec![set]);
    let (mut text, mut tables, mut failed) = (Vec::new(), Vec::new(), None);
    for set in sets {
        match client.route(set).await {
            Ok(table) => {
                let states = states(&client, &table).await?;
                text.push(picture(&table, &states, width()));
                tables.push(json(&table, &states));
            }
            Err(error) => failed = Some(error),
        }
    }
    if !tables.is_empty() {
        args.caller.answer(&text.join("\n"), &Value::Array(tables))?;
    }
    failed.map_or(Ok(()), |error| Err(not_answered(error)))
}

/// How each AllocSvr of the table is by now, in its order: each is asked.
pub(super) async fn states(client: &Client, table: &Table) -> Result<Vec<&'static str>, ExitError> {
    Ok(client.allocators(table).await.map_err(not_answered)?.iter().map(AllocatorStatus::state).collect())
}

/// The columns of the terminal on standard output.
pub(super) fn width() -> usize {
    let size = rustix::termios::tcgetwinsize(io::stdout());
    size.ok().map(|size| usize::from(size.ws_col)).filter(|&columns| columns > 0).unwrap_or(WIDTH)
}

/// A table, and how its nodes are, as text of at most `width` columns where names allow it: a line for each node, and a strip of
/// all sections with the letter of the node that holds most of each piece.
pub(super) fn picture(table: &Table, states: &[&str], width: usize) -> String {
    let sections = table.sections();
    let all = count(&sections);
    let mut text = format!(
        "Set {}: uids {} to {}, {all} section{} of {}, table {}\n\n",
        table.set,
        table.uids.start(),
        table.uids.end(),
        if all == 1 { "" } else { "s" },
        table.section_size,
        table.version
    );
    let name = table.nodes.iter().map(|node| node.name.len()).max().unwrap_or(0).max("nobody".len());
    let addr = table.nodes.iter().map(|node| node.addr.len()).max().unwrap_or(0);
    let longest = states.iter().map(|state| state.len()).max().unwrap_or(0);
    let mut held = 0;
    for (index, node) in table.nodes.iter().enumerate() {
        let of = || table.of(&node.name);
        let mine: u64 = of().map(|one| count(&one.sections)).sum();
        let lent: u64 = of().filter(|one| one.home as usize != index).map(|one| count(&one.sections)).sum();
        held += mine;
        let state = states[index];
        let line = format!(
            "{} {:name$}  {:addr$}  {state:longest$}  {mine:>6} {:>5.1} %",
            letter(index),
            node.name,
            node.addr,
            share(mine, all)
        );
        let lent = if lent == 0 { String::new() } else { format!("  {lent} of others") };
        text.push_str((line + &lent).trim_end());
        text.push('\n');
    }
    if held < all {
        let pad = addr + longest + 4;
        let _ = writeln!(
            text,
            "· {:name$}{:pad$}  {:>6} {:>5.1} %",
            "nobody",
            "",
            all - held,
            share(all - held, all)
        );
    }
    let (first, last) = (sections.start().get(), sections.end().get());
    let (left, right) = (first.to_string(), last.to_string());
    let room =
        width.saturating_sub(left.len() + right.len() + 4).clamp(8, 512).min(all.try_into().unwrap_or(512));
    let strip: String = (0..room as u64)
        .map(|piece| {
            let (from, to) = (piece * all / room as u64, (piece + 1) * all / room as u64);
            let section = |at: u64| SectionId::new(first + at as u32);
            most(table, section(from), section(to - 1))
        })
        .collect();
    let _ = writeln!(text, "\n{left} ┃{strip}┃ {right}");
    text
}

/// A table, and how its nodes are, as JSON.
pub(super) fn json(table: &Table, states: &[&str]) -> Value {
    let node = |index: u32| Value::from(table.nodes[index as usize].name.as_str());
    let nodes = table.nodes.iter().zip(states).map(|(node, state)| {
        let held: u64 = table.of(&node.name).map(|one| count(&one.sections)).sum();
        let drained = node.state == NodeState::Drained;
        json!({"name": node.name, "addr": node.addr, "drained": drained, "sections": held, "state": state})
    });
    let assignments = table.assignments.iter().map(|one| {
        json!({
            "first_section": one.sections.start().get(),
            "last_section": one.sections.end().get(),
            "node": node(one.node),
            "home": node(one.home),
            // Larger than a browser's numbers.
            "incarnation": one.incarnation.to_string(),
            "epoch": {"term": one.epoch.term, "version": one.epoch.version},
        })
    });
    json!({
        "set": table.set,
        "version": {"term": table.version.term, "version": table.version.version},
        "section_size": table.section_size,
        "first_uid": table.uids.start(),
        "last_uid": table.uids.end(),
        "nodes": nodes.collect::<Vec<_>>(),
        "assignments": assignments.collect::<Vec<_>>(),
    })
}

/// The letter of the node that holds most of these sections.
fn most(table: &Table, first: SectionId, last: SectionId) -> char {
    let mut held = vec![0_u64; table.nodes.len()];
    let after = table.assignments.partition_point(|one| *one.sections.end() < first);
    let mut rest = count(&(first..=last));
    for one in table.assignments[after..].iter().take_while(|one| *one.sections.start() <= last) {
        let both = count(&(first.max(*one.sections.start())..=last.min(*one.sections.end())));
        held[one.node as usize] += both;
        rest -= both;
    }
    let best = (0..held.len()).max_by_key(|&index| (held[index], std::cmp::Reverse(index)));
    best.filter(|&index| held[index] >= rest.max(1)).map_or('·', letter)
}

fn letter(index: usize) -> char {
    char::from(LETTERS[index % LETTERS.len()])
}

fn count(sections: &std::ops::RangeInclusive<SectionId>) -> u64 {
    u64::from(sections.end().get() - sections.start().get()) + 1
}

fn share(part: u64, all: u64) -> f64 {
    100.0 * part as f64 / all as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use seqsvr_core::ids::Epoch;
    use seqsvr_core::routing::{Assignment, Node};

    const STATES: [&str; 3] = ["serving", "unreachable", "drained"];

    fn table() -> Table {
        let node =
            |name: &str, state| Node { name: name.to_owned(), addr: format!("http://{name}:1"), state };
        let one = |first, last, node, home| Assignment {
            sections: SectionId::new(first)..=SectionId::new(last),
            node,
            home,
            incarnation: u64::MAX,
            epoch: Epoch { term: 1, version: 2 },
        };
        let table = Table {
            set: 3,
            version: Epoch { term: 1, version: 5 },
            section_size: 100_000,
            uids: 0..=9_999_999,
            nodes: vec![
                node("one", NodeState::Active),
                node("second", NodeState::Active),
                node("three", NodeState::Drained),
            ],
            assignments: vec![one(0, 49, 0, 0), one(50, 69, 1, 2), one(70, 89, 1, 1)],
        };
        table.check().expect("a good table");
        table
    }

    #[test]
    fn the_picture_says_who_holds_what_within_the_width() {
        let text = picture(&table(), &STATES, 30);
        let expected = "\
Set 3: uids 0 to 9999999, 100 sections of 100000, table 1.5

a one     http://one:1     serving          50  50.0 %
b second  http://second:1  unreachable      40  40.0 %  20 of others
c three   http://three:1   drained           0   0.0 %
· nobody                                    10  10.0 %

0 ┃aaaaaaaaaaaabbbbbbbbb··┃ 99
";
        assert_eq!(text, expected);
        assert!(text.lines().last().expect("the strip").chars().count() <= 30);
    }

    #[test]
    fn json_keeps_every_digit() {
        let json = json(&table(), &STATES);
        assert_eq!(json["nodes"][1]["state"], "unreachable");
        assert_eq!(json["assignments"][1]["node"], "second");
        assert_eq!(json["assignments"][1]["home"], "three");
        assert_eq!(json["assignments"][0]["incarnation"], u64::MAX.to_string());
        assert_eq!(json["nodes"][1]["sections"], 40);
    }
}
