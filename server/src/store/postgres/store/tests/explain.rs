//! The plans of every hot statement, as the database chose them: each statement that the store sends, and each one
//! inside a function. `auto_explain` tells them as notices, so no list of statements can miss one.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::{Mutex, PoisonError};

use serde_json::Value;
use tracing::field::{Field, Visit};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};

use super::plans::{MUCH, ask_everything, write_everything};
use super::*;
use crate::domain::Timestamp;
use crate::store::{Directory, NewAccount, Session};

/// Tables whose rows lie by a key, with its first column.
const KEYS: [(&str, &str); 12] = [
    ("heads", "partition_key"),
    ("entries", "partition_key"),
    ("sent", "partition_key"),
    ("conversations", "partition_key"),
    ("pending", "partition_key"),
    ("outbox", "partition_key"),
    ("accounts", "uid"),
    ("name_skeletons", "skeleton"),
    ("sessions", "token_hash"),
    ("groups", "gid"),
    ("members", "gid"),
    ("table_rows", "partition_key"),
];

/// Indexes of other columns, each with one row for a value.
const SINGLE: [&str; 1] = ["pending_by_acceptance"];

/// Other indexes by which rows are found alone, with their first columns: ranges over several partitions, and names.
const ACROSS: [(&str, &str); 2] = [("table_rows_by_key", "table_id"), ("accounts_name_key_key", "name_key")];

/// People who log in, beside the rows.
const PEOPLE: &str = "
    INSERT INTO accounts (uid, name, name_key, password_hash, created_at)
        SELECT n, 'user' || n, 'user' || n, '', 0 FROM generate_series(20001, 24000) n;
    INSERT INTO name_skeletons SELECT 'user' || n, n FROM generate_series(20001, 24000) n;
    INSERT INTO sessions SELECT sha256(n::text::bytea), n, 0, 10, '' FROM generate_series(20001, 24000) n;";

/// The messages of `auto_explain` to this thread.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<Vec<String>>>);

impl<S: tracing::Subscriber> Layer<S> for Told {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        if event.metadata().target() == "sqlx::postgres::notice" {
            event.record(&mut self.clone());
        }
    }
}

impl Visit for Told {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "message" {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(value.to_owned());
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.record_str(field, &format!("{value:?}"));
    }
}

impl Told {
    /// The plans so far, with the texts of their statements.
    fn take(&self) -> Vec<(String, Value)> {
        let told = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let plan = |notice: &String| {
            let (_, json) = notice.split_once("plan:")?;
            let mut plan: Value = serde_json::from_str(json).expect("a plan");
            let text = plan["Query Text"].as_str().expect("a text").to_owned();
            Some((text, plan["Plan"].take()))
        };
        told.iter().filter_map(plan).collect()
    }
}

/// Every new connection is told the plan of each statement.
async fn explain_everything(url: &str) {
    let sql =
        "DO $$BEGIN EXECUTE format('ALTER DATABASE %1$I SET session_preload_libraries = ''auto_explain'';
        ALTER DATABASE %1$I SET auto_explain.log_min_duration = 0;
        ALTER DATABASE %1$I SET auto_explain.log_nested_statements = on;
        ALTER DATABASE %1$I SET auto_explain.log_format = json;
        ALTER DATABASE %1$I SET auto_explain.log_level = notice', current_database()); END$$";
    run(&mut connection(url).await, "LOAD 'auto_explain'").await;
    run(&mut connection(url).await, sql).await;
}

/// Notes, for each table of a plan, how it is read, and complains of one that is not read along its key.
fn judge(text: &str, node: &Value, read: &mut BTreeSet<String>) {
    let kind = node["Node Type"].as_str().unwrap_or_default();
    let table = node["Relation Name"].as_str().unwrap_or_default();
    if kind != "ModifyTable"
        && let Some((table, key)) = KEYS.iter().find(|(name, _)| *name == table)
    {
        let along = match kind {
            "Index Scan" | "Index Only Scan" => node["Index Cond"].as_str().unwrap_or_default(),
            "Bitmap Heap Scan" => node["Recheck Cond"].as_str().unwrap_or_default(),
            _ => "",
        };
        // An index of its own, under which there is one row for each value, is as good where the key is named, too.
        let is_other = SINGLE.iter().any(|single| node["Index Name"] == *single);
        // So is a version that was looked up along the key before.
        let is_version = kind == "Tid Scan";
        let is_known = (is_other || is_version) && node["Filter"].to_string().contains(key);
        let is_across = ACROSS
            .iter()
            .any(|(index, column)| node["Index Name"] == *index && along.contains(&format!("{column} = ")));
        assert!(
            is_known || is_across || along.contains(&format!("{key} = ")),
            "{table} is read by {kind}, not along {key}, in {text}:\n{node:#}"
        );
        read.insert((*table).to_owned());
    }
    // A page of rows comes in the order of an index.
    assert!(!(text.contains("so_far") && kind.contains("Sort")), "{kind} in {text}:\n{node:#}");
    for child in node["Plans"].as_array().into_iter().flatten() {
        judge(text, child, read);
    }
}

/// Log-ins, and what each request of a client asks.
async fn log_in(directory: &Directory, round: u32) {
    let (n, uid) = (20_001 + round, Uid(30_001 + round));
    let session = Session {
        token_hash: [round as u8; 32],
        uid,
        created_at: Timestamp(0),
        expires_at: Timestamp(10),
        label: String::new(),
    };
    let account =
        NewAccount { name: format!("new{round}"), password_hash: String::new(), created_at: Timestamp(0) };
    assert!(directory.create_account(uid, account, Some(session.clone())).await.expect("made"));
    assert!(directory.session(&session.token_hash, Timestamp(1)).await.expect("read").is_some());
    assert_eq!(directory.are_good(&[session.token_hash], Timestamp(1)).await.expect("read"), [true]);
    assert!(directory.account_by_name(&format!("user{n}")).await.expect("read").is_some());
    assert!(directory.account(Uid(n)).await.expect("read").is_some());
    assert!(directory.names(&[Uid(n), uid]).await.expect("read").iter().all(Option::is_some));
    assert!(directory.has_look_alike(&format!("new{round}")).await.expect("read"));
    assert!(directory.set_password(uid, "new").await.expect("written"));
    assert!(directory.end_session(&session.token_hash).await.expect("ended"));
}

async fn everything_goes_along_the_keys(has_statistics: bool) {
    let url = durable_database().await;
    drop(open(&url).await);
    run(&mut connection(&url).await, MUCH).await;
    run(&mut connection(&url).await, PEOPLE).await;
    run(&mut connection(&url).await, super::tables::MUCH).await;
    if has_statistics {
        run(&mut connection(&url).await, "ANALYZE").await;
    }
    explain_everything(&url).await;
    let told = Told::default();
    let _guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(told.clone()));
    let store = open(&url).await;
    let directory = Directory::on_postgres(Arc::clone(&store.db), 0);
    told.take();
    let mut read = BTreeSet::new();
    // So often that the database keeps its plans.
    for round in 0..8 {
        ask_everything(&store, round).await;
        write_everything(&store, round).await;
        log_in(&directory, round as u32).await;
        super::tables::use_everything(&store, round).await;
        for (text, plan) in told.take() {
            judge(&text, &plan, &mut read);
        }
    }
    for (table, _) in KEYS {
        assert!(read.contains(table), "no plan reads {table}; those that are read: {read:?}");
    }
    store.close().await;
}

#[tokio::test]
async fn every_hot_statement_names_its_key_in_tables_that_are_known() {
    everything_goes_along_the_keys(true).await;
}

#[tokio::test]
async fn every_hot_statement_names_its_key_in_tables_of_which_nothing_is_known() {
    everything_goes_along_the_keys(false).await;
}
