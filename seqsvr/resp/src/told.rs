//! Answers of a server about itself: its commands, its settings, its state. Pure; called by `session`.

use crate::commands::{SPECS, Spec, Words};
use crate::counters::Refused;
use crate::reply::Replies;

/// The version of Redis whose form of these commands is spoken: clients look at it.
pub(crate) const LIKE: &str = "7.2.0";

/// Settings that clients look at before they begin.
const SETTINGS: &[(&str, &str)] =
    &[("save", ""), ("appendonly", "yes"), ("appendfsync", "always"), ("databases", "1")];

/// Answers `COMMAND` with these words behind it.
pub(crate) fn commands(words: Words<'_>, to: &mut Replies) -> Result<(), Refused> {
    if words.len() == 0 {
        to.array(SPECS.len());
        SPECS.iter().for_each(|spec| command(spec, to));
    } else if words.is(0, "count") {
        to.integer(SPECS.len() as u64);
    } else if words.is(0, "list") {
        to.array(SPECS.len());
        SPECS.iter().for_each(|spec| to.bulk(spec.name.as_bytes()));
    } else if words.is(0, "info") {
        let named = named(words);
        to.array(named.len());
        for spec in named {
            match spec {
                Some(spec) => command(spec, to),
                None => to.null(),
            }
        }
    } else if words.is(0, "docs") {
        let named: Vec<&Spec> = named(words).into_iter().flatten().collect();
        to.map(named.len());
        for spec in named {
            to.bulk(spec.name.as_bytes());
            to.map(3);
            for (name, value) in [("summary", spec.summary), ("since", "1.0.0"), ("group", spec.group)] {
                to.bulk(name.as_bytes());
                to.bulk(value.as_bytes());
            }
        }
    } else {
        return Err(Refused::ever("COMMAND has COUNT, DOCS, INFO and LIST here"));
    }
    Ok(())
}

/// The commands that the words after the first name, at most as many as there are; all, where none is named.
fn named(words: Words<'_>) -> Vec<Option<&'static Spec>> {
    if words.len() == 1 {
        return SPECS.iter().map(Some).collect();
    }
    let find = |name: &[u8]| SPECS.iter().find(|spec| name.eq_ignore_ascii_case(spec.name.as_bytes()));
    words.after(1).iter().map(find).collect()
}

fn command(spec: &Spec, to: &mut Replies) {
    to.array(10);
    to.bulk(spec.name.as_bytes());
    integer(spec.arity, to);
    to.array(spec.flags.len());
    spec.flags.iter().for_each(|flag| to.simple(flag));
    let (first, last) = spec.keys;
    integer(first, to);
    integer(last, to);
    integer(i64::from(first > 0), to);
    // Categories, hints, more about keys, and commands below it: none.
    (0..4).for_each(|_| to.array(0));
}

fn integer(number: i64, to: &mut Replies) {
    to.bytes.extend_from_slice(format!(":{number}\r\n").as_bytes());
}

/// Answers `CONFIG GET` with these names behind it.
pub(crate) fn settings(names: Words<'_>, to: &mut Replies) {
    let wanted = |name: &str| (0..names.len()).any(|index| names.is(index, name) || names.is(index, "*"));
    let found: Vec<_> = SETTINGS.iter().filter(|(name, _)| wanted(name)).collect();
    to.map(found.len());
    for (name, value) in found {
        to.bulk(name.as_bytes());
        to.bulk(value.as_bytes());
    }
}

/// Answers `INFO`; `more` are lines of the counters.
pub(crate) fn info(clients: usize, more: &str, to: &mut Replies) {
    let version = env!("CARGO_PKG_VERSION");
    to.text(&format!(
        "# Server\r\nserver_name:seqsvr\r\nseqsvr_version:{version}\r\nredis_version:{LIKE}\r\nredis_mode:standalone\r\n\
         \r\n# Clients\r\nconnected_clients:{clients}\r\n\r\n# Persistence\r\nloading:0\r\naof_enabled:1\r\n\
         \r\n# Replication\r\nrole:master\r\nconnected_slaves:0\r\n\r\n# Counters\r\n{more}"
    ));
}
