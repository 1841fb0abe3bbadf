//! The role `seqsvr store` as a process: what it confirmed survives SIGKILL, and it says clearly what it refuses.

mod process;
mod refusals;
mod version;

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use process::{Place, refusal};
use seqsvr_cluster::store::quorum::Link;
use seqsvr_core::routing::Table;
use seqsvr_core::store::message::Raised;
use seqsvr_core::store::message::{Answer, Question};
use seqsvr_core::store::{Ceiling, Layout, Owner};
use seqsvr_core::{Epoch, SectionId};
use tidemark_test_support::ports::free_port;
use tokio::sync::watch;

const LAYOUT: Layout = Layout { section_size: 100_000, step: 10_000 };

fn owner(version: u64) -> Owner {
    Owner { epoch: Epoch { term: 1, version }, incarnation: version }
}

fn sections(last: u32) -> Vec<RangeInclusive<SectionId>> {
    vec![SectionId::new(0)..=SectionId::new(last)]
}

async fn claim(link: &dyn Link, last: u32, owner: Owner) -> Vec<Ceiling> {
    match link.ask(Question::Claim { sections: sections(last), owner, layout: LAYOUT }).await {
        Ok(Answer::Claimed { ceilings, .. }) => ceilings,
        other => panic!("{other:?}"),
    }
}

/// Raises one section on and on until the replica no longer answers; `confirmed` is what it answered for.
async fn raise_until_it_dies(
    link: &dyn Link,
    owner: Owner,
    section: u32,
    from: u64,
    confirmed: &watch::Sender<u64>,
) {
    for max in from.. {
        let ceilings = vec![Ceiling { section: SectionId::new(section), max }];
        match link.ask(Question::Raise { owner, ceilings }).await {
            Ok(Answer::Raised(raised)) => assert_eq!(raised, [Raised::Confirmed(max)]),
            Ok(other) => panic!("{other:?}"),
            Err(_) => return,
        }
        confirmed.send_replace(max);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn confirmed_raises_survive_being_killed() {
    let place = Place::new("s1", "file_bytes = 65536");
    let mut replica = place.start(&["--init", "--without-peers"]);
    let confirmed: Vec<_> = (0..8).map(|_| watch::Sender::new(0)).collect();
    for life in 1..=6 {
        let link = replica.link();
        let found = claim(&link, 7, owner(life)).await;
        let at_least: Vec<u64> = confirmed.iter().map(|one| *one.borrow()).collect();
        for (section, &at_least) in at_least.iter().enumerate() {
            let stored = found.iter().find(|one| one.section.get() as usize == section);
            let stored = stored.map_or(0, |one| one.max);
            assert!(stored >= at_least, "life {life}: {stored} of {at_least} in section {section}");
            // One raise more may have been written without being answered.
            assert!(stored <= at_least + 1, "life {life}: {stored}, but {at_least} was asked for");
        }
        let raising = found.iter().map(|one| one.max + 1).chain(std::iter::repeat(1)).zip(0u32..8);
        let raising = raising.map(|(from, section)| {
            raise_until_it_dies(&link, owner(life), section, from, &confirmed[section as usize])
        });
        let killing = async {
            let enough = at_least[0] + 40 + 7 * life;
            confirmed[0].subscribe().wait_for(|&max| max >= enough).await.unwrap();
            replica.kill();
        };
        tokio::join!(futures_util::future::join_all(raising), killing);
        replica = place.start(&[]);
    }
    assert!(replica.stop().success());
}

#[tokio::test]
async fn a_stop_ends_held_back_reads_and_the_next_start_goes_on() {
    let place = Place::new("s1", "");
    let replica = place.start(&["--init", "--without-peers"]);
    let link = replica.link();
    claim(&link, 9, owner(1)).await;
    let Ok(Answer::Table { revision, .. }) =
        link.ask(Question::Read { revision: 0, wait: Duration::ZERO, releases: true }).await
    else {
        panic!("a read is answered")
    };
    let held = link.ask(Question::Read { revision, wait: Duration::from_secs(10), releases: true });
    let stop = async { tokio::task::spawn_blocking(move || replica.stop()).await.unwrap() };
    let (_, status) = tokio::join!(held, stop);
    assert!(status.success());
    let replica = place.start(&[]);
    assert_eq!(claim(&replica.link(), 9, owner(1)).await, []);
}

#[tokio::test]
async fn callers_of_another_cluster_or_set_are_refused() {
    let place = Place::new("s1", "");
    let replica = place.start(&["--init", "--without-peers"]);
    for (cluster, set) in [("other", 0), ("test", 1)] {
        let why = replica.link_as(cluster, set).ask(Question::Copy).await.unwrap_err();
        let mine = "but this is replica s1 of Set 0 of cluster test";
        assert!(why.contains(&format!("Set {set} of cluster {cluster}")) && why.contains(mine), "{why}");
    }
    assert!(matches!(replica.link().ask(Question::Copy).await, Ok(Answer::Copy(_))));
}

#[test]
fn an_empty_directory_and_a_second_process_are_refused() {
    let place = Place::new("s1", "");
    let line = refusal(&place, &[]);
    assert!(line.contains("start once with --init"), "{line}");
    let _replica = place.start(&["--init", "--without-peers"]);
    let line = refusal(&place, &[]);
    assert!(line.contains("used by another process"), "{line}");
    let other = Place::new("s1", "step = 1");
    let line = refusal(&other, &["--init"]);
    assert!(line.contains("step = 1 is wrong"), "{line}");
}

#[tokio::test]
async fn a_lost_replica_comes_back_with_what_the_others_have() {
    let places = [Place::new("s1", ""), Place::new("s2", "")];
    let others = places.each_ref().map(|place| place.start(&["--init", "--without-peers"]));
    for (version, replica) in (1..).zip(&others) {
        let link = replica.link();
        claim(&link, 9, owner(version)).await;
        let ceilings = vec![Ceiling { section: SectionId::new(version as u32), max: 1_000 * version }];
        link.ask(Question::Raise { owner: owner(version), ceilings }).await.unwrap();
    }
    // One has a table, the other has promised a higher term to an arbiter that may not know it.
    let version = Epoch { term: 5, version: 1 };
    let (nodes, assignments) = (Vec::new(), Vec::new());
    let table = Table { set: 0, version, section_size: 100_000, uids: 0..=u32::MAX, nodes, assignments };
    let table = Arc::new(table);
    assert_eq!(others[0].link().ask(Question::Write(Arc::clone(&table))).await, Ok(Answer::Written));
    let promised = others[1].link().ask(Question::Promise { term: 20 }).await;
    assert_eq!(promised, Ok(Answer::Promised(None)));
    let addrs = others.each_ref().map(|replica| format!("\"{}\"", replica.addr)).join(", ");
    let lost = Place::new("s3", &format!("[peers]\nreplicas = [{addrs}]\nrejoin_wait_ms = 1000"));
    let line = refusal(&lost, &["--init"]);
    assert!(line.contains("start with --rejoin instead of --init"), "{line}");
    let replica = lost.start(&["--rejoin"]);
    let link = replica.link();
    let to = |section, max| Ceiling { section: SectionId::new(section), max };
    let older = link.ask(Question::Raise { owner: owner(1), ceilings: vec![to(1, 2_000)] }).await;
    assert_eq!(older, Ok(Answer::Raised(vec![Raised::NotOwner(owner(2).epoch)])));
    assert_eq!(claim(&link, 9, owner(3)).await, [to(1, 1_000), to(2, 2_000)]);
    let of_that_term = Arc::new(Table { version: Epoch { term: 20, version: 1 }, ..(*table).clone() });
    for replica in others.iter().chain([&replica]) {
        let outranked = replica.link().ask(Question::Write(Arc::clone(&of_that_term))).await;
        assert_eq!(outranked, Ok(Answer::Outranked(21)), "{}", replica.addr);
    }
}

/// Ports for replicas that must know one another before any of them runs.
fn ports<const N: usize>() -> [u16; N] {
    [(); N].map(|()| free_port())
}

/// A replica that listens on the first of `ports`, beside the others.
fn beside(name: &str, ports: &[u16], more: &str) -> Place {
    let others: Vec<_> = ports[1..].iter().map(|port| format!("\"http://127.0.0.1:{port}\"")).collect();
    let (port, others) = (ports[0], others.join(", "));
    Place::new(name, &format!("listen = \"127.0.0.1:{port}\"\n[peers]\nreplicas = [{others}]\n{more}"))
}

#[test]
fn an_initialisation_beside_a_silent_peer_is_refused_unless_configured_otherwise() {
    let [one, two] = ports();
    let place = beside("s1", &[one, two], "init_ms = 300");
    let line = refusal(&place, &["--init"]);
    assert!(line.contains(&format!("127.0.0.1:{two} does not say whether it is in use")), "{line}");
    assert!(line.contains("--init --without-peers"), "{line}");
    assert!(!place.files().join("state.1").exists(), "nothing was made");
    assert!(place.start(&["--init", "--without-peers"]).stop().success());
    let line = refusal(&Place::new("s1", ""), &["--init"]);
    assert!(line.contains("[peers] replicas"), "{line}");
}

#[test]
fn new_replicas_that_wait_for_one_another_are_initialised_together() {
    let [one, two, three] = ports();
    let places = [
        beside("s1", &[one, two, three], ""),
        beside("s2", &[two, one, three], ""),
        beside("s3", &[three, one, two], ""),
    ];
    std::thread::scope(|scope| {
        let starting = places.each_ref().map(|place| scope.spawn(|| place.start(&["--init"])));
        for running in starting.map(|one| one.join().expect("it starts")) {
            assert!(running.stop().success());
        }
    });
}
