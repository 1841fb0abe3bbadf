//! The index of names: new names are compared with its skeletons, and parts of names are looked for in its endings.

use sqlx::{Connection as _, PgConnection, Row as _};

use super::PgDirectory;
use super::directory::{count, key_of, uid_of};
use crate::domain::{Uid, name_endings, skeletons};
use crate::store::StoreError;
use crate::store::names::Search;

/// Keeps what names look like, as far as no other account looks like that already. Says whether none did. Of several servers that keep
/// the same, all but the first wait for its commit.
pub(super) async fn keep_skeletons(
    connection: &mut PgConnection,
    names: &[(Uid, String)],
) -> Result<bool, StoreError> {
    let of = |(uid, name): &(Uid, String)| {
        let uid = i64::from(uid.0);
        skeletons(name).into_iter().map(move |skeleton| (skeleton, uid))
    };
    // In one order, whoever keeps the same at the same time.
    let mut all: Vec<(String, i64)> = names.iter().flat_map(of).collect();
    all.sort_unstable();
    let count = all.len() as u64;
    let (skeletons, uids): (Vec<String>, Vec<i64>) = all.into_iter().unzip();
    let insert = sqlx::query(
        "INSERT INTO name_skeletons (skeleton, uid) SELECT * FROM unnest($1::text[], $2::bigint[]) ON CONFLICT DO NOTHING",
    );
    let kept = insert.bind(skeletons).bind(uids).execute(connection).await?;
    Ok(kept.rows_affected() == count)
}

/// Keeps by which parts of their names accounts are found.
pub(super) async fn keep_endings(
    connection: &mut PgConnection,
    names: &[(Uid, String)],
) -> Result<(), StoreError> {
    let of = |(uid, name): &(Uid, String)| {
        let uid = i64::from(uid.0);
        name_endings(name).into_iter().map(move |ending| (ending, uid))
    };
    let (endings, uids): (Vec<String>, Vec<i64>) = names.iter().flat_map(of).unzip();
    let insert = sqlx::query(
        "INSERT INTO name_endings (ending, uid) SELECT * FROM unnest($1::text[], $2::bigint[]) ON CONFLICT DO NOTHING",
    );
    insert.bind(endings).bind(uids).execute(connection).await?;
    Ok(())
}

impl PgDirectory {
    pub(super) async fn is_looked_like(&self, name: &str) -> Result<bool, StoreError> {
        let asked = sqlx::query("SELECT uid FROM name_skeletons WHERE skeleton = ANY($1) LIMIT 1");
        Ok(self.row(asked.bind(Vec::from_iter(skeletons(name)))).await?.is_some())
    }

    pub(super) async fn found(&self, search: Search) -> Result<Vec<(Uid, String)>, StoreError> {
        let begin = "SELECT uid, name FROM accounts WHERE name_key >= $1 AND name_key < $2 AND NOT disabled \
             ORDER BY name_key LIMIT $3";
        let beginning = self.range(begin, &search, search.limit).await?;
        let elsewhere = match search.endings(beginning.len()) {
            0 => Vec::new(),
            most => {
                let end = "SELECT a.uid, a.name FROM name_endings e JOIN accounts a \
                     ON a.partition_key = left(md5(e.uid::text), 4) AND a.uid = e.uid \
                     WHERE e.ending >= $1 AND e.ending < $2 AND NOT a.disabled ORDER BY e.ending, e.uid LIMIT $3";
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
        let rows = sqlx::query(select).bind(search.part.clone()).bind(search.beyond.clone());
        let rows = self.rows(rows.bind(count(most))).await?;
        rows.iter().map(|row| Ok((uid_of(row)?, row.try_get("name")?))).collect()
    }

    pub(super) async fn index_some(&self, limit: usize) -> Result<u64, StoreError> {
        let index = async {
            let mut connection = self.db.reader().await?;
            let mut tx = connection.begin().await?;
            // Servers that do this at the same time take different ones.
            let rows = sqlx::query(
                "SELECT uid, name FROM accounts WHERE NOT name_indexed ORDER BY uid LIMIT $1 FOR UPDATE SKIP LOCKED",
            );
            let rows = rows.bind(count(limit)).fetch_all(&mut *tx).await?;
            let names: Vec<(Uid, String)> = rows
                .iter()
                .map(|row| Ok((uid_of(row)?, row.try_get("name")?)))
                .collect::<Result<_, StoreError>>()?;
            keep_skeletons(&mut tx, &names).await?;
            keep_endings(&mut tx, &names).await?;
            let done = sqlx::query(
                "UPDATE accounts SET name_indexed = true FROM unnest($1::text[], $2::bigint[]) AS done (partition_key, uid) \
                 WHERE accounts.partition_key = done.partition_key AND accounts.uid = done.uid",
            );
            let keys: Vec<String> = names.iter().map(|(uid, _)| key_of(*uid)).collect();
            let uids: Vec<i64> = names.iter().map(|(uid, _)| i64::from(uid.0)).collect();
            done.bind(keys).bind(uids).execute(&mut *tx).await?;
            tx.commit().await?;
            Ok(names.len() as u64)
        };
        self.db.limited(index).await
    }
}
