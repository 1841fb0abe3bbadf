//! Counters over a real file: restarts in good order, and what is refused. Kills: `tests/resp`.

use std::collections::HashMap;
use std::path::PathBuf;

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;

fn folder() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("counters");
    (folder, path)
}

fn open(path: &Path) -> DurableCounters {
    DurableCounters::open(path).unwrap()
}

fn refused(path: &Path) -> String {
    DurableCounters::open(path).err().expect("it is refused")
}

#[tokio::test]
async fn counters_go_on_where_they_were_after_a_stop_in_good_order() {
    let (_kept, path) = folder();
    for round in 0..3 {
        let counters = open(&path);
        assert_eq!(counters.last(b"a").await.unwrap(), (round > 0).then_some(round * 100));
        for number in 1..=100 {
            assert_eq!(counters.take(b"a", 1).await.unwrap(), round * 100 + number);
        }
        assert_eq!(counters.take(b"b", 1_000_000_000).await.unwrap(), (round + 1) * 1_000_000_000);
        counters.close();
        assert_eq!(counters.take(b"a", 1).await.unwrap_err().code(), "TRYAGAIN");
    }
}

#[tokio::test]
async fn a_counter_is_moved_forwards_and_never_back() {
    let (_kept, path) = folder();
    let counters = open(&path);
    counters.advance(b"a", 0).await.unwrap();
    assert_eq!(counters.last(b"a").await.unwrap(), None);
    counters.advance(b"a", 123_456).await.unwrap();
    counters.advance(b"a", 123_456).await.unwrap();
    assert_eq!(counters.last(b"a").await.unwrap(), Some(123_456));
    assert_eq!(counters.take(b"a", 1).await.unwrap(), 123_457);
    let back = counters.advance(b"a", 123_456).await.unwrap_err();
    assert_eq!(back.text(), "the counter stands at 123457 and never goes back: INCR takes the next");
    drop(counters);
    assert_eq!(open(&path).take(b"a", 1).await.unwrap(), 123_458);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_number_comes_twice_however_many_take_at_once() {
    let (_kept, path) = folder();
    let counters = Arc::new(open(&path));
    let takers: Vec<_> = (0..8)
        .map(|_| {
            let counters = Arc::clone(&counters);
            tokio::spawn(async move {
                let mut taken = Vec::new();
                for _ in 0..2_000 {
                    let number = match counters.try_take(b"a", 1) {
                        Ok(number) => number,
                        Err(_) => counters.take(b"a", 1).await.unwrap(),
                    };
                    taken.push(number);
                }
                assert!(taken.is_sorted());
                taken
            })
        })
        .collect();
    let mut all = Vec::new();
    for taker in takers {
        all.extend(taker.await.unwrap());
    }
    all.sort_unstable();
    assert_eq!(all, (1..=16_000).collect::<Vec<u64>>());
}

#[tokio::test]
async fn names_and_numbers_have_bounds() {
    let (_kept, path) = folder();
    let counters = open(&path);
    for name in [vec![], vec![b'x'; book::LONGEST_NAME + 1]] {
        let refused = counters.take(&name, 1).await.unwrap_err();
        assert!(refused.text().contains("a key has 1 to 256 bytes"), "{refused:?}");
        counters.expect(&name, 1);
        assert_eq!(counters.last(&name).await.unwrap(), None);
    }
    assert_eq!(counters.take(&[0xff; book::LONGEST_NAME], counter::LARGEST).await.unwrap(), counter::LARGEST);
    let end = counters.take(&[0xff; book::LONGEST_NAME], 1).await.unwrap_err();
    assert!(end.text().starts_with("numbers end at 9223372036854775807"), "{end:?}");
    assert!(counters.take(b"new", u64::MAX).await.is_err());
    assert_eq!(counters.book.len(), 1);
}

#[test]
fn one_process_at_a_time_and_its_own_file_alone() {
    let (_kept, path) = folder();
    let first = open(&path);
    assert!(refused(&path).contains("another process uses it"));
    drop(first);
    let file = path.join("counters.db");
    let version = |version| {
        let connection = rusqlite::Connection::open(&file).unwrap();
        connection.pragma_update(None, "user_version", version).unwrap();
    };
    seqsvr_core::page_sums::begin();
    version(2);
    assert!(refused(&path).contains("use a newer seqsvr"));
    version(1);
    drop(open(&path));
    std::fs::remove_file(&file).unwrap();
    let other = rusqlite::Connection::open(&file).unwrap();
    other.execute_batch("CREATE TABLE others (one); PRAGMA user_version = 7").unwrap();
    drop(other);
    assert!(refused(&path).contains("another program wrote it"));
}

#[test]
fn a_failed_commit_is_tried_again_and_nothing_is_given_before() {
    let book = Book::new(Vec::new());
    assert_eq!(book.attempt(b"a", Want::Next(1)), Err(TryTake::Later));
    let due = book.due(10).unwrap();
    book.failed(due, "no space left".to_owned());
    assert_eq!(book.trouble().as_deref(), Some("no space left"));
    assert_eq!(book.attempt(b"a", Want::Next(1)), Err(TryTake::Later));
    let due = book.due(10).unwrap();
    assert_eq!(due.len(), 1, "it asks once");
    book.confirm(&due);
    assert_eq!((book.attempt(b"a", Want::Next(1)), book.trouble()), (Ok(1), None));
}

#[derive(Clone, Debug)]
enum Act {
    Take(u8, u64),
    Expect(u8, u64),
    Advance(u8, u64),
    Reopen,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        8 => (0..4_u8, 1..100_u64).prop_map(|(key, count)| Act::Take(key, count)),
        1 => (0..4_u8, 1..100_u64).prop_map(|(key, count)| Act::Expect(key, count)),
        2 => (0..4_u8, 1..5_000_u64).prop_map(|(key, to)| Act::Advance(key, to)),
        1 => Just(Act::Reopen),
    ];
    proptest::collection::vec(act, 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_history_reads_like_plain_numbers(acts in acts()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (_kept, path) = folder();
        let (mut counters, mut model) = (open(&path), HashMap::<u8, u64>::new());
        for act in acts {
            match act {
                Act::Take(key, count) => {
                    let number = model.entry(key).or_default();
                    *number += count;
                    prop_assert_eq!(runtime.block_on(counters.take(&[key], count)).unwrap(), *number);
                }
                Act::Expect(key, count) => counters.expect(&[key], count),
                Act::Advance(key, to) => {
                    let advanced = runtime.block_on(counters.advance(&[key], to));
                    let number = model.entry(key).or_default();
                    prop_assert_eq!(advanced.is_ok(), to >= *number);
                    *number = to.max(*number);
                }
                Act::Reopen => {
                    counters.close();
                    counters = open(&path);
                }
            }
            for (key, number) in &model {
                prop_assert_eq!(runtime.block_on(counters.last(&[*key])).unwrap().unwrap_or(0), *number);
            }
        }
    }
}
