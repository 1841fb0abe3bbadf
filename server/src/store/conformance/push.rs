//! Subscriptions to Web Push in a [`Directory`] that has no account of these uids and names, on each database.

use crate::domain::{MessageId, Timestamp, Uid};
use crate::store::{Directory, NewAccount, NewPushSubscription, PushSubscription, PushTimes, Session};

const MIA: Uid = Uid(421);
const NED: Uid = Uid(422);
/// Sessions of Mia, and one of Ned.
const PHONE: [u8; 32] = [0xa1; 32];
const LAPTOP: [u8; 32] = [0xa2; 32];
const NEDS: [u8; 32] = [0xa3; 32];

/// Runs all of it.
pub async fn run(directory: &Directory) {
    for (uid, name, hashes) in [(MIA, "Mia Moor", &[PHONE, LAPTOP][..]), (NED, "Ned Noor", &[NEDS])] {
        let account = NewAccount {
            name: name.to_owned(),
            password_hash: format!("hash of {name}"),
            created_at: Timestamp(5),
        };
        assert!(directory.create_account(uid, account, None).await.expect("made"), "free");
        for token_hash in hashes {
            let (created_at, expires_at) = (Timestamp(5), Timestamp(10_000));
            let session =
                Session { token_hash: *token_hash, uid, created_at, expires_at, label: String::new() };
            assert!(directory.create_session(session, &format!("hash of {name}")).await.expect("kept"));
        }
    }
    key(directory).await;
    one_push_until_it_is_followed(directory).await;
    a_push_that_is_not_taken(directory).await;
    devices_that_are_connected(directory).await;
    ends(directory).await;
}

fn id(number: u64) -> MessageId {
    MessageId::new(number).expect("in range")
}

fn device(name: &str) -> NewPushSubscription {
    NewPushSubscription {
        endpoint: format!("https://push.example.org/{name}"),
        p256dh: vec![4; 65],
        auth: vec![7; 16],
    }
}

fn at(now: i64) -> PushTimes {
    PushTimes { now: Timestamp(now), lost_before: Timestamp(now - 1_000) }
}

async fn to_push(directory: &Directory, now: i64) -> Vec<PushSubscription> {
    let mut found = directory.to_push(&[MIA, NED], at(now), 10).await.expect("asked");
    found.sort_by_key(|subscription| subscription.token_hash);
    found
}

async fn key(directory: &Directory) {
    assert_eq!(directory.push_key(b"one").await.expect("kept"), b"one");
    assert_eq!(directory.push_key(b"another").await.expect("kept"), b"one", "it stays");
}

async fn one_push_until_it_is_followed(directory: &Directory) {
    assert!(!directory.has_push_subscriptions().await.expect("asked"));
    let subscribe = async |hash: &[u8; 32], name: &str, synced| {
        directory.subscribe_to_push(hash, &device(name), id(synced)).await.expect("kept")
    };
    assert!(!subscribe(&[9; 32], "nobody", 0).await, "there is no such session");
    assert!(subscribe(&PHONE, "phone", 3).await && subscribe(&NEDS, "ned", 1).await);
    assert!(directory.has_push_subscriptions().await.expect("asked"));
    let endpoint = directory.push_endpoint(&PHONE).await.expect("asked");
    assert_eq!(endpoint.as_deref(), Some("https://push.example.org/phone"));
    assert_eq!(directory.push_endpoint(&LAPTOP).await.expect("asked"), None);

    let found = to_push(directory, 100).await;
    let [phone, ned] = &found[..] else { panic!("{found:?}") };
    let expected = PushSubscription {
        token_hash: PHONE,
        uid: MIA,
        device: device("phone"),
        synced: id(3),
        told_to: MessageId::ZERO,
        failing_since: None,
    };
    assert_eq!((phone, ned.uid), (&expected, NED));
    assert_eq!(directory.to_push(&[MIA], at(100), 10).await.expect("asked"), [expected]);
    assert_eq!(directory.to_push_after(&[0; 32], at(100), 1).await.expect("asked"), found[..1]);
    assert_eq!(directory.to_push_after(&PHONE, at(100), 9).await.expect("asked"), found[1..]);

    let claim =
        async |of, now, until| directory.claim_push(of, at(now), Timestamp(until)).await.expect("asked");
    assert!(claim(phone, 100, 160).await);
    assert!(!claim(phone, 101, 161).await, "another server sends it");
    assert!(claim(phone, 160, 220).await, "one that has died does not");
    directory.push_taken(phone, id(5), Timestamp(170)).await.expect("kept");
    assert_eq!(to_push(directory, 180).await, found[1..], "it is told");
    assert!(!claim(phone, 180, 240).await);
    let lost = to_push(directory, 1_171).await;
    assert_eq!(lost[0].told_to, id(5), "it has not followed for too long");

    // The same browser says how far it has come.
    assert!(subscribe(&PHONE, "phone", 4).await);
    assert_eq!(to_push(directory, 180).await.len(), 1, "that is not all of it");
    assert!(subscribe(&PHONE, "phone", 5).await);
    let found = to_push(directory, 180).await;
    assert_eq!((found.len(), found[0].synced, found[0].told_to), (2, id(5), MessageId::ZERO));
    assert!(subscribe(&PHONE, "phone", 2).await);
    assert_eq!(to_push(directory, 180).await[0].synced, id(5), "it never goes back");
    assert!(!claim(phone, 180, 240).await, "it has gone on since it was looked at");
    directory.push_taken(phone, id(5), Timestamp(190)).await.expect("kept");
    assert_eq!(to_push(directory, 200).await.len(), 2, "it had fetched them before that was known");
}

async fn a_push_that_is_not_taken(directory: &Directory) {
    let phone = to_push(directory, 200).await.remove(0);
    assert!(directory.claim_push(&phone, at(200), Timestamp(260)).await.expect("asked"));
    directory.push_not_taken(&phone, Timestamp(200), Timestamp(300)).await.expect("kept");
    assert_eq!(to_push(directory, 299).await.len(), 1);
    let again = async |now| directory.to_push_again(at(now), 10).await.expect("asked");
    assert_eq!(again(299).await, []);
    let found = again(300).await;
    assert_eq!((found.len(), found[0].token_hash, found[0].failing_since), (1, PHONE, Some(Timestamp(200))));
    directory.skip_push(&found[0], id(8)).await.expect("kept");
    assert_eq!(again(300).await, []);
    let phone = to_push(directory, 300).await.remove(0);
    assert_eq!((phone.synced, phone.failing_since), (id(8), None));
    directory.skip_push(&found[0], id(9)).await.expect("kept");
    assert_eq!(to_push(directory, 300).await.remove(0).synced, id(8), "it has gone on since");
}

async fn devices_that_are_connected(directory: &Directory) {
    let synced = async |devices: &[([u8; 32], MessageId)], until| {
        directory.devices_synced(devices, Timestamp(until)).await.expect("kept");
    };
    synced(&[], 400).await;
    synced(&[(LAPTOP, id(20)), (PHONE, id(11))], 400).await;
    assert_eq!(to_push(directory, 399).await.len(), 1, "it is connected");
    assert_eq!(to_push(directory, 400).await[0].synced, id(11));
    synced(&[(PHONE, id(10))], 0).await;
    assert_eq!(to_push(directory, 399).await[0].synced, id(11));
}

async fn ends(directory: &Directory) {
    let endpoint = async |hash| directory.push_endpoint(hash).await.expect("asked").is_some();
    let subscribe = async |hash: &[u8; 32], name: &str| {
        assert!(directory.subscribe_to_push(hash, &device(name), id(1)).await.expect("kept"));
    };
    subscribe(&LAPTOP, "phone").await;
    assert!(
        !endpoint(&PHONE).await && endpoint(&LAPTOP).await,
        "it belongs to the session that named it last"
    );
    let laptop = to_push(directory, 500).await.remove(0);
    subscribe(&LAPTOP, "laptop").await;
    directory.forget_push_endpoint(&laptop).await.expect("forgotten");
    assert!(endpoint(&LAPTOP).await, "it has another one by now");
    assert_eq!(to_push(directory, 10_000).await, [], "the sessions have expired");
    assert!(directory.unsubscribe_from_push(&LAPTOP).await.expect("asked"));
    assert!(!directory.unsubscribe_from_push(&LAPTOP).await.expect("asked"));

    subscribe(&PHONE, "phone").await;
    subscribe(&LAPTOP, "laptop").await;
    let changed = directory.change_password(MIA, "hash of Mia Moor", "new hash", &LAPTOP).await;
    assert!(changed.expect("asked") && !endpoint(&PHONE).await && endpoint(&LAPTOP).await);
    assert!(directory.end_session(&LAPTOP).await.expect("asked"));
    assert!(!endpoint(&LAPTOP).await);
    assert!(directory.delete_account(NED, None, Timestamp(30)).await.expect("deleted"));
    assert!(!endpoint(&NEDS).await);
    assert!(!directory.has_push_subscriptions().await.expect("asked"));
}
