//! Operators and the audit log of a [`Directory`], on each database.

use crate::domain::{GroupId, Timestamp, Uid};
use crate::store::{AuditLine, Directory, NewAccount};

const MAX: Uid = Uid(501);
const MIA: Uid = Uid(502);

/// Runs all of it.
pub async fn run(directory: &Directory) {
    accounts(directory).await;
    audit(directory).await;
}

async fn accounts(directory: &Directory) {
    for (uid, name) in [(MAX, "Max Otter"), (MIA, "Mia Otter")] {
        let account =
            NewAccount { name: name.to_owned(), password_hash: String::new(), created_at: Timestamp(5) };
        assert!(directory.create_account(uid, account, None).await.expect("made"), "{name} is free");
    }
    let listed = async |part: &str, limit| -> Vec<Uid> {
        let found = directory.list_accounts(part, limit).await.expect("asked");
        found.into_iter().map(|account| account.uid).collect()
    };
    assert_eq!(listed("otter", 10).await, [MAX, MIA]);
    assert_eq!(listed("mia", 10).await, [MIA]);
    assert_eq!(listed("OTT", 1).await, [MAX]);
    assert!(directory.set_disabled(MAX, true).await.expect("set"));
    assert!(directory.delete_account(MIA, None, Timestamp(9)).await.expect("deleted"));
    assert_eq!(listed("otter", 10).await, [MAX], "also who is shut");
    assert_eq!(listed("mia otter", 10).await, [MIA], "and who is deleted, by the beginning");
    assert!(!directory.set_operator(MIA, true).await.expect("asked"));
    assert!(directory.set_operator(MAX, true).await.expect("set"));
    let of = async |uid| directory.listed_account(uid).await.expect("asked");
    let max = of(MAX).await.expect("there");
    assert_eq!((max.disabled, max.deleted, max.operator, max.created_at), (true, false, true, Timestamp(5)));
    let mia = of(MIA).await.expect("there");
    assert_eq!((mia.disabled, mia.deleted, mia.operator), (true, true, false));
    assert_eq!(of(Uid(7_777)).await, None);
    assert!(directory.set_operator(MAX, false).await.expect("set"));
    assert!(!of(MAX).await.expect("there").operator);
}

async fn audit(directory: &Directory) {
    let line = |n: i64| AuditLine {
        number: 0,
        at: Timestamp(n),
        by: (n % 2 == 0).then_some(MAX),
        action: "lock".to_owned(),
        person: Some(MIA),
        group: (n == 4).then_some(GroupId(1 << 40)),
        detail: format!("line {n}"),
    };
    for n in 1..=5 {
        directory.add_audit_line(&line(n)).await.expect("added");
    }
    let lines = async |before, limit| directory.audit_lines(before, limit).await.expect("read");
    let all = lines(None, 10).await;
    let expected: Vec<AuditLine> = (1..=5).rev().map(line).collect();
    let found: Vec<AuditLine> = all.iter().cloned().map(|line| AuditLine { number: 0, ..line }).collect();
    assert_eq!(found, expected, "newest first");
    assert!(all.windows(2).all(|pair| pair[0].number > pair[1].number));
    assert_eq!(lines(Some(all[1].number), 2).await, all[2..4]);
    let forget = async |since, most, limit| {
        directory.forget_audit_lines(Timestamp(since), most, limit).await.expect("asked")
    };
    assert_eq!(forget(0, 100, 10).await, 0);
    assert_eq!(forget(3, 100, 1).await, 1, "no more than asked for at a time");
    assert_eq!(forget(3, 100, 10).await, 1);
    assert_eq!(lines(None, 10).await, all[..3]);
    assert_eq!(forget(0, 2, 10).await, 1, "the oldest beyond so many");
    assert_eq!(lines(None, 10).await, all[..2]);
}
