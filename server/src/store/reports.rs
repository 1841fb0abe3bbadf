//! Reports of messages and people. Small and apart from rows: the reported person has nothing of them.
//!
//! A report of a group's message has two ends: an administrator of the group dismisses it, and an operator closes it.
//! Neither hides it from the other.

use super::sql::{SqlRow, sql};
use super::{Directory, StoreError};
use crate::domain::{
    ClientId, Complaint, GroupId, NewReport, Reason, Report, ReportedMessage, Timestamp, Uid,
};

/// The columns that [`report_of`] reads.
const REPORTS: &str = "SELECT number, reporter, made_at, reason, words, about, gid, said_id, said, said_at, closed_at FROM reports";

/// What became of a report that was to be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportOutcome {
    /// It is kept, now or under the same key before.
    Kept,
    /// The key was used for another report.
    KeyReused,
    /// The reporter has made as many as one account may since that time.
    TooMany,
}

/// Reports of messages and people.
impl Directory {
    /// Keeps a report, unless its maker has made `most` since `since`.
    pub async fn put_report(
        &self,
        new: &NewReport,
        since: Timestamp,
        most: u32,
    ) -> Result<ReportOutcome, StoreError> {
        let NewReport { reporter, client_id, ref complaint } = *new;
        let keep = async {
            let mut writer = self.db.writer().await?;
            let mut tx = writer.begin().await?;
            // Requests of one account take turns.
            tx.row(sql("SELECT 1 FROM accounts WHERE uid = $1 FOR UPDATE").bind(reporter)).await?;
            let same = sql(format!("{REPORTS} WHERE reporter = $1 AND client_id = $2"));
            if let Some(kept) = tx.row(same.bind(reporter).bind(client_id)).await? {
                tx.roll_back().await?;
                return Ok(match report_of(&kept)?.complaint.is_repeated_by(complaint) {
                    true => ReportOutcome::Kept,
                    false => ReportOutcome::KeyReused,
                });
            }
            let made = sql("SELECT count(*) AS made FROM reports WHERE reporter = $1 AND made_at >= $2");
            let made = tx.row(made.bind(reporter).bind(since)).await?;
            if made.map_or(Ok(0), |row| row.number("made"))? >= u64::from(most) {
                tx.roll_back().await?;
                return Ok(ReportOutcome::TooMany);
            }
            let message = complaint.message.as_ref();
            let insert = sql(
                "INSERT INTO reports (reporter, client_id, made_at, reason, words, about, gid, said_id, said, said_at)
                 VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
            );
            let insert = insert.bind(reporter).bind(client_id).bind(complaint.made_at);
            let insert = insert.bind(complaint.reason.as_str()).bind(&*complaint.words).bind(complaint.about);
            let insert = insert.bind(message.and_then(|message| message.gid));
            let insert = insert.bind(message.map(|message| message.key.1));
            let insert = insert.bind(message.map(|message| &*message.text));
            tx.change(insert.bind(message.map(|message| message.sent_at))).await?;
            tx.commit().await?;
            Ok(ReportOutcome::Kept)
        };
        self.db.limited(keep).await
    }

    /// Reports of messages of a group that none of its administrators has dismissed, by their numbers: those above `after`, at most
    /// `limit`.
    pub async fn reports_of_group(
        &self,
        gid: GroupId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Report>, StoreError> {
        let open = sql(format!(
            "{REPORTS} WHERE gid = $1 AND dismissed_at IS NULL AND number > $2 ORDER BY number LIMIT $3"
        ));
        reports(&self.db.rows(open.bind(gid).bind(after).bind(limit)).await?)
    }

    /// All reports, or those that no operator has closed, by their numbers: those above `after`, at most `limit`.
    pub async fn all_reports(
        &self,
        closed_too: bool,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Report>, StoreError> {
        let open = if closed_too { "" } else { "closed_at IS NULL AND " };
        let all = sql(format!("{REPORTS} WHERE {open}number > $1 ORDER BY number LIMIT $2"));
        reports(&self.db.rows(all.bind(after).bind(limit)).await?)
    }

    /// The newest reports about `about` or about what it said, at most `limit`.
    pub async fn reports_about(&self, about: Uid, limit: usize) -> Result<Vec<Report>, StoreError> {
        let newest = sql(format!("{REPORTS} WHERE about = $1 ORDER BY number DESC LIMIT $2"));
        reports(&self.db.rows(newest.bind(about).bind(limit)).await?)
    }

    /// The report of this number, if there is one.
    pub async fn report(&self, number: u64) -> Result<Option<Report>, StoreError> {
        let one = sql(format!("{REPORTS} WHERE number = $1"));
        Ok(reports(&self.db.rows(one.bind(number)).await?)?.pop())
    }

    /// The reports that `reporter` has made, by their numbers: those above `after`, at most `limit`.
    pub async fn reports_by(
        &self,
        reporter: Uid,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Report>, StoreError> {
        let own = sql(format!("{REPORTS} WHERE reporter = $1 AND number > $2 ORDER BY number LIMIT $3"));
        reports(&self.db.rows(own.bind(reporter).bind(after).bind(limit)).await?)
    }

    /// An administrator of the group is done with the report. `false`: the group has no such report that is open.
    pub async fn dismiss_report(&self, gid: GroupId, number: u64, at: Timestamp) -> Result<bool, StoreError> {
        let done = sql(
            "UPDATE reports SET dismissed_at = $3 WHERE gid = $1 AND number = $2 AND dismissed_at IS NULL",
        );
        Ok(self.db.change(done.bind(gid).bind(number).bind(at)).await? > 0)
    }

    /// An operator is done with the report. `false`: there is no open one.
    pub async fn close_report(&self, number: u64, at: Timestamp) -> Result<bool, StoreError> {
        let done = sql("UPDATE reports SET closed_at = $2 WHERE number = $1 AND closed_at IS NULL");
        Ok(self.db.change(done.bind(number).bind(at)).await? > 0)
    }

    /// Forgets what reports say of a deleted account: those about it, and the name and the words of the reporter in those that it made.
    pub async fn forget_reports_of(&self, uid: Uid) -> Result<(), StoreError> {
        self.db.change(sql("DELETE FROM reports WHERE about = $1").bind(uid)).await?;
        let unsign = sql("UPDATE reports SET reporter = NULL, words = '' WHERE reporter = $1");
        self.db.change(unsign.bind(uid)).await.map(drop)
    }

    /// Forgets up to `limit` reports that were made at `before` or earlier, and tells how many.
    pub async fn forget_reports(&self, before: Timestamp, limit: usize) -> Result<u64, StoreError> {
        let forget = sql("DELETE FROM reports WHERE number IN
             (SELECT number FROM reports WHERE made_at <= $1 LIMIT $2 FOR UPDATE SKIP LOCKED)");
        self.db.change(forget.bind(before).bind(limit)).await
    }
}

fn reports(rows: &[SqlRow]) -> Result<Vec<Report>, StoreError> {
    rows.iter().map(report_of).collect()
}

fn report_of(row: &SqlRow) -> Result<Report, StoreError> {
    let about = Uid(row.small("about")?);
    let word: String = row.get("reason")?;
    let reason = Reason::parse(&word);
    let message = row.client_id("said_id")?.map(|client_id: ClientId| {
        let gid: Option<i64> = row.get("gid")?;
        let text: Option<String> = row.get("said")?;
        let gid = gid.map(|gid| GroupId(gid.cast_unsigned()));
        let sent_at = row.time("said_at")?;
        Ok::<_, StoreError>(ReportedMessage {
            key: (about, client_id),
            gid,
            text: text.unwrap_or_default(),
            sent_at,
        })
    });
    let reporter: Option<i64> = row.get("reporter")?;
    let closed_at: Option<i64> = row.get("closed_at")?;
    Ok(Report {
        number: row.number("number")?,
        reporter: reporter.and_then(|uid| u32::try_from(uid).ok()).map(Uid),
        complaint: Complaint {
            made_at: row.time("made_at")?,
            reason: reason.ok_or_else(|| StoreError::corrupt(format!("{word} is no reason of a report")))?,
            words: row.get("words")?,
            about,
            message: message.transpose()?,
        },
        is_closed: closed_at.is_some(),
    })
}
