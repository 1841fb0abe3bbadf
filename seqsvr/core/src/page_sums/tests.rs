//! Pages have their sums in everything that SQLite does with them; and no page that was changed is believed.

use std::fs;

use proptest::prelude::*;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode};
use sqlx::{Connection as _, SqliteConnection};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use super::*;

const PAGE: usize = 4_096;

async fn opened(path: &Path, mode: SqliteJournalMode) -> sqlx::Result<SqliteConnection> {
    begin();
    let options = SqliteConnectOptions::new().filename(path).create_if_missing(true).journal_mode(mode);
    SqliteConnection::connect_with(&options).await
}

async fn run(connection: &mut SqliteConnection, sql: &'static str) {
    sqlx::raw_sql(sql).execute(connection).await.expect(sql);
}

/// A database with rows on pages of their own, on shared ones and in an index.
async fn filled(mode: SqliteJournalMode) -> (TempDir, PathBuf) {
    let place = tempfile::tempdir().expect("a directory");
    let path = place.path().join("some.db");
    let mut connection = opened(&path, mode).await.expect("made");
    run(
        &mut connection,
        "CREATE TABLE kept (n INTEGER PRIMARY KEY, text TEXT); CREATE INDEX texts ON kept (text);",
    )
    .await;
    run(
        &mut connection,
        "WITH RECURSIVE up (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM up WHERE n < 300)
         INSERT INTO kept SELECT n, printf('%.*c', CASE WHEN n % 50 = 0 THEN 9000 ELSE 100 END, char(96 + n % 26)) FROM up",
    )
    .await;
    connection.close().await.expect("closed");
    (place, path)
}

/// All rows, by the table and by the index.
async fn all(path: &Path) -> sqlx::Result<Vec<(i64, String)>> {
    let mut connection = opened(path, SqliteJournalMode::Wal).await?;
    let rows = sqlx::query_as("SELECT n, text FROM kept ORDER BY n").fetch_all(&mut connection).await?;
    let indexed: i64 = sqlx::query_scalar("SELECT count(*) FROM kept INDEXED BY texts WHERE text > ''")
        .fetch_one(&mut connection)
        .await?;
    assert_eq!(indexed as usize, rows.len(), "fewer rows in silence");
    connection.close().await?;
    Ok(rows)
}

fn damage(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).expect("readable");
    change(&mut bytes);
    fs::write(path, bytes).expect("written");
}

fn pages(path: &Path) -> Vec<u32> {
    verify(path, |_| ()).expect("readable").into_iter().map(|damaged| damaged.page).collect()
}

#[tokio::test]
async fn pages_keep_their_sums_whatever_sqlite_does() {
    for mode in [SqliteJournalMode::Wal, SqliteJournalMode::Delete, SqliteJournalMode::Persist] {
        let (_place, path) = filled(mode).await;
        assert_eq!(pages(&path), [0; 0]);
        let mut connection = opened(&path, mode).await.expect("opened");
        for sql in [
            "BEGIN; DELETE FROM kept WHERE n % 3 = 0; ROLLBACK;",
            "DELETE FROM kept WHERE n % 2 = 0;",
            "PRAGMA cache_size = 5; BEGIN; UPDATE kept SET text = text || text; ROLLBACK;",
            "UPDATE kept SET text = text || text; INSERT INTO kept (text) SELECT text FROM kept;",
            "VACUUM; PRAGMA wal_checkpoint(TRUNCATE);",
            "CREATE TABLE other AS SELECT * FROM kept; DROP TABLE other; PRAGMA wal_checkpoint(PASSIVE);",
        ] {
            run(&mut connection, sql).await;
            assert_eq!(pages(&path), [0; 0], "{mode:?}: {sql}");
        }
        let whole: String =
            sqlx::query_scalar("PRAGMA integrity_check").fetch_one(&mut connection).await.expect("read");
        assert_eq!(whole, "ok");
        connection.close().await.expect("closed");
        assert_eq!(pages(&path), [0; 0]);
    }
}

#[tokio::test]
async fn a_damaged_page_is_told_with_its_place_and_the_rest_is_read() {
    let (_place, path) = filled(SqliteJournalMode::Wal).await;
    let good = fs::read(&path).expect("readable");
    let last = good.len() / PAGE;
    damage(&path, |bytes| bytes[(last - 1) * PAGE..].fill(0));
    let error = all(&path).await.map(|rows| rows.len()).expect_err("a page of zeros");
    let code = error.as_database_error().and_then(|error| error.code()).expect("a code").parse::<c_int>();
    assert_eq!(code, Ok(DAMAGED_PAGE));
    let told = DamagedPage { path: path.clone(), page: last as u32 };
    assert!(damaged().contains(&told), "{:?}", damaged());
    assert_eq!(told.to_string(), format!("page {last} of some.db is damaged: its checksum is wrong"));
    assert_eq!(pages(&path), [last as u32]);
    let mut connection = opened(&path, SqliteJournalMode::Wal).await.expect("opened");
    let one: i64 =
        sqlx::query_scalar("SELECT n FROM kept WHERE n = 1").fetch_one(&mut connection).await.expect("there");
    assert_eq!(one, 1);
    connection.close().await.expect("closed");

    fs::write(&path, good).expect("mended");
    assert_eq!(all(&path).await.expect("whole").len(), 300);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// A bit, a page from another place, the end: the rows are those that were written, or an error says why not.
    #[test]
    fn nothing_else_is_read_than_was_written(
        kind in 0..4_u32, at in any::<prop::sample::Index>(), to in any::<prop::sample::Index>()
    ) {
        let runtime = Runtime::new().expect("a runtime");
        let (_place, path) = runtime.block_on(filled(SqliteJournalMode::Wal));
        let expected = runtime.block_on(all(&path)).expect("whole");
        damage(&path, |bytes| {
            let (at, page) = (at.index(bytes.len()), at.index(bytes.len() / PAGE) * PAGE);
            let other = to.index(bytes.len() / PAGE) * PAGE;
            match kind {
                0 | 1 => bytes[at] ^= 1 << to.index(8),
                2 => bytes.copy_within(page..page + PAGE, other),
                _ => bytes.truncate(at),
            }
        });
        if let Ok(rows) = runtime.block_on(all(&path)) {
            prop_assert!(rows == expected, "other rows");
        }
    }
}

#[tokio::test]
async fn what_has_no_sums_is_refused() {
    let (_place, path) = filled(SqliteJournalMode::Wal).await;
    damage(&path, |bytes| bytes.chunks_mut(PAGE).for_each(|page| page[PAGE - RESERVED..].fill(0)));
    all(&path).await.map(|rows| rows.len()).expect_err("no sums");
    damage(&path, |bytes| bytes[RESERVED_AT as usize] = 0);
    let before = fs::read(&path).expect("readable");
    fs::write(path.with_extension("db-wal"), [7; 5_000]).expect("written");
    all(&path).await.map(|rows| rows.len()).expect_err("no room for them either");
    assert!(fs::read(&path).expect("readable") == before, "it was written to");
    assert_eq!(verify(&path, |_| ()).map_err(|error| error.kind()), Err(io::ErrorKind::InvalidData));
}

/// Pages on a disk must stay readable.
#[test]
fn the_sum_of_a_page_stays_as_it_is() {
    let page = with_sum(7, &[1; SMALLEST]);
    let summed = [&7_u32.to_le_bytes()[..], &[1; SMALLEST - RESERVED]].concat();
    assert_eq!(page[SMALLEST - RESERVED..], [crc32fast::hash(&summed).to_le_bytes(), [0; 4]].concat());
}
