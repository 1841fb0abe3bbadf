//! A commit of rows: planned, called, and planned again without the writes that cannot be stored.
//!
//! One call is one statement and one transaction, which stores everything or says what is in the way. The number of calls
//! is bounded.

use std::collections::HashSet;

use sqlx::postgres::PgDatabaseError;
use tracing::{debug, warn};

use super::plan::{RowsPlan, lose};
use crate::store::postgres::PgDb;
use crate::store::postgres::deadline::Deadline;
use crate::store::postgres::revisions::Revisions;
use crate::store::postgres::setback::{MOST_CONFLICTS, Setback, setback};
use crate::store::tables::{TableOutcome, TableWrite};
use crate::store::{CommitError, StoreError};

/// Looks for a commit that may still be running, each as long as a lock is waited for.
const MOST_LOOKS: usize = 3;

const CALL: &str = "SELECT commit_rows($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)";

/// Why a call stored nothing, or may have.
enum Obstacle {
    /// Rows at these places are not as expected.
    Changed(Vec<i64>),
    /// Counters at these places have come to their end.
    Ended(Vec<i64>),
    /// These tables are deleted.
    Gone(Vec<i64>),
    /// Something that is no matter of the writes.
    Other(Setback),
}

/// Makes the writes durable.
pub(super) async fn run(
    db: &PgDb,
    revisions: &Revisions,
    writes: &[TableWrite],
) -> Result<Vec<TableOutcome>, CommitError> {
    let mut outcomes = vec![None; writes.len()];
    let mut conflicts = 0;
    // Each call but those that others were in the way of leaves one write less, or is the last.
    loop {
        let plan = RowsPlan::of(writes, &outcomes);
        if plan.is_empty() {
            break;
        }
        let revision = revisions.next(db).await.map_err(CommitError::Refused)?;
        let (called, deadline) = call(db, &plan, revision).await;
        match called {
            Ok(last) => {
                let stored = plan.stored(&last, &mut outcomes);
                stored.ok_or_else(|| {
                    CommitError::Unknown(StoreError::corrupt("commit_rows left numbers out"))
                })?;
                break;
            }
            Err(Obstacle::Changed(rows)) => {
                let lost = plan.writes_of_rows(&rows);
                lose(writes, &mut outcomes, &some(lost)?, |_| TableOutcome::Stale);
            }
            Err(Obstacle::Ended(counters)) => {
                let lost = plan.writes_of_counters(&counters);
                let ended = |write: &TableWrite| {
                    TableOutcome::Rejected(format!(
                        "a counter of table {} has reached its end",
                        write.table.0
                    ))
                };
                lose(writes, &mut outcomes, &some(lost)?, ended);
            }
            Err(Obstacle::Gone(tables)) => {
                let gone = |write: &TableWrite| tables.contains(&write.table.0.cast_signed());
                let lost =
                    writes.iter().enumerate().filter(|(at, write)| outcomes[*at].is_none() && gone(write));
                let lost = lost.map(|(at, _)| at).collect();
                lose(writes, &mut outcomes, &some(lost)?, |_| TableOutcome::NoTable);
            }
            Err(Obstacle::Other(ref setback @ (Setback::Conflict(ref error) | Setback::Late(ref error)))) => {
                conflicts += 1;
                if conflicts >= MOST_CONFLICTS {
                    return Err(CommitError::Refused(error.clone()));
                }
                debug!(%error, "a commit of rows is tried again");
                if matches!(setback, Setback::Late(_)) {
                    _ = db.measure_time().await;
                }
            }
            Err(Obstacle::Other(Setback::Unknown(error))) => {
                until_over(db, revision, deadline).await;
                return Err(CommitError::Unknown(error));
            }
            Err(Obstacle::Other(Setback::Refused(error))) => return Err(CommitError::Refused(error)),
            Err(Obstacle::Other(Setback::Unstorable(why))) => {
                return Err(CommitError::Refused(StoreError::corrupt(why)));
            }
            Err(Obstacle::Other(Setback::KeyUsed | Setback::Overtaken | Setback::Storable)) => {
                return Err(CommitError::Refused(StoreError::corrupt("rows are refused like messages")));
            }
        }
    }
    Ok(outcomes.into_iter().map(|outcome| outcome.unwrap_or(TableOutcome::Stored(Vec::new()))).collect())
}

/// That the database names something of the call, so that the next one is smaller.
fn some(lost: HashSet<usize>) -> Result<HashSet<usize>, CommitError> {
    match lost.is_empty() {
        true => Err(CommitError::Refused(StoreError::corrupt("commit_rows names nothing of the call"))),
        false => Ok(lost),
    }
}

/// The result of one call, and until when it may begin.
async fn call(db: &PgDb, plan: &RowsPlan<'_>, revision: u64) -> (Result<Vec<i64>, Obstacle>, Deadline) {
    let connection = db.for_queues().await;
    let deadline = db.deadline();
    let mut connection = match connection {
        Ok(connection) => connection,
        Err(error) => return (Err(Obstacle::Other(Setback::Refused(error))), deadline),
    };
    let counters = || plan.counters.iter();
    let rows = || plan.rows.iter();
    let call = sqlx::query_scalar(CALL)
        .bind(plan.tables.iter().copied().collect::<Vec<_>>())
        .bind(counters().map(|((partition, ..), _)| *partition).collect::<Vec<_>>())
        .bind(counters().map(|((_, table, _), _)| *table).collect::<Vec<_>>())
        .bind(counters().map(|((.., first), _)| *first).collect::<Vec<_>>())
        .bind(counters().map(|(_, gives)| *gives).collect::<Vec<_>>())
        .bind(rows().map(|row| row.partition).collect::<Vec<_>>())
        .bind(rows().map(|row| row.table).collect::<Vec<_>>())
        .bind(rows().map(|row| row.before).collect::<Vec<_>>())
        .bind(rows().map(|row| row.counter).collect::<Vec<_>>())
        .bind(rows().map(|row| row.plus).collect::<Vec<_>>())
        .bind(rows().map(|row| row.after).collect::<Vec<_>>())
        .bind(rows().map(|row| row.expected).collect::<Vec<_>>())
        .bind(rows().map(|row| row.row).collect::<Vec<_>>())
        .bind(revision.cast_signed())
        .bind(deadline.0);
    let answer = async {
        let called = call.fetch_one(&mut *connection).await;
        Ok(called.inspect_err(|error| db.standby.heard(error)).map_err(obstacle))
    };
    let called = db.limited(answer).await;
    (called.unwrap_or_else(|silence| Err(Obstacle::Other(Setback::Unknown(silence)))), deadline)
}

fn obstacle(error: sqlx::Error) -> Obstacle {
    let database = error.as_database_error().and_then(|error| error.try_downcast_ref::<PgDatabaseError>());
    let concerned = database.map(|error| {
        let places = error.detail().unwrap_or_default().split(',').filter_map(|place| place.parse().ok());
        (error.code(), places.collect::<Vec<i64>>())
    });
    match concerned {
        Some(("TM004", rows)) => Obstacle::Changed(rows),
        Some(("TM005", counters)) => Obstacle::Ended(counters),
        Some(("TM006", tables)) => Obstacle::Gone(tables),
        _ => Obstacle::Other(setback(error)),
    }
}

/// Waits until a call whose answer was lost begins no more, and has ended, as far as that can be seen: while it runs, it holds a lock of
/// its revision.
async fn until_over(db: &PgDb, revision: u64, deadline: Deadline) {
    for _ in 0..MOST_LOOKS {
        let looked = async {
            sqlx::query("SELECT pg_advisory_xact_lock($1)")
                .bind(-revision.cast_signed())
                .execute(&mut *db.for_queues().await?)
                .await?;
            Ok(())
        };
        let looked = async {
            deadline.passed(db).await?;
            db.limited(looked).await
        };
        match looked.await {
            // Now it can be seen, if it was stored.
            Ok(()) => return db.standby.doubt(),
            Err(error) => warn!(%error, "it is not known yet whether a commit has ended"),
        }
    }
}
