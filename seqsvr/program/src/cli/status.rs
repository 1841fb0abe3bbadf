//! `seqsvr status`: how a cluster is, as tables for people or as JSON. Fails when something is not served.

use std::fmt::Write as _;
use std::ops::RangeInclusive;
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};

use super::ExitError;
use super::caller::{CallerArgs, not_answered};
use seqsvr_client::status::{AllocatorStatus, ArbiterStatus, SetStatus};
use seqsvr_core::ids::{Epoch, SectionId};
use seqsvr_rpc::v1::{Epoch as WireEpoch, StoreHealth, Trust};

/// The most runs of unserved sections that the text lists; JSON lists all.
const LISTED: usize = 20;

const EXAMPLES: &str = "\
Examples:
  seqsvr status --config client.toml
  seqsvr status --json --within 2 | jq '.[].unserved'

Exit codes: 0 everything is served, 1 something is not, or no process answered, 2 wrong use.
A store that is some sections behind was down for a time, and catches up as sections are raised and claimed; a few are normal under load.";

/// The flags of the command.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct StatusArgs {
    /// Show only this Set
    #[arg(long, value_name = "NUMBER")]
    set: Option<u32>,
    #[command(flatten)]
    caller: CallerArgs,
}

/// Prints how every Set is.
pub(super) async fn run(args: StatusArgs) -> Result<(), ExitError> {
    let client = args.caller.client()?;
    let sets = args.set.map_or_else(|| client.set_numbers(), |set| vec![set]);
    let mut all = Vec::new();
    for set in sets {
        all.push(client.status(set).await.map_err(not_answered)?);
    }
    let text: Vec<String> = all.iter().map(text).collect();
    args.caller.answer(&text.join("\n"), &all.iter().map(json).collect())?;
    let troubles: Vec<String> = all.iter().filter_map(trouble).collect();
    if troubles.is_empty() { Ok(()) } else { Err(ExitError::failed(troubles.join("; "))) }
}

/// One line when something of the Set is not served.
fn trouble(status: &SetStatus) -> Option<String> {
    match status.unserved_sections() {
        Some(0) => None,
        Some(count) => Some(format!("{count} sections of Set {} are not served", status.set)),
        None => Some(format!(
            "no AllocSvr and no arbiter of Set {} reported which sections are served",
            status.set
        )),
    }
}

/// Lines of columns, each as wide as its widest cell. The last cell of a line is free: it widens no column.
fn columns(text: &mut String, title: &str, rows: &[Vec<String>]) {
    if rows.is_empty() {
        return;
    }
    let _ = writeln!(text, "\n{title}");
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter(|row| column + 1 < row.len()).map(|row| &row[column]);
        cells.map(|cell| cell.chars().count()).max()
    };
    let widths: Vec<usize> = (0..count).map(|column| width(column).unwrap_or(0)).collect();
    for row in rows {
        let cells: Vec<String> =
            row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:width$}")).collect();
        let _ = writeln!(text, "  {}", cells.join("  ").trim_end());
    }
}

fn text(status: &SetStatus) -> String {
    let mut text = match &status.table {
        None => format!("Set {}: no process reported which sections are served\n", status.set),
        Some(table) => {
            let all = count(&table.sections());
            let served = all - status.unserved_sections().unwrap_or(all).min(all);
            format!("Set {}: {served} of {all} sections are served, table {}\n", status.set, table.version)
        }
    };
    let arbiters: Vec<Vec<String>> = status.arbiters.iter().map(arbiter).collect();
    columns(&mut text, "arbiters", &arbiters);
    let allocators: Vec<Vec<String>> = status.allocators.iter().map(allocator).collect();
    columns(&mut text, "AllocSvrs", &allocators);
    let newest = status.stores.iter().map(|one| epoch(one.table_version)).max().unwrap_or_default();
    let stores: Vec<Vec<String>> = status.stores.iter().map(|one| store(one, newest)).collect();
    if stores.is_empty() {
        text.push_str("\nstores\n  unknown: no arbiter answered\n");
    }
    columns(&mut text, "stores", &stores);
    if let Some(line) = &status.unfinished {
        let _ = writeln!(text, "\nnot complete\n  {line}");
    }
    let mut unserved: Vec<Vec<String>> = Vec::new();
    for one in status.unserved.iter().take(LISTED) {
        let since = one.since.map_or(String::new(), |since| format!("for {}", seconds(since)));
        unserved.push(vec![range(&one.sections), since, one.why.clone()]);
    }
    if status.unserved.len() > LISTED {
        unserved.push(vec![format!("and {} runs more (--json lists all)", status.unserved.len() - LISTED)]);
    }
    columns(&mut text, "not served: sections", &unserved);
    text
}

fn arbiter(one: &ArbiterStatus) -> Vec<String> {
    let (number, state) = match &one.answer {
        Err(why) => ("?".to_owned(), format!("unreachable ({why})")),
        Ok(reply) => {
            let role = match reply.acting_term {
                0 => format!("stands by (term {})", reply.promised_term),
                term => format!("acts, term {term}"),
            };
            let lost = match reply.stores_lost.as_str() {
                "" => String::new(),
                why => format!("; the stores do not answer it ({why})"),
            };
            (reply.number.to_string(), role + &lost)
        }
    };
    vec![number, one.addr.clone(), state]
}

fn allocator(one: &AllocatorStatus) -> Vec<String> {
    let mut row = vec![
        one.name.clone(),
        one.addr.clone(),
        one.state().to_owned(),
        format!("{} sections", one.sections),
    ];
    match &one.answer {
        Err(why) => row.push(format!("({why})")),
        Ok(reply) => {
            row.push(format!("lease {}", seconds(Duration::from_millis(reply.lease_remaining_ms.into()))));
            row.push(format!("table {}", epoch(reply.version)));
        }
    }
    match one.trust {
        Some(Trust::Dead) if one.answer.is_ok() => row.push("the arbiter considers it dead".to_owned()),
        Some(Trust::Answering) => row.push("the arbiter does not trust it yet".to_owned()),
        _ => {}
    }
    row
}

fn store(one: &StoreHealth, newest: Epoch) -> Vec<String> {
    if !one.lost.is_empty() {
        return vec![one.addr.clone(), format!("unreachable ({})", one.lost)];
    }
    let version = epoch(one.table_version);
    let behind = match (one.sections_behind, one.revisions_behind) {
        (0, 0) if version == newest => "up to date".to_owned(),
        (0, 0) => "an older table".to_owned(),
        (sections, 0) => format!("{sections} sections behind"),
        (_, revisions) => format!("{revisions} revisions behind"),
    };
    vec![one.addr.clone(), behind, format!("table {version}"), format!("term {}", one.promised_term)]
}

fn json(status: &SetStatus) -> Value {
    let version = |version: Epoch| json!({"term": version.term, "version": version.version});
    let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let arbiters = status.arbiters.iter().map(|one| match &one.answer {
        Err(why) => json!({"addr": one.addr, "answers": false, "error": why}),
        Ok(reply) => json!({
            "addr": one.addr,
            "answers": true,
            "number": reply.number,
            "acts": reply.acting_term > 0,
            "term": reply.acting_term.max(reply.promised_term),
            "stores_lost": (!reply.stores_lost.is_empty()).then_some(&reply.stores_lost),
        }),
    });
    let allocators = status.allocators.iter().map(|one| {
        let trust = one.trust.map(|trust| trust.as_str_name().trim_start_matches("TRUST_").to_lowercase());
        let mut value = json!({
            "name": one.name, "addr": one.addr, "drained": one.drained, "sections": one.sections, "state": one.state(),
            "answers": one.answer.is_ok(), "arbiter": trust,
        });
        match &one.answer {
            Err(why) => value["error"] = json!(why),
            Ok(reply) => {
                // Larger than a browser's numbers.
                value["incarnation"] = json!(reply.incarnation.to_string());
                value["table"] = version(epoch(reply.version));
                value["lease_remaining_ms"] = json!(reply.lease_remaining_ms);
                value["served"] = json!(reply.served);
                value["unserved"] = json!(reply.unserved);
                value["overdue_ms"] = json!(reply.overdue_ms);
            }
        }
        value
    });
    let stores = status.stores.iter().map(|one| match one.lost.as_str() {
        "" => json!({
            "addr": one.addr,
            "answers": true,
            "term": one.promised_term,
            "table": version(epoch(one.table_version)),
            "sections_behind": one.sections_behind,
            "revisions_behind": one.revisions_behind,
        }),
        why => json!({"addr": one.addr, "answers": false, "error": why}),
    });
    let unserved = status.unserved.iter().map(|one| {
        json!({
            "first_section": one.sections.start().get(),
            "last_section": one.sections.end().get(),
            "node": (!one.node.is_empty()).then_some(&one.node),
            "why": one.why,
            "since_ms": one.since.map(millis),
        })
    });
    let all = status.table.as_ref().map(|table| count(&table.sections()));
    let acting = status.acting();
    json!({
        "set": status.set,
        "served": status.unserved_sections() == Some(0),
        "table": status.table.as_ref().map(|table| version(table.version)),
        "term": acting.map(|(_, term)| term),
        "sections": all,
        "sections_unserved": status.unserved_sections(),
        "arbiters": arbiters.collect::<Vec<_>>(),
        "allocators": allocators.collect::<Vec<_>>(),
        "stores": stores.collect::<Vec<_>>(),
        "unfinished": status.unfinished,
        "unserved": unserved.collect::<Vec<_>>(),
    })
}

fn epoch(epoch: Option<WireEpoch>) -> Epoch {
    epoch.map(Into::into).unwrap_or_default()
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

fn range(sections: &RangeInclusive<SectionId>) -> String {
    match (sections.start().get(), sections.end().get()) {
        (first, last) if first == last => first.to_string(),
        (first, last) => format!("{first} to {last}"),
    }
}

fn count(sections: &RangeInclusive<SectionId>) -> u64 {
    u64::from(sections.end().get() - sections.start().get()) + 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use seqsvr_client::status::Unserved;

    #[test]
    fn the_text_says_who_answers_and_what_is_not_served() {
        let store = |addr: &str, lost: &str, behind| StoreHealth {
            addr: addr.to_owned(),
            lost: lost.to_owned(),
            sections_behind: behind,
            promised_term: 256,
            ..StoreHealth::default()
        };
        let node = AllocatorStatus {
            name: "alloc1".to_owned(),
            addr: "http://a:1".to_owned(),
            drained: false,
            sections: 5,
            answer: Err("connection refused".to_owned()),
            trust: Some(Trust::Dead),
        };
        let unserved = Unserved {
            sections: SectionId::new(0)..=SectionId::new(4),
            node: "alloc1".to_owned(),
            why: "alloc1 does not answer (connection refused)".to_owned(),
            since: None,
        };
        let status = SetStatus {
            set: 3,
            table: None,
            arbiters: vec![ArbiterStatus {
                addr: "http://b:1".to_owned(),
                answer: Err("no answer in time".to_owned()),
            }],
            allocators: vec![node],
            stores: vec![
                store("http://s1:1", "", 0),
                store("http://s2:1", "", 7),
                store("http://s3:1", "gone", 0),
            ],
            unfinished: Some("configuration 2 is half of a change".to_owned()),
            unserved: vec![unserved],
        };
        let expected = "\
Set 3: no process reported which sections are served

arbiters
  ?  http://b:1  unreachable (no answer in time)

AllocSvrs
  alloc1  http://a:1  unreachable  5 sections  (connection refused)

stores
  http://s1:1  up to date         table 0.0  term 256
  http://s2:1  7 sections behind  table 0.0  term 256
  http://s3:1  unreachable (gone)

not complete
  configuration 2 is half of a change

not served: sections
  0 to 4    alloc1 does not answer (connection refused)
";
        assert_eq!(text(&status), expected);
        assert!(trouble(&status).is_some());
        assert_eq!(json(&status)["stores"][1]["sections_behind"], 7);
    }
}
