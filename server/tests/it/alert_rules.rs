//! The shipped rules of Prometheus by `promtool`, as they are shipped: each fires when something is wrong, and not when all is well.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::process::Command;

const RULES: &str = include_str!("../../../docs/operating/alerts.yml");

/// How often values are taken, and rules are asked.
const INTERVAL: &str = "15s";

/// A rule, a series of which it is asked, values of it with which the rule fires at the time that follows, and such with which it never
/// does. In the notation of `promtool`: `0+7x40` begins with 0, and 40 times adds 7.
type Case = (&'static str, &'static [&'static str], &'static str, &'static str, &'static str);

const CASES: &[Case] = &[
    ("TidemarkDown", &["up{job=\"tidemark\"}"], "1 0x40", "2m", "1x40"),
    ("TidemarkStorageNotReady", &["tidemark_storage_ready"], "1 0x40", "1m", "1x40"),
    ("TidemarkCommitsRefused", &["tidemark_commits_refused_total"], "0 0 0 1x40", "2m", "7x40"),
    ("TidemarkDiskAlmostFull", &["tidemark_storage_free_bytes"], "4000000000x60", "11m", "90000000000x60"),
    (
        "TidemarkDiskAlmostFull",
        &["tidemark_storage_free_bytes"],
        "90000000000-100000000x60",
        "12m",
        "90000000000-1000x60",
    ),
    ("TidemarkFlushesFail", &["tidemark_flushes_failed_total"], "0 0 0 1x40", "2m", "7x40"),
    ("TidemarkRowsSetAside", &["tidemark_rows_set_aside_total"], "0 0 0 1x40", "2m", "7x40"),
    ("TidemarkPagesDamaged", &["tidemark_storage_damaged_pages"], "0 2x40", "1m", "0x40"),
    ("TidemarkBackupOld", &["tidemark_backup_timestamp_seconds"], "0x12000", "49h", "0+15x12000"),
    ("TidemarkNoNumbers", &["tidemark_sections_without_numbers"], "0 3x40", "2m", "0x40"),
    ("TidemarkOwedMessages", &["tidemark_owed_bytes"], "0 40000000x40", "1m", "1000x40"),
    ("TidemarkSequenceBehind", &["tidemark_sequence_overtaken_total"], "0 0 0 1x40", "2m", "7x40"),
    ("TidemarkDevicesAhead", &["tidemark_cursors_ahead_total"], "0+10x40", "3m", "0 0 1x40"),
    (
        "TidemarkQueueFull",
        &["tidemark_queue_depth{queue=\"0\"}", "tidemark_queue_depth{queue=\"1\"}"],
        "0 4000x40",
        "2m",
        "100x40",
    ),
    (
        "TidemarkSlowSends",
        &["tidemark_send_seconds_bucket{le=\"1\"}", "tidemark_send_seconds_bucket{le=\"+Inf\"}"],
        "0+9x80",
        "12m",
        "0x80",
    ),
    ("TidemarkManyConnections", &["tidemark_connections"], "0 41000x40", "6m", "40000x40"),
    ("SeqsvrRoleDown", &["up{job=\"seqsvr\"}"], "1 0x40", "2m", "1x40"),
    ("SeqsvrSectionsUnserved", &["seqsvr_arbiter_sections_unserved"], "0 2x40", "1m", "0x40"),
    ("SeqsvrAllocSvrDoesNotServe", &["seqsvr_sections_unserved"], "0 2x40", "1m", "0x40"),
    ("SeqsvrLeaseEnds", &["seqsvr_lease_remaining_seconds"], "8 0x40", "1m", "8x40"),
    (
        "SeqsvrNotOneArbiter",
        &["seqsvr_arbiter_acting{instance=\"1\"}", "seqsvr_arbiter_acting{instance=\"2\"}"],
        "0x40",
        "1m",
        "0.5x40",
    ),
    ("SeqsvrStoreAway", &["seqsvr_arbiter_store_up{store=\"3\"}"], "1 0x40", "2m", "1x40"),
    (
        "SeqsvrStoreFallsBehind",
        &["seqsvr_arbiter_store_behind{store=\"3\"}"],
        "0+100x240",
        "40m",
        "5000-10x240",
    ),
    (
        "SeqsvrSlowRaises",
        &["seqsvr_raise_seconds_bucket{le=\"1\"}", "seqsvr_raise_seconds_bucket{le=\"+Inf\"}"],
        "0+9x80",
        "12m",
        "0x80",
    ),
    ("SeqsvrConnectionsRefused", &["seqsvr_connections_refused_total"], "0 0 0 1x40", "2m", "7x40"),
];

#[test]
fn each_rule_fires_when_something_is_wrong_and_not_when_all_is_well() {
    let named: BTreeSet<&str> =
        RULES.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).collect();
    let tried: BTreeSet<&str> = CASES.iter().map(|(rule, ..)| *rule).collect();
    assert_eq!(tried, named, "each rule has a case, and each case a rule");

    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("rules.yml"), RULES).expect("written");
    let mut text = format!("rule_files: [rules.yml]\nevaluation_interval: {INTERVAL}\ntests:\n");
    for (rule, series, wrong, at, well) in CASES {
        for (values, fires) in [(wrong, true), (well, false)] {
            writeln!(text, "  - interval: {INTERVAL}\n    input_series:").expect("a text");
            for series in *series {
                writeln!(text, "      - {{series: '{series}', values: '{values}'}}").expect("a text");
            }
            let count =
                format!("count(count by (alertname) (ALERTS{{alertname=\"{rule}\",alertstate=\"firing\"}}))");
            let samples = if fires { "[{labels: '{}', value: 1}]" } else { "[]" };
            writeln!(
                text,
                "    promql_expr_test:\n      - {{expr: '{count}', eval_time: {at}, exp_samples: {samples}}}"
            )
            .expect("a text");
        }
    }
    fs::write(folder.path().join("tests.yml"), text).expect("written");
    let told =
        Command::new("promtool").args(["test", "rules", "tests.yml"]).current_dir(folder.path()).output();
    let told = told.expect("promtool runs");
    let (out, errors) = (String::from_utf8_lossy(&told.stdout), String::from_utf8_lossy(&told.stderr));
    assert!(told.status.success(), "{out}{errors}");
}
