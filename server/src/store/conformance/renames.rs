//! Names that change in a [`Directory`], on each database.

use crate::domain::{Timestamp, Uid};
use crate::store::{Directory, NewAccount, Renamed};

const IDA: Uid = Uid(301);
const JON: Uid = Uid(302);

/// Runs all of it.
pub async fn run(directory: &Directory) {
    create(directory, IDA, "Ida Kern").await;
    create(directory, JON, "Jon Berg").await;
    let rename = async |uid, name: &str, at, since: Option<i64>| {
        directory.rename(uid, name, Timestamp(at), since.map(Timestamp)).await.expect("asked")
    };
    for taken in ["jon berg", "J\u{43e}n Berg", "Jon Ber\u{261}"] {
        assert_eq!(rename(IDA, taken, 100, None).await, Renamed::NameTaken, "{taken}");
    }
    assert_eq!(rename(Uid(7_777), "Nobody Else", 100, None).await, Renamed::NoAccount);
    assert_eq!(rename(IDA, "Ida Kern", 90, Some(0)).await, Renamed::Done, "it is called so");
    assert_eq!(directory.renamed_since(Timestamp(0), 10).await, Ok(Vec::new()));
    assert_eq!(names(directory).await, ["Ida Kern", "Jon Berg"]);
    assert_eq!(rename(IDA, "Ida Wolf", 100, Some(0)).await, Renamed::Done);
    assert_eq!(names(directory).await, ["Ida Wolf", "Jon Berg"], "memory does not know the old one");
    assert_eq!(directory.renamed_since(Timestamp(100), 10).await, Ok(vec![IDA]));
    assert_eq!(directory.renamed_since(Timestamp(101), 10).await, Ok(Vec::new()));
    let found = directory.search("wolf", 10).await.expect("asked");
    assert_eq!(found, [(IDA, "Ida Wolf".to_owned())]);
    assert_eq!(directory.search("kern", 10).await, Ok(Vec::new()));
    assert_eq!(directory.account_by_name("ida kern").await, Ok(None));
    let by_name = directory.account_by_name("IDA WOLF").await.expect("asked");
    assert_eq!(by_name.map(|account| account.uid), Some(IDA));
    // For a while nobody else is called as one was, and one's own name is changed in its case alone.
    assert_eq!(rename(JON, "Ida Kern", 110, None).await, Renamed::NameTaken);
    assert_eq!(rename(IDA, "Ida WOLF", 110, Some(99)).await, Renamed::TooSoon(Timestamp(100)));
    assert_eq!(rename(IDA, "Ida WOLF", 110, Some(100)).await, Renamed::Done);
    assert_eq!(directory.free_former_names(Timestamp(109), 10).await, Ok(0));
    assert_eq!(rename(JON, "Ida Kern", 115, None).await, Renamed::NameTaken);
    assert_eq!(directory.free_former_names(Timestamp(110), 10).await, Ok(1));
    assert_eq!(directory.free_former_names(Timestamp(110), 10).await, Ok(0));
    assert_eq!(rename(JON, "ida wolf", 120, None).await, Renamed::NameTaken, "that one is in use");
    assert_eq!(rename(JON, "Ida Kern", 120, None).await, Renamed::Done, "and that one is free");
    assert_eq!(directory.made_at(IDA).await, Ok(Some(Timestamp(5))));
    assert_eq!(directory.made_at(Uid(7_777)).await, Ok(None));
    assert!(directory.delete_account(JON, None, Timestamp(130)).await.expect("deleted"));
    assert_eq!(rename(JON, "Jon Berg", 140, None).await, Renamed::NoAccount);
}

async fn create(directory: &Directory, uid: Uid, name: &str) {
    let account =
        NewAccount { name: name.to_owned(), password_hash: String::new(), created_at: Timestamp(5) };
    assert!(directory.create_account(uid, account, None).await.expect("made"), "{name} is free");
}

async fn names(directory: &Directory) -> Vec<String> {
    directory.names(&[IDA, JON]).await.expect("asked").into_iter().flatten().collect()
}
