//! `tidemark status`, beside a server and without one.

use serde_json::Value;

use crate::api::transfer::{World, done, refused, text};

#[tokio::test]
async fn status_says_how_the_installation_is_with_and_without_a_server() {
    let mut world = World::new().await;
    let data = world.file("data");
    let status: Value = serde_json::from_str(&done(&data, &["status", "--json"]).await).expect("JSON");
    assert!(status["database"].as_str().is_some_and(|text| text.contains("tidemark.db")), "{status}");
    assert!(status["unflushed_batches"].as_u64() > Some(0), "{status}");
    assert_eq!((&status["rows_set_aside"], &status["history"]), (&0.into(), &history(&world).await));
    assert_eq!(status["last_backup"], "none");
    done(&data, &["backup", text(&world.file("backups"))]).await;
    world.app.stop().await;
    let status: Value = serde_json::from_str(&done(&data, &["status", "--json"]).await).expect("JSON");
    assert_eq!(status["unflushed_batches"], 0);
    assert!(status["last_backup"].as_str().is_some_and(|moment| moment.ends_with('Z')), "{status}");
    assert_eq!(status["server"]["answers"], false);
    let text = done(&data, &["status"]).await;
    assert!(text.starts_with("server ") && text.ends_with("answers false"), "{text}");
    let missing = refused(&world.file("nowhere"), &["status"]).await;
    assert!(missing.contains("no installation in"), "{missing}");
}

async fn history(world: &World) -> Value {
    world.app.get(&world.people[0], "/api/v1/seq").await.ok(200)["history"].clone()
}
