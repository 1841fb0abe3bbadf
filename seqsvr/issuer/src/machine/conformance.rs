//! The rules that every registry of machine ids must keep, run by each of them: `conformance!(fresh)` in a test module makes one test of
//! each rule, on an empty registry that `fresh` returns together with a value that must outlive it.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use super::Instance;
use super::claim::{Claim, ClaimError, Granted, claim, release};
use super::registry::{Entry, MAX_VALUE, Registry, Row};
use crate::clock::Clock;

const MINUTE: Duration = Duration::from_secs(60);

fn entry(machine: u32, holder: u64) -> Entry {
    let instance = Instance::named(&format!("sequence-client:8112:{machine}")).unwrap();
    Entry { machine, instance, holder, used_until: 1_800_000_000_000 }
}

async fn rows(registry: &dyn Registry) -> Vec<Row> {
    let mut rows = registry.rows().await.expect("the registry can be used");
    rows.sort_by_key(|row| row.entry.machine);
    rows
}

async fn write(registry: &dyn Registry, entry: &Entry, over: u64, lease: Duration) -> bool {
    registry.write(entry, over, lease).await.expect("the registry can be used")
}

fn asking(name: &str, holder: u64, machines: u32) -> Claim {
    Claim {
        instance: Instance::named(name).unwrap(),
        holder,
        machines: 0..machines,
        lease: MINUTE,
        asked: None,
    }
}

async fn get(registry: &dyn Registry, asked: &Claim) -> Granted {
    claim(registry, &Clock::system(), &mut asked.clone()).await.expect("there are ids left")
}

pub(super) async fn an_empty_registry_has_no_rows(registry: &dyn Registry) {
    assert_eq!(rows(registry).await, []);
}

pub(super) async fn a_row_reads_as_written(registry: &dyn Registry) {
    let longest = Instance::named(&"x".repeat(128)).unwrap();
    let largest = Entry { machine: 65_535, instance: longest, holder: MAX_VALUE, used_until: MAX_VALUE };
    let smallest = Entry { holder: 0, used_until: 0, ..entry(0, 0) };
    for entry in [&largest, &smallest] {
        assert!(write(registry, entry, 0, MINUTE).await);
    }
    let rows = rows(registry).await;
    assert_eq!(rows.iter().map(|row| &row.entry).collect::<Vec<_>>(), [&smallest, &largest]);
    assert!(rows.iter().all(|row| row.live && row.version > 0), "{rows:?}");
}

pub(super) async fn a_write_over_what_was_changed_does_nothing(registry: &dyn Registry) {
    assert!(!write(registry, &entry(1, 1), 77, MINUTE).await, "there is no row to replace");
    assert!(write(registry, &entry(1, 1), 0, MINUTE).await);
    let first = rows(registry).await;
    assert!(!write(registry, &entry(1, 2), 0, MINUTE).await, "there is a row");
    assert!(write(registry, &entry(1, 2), first[0].version, MINUTE).await);
    assert!(!write(registry, &entry(1, 3), first[0].version, MINUTE).await, "the row was changed");
    let second = rows(registry).await;
    assert_eq!(second[0].entry, entry(1, 2));
    assert_ne!(second[0].version, first[0].version);
}

pub(super) async fn of_writes_at_once_one_succeeds(registry: &dyn Registry) {
    for round in 0..3 {
        let over = rows(registry).await.first().map_or(0, |row| row.version);
        let entries = [1, 2, 3, 4].map(|holder| entry(1, 10 * round + holder));
        let [a, b, c, d] = &entries;
        let won = tokio::join!(
            write(registry, a, over, MINUTE),
            write(registry, b, over, MINUTE),
            write(registry, c, over, MINUTE),
            write(registry, d, over, MINUTE)
        );
        assert_eq!([won.0, won.1, won.2, won.3].into_iter().filter(|won| *won).count(), 1);
    }
}

pub(super) async fn a_lease_ends_by_itself_and_the_row_stays(registry: &dyn Registry) {
    let begun = Instant::now();
    assert!(write(registry, &entry(1, 1), 0, Duration::from_millis(5)).await);
    while rows(registry).await[0].live {
        assert!(begun.elapsed() < Duration::from_secs(20), "the lease does not end");
        tokio::task::yield_now().await;
    }
    assert!(begun.elapsed() >= Duration::from_millis(4), "it ended early");
    assert_eq!(rows(registry).await[0].entry, entry(1, 1));
    let version = rows(registry).await[0].version;
    assert!(write(registry, &entry(1, 2), version, MINUTE).await);
    assert!(rows(registry).await[0].live);
}

pub(super) async fn what_is_given_back_is_free_at_once(registry: &dyn Registry) {
    let asked = asking("a", 1, 1);
    let granted = get(registry, &asked).await;
    release(registry, &asking("b", 2, 1), granted.machine, 5).await.unwrap();
    assert!(rows(registry).await[0].live, "only its holder gives it back");
    release(registry, &asked, granted.machine, 5).await.unwrap();
    let rows = rows(registry).await;
    assert!(!rows[0].live);
    assert_eq!(rows[0].entry.used_until, 5);
    assert_eq!(get(registry, &asking("b", 2, 1)).await.not_before, 5);
}

pub(super) async fn a_renewal_keeps_the_id(registry: &dyn Registry) {
    let (a, b) = (asking("a", 1, 1_024), asking("b", 2, 1_024));
    let first = get(registry, &a).await;
    let other = get(registry, &b).await;
    assert_ne!(first.machine, other.machine);
    for _ in 0..3 {
        let again = get(registry, &a).await;
        assert_eq!((again.machine, again.not_before), (first.machine, 0));
        assert!(again.ends_boot >= first.ends_boot && again.used_until >= first.used_until);
    }
    assert_eq!(rows(registry).await.len(), 2);
}

pub(super) async fn an_instance_gets_its_id_again(registry: &dyn Registry) {
    let asked = asking("a", 1, 1_024);
    let first = get(registry, &asked).await;
    release(registry, &asked, first.machine, 7).await.unwrap();
    for holder in 2..5 {
        get(registry, &asking("other", holder, 1_024)).await;
    }
    let again = get(registry, &asking("a", 99, 1_024)).await;
    assert_eq!((again.machine, again.not_before), (first.machine, 7));
}

pub(super) async fn claims_at_once_get_different_ids_until_none_is_left(registry: &dyn Registry) {
    let claims: Vec<Claim> = (0..8).map(|holder| asking(&format!("i{holder}"), holder, 8)).collect();
    let granted = futures_util::future::join_all(claims.iter().map(|asked| get(registry, asked))).await;
    let ids: HashSet<u32> = granted.iter().map(|granted| granted.machine).collect();
    assert_eq!(ids, (0..8).collect());
    let refused = claim(registry, &Clock::system(), &mut asking("late", 100, 8)).await;
    assert_eq!(refused, Err(ClaimError::Exhausted(8)));
    assert!(refused.unwrap_err().to_string().starts_with("all 8 machine ids are held"));
}

/// One test for each rule; `fresh` is an async function that returns an empty registry and a value that must outlive it.
macro_rules! conformance {
    ($fresh:path; $($rule:ident)*) => { $(
        #[tokio::test]
        async fn $rule() {
            let (registry, _kept) = $fresh().await;
            $crate::machine::conformance::$rule(&registry).await;
        }
    )* };
    ($fresh:path) => {
        $crate::machine::conformance::conformance! { $fresh;
            an_empty_registry_has_no_rows
            a_row_reads_as_written
            a_write_over_what_was_changed_does_nothing
            of_writes_at_once_one_succeeds
            a_lease_ends_by_itself_and_the_row_stays
            what_is_given_back_is_free_at_once
            a_renewal_keeps_the_id
            an_instance_gets_its_id_again
            claims_at_once_get_different_ids_until_none_is_left
        }
    };
}
pub(super) use conformance;
