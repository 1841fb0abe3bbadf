//! Deleted accounts: the mark in the [`Directory`], and the rows that go.

use super::*;
use crate::store::{Directory, NewAccount, Session, ShownName, SignUpInvite};

const EVE: Uid = Uid(10_071);
const FAY: Uid = Uid(10_072);

/// How often it is tried to remove what lies in memory.
const TRIES: usize = 2_000;

/// The mark and what goes with it, in a directory that has other accounts, too.
pub async fn run(directory: &Directory) {
    for (uid, name) in [(EVE, "Evelyn"), (FAY, "Fay")] {
        let account = NewAccount {
            name: name.to_owned(),
            password_hash: "a hash".to_owned(),
            created_at: Timestamp(5),
        };
        let first = Session {
            token_hash: [uid.0 as u8; 32],
            uid,
            created_at: Timestamp(5),
            expires_at: Timestamp(1_000),
            label: String::new(),
        };
        let made = directory.sign_up(uid, account, first, &[[uid.0 as u8; 32]], None).await;
        assert_eq!(made.expect("asked"), SignedUp::Made);
        let invite = SignUpInvite {
            code_hash: [uid.0 as u8; 32],
            made_by: Some(uid),
            made_at: Timestamp(5),
            expires_at: Timestamp(1_000),
            uses: 1,
            uses_left: 1,
        };
        assert!(directory.put_sign_up_invite(invite, 9).await.expect("asked"));
    }
    marked(directory).await;
    gone(directory).await;
    cleared(directory).await;
}

async fn marked(directory: &Directory) {
    let delete =
        async |uid, checked| directory.delete_account(uid, checked, Timestamp(100)).await.expect("asked");
    let shown = async || directory.shown_names(&[FAY, EVE, Uid(7)]).await.expect("asked");
    let named = |name: &str| Some(ShownName::Of(name.to_owned()));
    assert_eq!(shown().await, [named("Fay"), named("Evelyn"), None]);
    assert!(!delete(EVE, Some("another hash")).await, "another password was checked");
    assert!(!delete(Uid(7), None).await, "nobody");
    assert!(directory.set_disabled(EVE, true).await.expect("set"));
    assert!(!delete(EVE, Some("a hash")).await, "who is shut deletes nothing");
    assert!(directory.set_disabled(EVE, false).await.expect("set"));
    assert!(directory.session(&[EVE.0 as u8; 32], Timestamp(50)).await.expect("asked").is_some());
    assert!(delete(EVE, Some("a hash")).await);
    assert!(!delete(EVE, None).await, "once");
    assert_eq!(shown().await, [named("Fay"), Some(ShownName::Deleted), None]);
    directory.forget_names(Some(EVE));
    directory.forget_names(None);
    assert_eq!(shown().await, [named("Fay"), Some(ShownName::Deleted), None]);
    let names = directory.names(&[EVE]).await.expect("asked");
    assert_eq!(names, [Some("Deleted account".to_owned())]);
    let account = directory.account_by_name("EVELYN").await.expect("asked").expect("its name is kept");
    assert_eq!((account.uid, account.disabled, account.deleted_at), (EVE, true, Some(Timestamp(100))));
    assert_eq!(account.password_hash, "");
    assert_eq!(directory.account(EVE).await.expect("asked"), Some(account));
    assert_eq!(directory.account(FAY).await.expect("asked").expect("there").deleted_at, None);
}

/// Of the deleted account; what the other one has stays.
async fn gone(directory: &Directory) {
    for (uid, is_there) in [(EVE, false), (FAY, true)] {
        let hash = [uid.0 as u8; 32];
        assert_eq!(directory.session(&hash, Timestamp(50)).await.expect("asked").is_some(), is_there);
        assert_eq!(directory.has_recovery_code(uid, &hash).await.expect("asked"), is_there);
        assert_eq!(directory.sign_up_invite(&hash).await.expect("asked").is_some(), is_there);
    }
    assert!(!directory.set_disabled(EVE, false).await.expect("asked"), "nobody opens it again");
    assert!(!directory.set_password(EVE, "new").await.expect("asked"));
    let again = Session {
        token_hash: [99; 32],
        uid: EVE,
        created_at: Timestamp(5),
        expires_at: Timestamp(1_000),
        label: String::new(),
    };
    assert!(!directory.create_session(again, "").await.expect("asked"));
    let found = directory.search("velyn", 10).await.expect("asked");
    assert_eq!(found, [], "nobody finds it");
    for taken in ["Evelyn", "evelyn", "Eve\u{200b}lyn"] {
        let account =
            NewAccount { name: taken.to_owned(), password_hash: String::new(), created_at: Timestamp(5) };
        assert!(!directory.create_account(Uid(10_080), account, None).await.expect("asked"), "{taken}");
    }
}

async fn cleared(directory: &Directory) {
    let to_clear = async |after| directory.to_clear(Uid(after), 10).await.expect("asked");
    assert_eq!(to_clear(0).await, [(EVE, Timestamp(100))]);
    assert_eq!(to_clear(EVE.0).await, []);
    assert!(directory.delete_account(FAY, None, Timestamp(200)).await.expect("deleted"));
    assert_eq!(to_clear(0).await, [(EVE, Timestamp(100)), (FAY, Timestamp(200))]);
    assert_eq!(directory.to_clear(Uid(0), 1).await.expect("asked"), [(EVE, Timestamp(100))]);
    let since = async |at, limit| directory.deleted_since(Timestamp(at), limit).await.expect("asked");
    assert_eq!((since(100, 9).await, since(101, 9).await), (vec![FAY, EVE], vec![FAY]));
    assert_eq!((since(100, 1).await, since(201, 9).await), (vec![FAY], vec![]));
    directory.mark_cleared(EVE).await.expect("noted");
    assert_eq!(to_clear(0).await, [(FAY, Timestamp(200))]);
    directory.mark_cleared(FAY).await.expect("noted");
    assert_eq!(to_clear(0).await, []);
}

/// However the rows lie; those of the other user stay.
pub async fn the_rows_of_a_user_are_removed_in_batches_and_no_id_comes_twice(store: &dyn MessageStore) {
    for n in 1..=5 {
        send_text(store, (EVE, n), (FAY, n), n.into()).await;
    }
    let marker = read_marker(EVE, Conversation::User(FAY), 5);
    accepted(store, accept(marker, vec![row(EVE, 6)], vec![])).await;
    let (mut removed, mut in_vain) = (0, 0);
    loop {
        let forgotten = store.forget_rows(EVE, 2).await.expect("removed");
        removed += forgotten.removed;
        if !forgotten.more {
            break;
        }
        in_vain = if forgotten.removed == 0 { in_vain + 1 } else { 0 };
        if in_vain == TRIES {
            // Rows in memory alone are removed once they are in the tables; this store moves them there later.
            assert_eq!((removed, ids(store, EVE).await.len()), (0, 6));
            return;
        }
        tokio::task::yield_now().await;
    }
    assert!(removed >= 11, "six rows and five idempotency records");
    assert_eq!(ids(store, EVE).await, [0; 0]);
    assert_eq!(store.conversations(EVE, None, 10).await.expect("read"), []);
    assert_eq!(store.read_to(EVE, Conversation::User(FAY)).await.expect("read"), MessageId::ZERO);
    assert_eq!(records(store, &[(EVE, client_id(3))]).await, [None]);
    assert_eq!(store.watermark(EVE).await.expect("read"), id(6), "it never goes back");
    assert_eq!(ids(store, FAY).await, [1, 2, 3, 4, 5]);
    assert_eq!(store.forget_rows(EVE, 2).await.expect("asked"), Forgotten::default());
    send_text(store, (FAY, 6), (EVE, 7), 20).await;
    assert_eq!(ids(store, EVE).await, [7]);
}
