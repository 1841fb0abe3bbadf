//! The quorum, by both suites over three real replicas, asked over gRPC; and by the rules of every section store while
//! at each call another replica is down, the one that hurts most at the moment.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use tempfile::TempDir;
use tokio::task::{AbortHandle, JoinSet};

use super::*;
use crate::replica::state::State;
use crate::replica::{Replica, Start, StoreConfig};
use seqsvr_core::clock::Moment;
use seqsvr_core::ids::SectionId;
use seqsvr_core::store::conformance::conformance;
use seqsvr_core::store::message::{Copy, Description};
use seqsvr_core::store::{Moves, SetTerms};
use seqsvr_rpc::security::{Call, CallConfig};

/// Longer than anything takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// The settings that all roles of the Sets here share.
fn terms() -> SetTerms {
    let layout = Layout { section_size: 100_000, step: 10_000 };
    SetTerms { lease: Duration::from_secs(2), layout, uids: 0..=u32::MAX, moves: Moves::default() }
}

fn quorum(links: Vec<(String, Arc<dyn Link>)>) -> Quorum {
    let nobody = Box::new(|addr: &str| Err(format!("{addr} is not known")));
    let sizes = Sizes::majority(links.len()).expect("they have majorities");
    Quorum::over(Ways::new(links, None, nobody), sizes, PATIENCE)
}

/// A quorum of StoreSvrs that were just initialised and have a configuration, with their tasks and files.
async fn served() -> (Quorum, (JoinSet<()>, TempDir)) {
    let (mut replicas, folder) = (JoinSet::new(), tempfile::tempdir().unwrap());
    let call = Call::load(&CallConfig::default()).unwrap();
    let mut links: Vec<(String, Arc<dyn Link>)> = Vec::new();
    for name in ["s1", "s2", "s3"] {
        let directory = folder.path().join(name);
        let config = format!("cluster = \"test\"\nname = {name:?}\ndirectory = {directory:?}");
        let config = StoreConfig { file_bytes: 65_536, ..toml::from_str(&config).unwrap() };
        let replica = Replica::open(config, Start::Init).await.unwrap();
        let addr = replica.address().unwrap();
        let remote = Remote::new(&addr, &call, "test", 0, PATIENCE).unwrap();
        links.push((addr, Arc::new(remote)));
        replicas.spawn(async { replica.serve(std::future::pending()).await.unwrap() });
    }
    let quorum = quorum(links);
    quorum.establish(&terms()).await.unwrap();
    (quorum, (replicas, folder))
}

mod sections {
    super::conformance!(super::served);
}

mod tables {
    seqsvr_core::store::conformance::tables::conformance!(super::served);
}

/// A replica in memory, which can be cut off.
struct Near {
    state: Mutex<State>,
    cut: AtomicBool,
}

#[async_trait]
impl Link for Near {
    async fn ask(&self, question: Question) -> Result<Answer, String> {
        self.call(Address::default(), question).await
    }

    async fn call(&self, to: Address, question: Question) -> Result<Answer, String> {
        if self.cut.load(Ordering::SeqCst) {
            return Err("cut off".to_owned());
        }
        let decision = self.state.lock().unwrap().call(Moment::default(), Some(to), &question);
        match decision.answer {
            Some(Answer::Described(what)) => {
                Ok(Answer::Described(Description { name: what.id.to_string(), ..what }))
            }
            answer => answer.ok_or_else(|| "no table is waited for here".to_owned()),
        }
    }
}

/// The layout is a matter of the whole cluster, so each replica is given it when it is made.
fn initialised() -> Copy {
    let layout = Layout { section_size: 100_000, step: 10_000 };
    Copy { layout: Some(layout), ..Copy::default() }
}

async fn three() -> (Quorum, Vec<Arc<Near>>) {
    let near = |id: u64| {
        let state = State::restored(initialised(), 1, Flaws::default()).with_id(id);
        Arc::new(Near { state: Mutex::new(state), cut: AtomicBool::new(false) })
    };
    let replicas: Vec<_> = (1..=3).map(near).collect();
    let link = |(index, one): (usize, &Arc<Near>)| (format!("s{index}"), Arc::clone(one) as Arc<dyn Link>);
    let quorum = quorum(replicas.iter().enumerate().map(link).collect());
    quorum.establish(&terms()).await.unwrap();
    // The round ended with its W answers, and questions that were still on their way are lost here.
    let next = quorum.configuration().expect("it is stored");
    for replica in &replicas {
        let install = Question::Install { next: Arc::clone(&next), copy: Arc::default() };
        assert_eq!(replica.ask(install).await, Ok(Answer::Installed));
    }
    (quorum, replicas)
}

/// Passes each call on with another replica cut off than before.
struct Limping(Quorum, Vec<Arc<Near>>, Mutex<usize>);

impl Limping {
    fn next(&self) -> &Quorum {
        let mut turn = self.2.lock().unwrap();
        *turn += 1;
        for (index, one) in self.1.iter().enumerate() {
            one.cut.store(index == *turn % 3, Ordering::SeqCst);
        }
        &self.0
    }
}

#[async_trait]
impl SectionStore for Limping {
    async fn newest_epoch(&self) -> Result<Epoch, StoreError> {
        self.next().newest_epoch().await
    }

    async fn claim(&self, sections: &Ranges, owner: Owner, layout: Layout) -> Result<Claimed, StoreError> {
        self.next().claim(sections, owner, layout).await
    }

    async fn raise(&self, owner: Owner, raises: &[Ceiling]) -> Vec<Result<u64, RaiseError>> {
        self.next().raise(owner, raises).await
    }

    async fn release(&self, sections: &Ranges, owner: Owner) -> Result<(), StoreError> {
        self.next().release(sections, owner).await
    }

    async fn backup(&self) -> Result<Backup, StoreError> {
        self.next().backup().await
    }
}

mod with_another_one_down_at_each_call {
    async fn fresh() -> (super::Limping, ()) {
        let (quorum, replicas) = super::three().await;
        (super::Limping(quorum, replicas, std::sync::Mutex::new(0)), ())
    }

    // Without the rule that a refused claim takes nothing: where the newer claim has not been heard of it may stand. And without
    // the rules of releases: one may reach fewer than W of the replicas that know its owner, and the next owner then waits.
    super::conformance! { fresh;
        an_empty_store_has_no_epoch_and_no_ceilings
        a_claim_answers_with_what_was_raised
        a_ceiling_never_becomes_smaller
        the_same_raise_again_is_confirmed_again
        an_older_owner_is_fenced_off
        who_never_claimed_cannot_raise
        an_owner_may_repeat_its_claim
        a_term_outranks_every_version
        raises_are_answered_one_by_one_in_order
        a_section_may_come_twice_in_one_call
        every_section_of_the_uid_space_loads_in_one_claim
        another_layout_is_refused
    }
}

#[tokio::test]
async fn a_replica_that_slept_through_a_claim_in_parts_is_given_each() {
    let (quorum, replicas) = three().await;
    let owner = Owner { epoch: Epoch { term: 1, version: 1 }, incarnation: 1 };
    let layout = Layout { section_size: 100_000, step: 10_000 };
    let range = |first, last| SectionId::new(first)..=SectionId::new(last);
    replicas[2].cut.store(true, Ordering::SeqCst);
    for part in [range(0, 4), range(5, 9), range(5, 9)] {
        quorum.claim(&[part], owner, layout).await.unwrap();
    }
    replicas[2].cut.store(false, Ordering::SeqCst);
    replicas[0].cut.store(true, Ordering::SeqCst);
    let raises = [3, 7].map(|section| Ceiling { section: SectionId::new(section), max: 10_000 });
    assert_eq!(quorum.raise(owner, &raises).await, [Ok(10_000), Ok(10_000)]);
}

/// Two arbiters that were given one number bid for the same terms.
#[test]
fn of_two_bids_for_one_term_at_most_one_gets_enough_promises() {
    let sizes = Sizes::majority(3).expect("3 replicas have majorities");
    for order in 0..8 {
        let mut replicas: Vec<_> =
            (0..3).map(|_| State::restored(initialised(), 1, Flaws::default())).collect();
        let mut bids = [PromiseRound::new(256, sizes), PromiseRound::new(256, sizes)];
        let mut won = [false; 2];
        bids.iter_mut().for_each(|bid| assert_eq!(bid.open().len(), 3));
        let mut over = [false; 2];
        for (index, replica) in replicas.iter_mut().enumerate() {
            let first = order >> index & 1;
            for bid in [first, 1 - first] {
                let answer = replica.ask(Moment::default(), &Question::Promise { term: 256 }).answer;
                if !over[bid]
                    && let Step::Done(outcome) = bids[bid].on(index, answer.ok_or_else(String::new))
                {
                    (over[bid], won[bid]) = (true, outcome.is_ok());
                }
            }
        }
        assert!(!(won[0] && won[1]), "order {order}");
    }
}

mod configurations;
mod coordinators;
mod unchanged;
