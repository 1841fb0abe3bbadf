//! Typing and presence over real WebSockets: who is told, and that nothing of it is stored.

use serde_json::{Value, json};

use crate::support::{Person, Socket, TestApp, client_id};

async fn connected(app: &TestApp, who: &Person) -> Socket {
    let mut socket = app.socket(who).await;
    socket.begin().await;
    socket
}

fn typing(conversation: &str) -> Value {
    json!({"type": "typing", "conversation": conversation})
}

/// How many rows lie in somebody's inbox, and the latest id.
async fn stored(app: &TestApp, who: &Person) -> (usize, Value) {
    let seq = app.get(who, "/api/v1/seq").await.ok(200)["seq"].clone();
    (app.rows(who).await.len(), seq)
}

async fn set_privacy(app: &TestApp, who: &Person, n: u128, value: Value) {
    let body = json!({"client_id": client_id(n), "value": value});
    app.put(who, "/api/v1/settings/privacy", body).await.ok(201);
}

#[tokio::test]
async fn typing_and_presence_reach_the_others_and_store_nothing() {
    let app = TestApp::start().await;
    let (ann, bob) = (app.sign_up("ann").await, app.sign_up("bob").await);
    app.say(&ann, &bob, 1, "hello").await;
    let before = [stored(&app, &ann).await, stored(&app, &bob).await];
    let (mut of_ann, mut of_bob) = (connected(&app, &ann).await, connected(&app, &bob).await);
    of_ann.send(&json!({"type": "presence", "of": [bob.uid, 99_999]})).await;
    assert_eq!(of_ann.expect("presence").await, json!({"type": "presence", "online": [bob.uid]}));
    for _ in 0..5 {
        of_ann.send(&typing(&format!("u:{}", bob.uid))).await;
        let heard = of_bob.expect("typing").await;
        let conversation = format!("u:{}", ann.uid);
        assert_eq!(heard, json!({"type": "typing", "conversation": conversation, "sender": ann.uid}));
    }
    assert_eq!([stored(&app, &ann).await, stored(&app, &bob).await], before);
    // The ids go on as if nothing had been said.
    let id = app.say(&ann, &bob, 2, "hello again").await;
    assert_eq!(Some(id), before[0].1.as_u64().map(|seq| seq + 1));
}

#[tokio::test]
async fn members_of_a_group_are_told_and_others_are_not() {
    let app = TestApp::start_with(|config| config.limits.typing_group_members = 3).await;
    let (ann, bob, cleo) = (app.sign_up("ann").await, app.sign_up("bob").await, app.sign_up("cleo").await);
    let dora = app.sign_up("dora").await;
    let made = json!({"name": "crew", "members": [bob.uid, cleo.uid]});
    let gid = app.post(&ann, "/api/v1/groups", made).await.ok(201)["gid"].clone();
    let group = format!("g:{gid}");
    let (mut of_ann, mut of_bob) = (connected(&app, &ann).await, connected(&app, &bob).await);
    let (mut of_cleo, mut of_dora) = (connected(&app, &cleo).await, connected(&app, &dora).await);
    // One who is not in it tells nobody.
    of_dora.send(&typing(&group)).await;
    of_ann.send(&typing(&group)).await;
    for socket in [&mut of_bob, &mut of_cleo] {
        let heard = socket.expect("typing").await;
        assert_eq!((&heard["conversation"], &heard["sender"]), (&json!(group), &json!(ann.uid)));
    }
    // In a group of more than so many nobody is told.
    let members = format!("/api/v1/groups/{gid}/members");
    app.post(&ann, &members, json!({"uid": dora.uid})).await.ok(204);
    of_ann.send(&typing(&group)).await;
    of_ann.send(&typing(&format!("u:{}", bob.uid))).await;
    let mut heard = of_bob.next().await.expect("open");
    while heard["type"] == "entries" {
        of_bob.heartbeat(heard["synced"].as_u64().expect("a number")).await;
        heard = of_bob.next().await.expect("open");
        if heard["type"] == "alive" {
            heard = of_bob.next().await.expect("open");
        }
    }
    assert_eq!(heard["conversation"], json!(format!("u:{}", ann.uid)), "{heard}");
}

#[tokio::test]
async fn a_person_who_hides_it_goes_at_once_and_sees_nobody() {
    let app = TestApp::start().await;
    let (ann, bob) = (app.sign_up("ann").await, app.sign_up("bob").await);
    let (mut of_ann, mut of_bob) = (connected(&app, &ann).await, connected(&app, &bob).await);
    for (socket, other) in [(&mut of_ann, &bob), (&mut of_bob, &ann)] {
        socket.send(&json!({"type": "presence", "of": [other.uid]})).await;
        assert_eq!(socket.expect("presence").await["online"], json!([other.uid]));
    }
    set_privacy(&app, &bob, 1, json!({"presence": false})).await;
    assert_eq!(of_ann.expect("presence").await["online"], json!([]));
    of_bob.expect("entries").await;
    assert_eq!(of_bob.expect("presence").await["online"], json!([]));
}
