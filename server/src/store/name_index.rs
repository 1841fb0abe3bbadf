//! The index of names: new names are compared with its skeletons, and parts of names are looked for in its endings.

use super::directory::is_text;
use super::directory_db::SqlTx;
use super::names::Search;
use super::sql::{SqlRow, sql};
use super::{Directory, StoreError};
use crate::domain::{Uid, name_endings, skeletons};

/// Keeps what names look like, as far as no other account looks like that already. Says whether none did. Of several servers that keep
/// the same, all but the first wait for its commit.
pub(super) async fn keep_skeletons(tx: &mut SqlTx<'_>, names: &[(Uid, String)]) -> Result<bool, StoreError> {
    let of = |(uid, name): &(Uid, String)| {
        let uid = *uid;
        skeletons(name).into_iter().map(move |skeleton| (skeleton, uid))
    };
    // In one order, whoever keeps the same at the same time.
    let mut all: Vec<(String, Uid)> = names.iter().flat_map(of).collect();
    all.sort_unstable();
    let insert = sql(
        "INSERT INTO name_skeletons (skeleton, uid) SELECT substr(value, 11), CAST(substr(value, 1, 10) AS bigint)
         FROM unnest($1) AS value WHERE TRUE ON CONFLICT DO NOTHING",
    );
    let count = all.len() as u64;
    Ok(tx.change(insert.bind(in_one_list(all))).await? == count)
}

/// Keeps by which parts of their names accounts are found.
pub(super) async fn keep_endings(tx: &mut SqlTx<'_>, names: &[(Uid, String)]) -> Result<(), StoreError> {
    let of = |(uid, name): &(Uid, String)| {
        let uid = *uid;
        name_endings(name).into_iter().map(move |ending| (ending, uid))
    };
    let insert = sql(
        "INSERT INTO name_endings (ending, uid) SELECT substr(value, 11), CAST(substr(value, 1, 10) AS bigint)
         FROM unnest($1) AS value WHERE TRUE ON CONFLICT DO NOTHING",
    );
    tx.change(insert.bind(in_one_list(names.iter().flat_map(of)))).await.map(drop)
}

/// Texts and uids as one list: the uid in ten digits, and the text.
fn in_one_list(pairs: impl IntoIterator<Item = (String, Uid)>) -> Vec<String> {
    pairs.into_iter().map(|(text, uid)| format!("{:010}{text}", uid.0)).collect()
}

/// Names.
impl Directory {
    /// Whether there is an account whose name looks like `name`.
    pub async fn has_look_alike(&self, name: &str) -> Result<bool, StoreError> {
        let asked = sql("SELECT uid FROM name_skeletons WHERE skeleton = ANY($1) LIMIT 1");
        Ok(self.db.row(asked.bind(Vec::from_iter(skeletons(name)))).await?.is_some())
    }

    /// Accounts with `part` in their name, at most `limit`, not the disabled ones: those whose name begins with it first, each by name.
    /// A part of one character is looked for at the beginning alone.
    pub async fn search(&self, part: &str, limit: usize) -> Result<Vec<(Uid, String)>, StoreError> {
        if !is_text(part) {
            return Ok(Vec::new());
        }
        let search = Search::new(part, limit);
        let begin = "SELECT uid, name FROM accounts WHERE name_key >= $1 AND name_key < $2 AND NOT disabled
             ORDER BY name_key LIMIT $3";
        let beginning = self.range(begin, &search, search.limit).await?;
        let elsewhere = match search.endings(beginning.len()) {
            0 => Vec::new(),
            most => {
                let end = "SELECT a.uid, a.name FROM name_endings e JOIN accounts a ON a.uid = e.uid
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
        let select = sql(select).bind(search.part.as_str()).bind(search.beyond.as_str()).bind(most);
        self.db.rows(select).await?.iter().map(|row| Ok((row.uid()?, row.get("name")?))).collect()
    }

    /// Takes names of accounts that an import made into what new names are compared with and parts are looked for in; at most `limit`.
    /// Says how many. An account whose name looks like another one keeps it.
    pub async fn index_names(&self, limit: usize) -> Result<u64, StoreError> {
        let index = async {
            let mut writer = self.db.writer().await?;
            let mut tx = writer.begin().await?;
            // Servers that do this at the same time take different ones.
            let some = sql(
                "SELECT uid, name FROM accounts WHERE NOT name_indexed ORDER BY uid LIMIT $1 FOR UPDATE SKIP LOCKED",
            );
            let rows = tx.rows(some.bind(limit)).await?;
            let named = |row: &SqlRow| Ok((row.uid()?, row.get("name")?));
            let names: Vec<(Uid, String)> = rows.iter().map(named).collect::<Result<_, StoreError>>()?;
            keep_skeletons(&mut tx, &names).await?;
            keep_endings(&mut tx, &names).await?;
            let uids: Vec<Uid> = names.iter().map(|(uid, _)| *uid).collect();
            let done = sql("UPDATE accounts SET name_indexed = TRUE WHERE uid = ANY($1)");
            tx.change(done.bind(&uids[..])).await?;
            tx.commit().await?;
            Ok(names.len() as u64)
        };
        self.db.limited(index).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Timestamp;
    use crate::store::NewAccount;

    /// Accounts as an import makes them.
    #[tokio::test]
    async fn imported_names_are_indexed_in_steps_and_those_that_look_alike_stay() {
        let directory = Directory::in_memory();
        for (uid, name) in [(1, "Ann"), (2, "\u{410}nn"), (3, "B\u{200b}ob"), (4, "\u{200b}"), (5, "Jo")] {
            let old = "INSERT INTO accounts (uid, name, name_key, password_hash, created_at) VALUES ($1, $2, $3, '', 0)";
            let old = sql(old).bind(Uid(uid)).bind(name).bind(name.to_lowercase());
            directory.db.change(old).await.expect("stored");
        }
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
    }
}
