//! Transactions of the main database: whole or not at all, in turn, and what is refused at the opening.

use futures_util::FutureExt as _;

use super::*;
use crate::store::sqlite::SqliteExportSnapshot;

fn place() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("data").join("tidemark.db");
    (directory, path)
}

async fn value(db: &Db, key: &str) -> Option<String> {
    sqlx::query_scalar("SELECT value FROM meta WHERE key = ?")
        .bind(key)
        .fetch_optional(db.readers())
        .await
        .expect("read")
}

async fn put(tx: &mut SqliteConnection, key: &str) {
    sqlx::query("INSERT INTO meta (key, value) VALUES (?, 'x')").bind(key).execute(tx).await.expect("put");
}

#[tokio::test]
async fn what_was_committed_is_there_after_reopening() {
    let (_directory, path) = place();
    let db = Db::open(&path).await.expect("opened");
    let mut tx = db.write().await.expect("begun");
    put(&mut tx, "kept").await;
    tx.commit().await.expect("committed");
    db.close().await.expect("closed");
    assert!(db.write().await.is_err(), "closed is closed");
    let db = Db::open(&path).await.expect("opened again");
    assert_eq!(value(&db, "kept").await.as_deref(), Some("x"));
}

#[tokio::test]
async fn an_abandoned_transaction_leaves_nothing_and_blocks_nobody() {
    let (_directory, path) = place();
    let db = Db::open(&path).await.expect("opened");
    let mut tx = db.write().await.expect("begun");
    put(&mut tx, "dropped").await;
    drop(tx);
    let mut tx = db.write().await.expect("begun");
    put(&mut tx, "rolled back").await;
    tx.rollback().await.expect("rolled back");
    let mut tx = db.write().await.expect("begun");
    put(&mut tx, "kept").await;
    tx.commit().await.expect("committed");
    for (key, there) in [("dropped", false), ("rolled back", false), ("kept", true)] {
        assert_eq!(value(&db, key).await.is_some(), there, "{key}");
    }
}

#[tokio::test]
async fn many_rows_are_written_whole_or_not_at_all() {
    let (_directory, path) = place();
    let db = Db::open(&path).await.expect("opened");
    let put = |key: &'static str| {
        move |connection: &rusqlite::Connection| {
            connection.execute("INSERT INTO meta (key, value) VALUES (?, 'x')", [key])?;
            match key {
                "kept" => Ok(()),
                _ => Err(StoreError::unavailable("as the test says")),
            }
        }
    };
    db.write_bulk(put("refused")).await.expect_err("refused");
    // Abandoned as soon as it is begun.
    _ = db.write_bulk(put("kept")).now_or_never();
    db.write().await.expect("in its turn").rollback().await.expect("rolled back");
    for (key, there) in [("refused", false), ("kept", true)] {
        assert_eq!(value(&db, key).await.is_some(), there, "{key}");
    }
    db.close().await.expect("closed");
    assert!(db.write_bulk(put("kept")).await.is_err(), "closed is closed");
}

#[tokio::test]
async fn a_log_that_a_long_reader_made_grow_is_cut_again() {
    let (_directory, path) = place();
    let db = Db::open(&path).await.expect("opened");
    let log = || std::fs::metadata(path.with_extension("db-wal")).expect("a log").len();
    let mut reader = db.readers().begin().await.expect("begun");
    sqlx::query("SELECT count(*) FROM meta").execute(&mut *reader).await.expect("a moment");
    for _ in 0..9 {
        let mut tx = db.write().await.expect("begun");
        sqlx::query("REPLACE INTO meta VALUES ('large', hex(randomblob(4 << 20)))")
            .execute(&mut *tx)
            .await
            .expect("put");
        tx.commit().await.expect("committed");
    }
    assert!(log() > u64::from(MOST_LOG), "{}", log());
    reader.rollback().await.expect("ended");
    db.checkpointer().await.expect("connected").checkpoint().await.expect("emptied");
    let mut tx = db.write().await.expect("begun");
    put(&mut tx, "the log begins anew").await;
    tx.commit().await.expect("committed");
    assert!(log() <= u64::from(MOST_LOG), "{}", log());
}

#[tokio::test]
async fn readers_cannot_write() {
    let (_directory, path) = place();
    let db = Db::open(&path).await.expect("opened");
    let write = sqlx::query("INSERT INTO meta VALUES ('a', 'b')").execute(db.readers()).await;
    assert!(write.is_err());
}

#[tokio::test]
async fn a_second_opening_is_refused_until_the_first_ends() {
    let (_directory, path) = place();
    let db = Db::open(&path).await.expect("opened");
    let second = Db::open(&path).await.err().expect("refused");
    assert!(matches!(second, OpenError::InUse { .. }), "{second}");
    drop(db);
    Db::open(&path).await.expect("free again");
}

#[tokio::test]
async fn a_database_of_a_newer_version_is_refused() {
    let (_directory, path) = place();
    let db = Db::open(&path).await.expect("opened");
    let mut tx = db.write().await.expect("begun");
    sqlx::query(
        "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
         VALUES (9999, 'later', TRUE, x'00', 0)",
    )
    .execute(&mut *tx)
    .await
    .expect("marked");
    tx.commit().await.expect("committed");
    drop(db);
    let refused = Db::open(&path).await.err().expect("refused");
    assert!(matches!(refused, OpenError::Newer { migration: 9999, .. }), "{refused}");
}

#[tokio::test]
async fn a_database_of_a_build_before_the_first_version_is_refused_by_all_who_open_it() {
    let (_directory, path) = place();
    let db = Db::open(&path).await.expect("opened");
    let mut tx = db.write().await.expect("begun");
    // As those builds had it: another base, and more behind it.
    sqlx::raw_sql(
        "UPDATE _sqlx_migrations SET checksum = x'00';
         INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
         VALUES (80, 'accounts', TRUE, x'00', 0)",
    )
    .execute(&mut *tx)
    .await
    .expect("marked");
    tx.commit().await.expect("committed");
    db.close().await.expect("closed");
    let options = SqliteOptions::default();
    let refused = [
        Db::open(&path).await.err(),
        Db::open_beside(&path, &options).await.err(),
        SqliteExportSnapshot::take(&path).await.err(),
    ];
    for refused in refused {
        let refused = refused.expect("refused");
        assert!(matches!(refused, OpenError::Earlier { .. }), "{refused}");
    }
}

#[tokio::test]
async fn a_file_that_is_no_database_is_refused() {
    let (_directory, path) = place();
    std::fs::create_dir_all(path.parent().expect("a parent")).expect("made");
    std::fs::write(&path, "x".repeat(4096)).expect("written");
    let refused = Db::open(&path).await.err().expect("refused");
    assert!(matches!(refused, OpenError::Unreadable { .. }), "{refused}");
}
