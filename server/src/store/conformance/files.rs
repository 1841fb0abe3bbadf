//! Files in a [`Directory`] without any, on each database.

use uuid::Uuid;

use crate::domain::{
    ClientId, Conversation, FileFacts, FileId, GroupId, Preview, Segment, Segments, Timestamp, Uid,
};
use crate::store::{Directory, FileBegun, FileState, FileUse, NewFile, StoredFile};

const ANN: Uid = Uid(10_001);
const BOB: Uid = Uid(10_002);

fn id(n: u128) -> FileId {
    FileId(Uuid::from_u128(n))
}

fn new(n: u128, owner: Uid, length: u64) -> NewFile {
    let name = format!("number \"{n}\".jpg");
    NewFile { id: id(n), owner, name, length, made_at: Timestamp(7), check_at: Timestamp(100) }
}

fn segments(lengths: &[u64]) -> Segments {
    let one = |(name, length): (usize, &u64)| Segment { name: name as u64, length: *length };
    Segments(lengths.iter().enumerate().map(one).collect())
}

fn of(sender: Uid, n: u128, at: i64) -> FileUse {
    let key = (sender, ClientId(Uuid::from_u128(n)));
    FileUse { key, target: Conversation::Group(GroupId(5)), holders: vec![BOB], at: Timestamp(at) }
}

/// Runs all of it.
pub async fn run(files: &Directory) {
    begins(files).await;
    grows(files).await;
    uses(files).await;
    goes(files).await;
}

async fn known(files: &Directory, n: u128) -> StoredFile {
    files.file(id(n)).await.expect("asked").expect("there")
}

async fn begins(files: &Directory) {
    assert_eq!(files.begin_file(&new(1, ANN, 10), 2, 25).await.expect("asked"), FileBegun::Begun);
    assert_eq!(files.begin_file(&new(2, ANN, 16), 2, 25).await.expect("asked"), FileBegun::NoRoom);
    assert_eq!(files.begin_file(&new(2, ANN, 15), 2, 25).await.expect("asked"), FileBegun::Begun);
    assert_eq!(files.begin_file(&new(3, ANN, 1), 2, 99).await.expect("asked"), FileBegun::TooMany);
    assert_eq!(files.begin_file(&new(3, BOB, 5), 2, 25).await.expect("asked"), FileBegun::Begun);
    let begun = known(files, 1).await;
    assert_eq!((begun.owner, begun.length, begun.stored, begun.state), (ANN, 10, 0, FileState::Unfinished));
    assert_eq!((&*begun.facts.name, begun.segments), ("number \"1\".jpg", Segments::default()));
    assert_eq!(files.file(id(9)).await.expect("asked"), None);
    let own: Vec<_> =
        files.files_of(ANN, Some(id(1)), 9).await.expect("asked").iter().map(|file| file.facts.id).collect();
    assert_eq!(own, [id(2)]);
}

/// Of two servers that write the same part one is told to go on from elsewhere.
async fn grows(files: &Directory) {
    let grow = async |from, lengths: &[u64]| {
        files.grow_file(id(1), from, &segments(lengths), Timestamp(200)).await.expect("asked")
    };
    assert!(grow(0, &[4]).await);
    assert!(!grow(0, &[4]).await, "it has come to 4");
    assert!(!grow(4, &[4, 7]).await, "it would be longer than it may be");
    let facts = FileFacts {
        id: id(1),
        name: String::new(),
        size: 9,
        media_type: "image/png".to_owned(),
        sides: Some((3, 2)),
        previews: vec![Preview::Small, Preview::Large],
    };
    let finish = async || files.finish_file(&facts, &segments(&[9]), Timestamp(300)).await.expect("asked");
    assert!(!finish().await, "it is not whole");
    assert!(grow(4, &[4, 6]).await);
    assert_eq!(known(files, 1).await.segments, segments(&[4, 6]));
    assert!(finish().await);
    assert!(!finish().await, "it is whole already");
    assert!(!grow(10, &[4, 6]).await);
    let whole = known(files, 1).await;
    assert_eq!((whole.state, whole.length, whole.check_at), (FileState::Whole, 10, Timestamp(300)));
    let facts = FileFacts { name: "number \"1\".jpg".to_owned(), ..facts };
    assert_eq!(whole.facts, facts);
    let all = Preview::ALL.to_vec();
    for n in [1, 2] {
        files.set_previews(id(n), &all).await.expect("asked");
    }
    assert_eq!(known(files, 1).await.facts, FileFacts { previews: all, ..facts });
    assert_eq!(known(files, 2).await.facts.previews, [], "it is not whole");
}

async fn uses(files: &Directory) {
    let r#use = async |ids: &[FileId], owner, of: &FileUse| -> Vec<FileId> {
        let named = files.use_files(ids, owner, of).await.expect("asked");
        named.iter().map(|file| file.facts.id).collect()
    };
    assert_eq!(r#use(&[id(1), id(2), id(9)], Some(ANN), &of(ANN, 1, 50)).await, [id(1)], "2 is not whole");
    assert_eq!(r#use(&[id(1)], Some(BOB), &of(BOB, 2, 50)).await, [], "it is not Bob's");
    assert_eq!(r#use(&[id(1)], None, &of(BOB, 3, 50)).await, [id(1)], "Bob forwards it");
    assert_eq!(r#use(&[id(1)], Some(ANN), &of(ANN, 1, 60)).await, [id(1)], "again");
    let named = files.uses_of_file(id(1), None, 9).await.expect("asked");
    assert_eq!(named, [of(ANN, 1, 60), of(BOB, 3, 50)]);
    assert_eq!(files.uses_of_file(id(1), Some(named[0].key), 9).await.expect("asked"), named[1..]);
    files.forget_use(id(1), &of(ANN, 1, 50)).await.expect("asked");
    assert_eq!(files.uses_of_file(id(1), None, 9).await.expect("asked").len(), 2, "it was sent again");
    files.forget_use(id(1), &of(ANN, 1, 60)).await.expect("asked");
    assert_eq!(files.uses_of_file(id(1), None, 9).await.expect("asked"), [of(BOB, 3, 50)]);
}

async fn goes(files: &Directory) {
    let due = async |now| -> Vec<FileId> {
        let due = files.files_to_check(Timestamp(now), 9).await.expect("asked");
        due.iter().map(|file| file.facts.id).collect()
    };
    assert_eq!(due(99).await, []);
    assert_eq!(due(300).await, [id(2), id(3), id(1)]);
    files.check_file(id(1), Timestamp(299), Timestamp(400)).await.expect("asked");
    assert_eq!(known(files, 1).await.check_at, Timestamp(300), "it has changed since 299");
    files.check_file(id(1), Timestamp(300), Timestamp(400)).await.expect("asked");
    files.check_files_of(ANN, Timestamp(90)).await.expect("asked");
    assert_eq!(
        (known(files, 1).await.check_at, known(files, 3).await.check_at),
        (Timestamp(90), Timestamp(100))
    );

    let go = async |n, state, was: Option<i64>| {
        files.let_file_go(id(n), state, was.map(Timestamp), Timestamp(500)).await.expect("asked")
    };
    assert!(!go(1, FileState::Whole, None).await, "a message may name it");
    assert!(!go(2, FileState::Whole, None).await && !go(2, FileState::Unfinished, Some(80)).await);
    assert!(go(2, FileState::Unfinished, Some(90)).await);
    files.forget_use(id(1), &of(BOB, 3, 50)).await.expect("asked");
    files.forget_file(id(1)).await.expect("asked");
    assert_eq!(known(files, 1).await.state, FileState::Whole, "it is not going");
    assert!(go(1, FileState::Whole, None).await);
    assert_eq!(files.use_files(&[id(1)], None, &of(ANN, 7, 600)).await.expect("asked"), []);
    for n in [1, 2] {
        assert_eq!(known(files, n).await.state, FileState::Going);
        files.forget_file(id(n)).await.expect("asked");
        assert_eq!(files.file(id(n)).await.expect("asked"), None);
    }
    assert!(go(3, FileState::Unfinished, None).await);
    files.forget_file(id(3)).await.expect("asked");
}
