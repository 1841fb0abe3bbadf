//! Recovery codes and invitations to sign up in a [`Directory`] that has no account of these uids and names, on each
//! database.

use crate::domain::{Timestamp, Uid};
use crate::store::{Directory, NewAccount, Session, SignUpInvite, SignedUp};

const DEE: Uid = Uid(60);
const EVE: Uid = Uid(61);
const NOW: Timestamp = Timestamp(50);

/// Runs all of it.
pub async fn run(directory: &Directory) {
    signing_up(directory).await;
    recovery(directory).await;
    invitations(directory).await;
    uses(directory).await;
}

fn account(name: &str) -> NewAccount {
    NewAccount { name: name.to_owned(), password_hash: format!("hash of {name}"), created_at: NOW }
}

fn session(n: u8, uid: Uid) -> Session {
    Session {
        token_hash: [n; 32],
        uid,
        created_at: NOW,
        expires_at: Timestamp(100),
        label: "a phone".to_owned(),
    }
}

async fn is_open(directory: &Directory, n: u8) -> bool {
    directory.session(&[n; 32], NOW).await.expect("asked").is_some()
}

async fn signing_up(directory: &Directory) {
    let codes = [[1; 32], [2; 32], [3; 32]];
    let made = directory.sign_up(DEE, account("Dee"), session(61, DEE), &codes, None).await;
    assert_eq!(made.expect("asked"), SignedUp::Made);
    assert_eq!(directory.session(&[61; 32], NOW).await.expect("asked"), Some(session(61, DEE)));
    assert_eq!(directory.recovery_codes(DEE).await.expect("asked"), 3);
    assert_eq!(directory.names(&[DEE]).await.expect("asked"), [Some("Dee".to_owned())]);
    let taken = directory.sign_up(EVE, account("DEE"), session(62, EVE), &[[4; 32]], None).await;
    assert_eq!(taken.expect("asked"), SignedUp::NameTaken);
    assert!(!is_open(directory, 62).await, "nothing of it is kept");
    assert_eq!(directory.recovery_codes(EVE).await.expect("asked"), 0);
    let made = directory.sign_up(EVE, account("Eve"), session(62, EVE), &[[1; 32]], None).await;
    assert_eq!(made.expect("asked"), SignedUp::Made, "codes belong to their account");
}

async fn recovery(directory: &Directory) {
    let has = async |uid, n: u8| directory.has_recovery_code(uid, &[n; 32]).await.expect("asked");
    assert!(has(DEE, 2).await && has(DEE, 3).await && !has(DEE, 4).await && !has(EVE, 2).await);
    let recover = async |uid, n: u8, token: u8| {
        let session = session(token, uid);
        directory.recover(&[n; 32], &format!("hash {token}"), session).await.expect("asked")
    };
    assert!(!recover(DEE, 4, 63).await && !recover(EVE, 2, 63).await && !recover(Uid(7), 2, 63).await);
    assert!(is_open(directory, 61).await && !is_open(directory, 63).await, "nothing changes");
    assert!(recover(DEE, 2, 64).await);
    assert!(!is_open(directory, 61).await && is_open(directory, 64).await, "one session is left");
    assert!(is_open(directory, 62).await, "those of others go on");
    let hash = directory.account(DEE).await.expect("asked").expect("there").password_hash;
    assert_eq!(hash, "hash 64");
    assert!(!recover(DEE, 2, 65).await, "a code is used once");
    assert_eq!(directory.recovery_codes(DEE).await.expect("asked"), 2);
    assert!(directory.set_disabled(DEE, true).await.expect("set"));
    assert!(!recover(DEE, 3, 65).await, "who is shut out recovers nothing");
    let put = async |checked: &str| {
        directory.put_recovery_codes(DEE, checked, &[[5; 32], [6; 32]]).await.expect("asked")
    };
    assert!(!put("hash 64").await, "and gets no codes");
    assert!(directory.set_disabled(DEE, false).await.expect("set"));
    assert!(has(DEE, 3).await, "the code is still there");
    assert!(!put("hash of Dee").await, "it is not the password any more");
    assert!(put("hash 64").await);
    assert!(has(DEE, 5).await && has(DEE, 6).await && !has(DEE, 3).await && has(EVE, 1).await);
}

fn invite(n: u8, made_by: Option<Uid>, expires_at: i64) -> SignUpInvite {
    SignUpInvite {
        code_hash: [n; 32],
        made_by,
        made_at: NOW,
        expires_at: Timestamp(expires_at),
        uses: 2,
        uses_left: 2,
    }
}

async fn invitations(directory: &Directory) {
    let put = async |invite| directory.put_sign_up_invite(invite, 2).await.expect("asked");
    assert!(put(invite(1, Some(DEE), 90)).await && put(invite(2, Some(DEE), 80)).await);
    assert!(!put(invite(3, Some(DEE), 90)).await, "so many are open");
    assert!(put(invite(3, Some(EVE), 90)).await, "others have theirs");
    assert!(put(invite(4, None, 60)).await, "and the operator");
    assert!(!put(invite(4, Some(EVE), 95)).await, "there is one of the code");
    let find = async |n: u8| directory.sign_up_invite(&[n; 32]).await.expect("asked");
    assert_eq!(find(1).await, Some(invite(1, Some(DEE), 90)));
    assert_eq!((find(4).await, find(5).await), (Some(invite(4, None, 60)), None));
    let list = async |uid, now, limit| {
        let open = directory.sign_up_invites(uid, Timestamp(now), limit).await.expect("asked");
        open.iter().map(|invite| invite.code_hash[0]).collect::<Vec<_>>()
    };
    assert_eq!(list(None, 50, 10).await, [4], "of the operator");
    assert_eq!(list(Some(DEE), 50, 10).await, [2, 1], "the first to end comes first");
    assert_eq!((list(Some(DEE), 80, 10).await, list(Some(DEE), 50, 1).await), (vec![1], vec![2]));
    let end = async |uid, n: u8| directory.end_sign_up_invite(uid, &[n; 16]).await.expect("asked");
    assert!(!end(Some(EVE), 2).await && !end(None, 2).await, "it is somebody else's");
    assert!(end(Some(DEE), 2).await && !end(Some(DEE), 2).await, "it ends once");
    assert!(directory.set_disabled(EVE, true).await.expect("set"));
    assert!(directory.set_disabled(EVE, false).await.expect("set"));
    assert_eq!(list(Some(EVE), 50, 10).await, [0; 0], "those of who is shut end for good");
    assert!(put(invite(5, Some(DEE), 70)).await, "there is room again");
}

async fn uses(directory: &Directory) {
    let sign_up = async |uid: u32, name: &str, code: u8, at| {
        let account = NewAccount { created_at: Timestamp(at), ..account(name) };
        let first = session(uid as u8, Uid(uid));
        directory.sign_up(Uid(uid), account, first, &[], Some(&[code; 32])).await.expect("asked")
    };
    let left =
        async |n: u8| directory.sign_up_invite(&[n; 32]).await.expect("asked").map(|invite| invite.uses_left);
    assert_eq!(sign_up(70, "Flo", 9, 50).await, SignedUp::NotInvited, "there is none");
    assert_eq!(sign_up(70, "Flo", 5, 70).await, SignedUp::NotInvited, "it is over");
    assert_eq!(sign_up(70, "Eve", 5, 69).await, SignedUp::NameTaken);
    assert_eq!(left(5).await, Some(2), "no use is taken");
    assert_eq!(sign_up(70, "Flo", 5, 69).await, SignedUp::Made);
    assert_eq!(sign_up(71, "Gus", 5, 69).await, SignedUp::Made);
    assert_eq!((left(5).await, sign_up(72, "Hal", 5, 69).await), (Some(0), SignedUp::NotInvited));
    assert!(
        directory.account_by_name("Hal").await.expect("asked").is_none() && !is_open(directory, 72).await
    );
    let forget =
        async |now, limit| directory.forget_sign_up_invites(Timestamp(now), limit).await.expect("asked");
    assert_eq!((forget(59, 10).await, forget(70, 1).await, forget(70, 10).await), (0, 1, 1));
    assert_eq!((left(4).await, left(5).await, left(1).await), (None, None, Some(2)));
}
