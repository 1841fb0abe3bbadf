//! The configuration of three real replicas: stored, compared, changed, cut off while it changes.

use std::path::Path;

use super::*;
use crate::store::StoresConfig;
use seqsvr_core::routing::{Assignment, Node, NodeState};
use seqsvr_core::store::Move;
use seqsvr_core::store::message::Misaddressed;

mod cut_off;
mod repeated;

const LAYOUT: Layout = Layout { section_size: 100_000, step: 10_000 };

/// Three new replicas, and one more that will be taken in: their addresses.
struct Stage {
    folder: TempDir,
    replicas: JoinSet<()>,
    handles: Vec<AbortHandle>,
    addrs: Vec<String>,
}

async fn stage() -> Stage {
    let folder = tempfile::tempdir().unwrap();
    let mut stage = Stage { folder, replicas: JoinSet::new(), handles: Vec::new(), addrs: Vec::new() };
    for name in ["s1", "s2", "s3"] {
        stage.start(name, Start::Init).await;
    }
    stage.start("s4", Start::Init).await;
    stage
}

impl Stage {
    async fn start(&mut self, name: &str, how: Start) {
        let directory = self.folder.path().join(name);
        let replica = Replica::open(config(name, &directory), how).await.unwrap();
        self.addrs.push(replica.address().unwrap());
        let served = async { replica.serve(std::future::pending()).await.unwrap() };
        self.handles.push(self.replicas.spawn(served));
    }

    /// A role whose file lists the first three.
    fn role(&self) -> Arc<Quorum> {
        listing(&self.addrs[..3])
    }

    fn remote(&self, index: usize) -> Remote {
        let call = Call::load(&CallConfig::default()).unwrap();
        Remote::new(&self.addrs[index], &call, "test", 0, PATIENCE).unwrap()
    }
}

fn config(name: &str, directory: &Path) -> crate::replica::StoreConfig {
    let text = format!("cluster = \"test\"\nname = {name:?}\ndirectory = {directory:?}");
    crate::replica::StoreConfig { file_bytes: 65_536, ..toml::from_str(&text).unwrap() }
}

fn listing(addrs: &[String]) -> Arc<Quorum> {
    let config: StoresConfig = toml::from_str(&format!("replicas = {addrs:?}\npatience_ms = 5000")).unwrap();
    config.open("test", 0).unwrap().quorum.expect("they are StoreSvrs")
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
async fn a_store_that_was_replaced_answers_nobody_and_a_file_from_before_is_good_enough() {
    let stage = stage().await;
    let role = stage.role();
    role.establish(&terms()).await.unwrap();
    assert_eq!(number(&role), Some(1));
    claim(&role, 1).await.unwrap();
    raise(&role, 1, 700).await;
    let refused = |answer, because| match answer {
        Ok(Answer::Misaddressed { why, .. }) => assert_eq!(why, because),
        other => panic!("{other:?}"),
    };
    // Without an address the caller knows no configuration.
    refused(stage.remote(0).ask(Question::Promise { term: 1 }).await, Misaddressed::Newer);
    assert_eq!(claim(&role, 2).await.unwrap(), [700]);

    let replaced = role.replace("s3", &stage.addrs[3]).await.unwrap();
    assert_eq!((replaced.configuration.number, replaced.already), (2, false));
    raise(&role, 2, 800).await;
    // Its file is from before the change.
    let later = stage.role();
    assert_eq!(claim(&later, 3).await.unwrap(), [800]);
    assert_eq!(number(&later), Some(2));
    refused(stage.remote(2).ask(Question::Copy).await, Misaddressed::Removed);
    assert!(role.replace("s3", &stage.addrs[3]).await.unwrap().already);
}

#[tokio::test]
async fn another_layout_is_refused_and_so_is_one_replica_under_two_addresses() {
    let stage = stage().await;
    let twice = [&stage.addrs[0], &stage.addrs[0], &stage.addrs[1]];
    let twice = twice.map(String::clone);
    let localhost = twice[1].replace("127.0.0.1", "localhost");
    let role = listing(&[twice[0].clone(), localhost, twice[2].clone()]);
    let line = role.establish(&terms()).await.unwrap_err().to_string();
    assert!(line.contains("the replica s1 under two addresses"), "{line}");

    let line = stage.role().agree(LAYOUT).await.unwrap_err().to_string();
    assert!(line.contains("an arbiter stores the first configuration"), "{line}");
    stage.role().establish(&terms()).await.unwrap();
    let another = Layout { step: LAYOUT.step + 1, ..LAYOUT };
    for other in [stage.role(), stage.role()] {
        let line = other.agree(another).await.unwrap_err().to_string();
        assert!(line.contains("set section_size"), "{line}");
    }
    stage.role().agree(LAYOUT).await.unwrap();
}

#[tokio::test]
async fn without_a_quorum_no_store_is_replaced_and_none_is_sealed() {
    let mut stage = stage().await;
    let role = stage.role();
    role.establish(&terms()).await.unwrap();
    for index in [1, 2] {
        stage.handles[index].abort();
        assert!(stage.replicas.join_next().await.expect("it ran").unwrap_err().is_cancelled());
    }
    let refused = role.replace("s3", &stage.addrs[3]).await.unwrap_err().to_string();
    assert!(refused.contains("1 of 2 needed stores answer"), "{refused}");
    let Ok(Answer::Described(left)) = stage.remote(0).ask(Question::Describe).await else {
        panic!("it answers")
    };
    assert!(!left.sealed);
}

fn sections(first: u32, last: u32) -> [std::ops::RangeInclusive<SectionId>; 1] {
    [SectionId::new(first)..=SectionId::new(last)]
}

async fn written(
    quorum: &Quorum,
    version: u64,
    uids: std::ops::RangeInclusive<u32>,
) -> Result<(), WriteError> {
    let version = Epoch { term: 1, version };
    let (first, last) = (*uids.start() / 100_000, *uids.end() / 100_000);
    let assignment = Assignment {
        sections: SectionId::new(first)..=SectionId::new(last),
        node: 0,
        home: 0,
        incarnation: 1,
        epoch: version,
    };
    let node = Node { name: "a1".to_owned(), addr: "http://a1:1".to_owned(), state: NodeState::Active };
    let (nodes, assignments) = (vec![node], vec![assignment]);
    let table = Table { set: 0, version, section_size: 100_000, uids, nodes, assignments };
    // A role that goes by an earlier configuration is refused once.
    let _ = quorum.read(&Revisions::default(), Duration::ZERO).await;
    quorum.write(&Arc::new(table)).await
}

/// A Set with these uids, whose owner is the one of version 1.
async fn set_of(uids: std::ops::RangeInclusive<u32>) -> (Stage, Arc<Quorum>) {
    let stage = stage().await;
    let role = stage.role();
    let terms = SetTerms { lease: Duration::from_millis(200), uids: uids.clone(), ..terms() };
    role.establish(&terms).await.unwrap();
    written(&role, 1, uids).await.unwrap();
    (stage, role)
}

async fn ceiling(quorum: &Quorum, section: u32, version: u64) -> Result<u64, StoreError> {
    let claimed = quorum.claim(&sections(section, section), owner(version), LAYOUT).await?;
    Ok(claimed.ceilings.first().map_or(0, |one| one.max))
}

/// A role that takes arbiters for stopped.
fn operator(stage: &Stage) -> Quorum {
    let role = Arc::into_inner(stage.role()).expect("nobody else has it");
    Quorum { silent: Duration::ZERO, ..role }
}

const MOVED: std::ops::RangeInclusive<u32> = 500_000..=999_999;

#[tokio::test]
async fn uids_move_with_their_ceilings_once_and_only_one_set_raises_them() {
    let ((one, giver), (other, taker)) = (set_of(0..=999_999).await, set_of(1_000_000..=1_999_999).await);
    giver.claim(&sections(0, 9), owner(1), LAYOUT).await.unwrap();
    let raised = |section, max| [Ceiling { section: SectionId::new(section), max }];
    assert_eq!(giver.raise(owner(1), &raised(3, 700)).await, [Ok(700)]);
    assert_eq!(giver.raise(owner(1), &raised(7, 900)).await, [Ok(900)]);

    let line = one.role().give(&MOVED, 0, 1).await.unwrap_err().to_string();
    assert!(line.contains("stop all arbiters and AllocSvrs of the Set first"), "{line}");
    let moved = operator(&one).give(&MOVED, 0, 1).await.unwrap();
    let run = SectionId::new(7)..=SectionId::new(7);
    let by = Move { from: 0, number: 2 };
    assert_eq!((moved.to, moved.by, &moved.backup.ceilings), (1, by, &vec![(run, 900)]));
    // Its file was lost: the same again.
    assert_eq!(operator(&one).give(&MOVED, 0, 1).await.unwrap(), moved);
    assert!(operator(&one).give(&MOVED, 0, 2).await.is_err(), "they are gone");
    // Sections that it keeps are raised, those that it gave up are not, no matter which configuration their owner has heard of.
    let _ = giver.read(&Revisions::default(), Duration::ZERO).await;
    assert_eq!(giver.raise(owner(1), &raised(3, 800)).await, [Ok(800)]);
    assert!(matches!(giver.raise(owner(1), &raised(7, 950)).await[..], [Err(RaiseError::NotOwner { .. })]));
    assert!(matches!(ceiling(&giver, 7, 9).await, Err(StoreError::Claimed { .. })));

    // Nobody may claim them before they are taken.
    assert!(matches!(ceiling(&taker, 7, 9).await, Err(StoreError::Claimed { .. })));
    let taken = operator(&other).take(&moved, &terms()).await.unwrap();
    assert_eq!(taken.configuration.uids, 500_000..=1_999_999);
    let line = operator(&other).take(&moved, &terms()).await.unwrap_err().to_string();
    assert!(line.contains("the file was used before"), "{line}");
    let _ = taker.read(&Revisions::default(), Duration::ZERO).await;
    assert_eq!(ceiling(&taker, 7, 2).await.unwrap(), 900);
    assert_eq!(taker.raise(owner(2), &raised(7, 1_000)).await, [Ok(1_000)]);

    // Back again, and a file that is older than the stores.
    let back = operator(&other).give(&MOVED, 1, 0).await.unwrap();
    let forged = Moved { by: Move { from: 0, number: 77 }, ..moved.clone() };
    let line = operator(&other).take(&forged, &terms()).await.unwrap_err().to_string();
    assert!(line.contains("section 7 has come to 1000, beyond the file"), "{line}");
    let line = operator(&one).take(&back, &terms()).await.unwrap_err().to_string();
    assert!(line.contains("the table of the Set still has some of these uids"), "{line}");
    written(&giver, 2, 0..=499_999).await.unwrap();
    assert_eq!(operator(&one).take(&back, &terms()).await.unwrap().configuration.uids, 0..=999_999);
    let _ = giver.read(&Revisions::default(), Duration::ZERO).await;
    assert_eq!(ceiling(&giver, 7, 3).await.unwrap(), 1_000);
}

#[tokio::test]
async fn a_new_set_begins_with_uids_of_another_and_serves_none_before_their_ceilings_are_there() {
    let (one, giver) = set_of(0..=999_999).await;
    giver.claim(&sections(0, 9), owner(1), LAYOUT).await.unwrap();
    let raised = [Ceiling { section: SectionId::new(7), max: 900 }];
    assert_eq!(giver.raise(owner(1), &raised).await, [Ok(900)]);
    let moved = operator(&one).give(&MOVED, 0, 5).await.unwrap();

    let new = stage().await;
    // The command is cut off after its first step, and an arbiter starts.
    operator(&new).begin(&SetTerms { uids: MOVED, ..terms() }, Some(moved.by)).await.unwrap();
    let refused = written(&new.role(), 300, MOVED).await.unwrap_err().to_string();
    assert!(refused.contains("are being added; complete that with: seqsvr restore FILE"), "{refused}");
    let taken = operator(&new).take(&moved, &terms()).await.unwrap();
    assert_eq!((taken.configuration.uids.clone(), taken.configuration.number), (MOVED, 2));
    written(&new.role(), 300, MOVED).await.unwrap();
    assert_eq!(ceiling(&new.role(), 7, 300).await.unwrap(), 900);
}
