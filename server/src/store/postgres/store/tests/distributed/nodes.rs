//! Citus's refusals, and the nodes that it asks: seen on a real one (docs/CITUS.md), held here by the texts of functions and statements.

use crate::store::migrations::POSTGRES;
use crate::store::postgres::keyed::{COPIES, newest_sql};
use crate::store::postgres::layout::FUNCTIONS;
use crate::store::postgres::layout::Layout;
use crate::store::postgres::lookup::{ABOVE, LATEST_IDS, READ_MARKERS, RECORDS, entries_sql};

/// The functions that touch distributed tables: name and text.
fn functions() -> impl Iterator<Item = (&'static str, &'static str)> {
    let of_both = POSTGRES.functions.iter().filter(|(name, _)| *name == "compact_entry");
    FUNCTIONS.iter().chain(of_both).copied()
}

#[test]
fn no_function_of_this_layout_has_what_citus_does_not_take() {
    assert!(functions().count() > 8, "there are fewer than thought");
    for (name, text) in functions() {
        // It plans nothing generically but what its fast path takes.
        assert!(!text.contains("plan_cache_mode"), "{name}: generic plans");
        // It writes `CASE x WHEN c` wrongly when it hands a statement on.
        let mut words = text.split_whitespace();
        while words.by_ref().any(|word| word.trim_start_matches('(') == "CASE") {
            assert_eq!(words.next(), Some("WHEN"), "{name}: a CASE with an operand");
        }
    }
}

#[test]
fn every_look_up_of_this_layout_names_the_nodes_that_it_asks() {
    for sql in [LATEST_IDS, ABOVE, RECORDS, &entries_sql(), READ_MARKERS, &newest_sql(), COPIES] {
        let sql = Layout::Distributed.look_up(sql);
        let tables = ["heads", "sent", "entries", "conversations", "compaction_keys"];
        let reads = |table: &&str| ["FROM", "JOIN"].map(|how| sql.matches(&format!("{how} {table}")).count());
        let asked: usize = tables.iter().flat_map(reads).sum();
        assert_eq!(sql.matches("partition_key = ANY($1)").count(), asked, "{sql}");
        assert!(asked >= 1 && !sql.contains("LIMIT"), "{sql}");
    }
    let groups = Layout::Distributed.groups();
    assert!(groups.contains("now.gid = ANY($1)"));
    assert!(!groups.contains("LATERAL"), "it takes no join that follows another row");
}
