//! Accounts and sessions in an empty [`Directory`], on each database.

use crate::domain::{Timestamp, Uid};
use crate::store::{Directory, NewAccount, Session};

/// Runs all of it.
pub async fn run(directory: &Directory) {
    let uids = accounts(directory).await;
    finding(directory, &uids).await;
    sessions(directory, uids[0]).await;
    expiry(directory, uids[1]).await;
    changed_password(directory, uids[2], uids[3]).await;
    listed_sessions(directory, uids[3]).await;
}

async fn accounts(directory: &Directory) -> Vec<Uid> {
    let mut uids = Vec::new();
    assert_eq!(directory.largest_uid().await.expect("asked"), None);
    for (uid, name) in [(20, "Ann"), (23, "anna"), (24, "Änne"), (29, "Bob")] {
        assert!(create(directory, uid, name).await, "{name} is free");
        assert_eq!(directory.largest_uid().await.expect("asked"), Some(Uid(uid)));
        uids.push(Uid(uid));
    }
    for taken in ["Ann", "aNN", "ÄNNE"] {
        assert!(!create(directory, 30, taken).await, "{taken} is taken whatever its case");
    }
    for look_alike in ["\u{410}nn", "B0b", "ann\u{430}", "A\u{200b}nna", "\u{ff22}ob"] {
        assert!(!create(directory, 30, look_alike).await, "{look_alike} can be taken for another one");
        assert!(directory.has_look_alike(look_alike).await.expect("asked"));
        assert_eq!(directory.account_by_name(look_alike).await.expect("asked"), None);
    }
    assert!(!directory.has_look_alike("Zoë").await.expect("asked"));
    assert!(create(directory, 30, "Zoë").await, "free, whoever was refused under its number");
    for form in ["zoe\u{308}", "ZO\u{cb}"] {
        assert_eq!(
            directory.account_by_name(form).await.expect("asked").map(|found| found.uid),
            Some(Uid(30))
        );
        assert!(!create(directory, 31, form).await, "{form:?} is the same name");
    }
    let found = directory.account_by_name("ANN").await.expect("asked").expect("there");
    assert_eq!((found.uid, found.name.as_str(), found.disabled), (uids[0], "Ann", false));
    assert_eq!(found.password_hash, "hash of Ann");
    assert_eq!(directory.account(uids[0]).await.expect("asked"), Some(found));
    let account = |name: &str| NewAccount {
        name: name.to_owned(),
        password_hash: "a hash".to_owned(),
        created_at: Timestamp(5),
    };
    let first = |n, uid| Some(session(n, Uid(uid), 100));
    assert!(directory.create_account(Uid(40), account("Cem"), first(40, 40)).await.expect("asked"), "free");
    assert!(!directory.create_account(Uid(41), account("CEM"), first(41, 41)).await.expect("asked"), "taken");
    let of = async |n: u8| directory.session(&[n; 32], Timestamp(50)).await.expect("asked").is_some();
    assert!(of(40).await && !of(41).await, "both or neither");
    assert_eq!(directory.account(Uid(7)).await.expect("asked"), None);
    assert!(directory.set_password(uids[0], "other").await.expect("set"));
    assert!(!directory.set_password(Uid(7), "other").await.expect("asked"));
    let changed = directory.account(uids[0]).await.expect("asked").expect("there");
    assert_eq!(changed.password_hash, "other");
    uids
}

async fn create(directory: &Directory, uid: u32, name: &str) -> bool {
    let account = NewAccount {
        name: name.to_owned(),
        password_hash: format!("hash of {name}"),
        created_at: Timestamp(5),
    };
    directory.create_account(Uid(uid), account, None).await.expect("asked")
}

async fn finding(directory: &Directory, uids: &[Uid]) {
    let asked = [uids[3], Uid(7), uids[0], uids[3]];
    let names = directory.names(&asked).await.expect("asked");
    let names: Vec<Option<&str>> = names.iter().map(Option::as_deref).collect();
    assert_eq!(names, [Some("Bob"), None, Some("Ann"), Some("Bob")]);
    assert_eq!(directory.names(&[]).await.expect("asked"), Vec::<Option<String>>::new());

    let search = async |prefix: &str, limit| {
        let found = directory.search(prefix, limit).await.expect("searched");
        found.into_iter().map(|(_, name)| name).collect::<Vec<_>>()
    };
    assert_eq!(search("AN", 10).await, ["Ann", "anna"], "by name, whatever the case");
    assert_eq!(search("an", 1).await, ["Ann"]);
    assert_eq!(search("%", 10).await, Vec::<String>::new(), "a part is no pattern");
    assert_eq!(search("NN", 10).await, ["Ann", "anna", "Änne"], "any part, and then by name");
    assert_eq!(search("oë", 10).await, ["Zoë"]);
    assert_eq!(search("oe\u{308}", 10).await, ["Zoë"], "in any normal form");
    assert_eq!(search("na", 10).await, ["anna"]);
    assert_eq!(search("nn", 2).await.len(), 2);
    assert_eq!(search("n", 10).await, Vec::<String>::new(), "one character is looked for at the beginning");
    assert_eq!(search("b", 10).await, ["Bob"]);
    assert_eq!(search("ann", 10).await, ["Ann", "anna"]);
    assert_eq!(search("nx", 10).await, Vec::<String>::new());
    assert!(directory.set_disabled(uids[0], true).await.expect("set"));
    assert_eq!(search("an", 10).await, ["anna"], "who is shut is not found");
    assert_eq!(search("nn", 10).await, ["anna", "Änne"]);
    assert_eq!(directory.index_names(10).await.expect("asked"), 0, "new names are there at once");
    assert!(directory.set_disabled(uids[0], false).await.expect("set"));
    assert!(!directory.set_disabled(Uid(7), true).await.expect("asked"));

    let listed = directory.accounts(uids[0], 2).await.expect("listed");
    let listed: Vec<Uid> = listed.iter().map(|account| account.uid).collect();
    assert_eq!(listed, [uids[1], uids[2]], "by uid, after the given one");
}

fn session(n: u8, uid: Uid, expires_at: i64) -> Session {
    Session {
        token_hash: [n; 32],
        uid,
        created_at: Timestamp(1),
        expires_at: Timestamp(expires_at),
        label: format!("device {n}"),
    }
}

async fn sessions(directory: &Directory, uid: Uid) {
    let now = Timestamp(50);
    let known = async |n: u8| directory.session(&[n; 32], now).await.expect("asked");
    for n in 1..=3 {
        assert!(directory.create_session(session(n, uid, 100), "other").await.expect("asked"));
    }
    let old = directory.create_session(session(4, uid, 100), "hash of Ann").await.expect("asked");
    assert!(!old && known(4).await.is_none(), "the password that was checked is not the password any more");
    assert_eq!(known(1).await, Some(session(1, uid, 100)));
    assert_eq!(known(9).await, None);
    assert!(directory.end_session(&[1; 32]).await.expect("ended"));
    assert!(!directory.end_session(&[1; 32]).await.expect("asked"), "it ends once");
    assert_eq!(known(1).await, None);
    assert!(known(2).await.is_some(), "the others go on");
    let good = directory.are_good(&[[2; 32], [1; 32], [3; 32], [9; 32]], now).await.expect("asked");
    assert_eq!(good, [true, false, true, false]);
    assert_eq!(directory.are_good(&[[2; 32]], Timestamp(100)).await.expect("asked"), [false], "expired");
    directory.set_disabled(uid, true).await.expect("set");
    assert_eq!(known(2).await, None, "who is shut has no session");
    assert!(!directory.create_session(session(5, uid, 100), "other").await.expect("asked"), "and gets none");
    directory.set_disabled(uid, false).await.expect("set");
    assert_eq!(known(5).await, None);
    directory.end_sessions(uid).await.expect("ended");
    assert_eq!((known(2).await, known(3).await), (None, None));
}

async fn expiry(directory: &Directory, uid: Uid) {
    for (n, expires_at) in [(11, 60), (12, 61), (13, 100)] {
        assert!(directory.create_session(session(n, uid, expires_at), "hash of anna").await.expect("asked"));
    }
    assert!(directory.session(&[11; 32], Timestamp(59)).await.expect("asked").is_some());
    assert_eq!(directory.session(&[11; 32], Timestamp(60)).await.expect("asked"), None, "not at its expiry");
    assert_eq!(directory.forget_expired(Timestamp(61), 1).await.expect("done"), 1);
    assert_eq!(directory.forget_expired(Timestamp(61), 10).await.expect("done"), 1);
    assert_eq!(directory.forget_expired(Timestamp(61), 10).await.expect("done"), 0);
    assert!(directory.session(&[13; 32], Timestamp(99)).await.expect("asked").is_some());
}

async fn changed_password(directory: &Directory, uid: Uid, other: Uid) {
    let now = Timestamp(50);
    let known = async |n: u8| directory.session(&[n; 32], now).await.expect("asked").is_some();
    for n in 21..=23 {
        assert!(directory.create_session(session(n, uid, 100), "hash of Änne").await.expect("asked"));
    }
    assert!(directory.create_session(session(24, other, 100), "hash of Bob").await.expect("asked"));
    let change = async |checked: &str, new: &str| {
        directory.change_password(uid, checked, new, &[22; 32]).await.expect("asked")
    };
    assert!(!change("hash of Bob", "new").await, "another password was checked");
    assert!(known(21).await && known(23).await, "nothing changes then");
    directory.set_disabled(uid, true).await.expect("set");
    assert!(!change("hash of Änne", "new").await, "who is shut changes nothing");
    directory.set_disabled(uid, false).await.expect("set");
    assert!(!directory.change_password(Uid(7), "", "new", &[22; 32]).await.expect("asked"), "nobody");
    let replace =
        async |checked: &str, hash: &str| directory.replace_hash(uid, checked, hash).await.expect("asked");
    assert!(!replace("hash of Bob", "anew").await, "another hash was checked");
    assert!(replace("hash of Änne", "anew").await && replace("anew", "hash of Änne").await);
    assert!(known(21).await && known(23).await, "it is the same password");
    assert!(change("hash of Änne", "new").await);
    assert_eq!((known(21).await, known(22).await, known(23).await), (false, true, false), "one is kept");
    assert!(known(24).await, "the others' sessions go on");
    assert!(!change("hash of Änne", "newer").await, "the password is another one by now");
    let account = directory.account(uid).await.expect("asked").expect("there");
    assert_eq!(account.password_hash, "new");
}

async fn listed_sessions(directory: &Directory, uid: Uid) {
    directory.end_sessions(uid).await.expect("ended");
    for (n, created_at, expires_at) in [(31, 5, 100), (32, 9, 100), (33, 7, 100), (34, 8, 50)] {
        let session = Session { created_at: Timestamp(created_at), ..session(n, uid, expires_at) };
        assert!(directory.create_session(session, "hash of Bob").await.expect("asked"));
    }
    let listed = async |limit| directory.sessions(uid, Timestamp(50), limit).await.expect("listed");
    let first_bytes = |listed: &[Session]| listed.iter().map(|one| one.token_hash[0]).collect::<Vec<_>>();
    let all = listed(10).await;
    assert_eq!(first_bytes(&all), [32, 33, 31], "newest first, without the expired one");
    assert_eq!(all[0], Session { created_at: Timestamp(9), ..session(32, uid, 100) });
    assert_eq!(first_bytes(&listed(2).await), [32, 33]);
    assert_eq!(directory.sessions(Uid(7), Timestamp(50), 10).await.expect("asked"), []);

    let end = async |uid, n: u8| directory.end_session_of(uid, &[n; 16]).await.expect("asked");
    assert_eq!(end(Uid(7), 33).await, None, "it is somebody else's");
    assert_eq!(end(uid, 35).await, None);
    assert_eq!(end(uid, 33).await, Some([33; 32]));
    assert_eq!(end(uid, 33).await, None, "it ends once");
    assert_eq!(first_bytes(&listed(10).await), [32, 31]);

    let label = async |uid, n: u8| directory.label_session(uid, &[n; 16], "my phone").await.expect("asked");
    assert!(!label(Uid(7), 31).await && !label(uid, 33).await && label(uid, 31).await);
    let labels: Vec<String> = listed(10).await.into_iter().map(|session| session.label).collect();
    assert_eq!(labels, ["device 32", "my phone"]);
}
