//! Reports in a [`Directory`] without any, on each database.

use uuid::Uuid;

use crate::domain::{
    ClientId, Complaint, GroupId, NewReport, Reason, Report, ReportedMessage, Timestamp, Uid,
};
use crate::store::{Directory, ReportOutcome};

const ANN: Uid = Uid(10_001);
const BOB: Uid = Uid(10_002);
const EVE: Uid = Uid(10_003);
const WALKERS: GroupId = GroupId(3);

fn report(reporter: Uid, n: u128, about: Uid, message: Option<(&str, Option<GroupId>)>) -> NewReport {
    let message = message.map(|(text, gid)| ReportedMessage {
        key: (about, ClientId(Uuid::from_u128(n + 1_000))),
        gid,
        text: text.to_owned(),
        sent_at: Timestamp(7),
    });
    let made_at = Timestamp(i64::try_from(n).expect("small"));
    let words = format!("number {n}");
    let complaint = Complaint { made_at, reason: Reason::Spam, words, about, message };
    NewReport { reporter, client_id: ClientId(Uuid::from_u128(n)), complaint }
}

/// Runs all of it.
pub async fn run(reports: &Directory) {
    let put =
        async |new: &NewReport, since| reports.put_report(new, Timestamp(since), 2).await.expect("asked");
    let of_group = report(ANN, 10, EVE, Some(("buy \"this\"", Some(WALKERS))));
    let of_message = report(BOB, 11, EVE, Some(("and that", None)));
    let of_person = report(ANN, 12, BOB, None);
    for new in [&of_group, &of_message, &of_person] {
        assert_eq!(put(new, 10).await, ReportOutcome::Kept);
        assert_eq!(put(new, 10).await, ReportOutcome::Kept, "again");
    }
    let another = NewReport { client_id: of_group.client_id, ..report(ANN, 13, EVE, None) };
    assert_eq!(put(&another, 10).await, ReportOutcome::KeyReused);
    assert_eq!(put(&report(ANN, 14, EVE, None), 10).await, ReportOutcome::TooMany);

    let all = async |closed| reports.all_reports(closed, 0, 10).await.expect("listed");
    let known = all(false).await;
    let as_new = |report: &Report| (report.reporter, report.complaint.clone());
    let expected =
        [&of_group, &of_message, &of_person].map(|new| (Some(new.reporter), new.complaint.clone()));
    assert_eq!(known.iter().map(as_new).collect::<Vec<_>>(), expected);
    let numbers: Vec<u64> = known.iter().map(|report| report.number).collect();
    assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
    assert_eq!(reports.all_reports(false, numbers[0], 1).await.expect("listed"), known[1..2]);
    assert_eq!(reports.reports_by(ANN, 0, 10).await.expect("listed").len(), 2);

    let walkers = async || reports.reports_of_group(WALKERS, 0, 10).await.expect("listed");
    assert_eq!(walkers().await, known[..1]);
    // Each of the two ends is for one side alone.
    assert!(reports.close_report(numbers[0], Timestamp(20)).await.expect("asked"));
    assert!(!reports.close_report(numbers[2] + 1, Timestamp(20)).await.expect("asked"));
    assert_eq!((walkers().await.len(), all(false).await.len(), all(true).await.len()), (1, 2, 3));
    assert!(all(true).await[0].is_closed);
    assert!(!reports.close_report(numbers[0], Timestamp(21)).await.expect("asked"), "once");
    assert_eq!(reports.report(numbers[1]).await.expect("read").as_ref(), Some(&known[1]));
    assert_eq!(reports.report(numbers[2] + 1).await.expect("read"), None);
    let about_eve = reports.reports_about(EVE, 10).await.expect("listed");
    assert_eq!(about_eve.iter().map(|report| report.number).collect::<Vec<_>>(), [numbers[1], numbers[0]]);
    assert_eq!(reports.reports_about(EVE, 1).await.expect("listed"), about_eve[..1]);
    assert!(!reports.dismiss_report(GroupId(4), numbers[0], Timestamp(20)).await.expect("asked"));
    assert!(reports.dismiss_report(WALKERS, numbers[0], Timestamp(20)).await.expect("asked"));
    assert!(
        !reports.dismiss_report(WALKERS, numbers[1], Timestamp(20)).await.expect("asked"),
        "not of a group"
    );
    assert_eq!(walkers().await, []);

    reports.forget_reports_of(ANN).await.expect("forgotten");
    let unsigned = all(true).await;
    assert_eq!(unsigned.iter().map(|report| report.reporter).collect::<Vec<_>>(), [None, Some(BOB), None]);
    assert_eq!((&*unsigned[0].complaint.words, &*unsigned[1].complaint.words), ("", "number 11"));
    reports.forget_reports_of(BOB).await.expect("forgotten");
    assert_eq!(all(true).await.len(), 2, "the one about Bob is gone");
    assert_eq!(reports.forget_reports(Timestamp(9), 10).await.expect("swept"), 0);
    assert_eq!(reports.forget_reports(Timestamp(11), 1).await.expect("swept"), 1);
    reports.forget_reports_of(EVE).await.expect("forgotten");
    assert_eq!(all(true).await, []);
}
