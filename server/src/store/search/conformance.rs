//! What every [`SearchIndex`] does, run by each.

use super::segment::{Builder, Document, Making};
use super::*;
use crate::domain::search::TermClass;

/// A segment of one document, in `parts` parts at least.
fn segment(number: u64, ids: (u64, u64), words: usize) -> NewSegment {
    let mut builder = Builder::default();
    builder.document(Document { id: ids.1, minute: 5 });
    (0..words).for_each(|word| builder.term(TermClass::Word, &format!("word{word:06}")));
    builder.finish(Making { build: 4, number, ids, level: 0 })
}

/// Two inboxes, which it finds empty.
pub(in crate::store) async fn run(index: &dyn SearchIndex) {
    let (ann, bob) = (Uid(10_001), Uid(10_002));
    let at = |id| MessageId::new(id).expect("small");
    assert_eq!(index.segments(ann).await.expect("asked"), Vec::new());
    assert_eq!(index.indexed(&[ann, bob]).await.expect("asked"), [Indexed::default(); 2]);

    let first = segment(70, (1, 9), 3);
    let second = segment(u64::MAX >> 1, (10, (1 << 53) - 1), 20_000);
    assert!(second.parts.len() > 5);
    for new in [&first, &second] {
        assert_eq!(index.replace(ann, &[], Some(new.clone())).await, Ok(true));
    }
    // Another server has indexed the same rows meanwhile.
    assert_eq!(index.replace(ann, &[], Some(segment(72, (10, 30), 1))).await, Ok(false));
    assert_eq!(index.replace(ann, &[70, 71], Some(segment(72, (1, 30), 1))).await, Ok(false));
    assert_eq!(index.replace(bob, &[], Some(segment(70, (1, 20), 1))).await, Ok(true));
    assert_eq!(index.segments(ann).await, Ok(vec![second.head.clone(), first.head.clone()]));
    assert_eq!(
        index.indexed(&[bob, Uid(10_003), ann]).await,
        Ok(vec![
            Indexed { to: at(20), build: 4 },
            Indexed::default(),
            Indexed { to: MessageId::MAX, build: 4 }
        ])
    );

    let parts = index.parts(ann, second.head.number, &[3, 0, 2]).await.expect("asked").expect("there");
    assert_eq!(parts, [3, 0, 2].map(|part: usize| second.parts[part].clone()));
    assert_eq!(index.parts(ann, second.head.number, &[]).await, Ok(Some(Vec::new())));
    assert_eq!(index.parts(ann, 71, &[0]).await, Ok(None));
    assert_eq!(index.parts(bob, second.head.number, &[0]).await, Ok(None));

    let merged = segment(73, (1, (1 << 53) - 1), 2);
    assert_eq!(index.replace(ann, &[70, second.head.number], Some(merged.clone())).await, Ok(true));
    assert_eq!(index.segments(ann).await, Ok(vec![merged.head.clone()]));
    assert_eq!(index.parts(ann, second.head.number, &[0]).await, Ok(None));
    assert_eq!(index.replace(ann, &[73], None).await, Ok(true));
    assert_eq!(index.segments(ann).await, Ok(Vec::new()));
    assert_eq!(index.parts(bob, 70, &[0]).await.map(|parts| parts.is_some()), Ok(true));

    assert_eq!(index.rebuild().await, Ok(Rebuild::default()));
    assert_eq!(index.ask_rebuild().await, Ok(1));
    assert_eq!(index.ask_rebuild().await, Ok(2));
    index.note_walk(1, 300).await.expect("noted");
    assert_eq!(index.rebuild().await, Ok(Rebuild { wanted: 2, walked: 1, share: 300 }));

    index.forget(bob).await.expect("forgotten");
    assert_eq!(index.segments(bob).await, Ok(Vec::new()));
    assert_eq!(index.replace(bob, &[], Some(segment(70, (1, 20), 1))).await, Ok(true));
    index.renew(bob).await.expect("made anew");
    assert_eq!(index.segments(bob).await, Ok(Vec::new()));
    assert_eq!(index.replace(bob, &[], Some(segment(70, (1, 20), 1))).await, Ok(true));
    index.forget(bob).await.expect("forgotten");
}
