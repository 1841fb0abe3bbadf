//! Many rows in few statements: multi-row inserts, in a handful of sizes so that each is prepared once.

use sqlx::query::Query;
use sqlx::sqlite::SqliteArguments;
use sqlx::{AssertSqlSafe, Sqlite, SqliteConnection};

/// A statement before its values are bound.
pub(super) type Binding<'q> = Query<'q, Sqlite, SqliteArguments>;

/// An insert of any number of rows.
pub(super) struct Bulk {
    /// Up to `VALUES`.
    pub(super) insert: &'static str,
    /// One row, `(?, ?)`.
    pub(super) row: &'static str,
    /// The text after the rows.
    pub(super) conflict: &'static str,
}

impl Bulk {
    /// The most rows of one statement; 256 times nine columns stays far below SQLite's 32,766 parameters.
    const MOST_ROWS: usize = 256;

    /// Inserts `items` in their order; `bind` binds the columns of one.
    pub(super) async fn insert<T>(
        &self,
        connection: &mut SqliteConnection,
        mut items: &[T],
        bind: impl for<'q> Fn(Binding<'q>, &T) -> Binding<'q>,
    ) -> Result<(), sqlx::Error> {
        while !items.is_empty() {
            // The largest power of two that fits: nine sizes at most.
            let size = Self::MOST_ROWS.min(1 << items.len().ilog2());
            let (now, later) = items.split_at(size);
            let mut query = sqlx::query(AssertSqlSafe(self.statement(size)));
            for item in now {
                query = bind(query, item);
            }
            query.execute(&mut *connection).await?;
            items = later;
        }
        Ok(())
    }

    fn statement(&self, rows: usize) -> String {
        let mut sql =
            String::with_capacity(self.insert.len() + self.conflict.len() + rows * (self.row.len() + 1));
        sql.push_str(self.insert);
        for at in 0..rows {
            sql.push_str(if at == 0 { " " } else { "," });
            sql.push_str(self.row);
        }
        sql.push(' ');
        sql.push_str(self.conflict);
        sql
    }
}
