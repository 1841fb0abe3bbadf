//! The contract of [`Invites`], run on an empty one by every implementation.

use crate::domain::{GroupId, Invite, Timestamp, Uid};
use crate::store::Invites;

/// Runs all of it.
pub async fn run(invites: &dyn Invites) {
    let made = Invite {
        number: 7,
        gid: GroupId(3),
        made_by: Uid(10_001),
        made_at: Timestamp(100),
        expires_at: Timestamp(200),
        uses_left: 2,
    };
    assert_eq!(invites.invite(7).await.expect("asked"), None);
    assert!(!invites.use_invite(7, Timestamp(150)).await.expect("asked"), "there is none yet");
    invites.put_invite(made).await.expect("kept");
    assert_eq!(invites.invite(7).await.expect("asked"), Some(made));

    assert!(!invites.use_invite(7, Timestamp(200)).await.expect("asked"), "it is over");
    assert!(invites.use_invite(7, Timestamp(199)).await.expect("asked"));
    assert!(invites.use_invite(7, Timestamp(199)).await.expect("asked"));
    assert!(!invites.use_invite(7, Timestamp(199)).await.expect("asked"), "used up");
    assert_eq!(invites.invite(7).await.expect("asked"), Some(Invite { uses_left: 0, ..made }));
    invites.return_use(7).await.expect("given back");
    assert!(invites.use_invite(7, Timestamp(199)).await.expect("asked"));

    invites.put_invite(Invite { number: 8, expires_at: Timestamp(300), ..made }).await.expect("kept");
    invites.put_invite(Invite { number: 9, ..made }).await.expect("kept");
    assert_eq!(invites.forget_invites(Timestamp(200), 1).await.expect("swept"), 1);
    assert_eq!(invites.forget_invites(Timestamp(200), 10).await.expect("swept"), 1);
    assert_eq!(invites.forget_invites(Timestamp(200), 10).await.expect("swept"), 0);
    assert!(invites.invite(8).await.expect("asked").is_some(), "not over yet");
}
