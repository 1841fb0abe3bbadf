//! The store in etcd, by both suites on three real members, and by cases that need several processes or silent members.

use std::path::Path;

use super::*;
use crate::store::StoresConfig;
use seqsvr_core::store::conformance::{LAYOUT, owner, range, to};
use seqsvr_core::store::tables::{Revisions, RoutingTableStore};
use seqsvr_core::store::{Layout, Moves, RaiseError, SectionStore, SetTerms};
use seqsvr_etcd::prefix_end;
use seqsvr_etcd::v3::RangeRequest;
use tidemark_test_support::servers::certificates::{self, Certificates};
use tidemark_test_support::servers::etcd::{endpoints, fresh_prefix, tls};

fn open(endpoints: Vec<String>, prefix: &str, patience: Duration) -> EtcdStore {
    let config = EtcdConfig { endpoints, ..EtcdConfig::default() };
    EtcdStore::open(&config, prefix, patience).unwrap()
}

const PATIENCE: Duration = Duration::from_secs(5);

async fn fresh() -> (EtcdStore, ()) {
    (open(endpoints(), &fresh_prefix(), PATIENCE), ())
}

mod sections {
    use super::fresh;

    seqsvr_core::store::conformance::conformance!(fresh);
}

mod tables {
    use super::fresh;

    seqsvr_core::store::conformance::tables::conformance!(fresh);
}

#[tokio::test]
async fn what_one_process_remembers_never_outlives_the_claim_of_another() {
    let prefix = fresh_prefix();
    let one = open(endpoints(), &prefix, PATIENCE);
    let other = open(endpoints(), &prefix, PATIENCE);
    one.claim(&[range(0, 9)], owner(1, 1), LAYOUT).await.unwrap();
    assert_eq!(one.raise(owner(1, 1), &[to(3, 10_000), to(7, 10_000)]).await, [Ok(10_000), Ok(10_000)]);
    assert_eq!(other.claim(&[range(0, 4)], owner(2, 2), LAYOUT).await.unwrap().ceilings, [to(3, 10_000)]);
    let lost = Err(RaiseError::NotOwner { newest: owner(2, 2).epoch });
    assert_eq!(one.raise(owner(1, 1), &[to(3, 20_000), to(7, 20_000)]).await, [lost, Ok(20_000)]);
    assert_eq!(other.raise(owner(2, 2), &[to(3, 20_000)]).await, [Ok(20_000)]);
    assert_eq!(one.raise(owner(1, 1), &[to(7, 30_000)]).await, [Ok(30_000)]);
}

#[tokio::test]
async fn the_last_section_has_a_place() {
    let (store, ()) = fresh().await;
    let all = range(0, u32::MAX);
    store.claim(std::slice::from_ref(&all), owner(1, 1), LAYOUT).await.unwrap();
    let raises = [to(0, 10_000), to(u32::MAX, 20_000)];
    assert_eq!(store.raise(owner(1, 1), &raises).await, [Ok(10_000), Ok(20_000)]);
    assert_eq!(store.claim(&[all], owner(2, 2), LAYOUT).await.unwrap().ceilings, raises);
}

#[tokio::test]
async fn a_silent_member_only_takes_its_time() {
    // It accepts connections and never says a word, as a stopped process does.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut asked = vec![format!("http://{}", silent.local_addr().unwrap())];
    asked.extend(endpoints());
    let store = open(asked, &fresh_prefix(), Duration::from_secs(1));
    store.claim(&[range(0, 9)], owner(1, 1), LAYOUT).await.unwrap();
    assert_eq!(store.raise(owner(1, 1), &[to(3, 10_000)]).await, [Ok(10_000)]);
    assert_eq!(store.read(&Revisions::default(), Duration::ZERO).await.unwrap().table, None);
}

#[tokio::test]
async fn without_a_member_nothing_is_confirmed() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let store = open(vec![format!("http://{closed}")], &fresh_prefix(), PATIENCE);
    assert!(matches!(store.newest_epoch().await, Err(StoreError::Unavailable(_))));
    let answers = store.raise(owner(1, 1), &[to(0, 1)]).await;
    assert!(matches!(answers[..], [Err(RaiseError::Unavailable(_))]), "{answers:?}");
}

/// The section `[stores]` as people write it, with the certificates that they were given.
fn written(endpoints: &[String], authority: Option<&Path>, shown: Option<&Certificates>) -> StoresConfig {
    let authority = authority.map_or_else(String::new, |path| format!("authority = {path:?}\n"));
    let shown = shown.map_or_else(String::new, |Certificates { certificate, key, .. }| {
        format!("certificate = {certificate:?}\nkey = {key:?}\n")
    });
    toml::from_str(&format!("[etcd]\nendpoints = {endpoints:?}\n{authority}{shown}")).unwrap()
}

#[tokio::test]
async fn with_tls_the_members_serve_who_shows_their_certificate() {
    let (endpoints, certificates) = tls();
    let cluster = fresh_prefix().replace('/', "-");
    let open =
        || written(&endpoints, Some(&certificates.authority), Some(certificates)).open(&cluster, 0).unwrap();
    let (one, other) = (open(), open());
    one.sections.claim(&[range(0, 9)], owner(1, 1), LAYOUT).await.unwrap();
    assert_eq!(one.sections.raise(owner(1, 1), &[to(3, 10_000)]).await, [Ok(10_000)]);
    let claimed = other.sections.claim(&[range(0, 9)], owner(2, 2), LAYOUT).await.unwrap();
    assert_eq!(claimed.ceilings, [to(3, 10_000)]);
    one.tables.promise(7).await.unwrap();
    assert_eq!(other.tables.read(&Revisions::default(), Duration::ZERO).await.unwrap().promised, 7);
}

#[tokio::test]
async fn wrong_certificates_are_refused_in_one_line() {
    let (endpoints, certificates) = tls();
    let folder = tempfile::tempdir().unwrap();
    let foreign = certificates::issue(folder.path());
    let own = Some(certificates.authority.as_path());
    let plain = endpoints.iter().map(|one| one.replace("https", "http")).collect::<Vec<_>>();
    let refusals = [
        (
            written(&endpoints, Some(&foreign.authority), Some(certificates)),
            "set authority to the authority that signed",
        ),
        (written(&endpoints, own, None), "set certificate and key to one that its authority signed"),
        (
            written(&endpoints, own, Some(&foreign)),
            "set certificate and key to one that its authority signed",
        ),
        (written(&plain, None, None), "write https:// and set authority"),
    ];
    for (config, why) in refusals {
        let stores = config.open("test", 0).unwrap();
        let error = stores.sections.newest_epoch().await.unwrap_err().to_string();
        assert!(error.contains(why) && !error.contains('\n'), "{error}");
    }
}

#[tokio::test]
async fn a_role_with_other_sections_is_refused_and_the_lease_is_the_stored_one() {
    let prefix = fresh_prefix();
    let role = || open(endpoints(), &prefix, PATIENCE);
    let millis = Duration::from_millis;
    let stored =
        SetTerms { lease: millis(3_000), layout: LAYOUT, uids: 0..=999_999, moves: Moves::default() };
    let first = role();
    let read =
        async |store: &EtcdStore| store.read(&Revisions::default(), Duration::ZERO).await.unwrap().bounds;
    assert_eq!(read(&first).await, None);
    let line = first.agree(LAYOUT).await.unwrap_err().to_string();
    assert!(line.contains("an arbiter of the Set stores it"), "{line}");
    first.establish(&stored).await.unwrap();
    role().establish(&SetTerms { lease: millis(1_000), ..stored.clone() }).await.unwrap();
    first.agree(LAYOUT).await.unwrap();
    let bounds = read(&role()).await.unwrap();
    assert_eq!((bounds.lease, bounds.uids), (stored.lease, stored.uids));

    let step = Layout { step: LAYOUT.step + 1, ..LAYOUT };
    let line = role().agree(step).await.unwrap_err().to_string();
    assert!(line.contains("set section_size"), "{line}");
}

/// The keys of the Set with the revision of their last change: equal where nothing was put or removed in between.
async fn revisions(store: &EtcdStore, prefix: &str) -> Vec<(Vec<u8>, i64)> {
    let key = prefix.as_bytes().to_vec();
    let range = RangeRequest { range_end: prefix_end(&key), key, ..RangeRequest::default() };
    let stored = store.members.range(&range).await.unwrap().kvs;
    stored.into_iter().map(|one| (one.key, one.mod_revision)).collect()
}

async fn silent(store: &EtcdStore) -> Duration {
    store.read(&Revisions::default(), Duration::ZERO).await.unwrap().acting.unwrap()
}

#[tokio::test]
async fn an_arbiter_that_acts_leaves_no_revisions_behind() {
    let prefix = fresh_prefix() + "/";
    let arbiter = open(endpoints(), prefix.trim_end_matches('/'), PATIENCE);
    arbiter.promise(3).await.unwrap();
    assert_eq!(arbiter.acting(3).await.unwrap(), 3);
    let before = revisions(&arbiter, &prefix).await;
    assert_eq!(before.len(), 2, "the term and the sign: {before:?}");
    for _ in 0..100 {
        assert_eq!(arbiter.acting(3).await.unwrap(), 3);
    }
    assert_eq!(revisions(&arbiter, &prefix).await, before);
}

#[tokio::test]
async fn a_lease_that_is_over_tells_of_the_silence_and_the_arbiter_takes_another() {
    let prefix = fresh_prefix();
    let (arbiter, other) = (open(endpoints(), &prefix, PATIENCE), open(endpoints(), &prefix, PATIENCE));
    arbiter.promise(3).await.unwrap();
    arbiter.acting(3).await.unwrap();
    assert_eq!(silent(&other).await, Duration::ZERO);
    let lease = lock(&arbiter.lease).unwrap();
    arbiter.members.revoke(lease).await.unwrap();
    assert!(silent(&other).await >= Duration::from_secs(2));
    assert_eq!(arbiter.acting(3).await.unwrap(), 3);
    assert_ne!(lock(&arbiter.lease).unwrap(), lease);
    assert_eq!(silent(&other).await, Duration::ZERO);
}
