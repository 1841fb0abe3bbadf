//! `kill -9` of `seqsvr embedded` under load: no number comes twice, and none goes back (S1, S3).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use rand::RngExt as _;
use rand::SeedableRng as _;
use rand::rngs::SmallRng;

use crate::process::Process;

/// Clients at a time.
const CLIENTS: usize = 8;
const KEYS: [&str; 4] = ["order", "user", "invoice", "rare"];

/// Numbers by key, in the order in which one client got them.
type Answers = BTreeMap<&'static str, Vec<u64>>;

/// Takes numbers until the process is gone.
fn take(url: &str, seed: u64, answered: &AtomicUsize) -> Answers {
    let (mut random, mut answers) = (SmallRng::seed_from_u64(seed), Answers::new());
    let Ok(mut connection) = redis::Client::open(url).unwrap().get_connection() else { return answers };
    loop {
        let key = KEYS[if random.random_ratio(1, 50) { 3 } else { random.random_range(0..3) }];
        let mut pipeline = redis::pipe();
        if random.random_ratio(1, 4) {
            pipeline.atomic();
        }
        for _ in 0..random.random_range(1..20) {
            pipeline.cmd("INCR").arg(key);
        }
        let Ok(numbers) = pipeline.query::<Vec<u64>>(&mut connection) else { return answers };
        answered.fetch_add(numbers.len(), Ordering::Relaxed);
        answers.entry(key).or_default().extend(numbers);
    }
}

#[test]
fn no_answered_number_comes_again_or_goes_back_whenever_it_is_killed() {
    let seed = rand::random::<u64>();
    println!("seed {seed}");
    let mut random = SmallRng::seed_from_u64(seed);
    let folder = tempfile::tempdir().unwrap();
    let mut seen: BTreeMap<&str, BTreeSet<u64>> = BTreeMap::new();
    for _ in 0..8 {
        let mut process = Process::embedded(folder.path(), &[]);
        let (url, answered) = (process.url(), AtomicUsize::new(0));
        let until = random.random_range(1..20_000);
        let seeds: Vec<u64> = (0..CLIENTS).map(|_| random.random()).collect();
        let rounds: Vec<Answers> = thread::scope(|scope| {
            let (url, answered) = (&url, &answered);
            let clients: Vec<_> =
                seeds.iter().map(|&seed| scope.spawn(move || take(url, seed, answered))).collect();
            while answered.load(Ordering::Relaxed) < until {
                thread::yield_now();
            }
            process.kill();
            clients.into_iter().map(|client| client.join().unwrap()).collect()
        });
        let before: BTreeMap<&str, u64> =
            seen.iter().filter_map(|(key, numbers)| Some((*key, *numbers.last()?))).collect();
        for (key, numbers) in rounds.iter().flatten() {
            assert!(numbers.is_sorted(), "{key} went back for one client: {numbers:?}");
            let floor = before.get(key).copied().unwrap_or(0);
            for &number in numbers {
                assert!(number > floor, "{key}: {number} after {floor}, which was answered before the kill");
                assert!(seen.entry(*key).or_default().insert(number), "{key}: {number} was given twice");
            }
        }
    }
    assert!(seen["order"].len() > 100, "the test took nothing");
}

#[test]
fn after_a_stop_in_good_order_nothing_is_skipped() {
    let folder = tempfile::tempdir().unwrap();
    for round in 0..3_u64 {
        let process = Process::embedded(folder.path(), &[]);
        let mut connection = redis::Client::open(process.url()).unwrap().get_connection().unwrap();
        for number in 1..=1_000 {
            let taken: u64 = redis::cmd("INCR").arg("a").query(&mut connection).unwrap();
            assert_eq!(taken, round * 1_000 + number);
        }
        drop(connection);
        process.stop();
    }
}
