//! That the script, the plain commands and `turn` take the same step, on a real Redis.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use redis::AsyncCommands as _;

use super::hash::Hash;
use super::turn::{Ask, FIELDS, HashStep, StoredHash, Turn};
use tidemark_test_support::servers::redis::RedisServer;

const WAIT: Duration = Duration::from_secs(5);

/// A hash of this life (`None` for `life` and `next`'s: another one's), and what is asked of it.
fn case() -> impl Strategy<Value = (StoredHash, Ask)> {
    let next = prop::option::of((any::<bool>(), 0_u64..150, 1_u64..50));
    let stored = (any::<bool>(), 0_u64..120, 0_u64..100, 0_u64..100, next, any::<bool>());
    let ask = (1_u64..40, 0_u64..120, 0_u8..100);
    (stored, ask).prop_map(|((mine, cur, max, mark, next, begun), (count, floor, prepare_at))| {
        let life = |mine: bool| if mine { "mine" } else { "another" }.to_owned();
        let next = next.map(|(mine, cur, count)| (life(mine), cur, cur + count));
        let (since, lasted) = (begun.then_some(1), begun.then_some(7));
        let stored = StoredHash { life: Some(life(mine)), cur, max, mark, next, since, lasted };
        (stored, Ask { count, floor, prepare_at })
    })
}

/// The fields, with times as whether they are there: the clock is Redis's.
fn shape(stored: &StoredHash) -> BTreeMap<&'static str, String> {
    let mut fields: BTreeMap<_, _> = stored.fields().into_iter().collect();
    for time in ["since", "lasted"] {
        fields.entry(time).and_modify(|value| "some".clone_into(value));
    }
    fields
}

#[test]
fn script_and_plain_commands_take_the_step_that_turn_describes() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let server = RedisServer::start();
    let (redis, life) = runtime.block_on(async {
        let mut hash = Hash::new(vec![server.url()], "tag".to_owned(), WAIT, WAIT);
        let ask = Ask { count: 1, floor: 0, prepare_at: 0 };
        let life = hash.step(&ask).await.unwrap().claim.unwrap().life;
        let client = redis::Client::open(server.url()).unwrap();
        (client.get_multiplexed_async_connection().await.unwrap(), life)
    });
    let hash = || Hash::new(vec![server.url()], "tag".to_owned(), WAIT, WAIT);
    let ways = RefCell::new([(hash(), false), (hash(), true)]);
    let mut runner = TestRunner::new(Config { cases: 300, failure_persistence: None, ..Config::default() });
    let tried = runner.run(&case(), |(mut stored, ask)| {
        let mine = |life_of: &mut String| {
            if life_of == "mine" {
                life.clone_into(life_of)
            }
        };
        stored.life.iter_mut().for_each(mine);
        stored.next.iter_mut().for_each(|next| mine(&mut next.0));
        let mut model = stored.clone();
        let turn = model.turn(&life, &ask, 9);
        if turn.wants {
            model.lasted = None;
        }
        for (hash, plain) in ways.borrow_mut().iter_mut() {
            if *plain {
                hash.look();
            }
            let mut redis = redis.clone();
            let (step, after): (HashStep, StoredHash) = runtime.block_on(async {
                let _: () = redis.del(&["tag", "{tag}:claim"]).await.unwrap();
                let _: () = redis.hset_multiple("tag", &stored.fields()).await.unwrap();
                let step = hash.step(&ask).await.unwrap();
                (step, StoredHash::read(redis.hmget("tag", &FIELDS).await.unwrap()))
            });
            let taken = Turn { taken: step.taken, wants: step.claim.is_some() };
            prop_assert_eq!(&taken, &turn);
            prop_assert_eq!(step.ahead, model.ahead(ask.floor));
            prop_assert_eq!(step.left, model.max.saturating_sub(model.cur));
            prop_assert_eq!(shape(&after), shape(&model));
        }
        Ok(())
    });
    tried.unwrap();
}
