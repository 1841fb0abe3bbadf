//! The role `seqsvr store` as a process: what it confirmed survives SIGKILL, and it says clearly what it refuses.

mod process;
mod refusals;
mod version;
mod versions;

use std::ops::RangeInclusive;
use std::time::Duration;

use process::{StoreFolder, refusal, set_of};
use seqsvr_cluster::store::quorum::Link;
use seqsvr_core::store::message::{Answer, Misaddressed, Question, Raised};
use seqsvr_core::store::{Address, Ceiling, Layout, Owner, SectionStore};
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

/// Raises one section on and on until the replica no longer answers; `confirmed` is the last ceiling that it confirmed.
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
    let place = StoreFolder::new("s1", "");
    let mut replica = place.start(&["--init"]);
    set_of(&[&replica]).await;
    let confirmed: Vec<_> = (0..8).map(|_| watch::Sender::new(0)).collect();
    for life in 1..=6 {
        let link = replica.member().await;
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
    let place = StoreFolder::new("s1", "");
    let replica = place.start(&["--init"]);
    set_of(&[&replica]).await;
    let link = replica.member().await;
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
    assert_eq!(claim(&replica.member().await, 9, owner(1)).await, []);
}

#[tokio::test]
async fn callers_of_another_cluster_or_set_are_refused() {
    let place = StoreFolder::new("s1", "");
    let replica = place.start(&["--init"]);
    for (cluster, set) in [("other", 0), ("test", 1)] {
        let why = replica.link_as(cluster, set).ask(Question::Copy).await.unwrap_err();
        let mine = "but this is replica s1 of Set 0 of cluster test";
        assert!(why.contains(&format!("Set {set} of cluster {cluster}")) && why.contains(mine), "{why}");
    }
    assert!(matches!(replica.link().ask(Question::Copy).await, Ok(Answer::Copy(_))));
}

#[test]
fn an_empty_directory_and_a_second_process_are_refused() {
    let place = StoreFolder::new("s1", "");
    let line = refusal(&place, &[]);
    assert!(line.contains("start once with --init"), "{line}");
    let _replica = place.start(&["--init"]);
    let line = refusal(&place, &[]);
    assert!(line.contains("used by another process"), "{line}");
    let other = StoreFolder::new("s1", "step = 1");
    let line = refusal(&other, &["--init"]);
    assert!(line.contains("step = 1 is wrong"), "{line}");
}

/// A store that lost its disk is started anew, under its name and at its address, and is a new member.
#[tokio::test]
async fn a_store_that_lost_its_disk_comes_back_as_a_new_member() {
    let port = free_port();
    let places = [
        StoreFolder::new("s1", ""),
        StoreFolder::new("s2", ""),
        StoreFolder::new("s3", &format!("listen = \"127.0.0.1:{port}\"")),
    ];
    let mut stores = places.each_ref().map(|place| place.start(&["--init"]));
    let set = set_of(&stores.each_ref()).await;
    let old = set.configuration().unwrap();
    set.claim(&sections(9), owner(1), LAYOUT).await.unwrap();
    let raise = [Ceiling { section: SectionId::new(4), max: 1_000 }];
    assert_eq!(set.raise(owner(1), &raise).await, [Ok(1_000)]);

    stores[2].kill();
    std::fs::remove_dir_all(places[2].files()).unwrap();
    let line = refusal(&places[2], &[]);
    assert!(line.contains("holds no replica; start once with --init"), "{line}");
    let anew = places[2].start(&["--init"]);
    // It votes in nothing: neither as its earlier self nor as another member.
    for number in 0..=1 {
        for member in [0, old.members.iter().find(|one| one.name == "s3").unwrap().id] {
            let claim = Question::Claim { sections: sections(9), owner: owner(2), layout: LAYOUT };
            let answer = anew.link().call(Address { number, member }, claim).await;
            assert!(matches!(answer, Ok(Answer::Misaddressed { .. })), "{answer:?}");
        }
    }
    let changed = set.replace("s3", &anew.addr).await.unwrap();
    assert_eq!((changed.configuration.number, changed.already), (2, false));
    // It has the state of the others: they may end.
    stores[0].kill();
    let sections = sections(9);
    let claimed = set.claim(&sections, owner(2), LAYOUT).await.unwrap();
    assert_eq!(claimed.ceilings, raise);
}

#[tokio::test]
async fn stores_that_were_not_asked_for_by_an_arbiter_answer_no_call() {
    let store = StoreFolder::new("s1", "").start(&["--init"]);
    let claim = Question::Claim { sections: sections(9), owner: owner(1), layout: LAYOUT };
    let answer = store.link().ask(claim).await;
    let refused = Misaddressed::Unconfigured;
    assert_eq!(answer, Ok(Answer::Misaddressed { why: refused, configuration: None }));
}
