//! Web Push, from a message to the push service: real servers, and a push service that reads what it gets.

mod world;

use serde_json::{Value, json};
use tidemark_test_support::servers::postgres::durable_database;
use tidemark_test_support::until::until;

use crate::support::Socket;
use world::{Owner, PushDevice, PushService, PushingServer, ServiceReply};

/// Ann, and Ben with a device that is subscribed and has all that is there.
async fn two(server: &PushingServer, service: &PushService) -> (Owner, Owner, PushDevice) {
    let (ann, ben) = (server.sign_up("ann").await, server.sign_up("ben").await);
    let device = PushDevice::at(service.endpoint("ben")).await;
    assert_eq!(server.subscribe(&ben, &device, None).await.0, 204);
    (ann, ben, device)
}

/// Two more people get a push for a message of Ann, one after the other, and no other push comes: whatever was to be sent has been.
async fn nothing_else_came(server: &PushingServer, service: &mut PushService, ann: &Owner, n: u128) {
    for n in [n, n + 50] {
        let cat = server.sign_up(&format!("cat {n}")).await;
        let device = PushDevice::at(service.endpoint(&format!("cat{n}"))).await;
        assert_eq!(server.subscribe(&cat, &device, None).await.0, 204);
        server.say(ann, &cat, n).await;
        assert_eq!(service.next().await.path, format!("/cat{n}"));
    }
}

async fn has_endpoint(server: &PushingServer, who: &Owner) -> bool {
    server.push_state(who).await["endpoint"] != Value::Null
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_device_gets_one_encrypted_push_and_no_other_until_it_has_fetched_the_rows() {
    let mut service = PushService::start().await;
    let server = service.server(service.place(), None).await;
    let (ann, ben, device) = two(&server, &service).await;
    server.say(&ann, &ben, 1).await;
    let push = service.next().await;
    assert_eq!(push.path, "/ben");
    let header = |name: &str| push.headers.get(name).and_then(|text| text.to_str().ok()).unwrap_or_default();
    assert_eq!(
        (header("content-encoding"), header("ttl"), header("urgency")),
        ("aes128gcm", "2419200", "high")
    );
    assert_eq!(header("topic"), "inbox");
    let key = server.push_state(&ben).await["key"].as_str().expect("a key").to_owned();
    assert!(header("authorization").starts_with("vapid t=") && header("authorization").ends_with(&key));
    let seq = server.seq(&ben).await;
    assert_eq!(device.opens(&push).await, json!({"seq": seq}), "the number alone");

    // The device has not fetched it: whatever comes, there is no other push.
    server.say(&ann, &ben, 2).await;
    nothing_else_came(&server, &mut service, &ann, 100).await;
    // It has fetched the first row; the second one is told.
    assert_eq!(server.subscribe(&ben, &device, Some(seq)).await.0, 204);
    let push = service.next().await;
    assert_eq!(device.opens(&push).await, json!({"seq": server.seq(&ben).await}));
    let all = server.seq(&ben).await;
    assert_eq!(server.subscribe(&ben, &device, Some(all)).await.0, 204);
    nothing_else_came(&server, &mut service, &ann, 101).await;
    assert!(server.metric("tidemark_pushes_total{result=\"sent\"}").await >= 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_for_nobody_wakes_nobody_and_neither_does_what_a_connection_brings() {
    let mut service = PushService::start().await;
    let server = service.server(service.place(), None).await;
    let (ann, ben, device) = two(&server, &service).await;
    // His own words, from another device; a setting; and that Ann has read what he said.
    let laptop = server.log_in("ben").await;
    let own = server.say(&laptop, &ann, 1).await;
    let value = json!({"client_id": crate::support::client_id(2), "value": {}});
    let path = format!("conversations/u:{}/settings/mute", ann.uid);
    assert_eq!(server.call(Some(&laptop), ("PUT", &path), Some(value)).await.0, 201);
    let read = json!({"message_id": server.seq(&ann).await});
    let path = format!("conversations/u:{}/read", ben.uid);
    let (status, answer) = server.call(Some(&ann), ("PUT", &path), Some(read)).await;
    assert!(status < 300, "{answer}");
    assert!(own > 0 && server.seq(&ben).await > own);
    nothing_else_came(&server, &mut service, &ann, 100).await;

    // Connected, the device gets the row by its socket; when it has gone without it, by a push.
    let mut socket = Socket::open(&server.address, &format!("Bearer {}", ben.token)).await;
    let cursor = socket.begin().await;
    server.say(&ann, &ben, 3).await;
    let entries = socket.expect("entries").await;
    nothing_else_came(&server, &mut service, &ann, 101).await;
    socket.heartbeat(entries["synced"].as_u64().expect("a cursor")).await;
    socket.expect("alive").await;
    assert!(entries["synced"].as_u64() > Some(cursor));
    server.say(&ann, &ben, 4).await;
    socket.expect("entries").await;
    drop(socket);
    let push = service.next().await;
    assert_eq!(device.opens(&push).await, json!({"seq": server.seq(&ben).await}));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_subscription_that_is_no_more_is_forgotten() {
    let mut service = PushService::start().await;
    let server = service.server(service.place(), None).await;
    let (ann, ben, _) = two(&server, &service).await;
    // It is not followed to where it says that it has moved.
    service.says([ServiceReply::Redirect(service.endpoint("inside")), ServiceReply::Status(410)]);
    server.say(&ann, &ben, 1).await;
    assert_eq!(service.next().await.path, "/ben");
    assert_eq!(service.next().await.path, "/ben");
    until("it is forgotten", async || !has_endpoint(&server, &ben).await).await;
    assert_eq!(server.metric("tidemark_pushes_total{result=\"forgotten\"}").await, 1);
    server.say(&ann, &ben, 2).await;
    nothing_else_came(&server, &mut service, &ann, 100).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_push_that_is_not_taken_comes_again_and_holds_up_nobody() {
    let mut service = PushService::start().await;
    let server = service.server(service.place(), None).await;
    let (ann, ben, device) = two(&server, &service).await;
    service.says([ServiceReply::Hangs]);
    server.say(&ann, &ben, 1).await;
    assert_eq!(service.next().await.path, "/ben");
    // While the service is silent, others get theirs.
    nothing_else_came(&server, &mut service, &ann, 100).await;
    service.says([ServiceReply::Status(500)]);
    assert_eq!(service.next().await.path, "/ben");
    let push = service.next().await;
    assert_eq!(
        (push.path.as_str(), device.opens(&push).await),
        ("/ben", json!({"seq": server.seq(&ben).await}))
    );
    until("that is known", async || server.metric("tidemark_pushes_total{result=\"sent\"}").await == 3).await;
    assert_eq!(server.metric("tidemark_pushes_total{result=\"failed\"}").await, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_sent_to_an_address_inside_the_network() {
    let mut service = PushService::start().await;
    let server = service.server_with(service.place(), None, &[]).await;
    let (ann, ben) = (server.sign_up("ann").await, server.sign_up("ben").await);
    for host in ["127.0.0.1", "localhost", "[::1]", "10.0.0.1", "169.254.169.254"] {
        let device = PushDevice::at(format!("https://{host}:{}/x", service.port())).await;
        let (status, problem) = server.subscribe(&ben, &device, None).await;
        assert_eq!((status, &problem["code"]), (422, &json!("bad_push_endpoint")), "{host}");
    }
    assert!(!has_endpoint(&server, &ben).await);
    // A name is looked at when a push goes there.
    let device = PushDevice::at(format!("https://2130706433:{}/x", service.port())).await;
    assert_eq!(server.subscribe(&ben, &device, None).await.0, 204);
    server.say(&ann, &ben, 1).await;
    until("it is forgotten", async || !has_endpoint(&server, &ben).await).await;
    assert!(service.nothing_came());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_killed_server_has_not_told_is_told_after_its_next_start() {
    let mut service = PushService::start().await;
    let mut server = service.server(service.place(), None).await;
    let (ann, ben, device) = two(&server, &service).await;
    let key = server.push_state(&ben).await["key"].clone();
    server.say(&ann, &ben, 1).await;
    server.child.kill().await.expect("killed");
    let server = service.server(service.place(), None).await;
    let push = service.next().await;
    assert_eq!(device.opens(&push).await, json!({"seq": server.seq(&ben).await}));
    assert_eq!(server.push_state(&ben).await["key"], key, "the key of the installation stays");
    nothing_else_came(&server, &mut service, &ann, 100).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_several_servers_one_sends_and_a_device_that_is_connected_to_any_gets_none() {
    let mut service = PushService::start().await;
    let url = durable_database().await;
    let one = service.server(service.place(), Some(&url)).await;
    let other = service.server(service.place(), Some(&url)).await;
    let (ann, ben, device) = two(&one, &service).await;
    assert_eq!(one.push_state(&ben).await, other.push_state(&ben).await, "they have one key");
    for n in 0..5 {
        one.say(&ann, &ben, 10 + n).await;
        other.say(&ann, &ben, 20 + n).await;
    }
    let push = service.next().await;
    assert_eq!(push.path, "/ben");
    nothing_else_came(&one, &mut service, &ann, 100).await;
    nothing_else_came(&other, &mut service, &ann, 101).await;

    let seq = one.seq(&ben).await;
    assert_eq!(other.subscribe(&ben, &device, Some(seq)).await.0, 204);
    let mut socket = Socket::open(&other.address, &format!("Bearer {}", ben.token)).await;
    socket.begin().await;
    // The other server has said that the device is connected there when a push of its own round has gone out.
    nothing_else_came(&other, &mut service, &ann, 102).await;
    nothing_else_came(&other, &mut service, &ann, 103).await;
    one.say(&ann, &ben, 30).await;
    nothing_else_came(&one, &mut service, &ann, 104).await;
    drop(socket);
    assert_eq!(service.next().await.path, "/ben", "it has gone without the row");
}
