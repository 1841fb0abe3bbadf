//! Accounts and invitations: the contract, and two servers that want the same thing at the same moment.

use futures_util::future::join_all;
use tidemark_test_support::servers::postgres::durable_database;
use tokio::join;
use uuid::Uuid;

use super::*;
use crate::domain::{ClientId, GroupId, Invite, Timestamp, Uid};
use crate::store::sql::sql;
use crate::store::{Directory, NewAccount, Session, conformance};

/// So many rounds: a race that is lost now and then is lost in one of them.
const ROUNDS: u32 = 20;

async fn servers() -> (Directory, Directory) {
    let url = durable_database().await;
    let (one, other) = (opened(&url).await, opened(&url).await);
    (Directory::on_postgres(one, 4), Directory::on_postgres(other, 4))
}

fn account(name: &str) -> NewAccount {
    NewAccount { name: name.to_owned(), password_hash: "a hash".to_owned(), created_at: Timestamp(5) }
}

fn session(n: u8, uid: Uid) -> Session {
    Session {
        token_hash: [n; 32],
        uid,
        created_at: Timestamp(1),
        expires_at: Timestamp(100),
        label: String::new(),
    }
}

fn name(n: u128) -> ClientId {
    ClientId(Uuid::from_u128(n))
}

#[tokio::test]
async fn it_keeps_the_contract() {
    let (directory, _) = servers().await;
    conformance::directory::run(&directory).await;
    conformance::credentials::run(&directory).await;
    conformance::deletions::run(&directory).await;
    conformance::invites::run(&directory).await;
    conformance::reports::run(&directory).await;
    conformance::files::run(&directory).await;
    conformance::access_keys::run(&directory).await;
    conformance::renames::run(&directory).await;
    conformance::last_seen::run(&directory).await;
    conformance::operators::run(&directory).await;
    conformance::push::run(&directory).await;
}

#[tokio::test]
async fn of_two_servers_one_gets_a_name() {
    let (one, other) = servers().await;
    for n in 0..ROUNDS {
        let (ann, bob) = (Uid(20_000 + 2 * n), Uid(20_001 + 2 * n));
        let wanted = format!("Name {n}");
        let (first, second) = join!(
            one.create_account(ann, account(&wanted), Some(session(1, ann))),
            other.create_account(bob, account(&wanted.to_uppercase()), Some(session(2, bob))),
        );
        let (first, second) = (first.expect("asked"), second.expect("asked"));
        assert!(first != second, "one of both: {first} {second}");
        let (winner, loser) = if first { (ann, bob) } else { (bob, ann) };
        let found = other.account_by_name(&wanted).await.expect("asked").expect("there");
        assert_eq!(found.uid, winner);
        assert_eq!(one.account(loser).await.expect("asked"), None);
        for (token, uid) in [(1, ann), (2, bob)] {
            let opened = one.session(&[token; 32], Timestamp(50)).await.expect("asked");
            assert_eq!(opened.map(|session| session.uid), (uid == winner).then_some(uid));
            one.end_session(&[token; 32]).await.expect("ended");
        }
    }
}

#[tokio::test]
async fn of_two_servers_one_gets_a_name_that_looks_like_the_other() {
    let (one, other) = servers().await;
    for n in 0..ROUNDS {
        let (ann, bob) = (Uid(20_000 + 2 * n), Uid(20_001 + 2 * n));
        let (first, second) = join!(
            one.create_account(ann, account(&format!("Name o{n}")), None),
            other.create_account(bob, account(&format!("N\u{430}me 0{n}")), None),
        );
        let (first, second) = (first.expect("asked"), second.expect("asked"));
        assert!(first != second, "one of both: {first} {second}");
        assert!(one.has_look_alike(&format!("N\u{430}me O{n}")).await.expect("asked"));
        assert_eq!(one.account(if first { bob } else { ann }).await.expect("asked"), None);
    }
}

/// Accounts as an import made them.
#[tokio::test]
async fn imported_names_are_indexed_in_steps_by_all_servers_and_those_that_look_alike_stay() {
    let (one, other) = servers().await;
    let names: Vec<String> =
        (0..100).map(|n| format!("Person {n}")).chain(["Ann".into(), "\u{410}nn".into()]).collect();
    for (uid, name) in (1..).zip(names) {
        let old = "INSERT INTO accounts (uid, name, name_key, password_hash, created_at) VALUES ($1, $2, $3, '', 0)";
        let old = sql(old).bind(Uid(uid)).bind(name.as_str()).bind(name.to_lowercase());
        one.db.change(old).await.expect("stored");
    }
    let mut all = 0;
    loop {
        let (first, second) = join!(one.index_names(7), other.index_names(7));
        let done = first.expect("indexed") + second.expect("indexed");
        all += done;
        if done == 0 {
            break;
        }
    }
    assert_eq!(all, 102, "each once");
    let found = other.search("nn", 10).await.expect("asked");
    assert_eq!(found.iter().map(|(uid, _)| uid.0).collect::<Vec<_>>(), [101, 102]);
    assert_eq!(one.search("rson 99", 10).await.expect("asked").len(), 1);
    assert!(!one.create_account(Uid(200), account("Ann\u{200b}"), None).await.expect("asked"));
    assert!(!one.create_account(Uid(200), account("Pers0n 99"), None).await.expect("asked"));
}

#[tokio::test]
async fn what_one_server_changes_the_other_sees_at_once() {
    let (one, other) = servers().await;
    let ann = Uid(20_000);
    let named = async || other.names(&[ann]).await.expect("asked");
    assert_eq!(named().await, [None]);
    assert!(one.create_account(ann, account("Ann"), Some(session(1, ann))).await.expect("asked"));
    assert_eq!(named().await, [Some("Ann".to_owned())], "that there was nobody is not remembered");
    assert!(other.account(ann).await.expect("asked").is_some_and(|account| !account.disabled));
    assert!(one.set_password(ann, "another").await.expect("set"));
    assert!(one.set_disabled(ann, true).await.expect("set"));
    let account = other.account(ann).await.expect("asked").expect("there");
    assert_eq!((account.password_hash.as_str(), account.disabled), ("another", true));
    assert_eq!(other.session(&[1; 32], Timestamp(50)).await.expect("asked"), None);
}

#[tokio::test]
async fn of_two_servers_one_gives_the_last_use_of_an_invitation() {
    let (one, other) = servers().await;
    let (ann, bob) = (Uid(10_002), Uid(10_003));
    for number in 1..=u64::from(ROUNDS) {
        let (made_at, expires_at) = (Timestamp(1), Timestamp(100));
        let invite = Invite {
            number,
            gid: GroupId(3),
            made_by: Uid(10_001),
            made_at,
            expires_at,
            uses: 1,
            uses_left: 1,
            client_id: None,
        };
        one.put_invite(invite).await.expect("kept");
        let (first, second) = join!(
            one.claim_use(number, ann, name(1), Timestamp(50)),
            other.claim_use(number, bob, name(2), Timestamp(50)),
        );
        let claims = [first.expect("asked"), second.expect("asked")];
        assert_eq!(claims.iter().flatten().count(), 1, "{claims:?}");
        assert_eq!(other.invite(number).await.expect("asked").expect("there").uses_left, 0);
    }
}

#[tokio::test]
async fn a_guest_at_two_servers_takes_one_use() {
    let (one, other) = servers().await;
    let ann = Uid(10_002);
    for number in 1..=u64::from(ROUNDS) {
        let (made_at, expires_at) = (Timestamp(1), Timestamp(100));
        let invite = Invite {
            number,
            gid: GroupId(3),
            made_by: Uid(10_001),
            made_at,
            expires_at,
            uses: 5,
            uses_left: 5,
            client_id: None,
        };
        one.put_invite(invite).await.expect("kept");
        let (first, second) = join!(
            one.claim_use(number, ann, name(1), Timestamp(50)),
            other.claim_use(number, ann, name(2), Timestamp(50)),
        );
        let claim = first.expect("asked").expect("a use");
        assert_eq!(second.expect("asked"), Some(claim), "the claim that stands");
        let (first, second) = join!(one.return_use(number, ann, claim), other.return_use(number, ann, claim));
        first.and(second).expect("given back");
        assert_eq!(one.invite(number).await.expect("asked").expect("there").uses_left, 5, "once");
    }
}

#[tokio::test]
async fn servers_that_sweep_together_forget_each_thing_once() {
    let (one, other) = servers().await;
    let uid = Uid(10_001);
    assert!(one.create_account(uid, account("Ann"), None).await.expect("asked"));
    for n in 0..40 {
        assert!(one.create_session(session(n, uid), "a hash").await.expect("asked"));
    }
    let (of_one, of_other) = join!(
        join_all((0..4).map(|_| one.forget_expired(Timestamp(100), 5))),
        join_all((0..4).map(|_| other.forget_expired(Timestamp(100), 5))),
    );
    let mut forgotten: u64 = of_one.into_iter().chain(of_other).map(|swept| swept.expect("swept")).sum();
    while let swept @ 1.. = one.forget_expired(Timestamp(100), 100).await.expect("swept") {
        forgotten += swept;
    }
    assert_eq!(forgotten, 40);
}

/// A log-in whose password was right when it was checked, and an operator who changes the password and ends all sessions.
#[tokio::test]
async fn no_session_outlives_a_change_of_the_password() {
    let (one, other) = servers().await;
    for n in 0..ROUNDS {
        let uid = Uid(30_000 + n);
        assert!(one.create_account(uid, account(&format!("Name {n}")), None).await.expect("asked"));
        let reset = async {
            assert!(other.set_password(uid, "another hash").await.expect("set"));
            other.end_sessions(uid).await.expect("ended");
        };
        let (kept, ()) = join!(one.create_session(session(7, uid), "a hash"), reset);
        kept.expect("asked");
        assert_eq!(one.session(&[7; 32], Timestamp(50)).await.expect("asked"), None);
    }
}
