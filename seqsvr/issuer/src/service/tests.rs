//! The answers to callers: numbers, errors that say what to do, and plugins that act in their order.

use std::sync::Mutex;

use async_trait::async_trait;

use super::super::rejected::FallBack;
use super::super::segment::SegmentOptions;
use super::super::strategy::{IssueError, Strategy};
use super::super::{CallHistory, OpenError, Rate};
use super::*;
use crate::Builder;

async fn orders() -> Issuer {
    let builder = Issuer::builder().segment("order", SegmentOptions::default()).unwrap();
    builder.max_count("order", 500).unwrap().open().await.unwrap()
}

#[tokio::test]
async fn numbers_come_one_by_one_and_in_batches() {
    let issuer = orders().await;
    assert_eq!(issuer.next("order", 1).await.unwrap().first(), 1);
    assert_eq!(issuer.next("order", 500).await.unwrap().count(), 500);
    let order = issuer.counter("order").unwrap();
    assert_eq!(order.try_next(), Ok(502));
}

#[tokio::test]
async fn wrong_requests_are_answered_with_what_is_right() {
    let issuer = orders().await;
    for (tag, count, reported) in [
        ("order", 0, "asked for 0 numbers of order; ask for 1 to 500"),
        ("order", 501, "asked for 501 numbers of order; ask for 1 to 500"),
        ("invoice", 1, "unknown tag \"invoice\"; configured are: order"),
        ("Order", 1, "bad tag name \"Order\": use 1 to 64 of a-z, 0-9, '_', '.' and '-'"),
    ] {
        let error = issuer.next(tag, count).await.unwrap_err();
        assert_eq!(error.to_string(), reported);
        assert!(!error.is_retryable());
    }
    let error = issuer.decode("order", "x1").unwrap_err().to_string();
    assert_eq!(error, "\"x1\" is not a number or code of order: give a whole number from 0 to 2^64 - 1");
    assert_eq!(issuer.decode("order", "17").unwrap(), Decoded { number: 17, parts: vec![] });
}

/// Notes what it is called for, and may veto.
struct Noting {
    name: &'static str,
    order: i32,
    veto: bool,
    calls: Arc<Mutex<Vec<String>>>,
}

impl Noting {
    fn note(&self, call: &str) {
        self.calls.lock().unwrap().push(format!("{} {call}", self.name));
    }
}

impl Plugin for Noting {
    fn name(&self) -> &str {
        self.name
    }

    fn order(&self) -> i32 {
        self.order
    }

    fn before(&self, _: &Tag, _: u32) -> Verdict {
        self.note("before");
        if self.veto { Verdict::Veto("closed on Sundays".to_owned()) } else { Verdict::GoOn }
    }

    fn after(&self, _: &Tag, _: &mut Issued) -> Result<(), String> {
        self.note("after");
        Ok(())
    }

    fn on_error(&self, _: &Tag, _: &NextError) {
        self.note("on_error");
    }
}

async fn noting(veto: &'static str) -> (Issuer, Arc<Mutex<Vec<String>>>) {
    let calls = Arc::new(Mutex::new(vec![]));
    let mut builder = Issuer::builder().segment("order", SegmentOptions::default()).unwrap();
    for (name, order) in [("third", 9), ("first", -5), ("second", 0)] {
        let plugin = Noting { name, order, veto: name == veto, calls: Arc::clone(&calls) };
        builder = builder.plugin(Arc::new(plugin), &["order"]).unwrap();
    }
    (builder.open().await.unwrap(), calls)
}

#[tokio::test]
async fn plugins_act_in_their_order() {
    let (issuer, calls) = noting("nobody").await;
    issuer.next("order", 1).await.unwrap();
    let expected =
        ["first before", "second before", "third before", "first after", "second after", "third after"];
    assert_eq!(*calls.lock().unwrap(), expected);
    assert_eq!(issuer.tags()[0].plugins, ["first", "second", "third"]);
}

#[tokio::test]
async fn a_veto_stops_the_rest_of_the_chain_and_the_issue() {
    let (issuer, calls) = noting("second").await;
    let error = issuer.next("order", 1).await.unwrap_err();
    assert_eq!(error.to_string(), "second refuses numbers of order: closed on Sundays");
    let expected = ["first before", "second before", "first on_error", "second on_error", "third on_error"];
    assert_eq!(*calls.lock().unwrap(), expected);
    assert_eq!(issuer.tags()[0].status.issued, 0);
}

#[tokio::test]
async fn plugins_and_tags_are_many_to_many() {
    let (history, rate) = (Arc::new(CallHistory::new(10)), Arc::new(Rate::new()));
    let mut builder = Issuer::builder();
    for tag in ["a", "b", "c"] {
        builder = builder.segment(tag, SegmentOptions::default()).unwrap();
    }
    let builder = builder.plugin(Arc::clone(&history) as Arc<dyn Plugin>, &["a", "b"]).unwrap();
    let issuer =
        builder.plugin(Arc::clone(&rate) as Arc<dyn Plugin>, &["b", "c"]).unwrap().open().await.unwrap();
    for tag in ["a", "b", "c"] {
        issuer.next(tag, 5).await.unwrap();
    }
    let tag = |name| Tag::new(name).unwrap();
    assert_eq!(history.records().iter().map(|record| record.tag.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(
        (rate.of(&tag("a")).numbers, rate.of(&tag("b")).numbers, rate.of(&tag("c")).numbers),
        (0, 5, 5)
    );
    assert_eq!(issuer.registry().tags_of("history"), [tag("a"), tag("b")]);
    let entries: Vec<_> = issuer.registry().entries().map(|(name, tags)| (name, tags.len())).collect();
    assert_eq!(entries, [("history", 2), ("rate", 2)]);
}

/// A way of a program's own that never has a number.
struct Never;

#[async_trait]
impl Strategy for Never {
    async fn init(&self) -> Result<(), IssueError> {
        Ok(())
    }

    async fn issue(&self, _: u32) -> Result<Issued, IssueError> {
        Err(IssueError::Retryable("sold out".to_owned()))
    }
}

fn never() -> Builder {
    let builder = Issuer::builder().segment("spare", SegmentOptions::default()).unwrap();
    builder.strategy("ticket", "never", Arc::new(Never)).unwrap()
}

#[tokio::test]
async fn a_step_is_refused_by_tags_without_segments() {
    let issuer = never().open().await.unwrap();
    let error = issuer.next_with_step("ticket", 1, 500).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "step = 500 is not possible for ticket: its numbers do not come in segments; leave step out"
    );
    assert_eq!(issuer.next_with_step("spare", 2, 500).await.unwrap().first(), 1);
}

#[tokio::test]
async fn a_tag_without_numbers_refuses_or_falls_back_as_configured() {
    let refusing = never().open().await.unwrap();
    let error = refusing.next("ticket", 1).await.unwrap_err();
    assert_eq!((error.to_string().as_str(), error.is_retryable()), ("sold out", true));
    let spare = FallBack(Tag::new("spare").unwrap());
    let falling = never().rejected("ticket", Arc::new(spare)).unwrap().open().await.unwrap();
    let issued = falling.next("ticket", 1).await.unwrap();
    assert_eq!((issued.first(), issued.instead().map(Tag::as_str)), (1, Some("spare")));
}

#[tokio::test]
async fn what_cannot_work_is_refused_when_opening() {
    let to = |name| FallBack(Tag::new(name).unwrap());
    for name in ["ticket", "nowhere"] {
        let opened = never().rejected("ticket", Arc::new(to(name))).unwrap().open().await;
        assert!(matches!(opened, Err(OpenError::Bad(text)) if text.contains("name another, configured tag")));
    }
    let twice = never().segment("ticket", SegmentOptions::default());
    assert!(matches!(twice, Err(OpenError::Bad(text)) if text.contains("twice")));
    assert!(matches!(never().max_count("ticket", 0), Err(OpenError::Bad(_))));
    assert!(matches!(never().segment("Bad", SegmentOptions::default()), Err(OpenError::BadTag(_))));
    let same = || Arc::new(CallHistory::new(1)) as Arc<dyn Plugin>;
    let two = never().plugin(same(), &["spare"]).unwrap().plugin(same(), &["ticket"]).unwrap();
    assert!(matches!(two.open().await, Err(OpenError::Bad(text)) if text.contains("two plugins")));
}
