//! Files that rows of the journal name: whether the main database knew of it at its own moment. What a message is about to name is written
//! there before the message is accepted. So of two readings, first of the database and then of the journal, the first one may lack what
//! a row of the second one names. Called by whoever takes a moment of both.

use rusqlite::Connection;
use serde_json::json;
use sqlx::SqliteConnection;

use super::journal::record::JournalRecord;
use crate::store::StoreError;

/// How many of these are known: as a use of a file that is whole.
const KNOWN: &str = "SELECT count(*) FROM json_each(?) JOIN file_uses
    ON file = unhex(value ->> 0) AND sender = value ->> 1 AND client_id = unhex(value ->> 2)
    JOIN files ON files.id = file AND files.state = 1";

/// The files that these messages name, as the statement takes them; empty: none.
pub(super) fn of_records<'r>(records: impl IntoIterator<Item = &'r JournalRecord>) -> String {
    let mut named = Vec::new();
    for record in records {
        let JournalRecord::Accepted { content, .. } = record else { continue };
        let Some((sender, client_id)) = content.key() else { continue };
        for file in content.kept_files() {
            named.push(json!([file.0.simple().to_string(), sender.0, client_id.0.simple().to_string()]));
        }
    }
    if named.is_empty() { String::new() } else { json!(named).to_string() }
}

/// How many of them the database knows.
pub(super) async fn count_known(connection: &mut SqliteConnection, named: &str) -> Result<i64, StoreError> {
    match named {
        "" => Ok(0),
        _ => Ok(sqlx::query_scalar(KNOWN).bind(named).fetch_one(connection).await?),
    }
}

/// The same, blocking.
pub(super) fn count_known_blocking(connection: &Connection, named: &str) -> Result<i64, StoreError> {
    match named {
        "" => Ok(0),
        _ => Ok(connection.query_row(KNOWN, (named,), |row| row.get(0))?),
    }
}

/// A whole file that `sender` names in a message to another one, written as a server does: first the use, then the row, `nth` of both.
#[cfg(test)]
pub(super) async fn name_a_file(
    db: &std::sync::Arc<super::Db>,
    store: &super::SqliteStore,
    (sender, to): (crate::domain::Uid, crate::domain::Uid),
    nth: u64,
) {
    use crate::domain::{
        Attached, Content, Conversation, FileFacts, FileId, SaidOfFile, Segment, Segments, Timestamp,
    };
    use crate::store::conformance::{accept, accepted, row, text_message};
    use crate::store::{Directory, FileState, FileUse, StoredFile};
    let id = FileId(uuid::Uuid::from_u128(nth.into()));
    let media_type = "text/plain".to_owned();
    let facts =
        FileFacts { id, name: "a".to_owned(), size: 3, media_type, sides: None, previews: Vec::new() };
    let content = Content::clone(&text_message(sender, Conversation::User(to), nth.into(), "see"));
    let mut named = Attached::said(id, SaidOfFile::default());
    named.facts = Some(std::sync::Arc::new(facts.clone()));
    let content = Content { body: content.body.clone().with_files(&[named]), ..content };
    let key = content.key().expect("a name");
    let file = StoredFile {
        owner: sender,
        made_at: Timestamp(nth.cast_signed()),
        length: 3,
        stored: 3,
        segments: Segments(vec![Segment { name: nth, length: 3 }]),
        state: FileState::Whole,
        facts,
        check_at: Timestamp(0),
    };
    let of = FileUse { key, target: content.target, holders: Vec::new(), at: Timestamp(7) };
    assert!(Directory::on_sqlite(db.clone(), 1).adopt_file(&file, vec![of]).await.expect("stored"));
    accepted(store, accept(content.into(), vec![row(sender, nth), row(to, nth)], vec![])).await;
}
