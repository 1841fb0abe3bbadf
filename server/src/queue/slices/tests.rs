//! When what goes to many is cut, and in which order the slices follow.

use super::*;
use crate::domain::{Body, ClientId, Content, Digest, Kind, MembershipEpoch, MessageId, Timestamp};
use crate::queue::Publish;

const ANN: Uid = Uid(1);

fn content(target: Conversation) -> Arc<Content> {
    let body = Body::text("hi", 10).expect("short");
    Arc::new(Content {
        kind: Kind::Moment,
        sender: ANN,
        target,
        client_id: None,
        body,
        sent_at: Timestamp(0),
    })
}

fn recipients(uids: std::ops::Range<u32>) -> Vec<Recipient> {
    uids.map(|uid| Recipient { uid: Uid(uid), epoch: MembershipEpoch(0) }).collect()
}

fn accept(target: Conversation, receivers: u32) -> Accept {
    Accept {
        content: content(target),
        digest: Digest::of(target, ""),
        rows: recipients(1..receivers + 1).into_iter().map(|to| to.row(MessageId::ZERO)).collect(),
        rest: Vec::new(),
        change: None,
        group_version: None,
        unused: None,
    }
}

/// A request of `who` for so many others.
fn request(who: Uid, others: u32) -> Queued {
    let others = (100..100 + others).map(Uid).collect();
    let client_id = ClientId(uuid::Uuid::from_u128(1));
    let body = Body::text("hi", 10).expect("short");
    let publish = Publish {
        client_id,
        kind: Kind::Moment,
        target: Conversation::MOMENTS,
        body,
        files: Vec::new(),
        others,
    };
    Queued { who, request: Request::Publish(publish), place: None, reply: None }
}

fn slices() -> Slices {
    Slices::new(&Options { slice_rows: 10, batch_rows: 40, ..Options::default() }, Instant::now())
}

#[tokio::test(start_paused = true)]
async fn what_is_large_is_cut_while_others_write() {
    let mut slices = slices();
    let cut = |slices: &Slices, target, receivers| {
        let mut accept = accept(target, receivers);
        let later = slices.cut(&mut accept, Instant::now(), |uid| uid.0 % 2 == 1);
        assert_eq!(accept.rest, later);
        (accept.rows.len(), later.len())
    };
    assert_eq!(cut(&slices, Conversation::MOMENTS, 100), (100, 0), "nobody else writes");
    slices.hear(&[request(Uid(7), 50)], Instant::now());
    assert_eq!(cut(&slices, Conversation::MOMENTS, 100), (100, 0), "another large one is cut itself");
    slices.hear(&[request(Uid(7), 1)], Instant::now());
    assert_eq!(cut(&slices, Conversation::MOMENTS, 100), (60, 40), "half of them belong to this queue");
    assert_eq!(cut(&slices, Conversation::MOMENTS, 10), (10, 0), "few");
    assert_eq!(cut(&slices, Conversation::User(ANN), 100), (100, 0), "a conversation keeps its order");
    tokio::time::advance(BUSY).await;
    assert_eq!(cut(&slices, Conversation::MOMENTS, 100), (100, 0));
}

#[tokio::test(start_paused = true)]
async fn slices_come_in_order_with_pauses_while_others_write() {
    let mut slices = slices();
    let took = Duration::from_millis(3);
    slices.hear(&[request(Uid(7), 1)], Instant::now());
    slices.add(Delivery {
        acceptance: AcceptanceId(1),
        content: content(Conversation::MOMENTS),
        to: recipients(0..15),
    });
    assert!(slices.holds(ANN) && !slices.holds(Uid(7)));
    let taken = |slices: &mut Slices| slices.take(Instant::now()).map(|delivery| delivery.to);
    assert_eq!(taken(&mut slices), Some(recipients(0..10)));
    slices.written(took, Instant::now());
    assert_eq!((taken(&mut slices), slices.due()), (None, Some(Instant::now() + took * PAUSE)));
    tokio::time::advance(took * PAUSE).await;
    assert_eq!(taken(&mut slices), Some(recipients(10..15)));
    assert!(!slices.holds(ANN));
    assert_eq!((taken(&mut slices), slices.due()), (None, None));
}

#[tokio::test(start_paused = true)]
async fn a_queue_that_is_quiet_or_stops_writes_without_pauses() {
    let mut slices = slices();
    slices.add(Delivery {
        acceptance: AcceptanceId(1),
        content: content(Conversation::MOMENTS),
        to: recipients(0..60),
    });
    let taken = |slices: &mut Slices| slices.take(Instant::now()).map_or(0, |delivery| delivery.to.len());
    assert_eq!(taken(&mut slices), 40);
    slices.written(Duration::from_secs(1), Instant::now());
    slices.hear(&[request(Uid(7), 1)], Instant::now());
    assert_eq!(taken(&mut slices), 10);
    slices.written(Duration::from_secs(1), Instant::now());
    assert_eq!(taken(&mut slices), 0);
    slices.hurry(Instant::now());
    assert_eq!(taken(&mut slices), 10);
    slices.clear();
    assert_eq!(slices.due(), None);
}
