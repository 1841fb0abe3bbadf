//! What operators, and administrators of groups, have done: lines that are only added, and forgotten when they are old.

use super::sql::{SqlRow, sql};
use super::{Directory, StoreError};
use crate::domain::{GroupId, Timestamp, Uid};

/// A line of the audit log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditLine {
    /// Grows from line to line, with gaps; 0 in one that is to be added.
    pub number: u64,
    /// When.
    pub at: Timestamp,
    /// The person that did it; `None`: a command of the operator.
    pub by: Option<Uid>,
    /// What, in a word that is stored and stays stable.
    pub action: String,
    /// To whom.
    pub person: Option<Uid>,
    /// In which group.
    pub group: Option<GroupId>,
    /// What else there is to say; may be empty.
    pub detail: String,
}

/// The audit log.
impl Directory {
    /// Adds a line.
    pub async fn add_audit_line(&self, line: &AuditLine) -> Result<(), StoreError> {
        let add = sql(
            "INSERT INTO audit_log (at, made_by, action, person, gid, detail) VALUES ($1, $2, $3, $4, $5, $6)",
        );
        let add = add.bind(line.at).bind(line.by.unwrap_or(Uid(0))).bind(line.action.as_str());
        let add = add.bind(line.person.unwrap_or(Uid(0))).bind(line.group.unwrap_or(GroupId(0)));
        self.db.change(add.bind(line.detail.as_str())).await.map(drop)
    }

    /// The newest lines with numbers below `before`, the newest first, at most `limit`.
    pub async fn audit_lines(&self, before: Option<u64>, limit: usize) -> Result<Vec<AuditLine>, StoreError> {
        let lines = sql("SELECT * FROM audit_log WHERE number < $1 ORDER BY number DESC LIMIT $2");
        let before = before.and_then(|number| i64::try_from(number).ok()).unwrap_or(i64::MAX);
        self.db.rows(lines.bind(before).bind(limit)).await?.iter().map(line_of).collect()
    }

    /// Forgets lines from before `since`, and those beyond the newest `most`: at most `limit`. Says how many.
    pub async fn forget_audit_lines(
        &self,
        since: Timestamp,
        most: u64,
        limit: usize,
    ) -> Result<u64, StoreError> {
        let forget = sql("DELETE FROM audit_log WHERE number IN (SELECT number FROM audit_log
                 WHERE at < $1 OR number <= (SELECT coalesce(max(number), 0) - $2 FROM audit_log)
                 ORDER BY number LIMIT $3 FOR UPDATE SKIP LOCKED)");
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        self.db.change(forget.bind(since).bind(most).bind(limit)).await
    }
}

fn line_of(row: &SqlRow) -> Result<AuditLine, StoreError> {
    let person = |column| Ok::<_, StoreError>(Some(row.small(column)?).filter(|uid| *uid > 0).map(Uid));
    Ok(AuditLine {
        number: row.number("number")?,
        at: row.time("at")?,
        by: person("made_by")?,
        action: row.get("action")?,
        person: person("person")?,
        group: Some(row.number("gid")?).filter(|gid| *gid > 0).map(GroupId),
        detail: row.get("detail")?,
    })
}
