//! The holder over a registry in memory, which can be away, in a test's own time.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;

use super::*;
use crate::clock::manual::Hands;
use crate::snowflake::{MachineId, Unheld};

const NOW: u64 = 1_800_000_000_000;
const MINUTE: u64 = 60_000;

/// A registry that can be cut off.
struct UnsteadyRegistry {
    registry: MemoryRegistry,
    cut: AtomicBool,
    /// The next write is carried out, and its answer does not arrive.
    lose: AtomicBool,
}

impl UnsteadyRegistry {
    fn new(hands: &Hands) -> Arc<Self> {
        Arc::new(Self {
            registry: MemoryRegistry::new(hands.clock()),
            cut: AtomicBool::new(false),
            lose: AtomicBool::new(false),
        })
    }

    fn cut(&self, cut: bool) {
        self.cut.store(cut, Ordering::SeqCst);
    }

    fn check(&self) -> Result<(), RegistryError> {
        if self.cut.load(Ordering::SeqCst) {
            return Err(RegistryError("the connection is cut".to_owned()));
        }
        Ok(())
    }
}

#[async_trait]
impl Registry for UnsteadyRegistry {
    async fn rows(&self) -> Result<Vec<Row>, RegistryError> {
        self.check()?;
        self.registry.rows().await
    }

    async fn write(&self, entry: &Entry, over: u64, lease: Duration) -> Result<bool, RegistryError> {
        self.check()?;
        let written = self.registry.write(entry, over, lease).await;
        if self.lose.swap(false, Ordering::SeqCst) {
            return Err(RegistryError("the answer is lost".to_owned()));
        }
        written
    }
}

async fn open(
    name: &str,
    folder: Option<&Path>,
    hands: &Hands,
    registry: &Arc<UnsteadyRegistry>,
) -> Arc<Holder> {
    let instance = Instance::named(name).unwrap();
    let options = HolderOptions::new(instance, 0..4, folder.map(Path::to_owned));
    Holder::open(options, hands.clock(), Arc::clone(registry) as Arc<dyn Registry>).await.unwrap()
}

fn held(holder: &Holder, hands: &Hands) -> Result<u32, Unheld> {
    holder.at(hands.clock().wall())
}

/// Lets time pass everywhere, in steps small enough for every task to act in between.
async fn pass(hands: &Hands, milliseconds: u64) {
    for _ in 0..milliseconds / 1_000 {
        hands.pass(1_000);
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_id_is_held_as_long_as_the_process_renews_it() {
    let hands = Hands::at(NOW);
    let registry = UnsteadyRegistry::new(&hands);
    let holder = open("a", None, &hands, &registry).await;
    let machine = held(&holder, &hands).unwrap();
    for _ in 0..30 {
        pass(&hands, MINUTE).await;
        assert_eq!(held(&holder, &hands), Ok(machine));
    }
    let metrics = holder.metrics();
    assert!((14..=16).contains(&metrics.renewals), "every two minutes: {metrics:?}");
    assert_eq!((metrics.failures, metrics.changes), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn without_the_registry_an_id_is_used_until_the_margin_before_the_end() {
    let hands = Hands::at(NOW);
    let registry = UnsteadyRegistry::new(&hands);
    let holder = open("a", None, &hands, &registry).await;
    let machine = held(&holder, &hands).unwrap();
    registry.cut(true);
    pass(&hands, 9 * MINUTE - 1_000).await;
    assert_eq!(held(&holder, &hands), Ok(machine));
    pass(&hands, 2_000).await;
    assert_eq!(held(&holder, &hands), Err(Unheld::Over));
    assert_eq!(holder.health(), MachineHealth::Unheld);
    registry.cut(false);
    pass(&hands, 3_000).await;
    assert_eq!(held(&holder, &hands), Ok(machine), "nobody took it meanwhile");
}

#[tokio::test(start_paused = true)]
async fn a_holder_that_slept_through_its_lease_stops_at_once_and_gets_another_id() {
    let hands = Hands::at(NOW);
    let registry = UnsteadyRegistry::new(&hands);
    let sleeper = open("a", None, &hands, &registry).await;
    let machine = held(&sleeper, &hands).unwrap();
    // The clocks go on, its tasks do not.
    hands.pass(11 * MINUTE);
    let taker = HolderOptions {
        machines: machine..machine + 1,
        ..HolderOptions::new(Instance::named("b").unwrap(), 0..4, None)
    };
    let taker = Holder::open(taker, hands.clock(), Arc::clone(&registry) as Arc<dyn Registry>).await.unwrap();
    assert_eq!(held(&taker, &hands), Ok(machine));
    assert_eq!(held(&sleeper, &hands), Err(Unheld::Over), "before any of its tasks ran");
    pass(&hands, 1_000).await;
    let other = held(&sleeper, &hands).unwrap();
    assert_ne!(other, machine);
    assert_eq!(sleeper.metrics().changes, 1);
}

#[tokio::test(start_paused = true)]
async fn an_earlier_holders_time_is_not_used_again() {
    let hands = Hands::at(NOW);
    let registry = UnsteadyRegistry::new(&hands);
    let only = |name, hands: &Hands| {
        let options = HolderOptions::new(Instance::named(name).unwrap(), 0..1, None);
        Holder::open(options, hands.clock(), Arc::clone(&registry) as Arc<dyn Registry>)
    };
    let ahead = only("ahead", &hands).await.unwrap();
    ahead.close(NOW + 3).await;
    let next = only("behind", &hands).await.unwrap();
    assert_eq!(held(&next, &hands), Err(Unheld::Used { wait_ms: 4 }));
    hands.pass(3);
    assert_eq!(held(&next, &hands), Err(Unheld::Used { wait_ms: 1 }));
    pass(&hands, 3 * MINUTE).await;
    assert_eq!(held(&next, &hands), Ok(0), "a renewal forgets nothing and blocks nothing");
}

#[tokio::test(start_paused = true)]
async fn an_earlier_holders_time_is_not_used_when_the_answer_to_the_claim_is_lost() {
    let hands = Hands::at(NOW);
    let registry = UnsteadyRegistry::new(&hands);
    let only = |name, hands: &Hands| {
        let options = HolderOptions::new(Instance::named(name).unwrap(), 0..1, None);
        Holder::open(options, hands.clock(), Arc::clone(&registry) as Arc<dyn Registry>)
    };
    only("ahead", &hands).await.unwrap().close(NOW + 30_000).await;
    registry.lose.store(true, Ordering::SeqCst);
    let next = only("behind", &hands).await.unwrap();
    assert_eq!(held(&next, &hands), Err(Unheld::Over));
    pass(&hands, 3_000).await;
    assert!(matches!(held(&next, &hands), Err(Unheld::Used { .. })), "{:?}", held(&next, &hands));
    pass(&hands, 30_000).await;
    assert_eq!(held(&next, &hands), Ok(0));
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_was_far_ahead_does_not_keep_its_instance_from_numbers() {
    const YEARS: u64 = 30 * 365 * 86_400_000;
    let hands = Hands::at(NOW + YEARS);
    let registry = UnsteadyRegistry::new(&hands);
    let holder = open("a", None, &hands, &registry).await;
    let machine = held(&holder, &hands).unwrap();
    // Killed; the clock is put right, and the lease ends.
    drop(holder);
    hands.set(NOW);
    hands.pass(11 * MINUTE);
    let again = open("a", None, &hands, &registry).await;
    let other = held(&again, &hands).expect("there are ids that nobody used up");
    assert_ne!(other, machine);
}

#[tokio::test(start_paused = true)]
async fn a_calendar_that_jumps_ahead_is_registered_before_it_is_used() {
    let hands = Hands::at(NOW);
    let registry = UnsteadyRegistry::new(&hands);
    let holder = open("a", None, &hands, &registry).await;
    let machine = held(&holder, &hands).unwrap();
    hands.set(NOW + 60 * MINUTE);
    assert_eq!(held(&holder, &hands), Err(Unheld::Over));
    pass(&hands, 1_000).await;
    assert_eq!(held(&holder, &hands), Ok(machine));
    let registered = registry.rows().await.unwrap()[0].entry.used_until;
    assert!(registered >= NOW + 70 * MINUTE, "{registered}");
}

#[tokio::test(start_paused = true)]
async fn a_start_survives_the_registrys_absence() {
    let folder = tempfile::tempdir().unwrap();
    let hands = Hands::at(NOW);
    let registry = UnsteadyRegistry::new(&hands);
    let name = "sequence-client:8112:3232235742";
    let holder = open(name, Some(folder.path()), &hands, &registry).await;
    let machine = held(&holder, &hands).unwrap();
    // A copy of the file as it is while the process runs is what a crash leaves.
    let crashed = tempfile::tempdir().unwrap();
    let file = format!("{name}.properties");
    std::fs::copy(folder.path().join(&file), crashed.path().join(&file)).unwrap();
    drop(holder);

    registry.cut(true);
    pass(&hands, 5 * MINUTE).await;
    let holder = open(name, Some(crashed.path()), &hands, &registry).await;
    assert_eq!(held(&holder, &hands), Ok(machine));
    pass(&hands, 3 * MINUTE).await;
    assert_eq!(held(&holder, &hands), Ok(machine));
    pass(&hands, MINUTE + 1_000).await;
    assert_eq!(held(&holder, &hands), Err(Unheld::Over), "the recorded lease is over");
    registry.cut(false);
    pass(&hands, 3_000).await;
    assert_eq!(held(&holder, &hands), Ok(machine));
}

#[tokio::test(start_paused = true)]
async fn a_start_without_file_or_registry_waits_for_the_registry() {
    let hands = Hands::at(NOW);
    let registry = UnsteadyRegistry::new(&hands);
    registry.cut(true);
    let holder = open("a", None, &hands, &registry).await;
    assert_eq!(held(&holder, &hands), Err(Unheld::Over));
    registry.cut(false);
    pass(&hands, 3_000).await;
    assert!(held(&holder, &hands).is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_clean_stop_frees_the_id_and_the_next_start_gets_it_again() {
    let folder = tempfile::tempdir().unwrap();
    let hands = Hands::at(NOW);
    let registry = UnsteadyRegistry::new(&hands);
    let holder = open("a", Some(folder.path()), &hands, &registry).await;
    let machine = held(&holder, &hands).unwrap();
    holder.close(NOW).await;
    assert_eq!(held(&holder, &hands), Err(Unheld::Over));
    assert!(!registry.rows().await.unwrap()[0].live);
    drop(holder);

    registry.cut(true);
    let early = open("a", Some(folder.path()), &hands, &registry).await;
    assert_eq!(held(&early, &hands), Err(Unheld::Over), "the file's lease was given back");
    drop(early);
    registry.cut(false);
    pass(&hands, 2_000).await;
    let again = open("a", Some(folder.path()), &hands, &registry).await;
    assert_eq!(held(&again, &hands), Ok(machine));
}

#[tokio::test(start_paused = true)]
async fn a_second_process_of_the_instance_is_turned_away() {
    let folder = tempfile::tempdir().unwrap();
    let hands = Hands::at(NOW);
    let registry = UnsteadyRegistry::new(&hands);
    let _holder = open("a", Some(folder.path()), &hands, &registry).await;
    let options = HolderOptions::new(Instance::named("a").unwrap(), 0..4, Some(folder.path().to_owned()));
    let second = Holder::open(options, hands.clock(), registry).await;
    assert!(matches!(second, Err(OpenHolderError::Cache(CacheError::InUse { .. }))));
}
