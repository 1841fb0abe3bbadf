//! Accounts as operators see them, and which accounts are operators'.

use super::directory::is_text;
use super::names::Search;
use super::sql::{SqlRow, sql};
use super::{Directory, StoreError};
use crate::domain::{Timestamp, Uid};

/// An account as operators see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedAccount {
    /// Who.
    pub uid: Uid,
    /// As the person wrote it.
    pub name: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// Whether an operator has locked it, or it is deleted.
    pub disabled: bool,
    /// Whether it is deleted.
    pub deleted: bool,
    /// Whether it is an operator's.
    pub operator: bool,
}

const LISTED: &str =
    "SELECT a.uid, a.name, a.created_at, a.disabled, a.deleted_at, a.operator FROM accounts a";

/// Operators.
impl Directory {
    /// Makes the account an operator's, or no longer. `false`: there is none, or it is deleted.
    pub async fn set_operator(&self, uid: Uid, operator: bool) -> Result<bool, StoreError> {
        let set = sql("UPDATE accounts SET operator = $2 WHERE uid = $1 AND deleted_at IS NULL");
        Ok(self.db.change(set.bind(uid).bind(operator)).await? > 0)
    }

    /// An account as operators see it.
    pub async fn listed_account(&self, uid: Uid) -> Result<Option<ListedAccount>, StoreError> {
        let account = sql(format!("{LISTED} WHERE a.uid = $1")).bind(uid);
        self.db.row(account).await?.as_ref().map(listed).transpose()
    }

    /// Accounts with `part` in their name, also those that are disabled or deleted, at most `limit`: those whose name begins with it
    /// first, each by name. Deleted ones are found by the beginning alone.
    pub async fn list_accounts(&self, part: &str, limit: usize) -> Result<Vec<ListedAccount>, StoreError> {
        if !is_text(part) {
            return Ok(Vec::new());
        }
        let search = Search::new(part, limit);
        let begin =
            format!("{LISTED} WHERE a.name_key >= $1 AND a.name_key < $2 ORDER BY a.name_key LIMIT $3");
        let mut found = self.listed(begin, &search, limit).await?;
        let most = search.endings(found.len());
        if most > 0 {
            let end = format!(
                "{LISTED} JOIN name_endings e ON e.uid = a.uid WHERE e.ending >= $1 AND e.ending < $2 ORDER BY e.ending, e.uid LIMIT $3"
            );
            for account in self.listed(end, &search, most).await? {
                if found.len() < limit && found.iter().all(|known| known.uid != account.uid) {
                    found.push(account);
                }
            }
        }
        Ok(found)
    }

    async fn listed(
        &self,
        select: String,
        search: &Search,
        most: usize,
    ) -> Result<Vec<ListedAccount>, StoreError> {
        let select = sql(select).bind(search.part.as_str()).bind(search.beyond.as_str()).bind(most);
        self.db.rows(select).await?.iter().map(listed).collect()
    }
}

fn listed(row: &SqlRow) -> Result<ListedAccount, StoreError> {
    Ok(ListedAccount {
        uid: row.uid()?,
        name: row.get("name")?,
        created_at: row.time("created_at")?,
        disabled: row.get("disabled")?,
        deleted: row.get::<Option<i64>>("deleted_at")?.is_some(),
        operator: row.get("operator")?,
    })
}
