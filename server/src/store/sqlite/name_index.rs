//! The index of names: new names are compared with its skeletons, and parts of names are looked for in its endings.

use sqlx::{QueryBuilder, Row as _, Sqlite, SqliteConnection};

use super::directory::{SqliteDirectory, count, uid_of};
use crate::domain::{Uid, name_endings, skeletons};
use crate::store::StoreError;
use crate::store::names::Search;

/// Keeps what `name` looks like, as far as no other account looks like that already. Says whether none did.
pub(super) async fn keep_skeletons(
    connection: &mut SqliteConnection,
    uid: Uid,
    name: &str,
) -> Result<bool, StoreError> {
    let skeletons = skeletons(name);
    let count = skeletons.len() as u64;
    let mut insert = QueryBuilder::<Sqlite>::new("INSERT INTO name_skeletons (skeleton, uid) ");
    insert.push_values(skeletons, |mut row, skeleton| {
        row.push_bind(skeleton).push_bind(i64::from(uid.0));
    });
    let kept = insert.push(" ON CONFLICT DO NOTHING").build().execute(connection).await?;
    Ok(kept.rows_affected() == count)
}

/// Keeps by which parts of `name` its account is found.
pub(super) async fn keep_endings(
    connection: &mut SqliteConnection,
    uid: Uid,
    name: &str,
) -> Result<(), StoreError> {
    let endings = name_endings(name);
    if endings.is_empty() {
        return Ok(());
    }
    let mut insert = QueryBuilder::<Sqlite>::new("INSERT INTO name_endings (ending, uid) ");
    insert.push_values(endings, |mut row, ending| {
        row.push_bind(ending).push_bind(i64::from(uid.0));
    });
    insert.push(" ON CONFLICT DO NOTHING").build().execute(connection).await?;
    Ok(())
}

impl SqliteDirectory {
    pub(super) async fn is_looked_like(&self, name: &str) -> Result<bool, StoreError> {
        let mut ask = QueryBuilder::<Sqlite>::new("SELECT uid FROM name_skeletons WHERE skeleton IN (");
        let mut list = ask.separated(", ");
        for skeleton in skeletons(name) {
            list.push_bind(skeleton);
        }
        ask.push(") LIMIT 1");
        Ok(ask.build().fetch_optional(&mut *self.reader().await?).await?.is_some())
    }

    pub(super) async fn found(&self, search: Search) -> Result<Vec<(Uid, String)>, StoreError> {
        let begin = "SELECT uid, name FROM accounts WHERE name_key >= ? AND name_key < ? AND NOT disabled
             ORDER BY name_key LIMIT ?";
        let beginning = self.range(begin, &search, search.limit).await?;
        let elsewhere = match search.endings(beginning.len()) {
            0 => Vec::new(),
            most => {
                let end = "SELECT a.uid, a.name FROM name_endings AS e CROSS JOIN accounts AS a ON a.uid = e.uid
                     WHERE e.ending >= ? AND e.ending < ? AND NOT a.disabled ORDER BY e.ending, e.uid LIMIT ?";
                self.range(end, &search, most).await?
            }
        };
        Ok(search.together(beginning, elsewhere))
    }

    async fn range(
        &self,
        select: &'static str,
        search: &Search,
        most: usize,
    ) -> Result<Vec<(Uid, String)>, StoreError> {
        let rows = sqlx::query(select)
            .bind(search.part.clone())
            .bind(search.beyond.clone())
            .bind(count(most))
            .fetch_all(&mut *self.reader().await?)
            .await?;
        rows.iter().map(|row| Ok((uid_of(row)?, row.try_get("name")?))).collect()
    }

    pub(super) async fn index_some(&self, limit: usize) -> Result<u64, StoreError> {
        let mut tx = self.write().await?;
        let rows = sqlx::query("SELECT uid, name FROM accounts WHERE NOT name_indexed ORDER BY uid LIMIT ?")
            .bind(count(limit))
            .fetch_all(&mut *tx)
            .await?;
        for row in &rows {
            let (uid, name): (Uid, String) = (uid_of(row)?, row.try_get("name")?);
            keep_skeletons(&mut tx, uid, &name).await?;
            keep_endings(&mut tx, uid, &name).await?;
            let done = sqlx::query("UPDATE accounts SET name_indexed = TRUE WHERE uid = ?");
            done.bind(i64::from(uid.0)).execute(&mut *tx).await?;
        }
        tx.commit().await?;
        Ok(rows.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::domain::Timestamp;
    use crate::store::sqlite::Db;
    use crate::store::{Directory, NewAccount};

    /// Accounts as an import makes them.
    #[tokio::test]
    async fn imported_names_are_indexed_in_steps_and_those_that_look_alike_stay() {
        let place = tempfile::tempdir().expect("a directory");
        let db = Db::open(&place.path().join("tidemark.db")).await.expect("opened");
        let directory = SqliteDirectory::new(Arc::clone(&db), 4);
        let mut tx = db.write().await.expect("opened");
        for (uid, name) in [(1, "Ann"), (2, "\u{410}nn"), (3, "B\u{200b}ob"), (4, "\u{200b}"), (5, "Jo")] {
            let old = "INSERT INTO accounts (uid, name, name_key, password_hash, created_at) VALUES (?, ?, ?, '', 0)";
            let old = sqlx::query(old).bind(uid).bind(name).bind(name.to_lowercase());
            old.execute(&mut *tx).await.expect("stored");
        }
        tx.commit().await.expect("stored");
        assert_eq!(directory.search("nn", 10).await.expect("asked"), []);
        for done in [2, 2, 1, 0] {
            assert_eq!(directory.index_names(2).await.expect("indexed"), done);
        }
        let found = directory.search("nn", 10).await.expect("asked");
        assert_eq!(found.iter().map(|(uid, _)| uid.0).collect::<Vec<_>>(), [1, 2]);
        let create = async |uid, name: &str| {
            let account =
                NewAccount { name: name.to_owned(), password_hash: String::new(), created_at: Timestamp(0) };
            directory.create_account(Uid(uid), account, None).await.expect("asked")
        };
        assert!(!create(6, "An\u{578}").await && !create(6, "B0b").await && !create(6, "J0").await);
        assert!(create(6, "Joe").await);
        db.close().await.expect("closed");
    }
}
