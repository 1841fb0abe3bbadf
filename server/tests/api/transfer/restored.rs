//! `tidemark restored`, after files were put back.

use serde_json::json;

use super::{World, done, over};
use crate::support::message;

#[tokio::test]
async fn numbers_go_on_beyond_all_that_were_lost_under_a_new_history() {
    let mut world = World::new().await;
    world.app.stop().await;
    let saved = world.file("saved");
    copy(&world.data(), &saved);

    // Life goes on after the backup, and is lost with the disk.
    let app = over(&world.data()).await;
    let (ann, bob) = (app.log_in("ann").await, app.log_in("bob").await);
    let mut lost = 0;
    for n in 5_000..5_010 {
        lost = app.say(&ann, &bob, n, "lost").await;
    }
    let before = app.get(&ann, "/api/v1/seq").await.ok(200)["history"].clone();
    drop(app);
    done(&saved, &["restored"]).await;

    let app = over(&saved).await;
    let (ann, bob) = (app.log_in("ann").await, app.log_in("bob").await);
    let after = app.get(&ann, "/api/v1/seq").await.ok(200);
    assert_ne!(after["history"], before);
    assert!(after["seq"].as_u64().expect("a number") < lost, "the backup is older");
    let first = app.say(&ann, &bob, 6_000, "again").await;
    assert!(first > lost + 9_000_000, "{first} after {lost}");
    let group = json!({"group": world.gid});
    app.post(&bob, "/api/v1/messages", message(6_001, group, "all")).await.ok(201);
    for person in [&ann, &bob] {
        let rows = app.rows(person).await;
        assert!(rows.is_sorted_by_key(|row| row["message_id"].as_u64()), "{}", person.name);
    }
}

fn copy(from: &std::path::Path, to: &std::path::Path) {
    std::fs::create_dir(to).expect("made");
    for entry in std::fs::read_dir(from).expect("readable") {
        let path = entry.expect("readable").path();
        std::fs::copy(&path, to.join(path.file_name().expect("a name"))).expect("copied");
    }
}
