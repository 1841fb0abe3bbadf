//! The quorum, by both suites over three real replicas, asked over gRPC; and by the rules of every section store while at each
//! call another replica is down, the one that hurts most at the moment.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use tempfile::TempDir;
use tokio::task::JoinSet;

use super::*;
use crate::clock::Moment;
use crate::ids::SectionId;
use crate::replica::message::Copy;
use crate::replica::state::State;
use crate::replica::{Replica, Start};
use crate::rpc::security::{Call, CallConfig};
use crate::store::conformance::conformance;

/// Longer than anything takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// A quorum of StoreSvrs that were just initialised, and what they serve from.
async fn served() -> (Quorum, (JoinSet<()>, TempDir)) {
    let (mut replicas, folder) = (JoinSet::new(), tempfile::tempdir().unwrap());
    let call = Call::load(&CallConfig::default()).unwrap();
    let mut links: Vec<Arc<dyn Link>> = Vec::new();
    for name in ["s1", "s2", "s3"] {
        let directory = folder.path().join(name);
        let config =
            format!("cluster = \"test\"\nname = {name:?}\ndirectory = {directory:?}\nfile_bytes = 65536");
        let replica = Replica::open(toml::from_str(&config).unwrap(), Start::InitWithoutPeers).await.unwrap();
        links.push(Arc::new(Remote::new(&replica.address().unwrap(), &call, "test", 0, PATIENCE).unwrap()));
        replicas.spawn(async { replica.serve(std::future::pending()).await.unwrap() });
    }
    let quorum = Quorum::new(links, Sizes::majority(3).unwrap(), PATIENCE).unwrap();
    (quorum, (replicas, folder))
}

mod sections {
    super::conformance!(super::served);
}

mod tables {
    crate::store::conformance::tables::conformance!(super::served);
}

/// A replica in memory, which can be cut off.
struct Near {
    state: Mutex<State>,
    cut: AtomicBool,
}

#[async_trait]
impl Link for Near {
    async fn ask(&self, question: Question) -> Result<Answer, String> {
        if self.cut.load(Ordering::SeqCst) {
            return Err("cut off".to_owned());
        }
        let decision = self.state.lock().unwrap().ask(Moment::default(), &question);
        decision.answer.ok_or_else(|| "no table is waited for here".to_owned())
    }
}

/// The layout is a matter of the whole cluster, so each replica is given it when it is made.
fn initialised() -> Copy {
    let layout = Layout { section_size: 100_000, step: 10_000 };
    Copy { layout: Some(layout), ..Copy::default() }
}

fn three() -> (Quorum, Vec<Arc<Near>>) {
    let near = || Near {
        state: Mutex::new(State::restored(initialised(), 1, Flaws::default())),
        cut: AtomicBool::new(false),
    };
    let replicas: Vec<_> = (0..3).map(|_| Arc::new(near())).collect();
    let links = replicas.iter().map(|one| Arc::clone(one) as Arc<dyn Link>).collect();
    let sizes = Sizes::majority(3).expect("3 replicas have majorities");
    (Quorum::new(links, sizes, PATIENCE).expect("three links"), replicas)
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
        let (quorum, replicas) = super::three();
        (super::Limping(quorum, replicas, std::sync::Mutex::new(0)), ())
    }

    // Without the rule that a refused claim takes nothing: where the newer claim has not been heard of it may stand. And without
    // those of releases: one may reach fewer than W of those who know its owner, and the next owner then waits.
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
    let (quorum, replicas) = three();
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

/// A machine that is suspended for a minute while an answer is on its way.
struct Asleep;

static CLOCK: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);

#[async_trait]
impl Link for Asleep {
    async fn ask(&self, _: Question) -> Result<Answer, String> {
        CLOCK.fetch_add(60_000_000_000, Ordering::SeqCst);
        Ok(Answer::Released)
    }
}

#[tokio::test]
async fn answers_that_waited_while_the_machine_slept_are_not_counted() {
    let (mut quorum, _) = three();
    let owner = Owner { epoch: Epoch { term: 1, version: 1 }, incarnation: 1 };
    quorum.clock = || Moment::from_nanos(CLOCK.load(Ordering::SeqCst));
    assert!(quorum.release(&[], owner).await.is_ok());
    let (links, sizes) =
        ((0..3).map(|_| Arc::new(Asleep) as Arc<dyn Link>).collect(), Sizes::majority(3).unwrap());
    quorum.voters.store(Arc::new(Voters { configuration: None, links, sizes }));
    let late = quorum.release(&[], owner).await;
    assert!(matches!(&late, Err(StoreError::Unavailable(why)) if why.contains("too late")), "{late:?}");
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

mod configurations {
    use std::path::Path;

    use super::*;
    use crate::store::{StoresConfig, Terms};

    const LAYOUT: Layout = Layout { section_size: 100_000, step: 10_000 };

    fn terms() -> Terms {
        Terms { lease: Duration::from_secs(2), layout: LAYOUT, uids: 0..=u32::MAX }
    }

    /// Three replicas that serve, and one that waits to be taken in: their addresses.
    struct Stage {
        folder: TempDir,
        replicas: JoinSet<()>,
        addrs: Vec<String>,
    }

    async fn stage() -> Stage {
        let folder = tempfile::tempdir().unwrap();
        let mut stage = Stage { folder, replicas: JoinSet::new(), addrs: Vec::new() };
        for name in ["s1", "s2", "s3"] {
            stage.start(name, Start::InitWithoutPeers).await;
        }
        stage.start("s4", Start::Join).await;
        stage
    }

    impl Stage {
        async fn start(&mut self, name: &str, how: Start) {
            let directory = self.folder.path().join(name);
            let replica = Replica::open(config(name, &directory), how).await.unwrap();
            self.addrs.push(replica.address().unwrap());
            self.replicas.spawn(async { replica.serve(std::future::pending()).await.unwrap() });
        }

        /// A role whose file lists the first three.
        fn role(&self) -> Arc<Quorum> {
            listing(&self.addrs[..3])
        }

        fn remote(&self, index: usize) -> Remote {
            let call = Call::load(&CallConfig::default()).unwrap();
            Remote::new(&self.addrs[index], &call, "test", 0, PATIENCE).unwrap()
        }

        /// A role of the version before, which says nothing of configurations.
        fn earlier_role(&self) -> Quorum {
            let links = (0..3).map(|index| Arc::new(Plain(self.remote(index))) as Arc<dyn Link>).collect();
            Quorum::new(links, Sizes::majority(3).unwrap(), PATIENCE).unwrap()
        }
    }

    fn config(name: &str, directory: &Path) -> crate::replica::StoreConfig {
        let text =
            format!("cluster = \"test\"\nname = {name:?}\ndirectory = {directory:?}\nfile_bytes = 65536");
        toml::from_str(&text).unwrap()
    }

    fn listing(addrs: &[String]) -> Arc<Quorum> {
        let config: StoresConfig =
            toml::from_str(&format!("replicas = {addrs:?}\npatience_ms = 5000")).unwrap();
        config.open("test", 0).unwrap().quorum.expect("they are StoreSvrs")
    }

    struct Plain(Remote);

    #[async_trait]
    impl Link for Plain {
        async fn ask(&self, question: Question) -> Result<Answer, String> {
            self.0.ask(question).await
        }
    }

    fn owner(version: u64) -> Owner {
        Owner { epoch: Epoch { term: 1, version }, incarnation: version }
    }

    async fn claim(quorum: &Quorum, version: u64) -> Result<Vec<u64>, StoreError> {
        let sections = [SectionId::new(0)..=SectionId::new(9)];
        let claimed = quorum.claim(&sections, owner(version), LAYOUT).await?;
        Ok(claimed.ceilings.iter().map(|one| one.max).collect())
    }

    async fn raise(quorum: &Quorum, version: u64, max: u64) {
        let ceilings = [Ceiling { section: SectionId::new(3), max }];
        assert_eq!(quorum.raise(owner(version), &ceilings).await, [Ok(max)]);
    }

    fn number(quorum: &Quorum) -> Option<u64> {
        quorum.configuration().map(|one| one.number)
    }

    #[tokio::test]
    async fn roles_of_the_version_before_count_until_the_first_change() {
        let stage = stage().await;
        let (earlier, role) = (stage.earlier_role(), stage.role());
        role.agree(&terms()).await.unwrap();
        assert_eq!(number(&role), Some(1));
        claim(&earlier, 1).await.unwrap();
        raise(&earlier, 1, 700).await;
        assert_eq!(claim(&role, 2).await.unwrap(), [700]);

        let replaced = role.replace("s3", &stage.addrs[3]).await.unwrap();
        assert_eq!((replaced.configuration.number, replaced.already), (2, false));
        let late = claim(&earlier, 3).await.unwrap_err().to_string();
        assert!(late.contains("an earlier configuration of the stores"), "{late}");
        raise(&role, 2, 800).await;
        // Its file is from before the change.
        let later = stage.role();
        assert_eq!(claim(&later, 3).await.unwrap(), [800]);
        assert_eq!(number(&later), Some(2));
        let removed = stage.remote(2).ask(Question::Copy).await;
        assert!(removed.is_err_and(|why| why.contains("it was replaced")));
        assert!(role.replace("s3", &stage.addrs[3]).await.unwrap().already);
    }

    #[tokio::test]
    async fn other_terms_are_refused_and_so_is_one_replica_under_two_addresses() {
        let stage = stage().await;
        let twice = [&stage.addrs[0], &stage.addrs[0], &stage.addrs[1]];
        let twice = twice.map(String::clone);
        let localhost = twice[1].replace("127.0.0.1", "localhost");
        let role = listing(&[twice[0].clone(), localhost, twice[2].clone()]);
        let line = role.agree(&terms()).await.unwrap_err().to_string();
        assert!(line.contains("the replica s1 under two addresses"), "{line}");

        stage.role().agree(&terms()).await.unwrap();
        let shorter = Terms { lease: Duration::from_secs(1), ..terms() };
        for other in [stage.role(), stage.role()] {
            let line = other.agree(&shorter).await.unwrap_err().to_string();
            assert!(line.contains("set lease_ms = 2000"), "{line}");
        }
        let less = Terms { uids: 0..=99_999, ..terms() };
        let line = stage.role().agree(&less).await.unwrap_err().to_string();
        assert!(line.contains("the range of a Set does not change"), "{line}");
    }

    /// Whoever changed the stores ended after each step: nothing is served by halves, and the same change completes it.
    #[tokio::test]
    async fn a_change_that_was_cut_off_is_completed_by_the_next() {
        for steps in 1..=3 {
            let stage = stage().await;
            let role = stage.role();
            role.agree(&terms()).await.unwrap();
            claim(&role, 1).await.unwrap();
            raise(&role, 1, 500).await;
            let current = role.configuration().unwrap();
            let Ok(Answer::Described(new)) = stage.remote(3).ask(Question::Describe).await else {
                panic!("it describes itself")
            };
            let new = crate::store::Member { id: new.id, name: new.name, addr: stage.addrs[3].clone() };
            let next = Arc::new(current.replacing("s3", new));
            let mut copy = Copy::default();
            for index in 0..2 {
                let to = Address::default();
                let remote = stage.remote(index);
                let seal = Question::Seal { number: 1, ballot: 7 };
                match remote.call(to, seal).await {
                    Ok(Answer::Sealed { copy: sealed, .. }) => copy = sealed,
                    other => panic!("{other:?}"),
                }
                let accept = Question::Accept { number: 1, ballot: 7, next: Arc::clone(&next) };
                if steps > 1 {
                    assert_eq!(remote.call(to, accept).await, Ok(Answer::Accepted));
                }
            }
            if steps > 2 {
                let install = Question::Install { next: Arc::clone(&next), copy: Arc::new(copy) };
                assert_eq!(stage.remote(3).ask(install).await, Ok(Answer::Installed));
            }
            let halted = claim(&role, 2).await.unwrap_err().to_string();
            assert!(halted.contains("seqsvr store replace again"), "{halted}");
            let replaced = role.replace("s3", &stage.addrs[3]).await.unwrap();
            assert_eq!(replaced.configuration, next, "after {steps} steps");
            assert_eq!(claim(&role, 2).await.unwrap(), [500]);
        }
    }
}
