//! Invitations into groups in an empty [`Directory`], on each database.

use uuid::Uuid;

use crate::domain::{ClientId, GroupId, Invite, Timestamp, Uid};
use crate::store::Directory;

/// Runs all of it.
pub async fn run(invites: &Directory) {
    let made = Invite {
        number: 7,
        gid: GroupId(3),
        made_by: Uid(10_001),
        made_at: Timestamp(100),
        expires_at: Timestamp(200),
        uses: 2,
        uses_left: 2,
        client_id: None,
    };
    assert_eq!(invites.invite(7).await.expect("asked"), None);
    let (ann, bob, eve) = (Uid(10_002), Uid(10_003), Uid(10_004));
    let name = |n| ClientId(Uuid::from_u128(n));
    let claim =
        async |guest, n, now| invites.claim_use(7, guest, name(n), Timestamp(now)).await.expect("asked");
    assert_eq!(claim(ann, 1, 150).await, None, "there is none yet");
    assert_eq!(invites.put_invite(made).await.expect("kept"), made);
    assert_eq!(invites.invite(7).await.expect("asked"), Some(made));

    assert_eq!(claim(ann, 1, 200).await, None, "it is over");
    assert_eq!(claim(ann, 1, 199).await, Some(name(1)));
    assert_eq!(claim(ann, 2, 199).await, Some(name(1)), "the claim that stands");
    assert_eq!(claim(bob, 3, 199).await, Some(name(3)));
    assert_eq!(claim(eve, 4, 199).await, None, "used up");
    assert_eq!(claim(bob, 5, 199).await, Some(name(3)), "but not for who has a claim");
    assert_eq!(claim(bob, 5, 200).await, None, "until it is over");
    let left = async || invites.invite(7).await.expect("asked").expect("there").uses_left;
    assert_eq!((left().await, invites.claim(7, ann).await.expect("asked")), (0, Some(name(1))));

    invites.settle_use(7, ann, name(2)).await.expect("no such claim");
    invites.return_use(7, ann, name(2)).await.expect("no such claim");
    assert_eq!((left().await, invites.claim(7, ann).await.expect("asked")), (0, Some(name(1))));
    invites.settle_use(7, ann, name(1)).await.expect("settled");
    invites.return_use(7, ann, name(1)).await.expect("no such claim any more");
    assert_eq!((left().await, invites.claim(7, ann).await.expect("asked")), (0, None));
    for _ in 0..2 {
        invites.return_use(7, bob, name(3)).await.expect("given back, once");
        assert_eq!((left().await, invites.claim(7, bob).await.expect("asked")), (1, None));
    }
    assert_eq!(claim(eve, 6, 199).await, Some(name(6)));

    invites.put_invite(Invite { number: 9, expires_at: Timestamp(300), ..made }).await.expect("kept");
    invites.put_invite(Invite { number: 8, ..made }).await.expect("kept");
    assert_eq!(invites.forget_invites(Timestamp(200), 1).await.expect("swept"), 1);
    assert_eq!(invites.forget_invites(Timestamp(200), 10).await.expect("swept"), 1);
    assert_eq!(invites.forget_invites(Timestamp(200), 10).await.expect("swept"), 0);
    assert!(invites.invite(9).await.expect("asked").is_some(), "not over yet");
    assert_eq!(invites.forget_invites(Timestamp(300), 10).await.expect("swept"), 0, "the newest stays");
    assert_eq!(invites.largest_invite().await.expect("asked"), 9);
    assert_eq!(invites.claim(7, eve).await.expect("asked"), None, "gone with its invitation");
    listed_and_ended(invites, made).await;
}

/// Of a group of its own.
async fn listed_and_ended(invites: &Directory, like: Invite) {
    let gid = GroupId(44);
    let (ann, bob) = (Uid(10_001), Uid(10_002));
    let key = |n| Some(ClientId(Uuid::from_u128(n)));
    let new = |number, made_by, client_id| Invite { number, gid, made_by, client_id, ..like };
    let put = async |invite: Invite| invites.put_invite(invite).await.expect("kept").number;
    assert_eq!(put(new(20, ann, key(1))).await, 20);
    assert_eq!(put(new(21, ann, key(1))).await, 20, "the one that stands");
    assert_eq!(put(new(22, bob, key(1))).await, 22, "a key is of its maker");
    assert_eq!(put(new(23, ann, key(2))).await, 23);
    assert_eq!(invites.invite(21).await.expect("asked"), None);
    let open = async |made_by, now, after, limit| {
        let found = invites.open_invites(gid, made_by, Timestamp(now), after, limit).await.expect("asked");
        found.iter().map(|invite| invite.number).collect::<Vec<_>>()
    };
    assert_eq!(open(None, 150, 0, 10).await, [20, 22, 23]);
    assert_eq!(open(None, 150, 20, 1).await, [22]);
    assert_eq!(open(Some(ann), 150, 0, 10).await, [20, 23]);
    assert_eq!(open(None, 200, 0, 10).await, [0; 0], "all are over");
    invites.end_invite(20, Timestamp(150)).await.expect("ended");
    invites.end_invite(20, Timestamp(180)).await.expect("ended before");
    invites.end_invite(99, Timestamp(180)).await.expect("there is none");
    assert_eq!(invites.invite(20).await.expect("asked").expect("there").expires_at, Timestamp(150));
    invites.end_invites_of(Uid(77), Timestamp(1)).await.expect("there is none");
    assert_eq!(open(None, 140, 0, 10).await, [20, 22, 23]);
    invites.end_invites_of(bob, Timestamp(145)).await.expect("ended");
    assert_eq!(open(None, 145, 0, 10).await, [20, 23]);
    assert_eq!(put(new(24, bob, None)).await, 24);
    for guest in [31, 32] {
        let name = ClientId(Uuid::from_u128(u128::from(guest)));
        invites.claim_use(23, Uid(guest), name, Timestamp(150)).await.expect("asked").expect("claimed");
    }
    assert_eq!(open(None, 150, 0, 10).await, [24], "two ended, one is used up");
}
