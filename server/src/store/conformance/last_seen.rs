//! When people were online last, in a [`Directory`], on each database.

use crate::domain::{Timestamp, Uid};
use crate::store::{Directory, NewAccount};

/// Runs all of it.
pub async fn run(directory: &Directory) {
    let (kim, lea) = (Uid(402), Uid(401));
    let seen = async |uid| directory.last_seen(uid).await.expect("asked");
    let put = async |people: &[Uid], at| directory.put_last_seen(people, Timestamp(at)).await.expect("kept");
    assert_eq!(seen(kim).await, None);
    put(&[], 5).await;
    put(&[kim, lea], 10).await;
    put(&[lea], 20).await;
    assert_eq!((seen(kim).await, seen(lea).await), (Some(Timestamp(10)), Some(Timestamp(20))));
    let account =
        NewAccount { name: "Lea Lind".to_owned(), password_hash: String::new(), created_at: Timestamp(5) };
    assert!(directory.create_account(lea, account, None).await.expect("made"), "free");
    assert!(directory.delete_account(lea, None, Timestamp(30)).await.expect("deleted"));
    assert_eq!((seen(kim).await, seen(lea).await), (Some(Timestamp(10)), None));
}
