//! A browser shows the same, whatever way the rows came.

use std::env;

use serde_json::{Value, json};

use super::world::World;

/// Inboxes that are tried, each of up to 60 rows, and how many by one script: a script may take half a minute.
const INBOXES: u32 = 40;
const AT_ONCE: u32 = 5;

/// `FOLD_SEED=N` begins with another inbox, which a failure names.
#[tokio::test]
async fn a_page_shows_the_same_in_whatever_pieces_rows_and_history_come() {
    let world = World::start().await;
    let window = world.newcomer("Ada").await;
    let drawn = rand::random::<u32>() >> 1;
    let given = env::var_os("FOLD_SEED").map(|seed| seed.to_string_lossy().parse().expect("a number"));
    let first: u32 = given.unwrap_or(drawn);
    for seed in (first..first + INBOXES).step_by(AT_ONCE as usize) {
        let script = include_str!("fixtures/fold.js").replace("SEED_PLACE", &seed.to_string());
        let found = window.run_async(&script.replace("COUNT_PLACE", &AT_ONCE.to_string())).await;
        assert_eq!(found, "the same", "again with FOLD_SEED={}: {found:#}", found["seed"]);
    }
}

/// The result of a script in a page of the chat, with databases of its own.
async fn found_by(script: &str) -> Value {
    let world = World::start().await;
    world.newcomer("Ada").await.run_async(script).await
}

#[tokio::test]
async fn counts_that_are_older_than_what_has_been_read_bring_nothing_back() {
    let found = found_by(include_str!("fixtures/recount.js")).await;
    let unread = |unread: u32, read_to: u64, stale: bool| json!({"unread": unread, "read_to": read_to, "stale": stale});
    // Read elsewhere up to 20, whose rows are not here; the server's list has that. Then up to 30, and the list is older.
    assert_eq!(found["listed"], unread(3, 20, false), "{found:#}");
    assert_eq!(found["older"], unread(3, 30, true), "{found:#}");
    assert_eq!(found["newer"], unread(1, 30, false), "{found:#}");
    // All of it is read while a list is on its way.
    assert_eq!(found["all"], unread(0, 41, false), "{found:#}");
}

#[tokio::test]
async fn a_deleted_comment_stays_away_whether_its_rows_or_history_come_first() {
    let found = found_by(include_str!("fixtures/deleted_comment.js")).await;
    let expected = json!({"kept": ["At ten"], "history_first": [], "history_last": [], "below_all_rows": []});
    assert_eq!(found, expected, "{found:#}");
}
