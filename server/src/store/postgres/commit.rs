//! A commit: planned, called, and planned again for as long as the database holds something else than the plan expects.
//!
//! One call is one statement and one transaction. A call that stored nothing says why; what it says goes into
//! [`Learnt`] for the next plan. The number of calls is bounded.

use std::sync::Arc;

use tracing::{debug, warn};

use super::PgDb;
use super::arguments::CommitAnswer;
use super::deadline::Deadline;
use super::heads::Heads;
use super::learnt::Learnt;
use super::lookup;
use super::more::Unexpected;
use super::plan::{CommitPlan, late};
use super::recent::Recent;
use super::setback::{MOST_CONFLICTS, Setback, setback};
use crate::domain::{Content, GroupId, MembershipEpoch, MessageId, Uid};
use crate::store::{Behind, CommitError, CopyOutcome, Outcome, StoreError, Write};

/// Calls of one commit that may store nothing.
const MOST_CALLS: usize = 32;

/// Looks for a commit that may still be running, each as long as a lock is waited for.
const MOST_LOOKS: usize = 3;

/// One commit.
pub(super) struct Commit<'a> {
    pub(super) db: &'a PgDb,
    pub(super) learnt: Learnt,
    /// Keeps what is stored.
    pub(super) recent: &'a Recent,
}

impl Commit<'_> {
    /// Makes the writes durable.
    pub(super) async fn run(mut self, writes: Vec<Write>) -> Result<Vec<Outcome>, CommitError> {
        let mut conflicts = 0;
        self.look_up_owed(&writes).await?;
        for _ in 0..MOST_CALLS {
            let plan = CommitPlan::of(&writes, &self.learnt).map_err(CommitError::Stale)?;
            if plan.arguments.is_empty() {
                return plan.outcomes(None).map_err(CommitError::Refused);
            }
            let (called, deadline) = self.call(&plan).await;
            match called {
                Ok(answer) => match answer.verdict.as_str() {
                    "stored" => return self.stored(&writes, plan, &answer).map_err(CommitError::Unknown),
                    "heads" => make_heads(self.db, &plan.heads).await.map_err(CommitError::Refused)?,
                    "ids" => {
                        let latest = latest_ids(&plan.heads, &answer).map_err(CommitError::Refused)?;
                        self.learnt.latest_ids.extend(latest);
                        let latest = self.behind(&writes);
                        if !latest.is_empty() {
                            return Err(CommitError::Behind(Box::new(Behind { writes, latest })));
                        }
                    }
                    "facts" => self.learn(&answer)?,
                    other => {
                        let why = format!("commit_messages answers {other:?}; run the newest version");
                        return Err(CommitError::Unknown(StoreError::corrupt(why)));
                    }
                },
                Err(Setback::KeyUsed) => self.look_up_used(&writes).await?,
                Err(Setback::Overtaken) => self.look_up_owed(&writes).await?,
                Err(Setback::Conflict(error)) => {
                    conflicts += 1;
                    if conflicts >= MOST_CONFLICTS {
                        return Err(CommitError::Refused(error));
                    }
                    debug!(%error, "a commit is tried again");
                }
                Err(Setback::Late(error)) => {
                    conflicts += 1;
                    if conflicts >= MOST_CONFLICTS {
                        return Err(CommitError::Refused(error));
                    }
                    debug!(%error, "a commit is tried again, by another reading of the database's clock");
                    _ = self.db.measure_time().await;
                }
                Err(Setback::Unstorable(why)) => {
                    let at = self.first_unstorable(&writes).await?;
                    self.learnt.refused.insert(at, why);
                }
                Err(Setback::Refused(error)) => return Err(CommitError::Refused(error)),
                Err(Setback::Unknown(error)) => {
                    until_over(self.db, &plan.heads, deadline).await;
                    return Err(CommitError::Unknown(error));
                }
                Err(Setback::Storable) => {
                    return Err(CommitError::Refused(StoreError::corrupt("a commit was only checked")));
                }
            }
        }
        let why = "other servers kept changing the facts behind a commit";
        Err(CommitError::Refused(StoreError::unavailable(why)))
    }

    /// The outcomes of a call that stored its writes. Keeps the new rows in memory.
    fn stored(
        &self,
        writes: &[Write],
        plan: CommitPlan<'_>,
        answer: &CommitAnswer,
    ) -> Result<Vec<Outcome>, StoreError> {
        let before = latest_ids(&plan.heads, answer)?;
        let outcomes = plan.outcomes(Some(answer))?;
        let copies = writes.iter().zip(&outcomes).flat_map(|(write, outcome)| {
            let stored = || outcome.copies().iter().filter(|(_, copy)| *copy == CopyOutcome::Stored);
            let earlier = write.earlier().filter(move |_| stored().next().is_some());
            let copies =
                stored().filter_map(|(row, _)| Some((row.receiver, row.message_id, self.content(write)?)));
            earlier.chain(copies)
        });
        self.recent.keep(before, copies);
        Ok(outcomes)
    }

    /// The content of a write, as it is stored.
    fn content(&self, write: &Write) -> Option<Arc<Content>> {
        match write {
            Write::Accept(accept) => Some(Arc::clone(&accept.content)),
            Write::Deliver(deliver) => Some(Arc::clone(&self.learnt.open.get(&deliver.acceptance)?.content)),
        }
    }

    /// The result of one call, and until when it may begin.
    async fn call(&self, plan: &CommitPlan<'_>) -> (Result<CommitAnswer, Setback>, Deadline) {
        let connection = self.db.for_queues().await;
        let deadline = self.db.deadline();
        let mut connection = match connection {
            Ok(connection) => connection,
            Err(error) => return (Err(Setback::Refused(error)), deadline),
        };
        let call = async {
            let called = plan.arguments.call(&plan.heads, deadline, &mut connection).await;
            Ok(called.inspect_err(|error| self.db.standby.heard(error)).map_err(setback))
        };
        let called = self.db.limited(call).await.unwrap_or_else(|silence| Err(Setback::Unknown(silence)));
        (called, deadline)
    }

    /// Learns what the deliveries of the call are owed.
    async fn look_up_owed(&mut self, writes: &[Write]) -> Result<(), CommitError> {
        let deliveries = || {
            writes.iter().filter_map(|write| match write {
                Write::Deliver(deliver) => Some((deliver.content.sender, deliver.acceptance)),
                Write::Accept(_) => None,
            })
        };
        if deliveries().next().is_none() {
            return Ok(());
        }
        let looks = async {
            let mut connection = self.db.for_queues().await?;
            let open = lookup::open(&mut connection, deliveries()).await?;
            Ok((open, lookup::last_acceptance(&mut connection).await?))
        };
        let (open, last) = self.db.limited(looks).await.map_err(CommitError::Refused)?;
        (self.learnt.open, self.learnt.last_acceptance) = (open, last);
        Ok(())
    }

    /// Learns which keys have a record. Writes that bring a proof that theirs has none are to be decided again.
    async fn look_up_used(&mut self, writes: &[Write]) -> Result<(), CommitError> {
        let accepts = || {
            writes.iter().enumerate().filter_map(|(at, write)| match write {
                Write::Accept(accept) => Some((at, accept, accept.content.key()?)),
                Write::Deliver(_) => None,
            })
        };
        let keys: Vec<_> = accepts().map(|(_, _, key)| key).collect();
        let looks = async { lookup::records(&mut *self.db.for_queues().await?, &keys, self.db.layout).await };
        let used = self.db.limited(looks).await.map_err(CommitError::Refused)?;
        let mut stale = Vec::new();
        for (at, accept, key) in accepts().filter(|(_, _, key)| used.contains_key(key)) {
            match accept.unused {
                Some(_) => stale.push(at),
                None => _ = self.learnt.used.insert(key),
            }
        }
        if stale.is_empty() { Ok(()) } else { Err(CommitError::Stale(stale)) }
    }

    /// Learns what is there that was not expected.
    fn learn(&mut self, answer: &CommitAnswer) -> Result<(), CommitError> {
        let facts = answer.facts.as_deref().unwrap_or("{}");
        let unexpected: Unexpected = serde_json::from_str(facts)
            .map_err(|error| CommitError::Refused(StoreError::corrupt(format!("facts {facts}: {error}"))))?;
        if !unexpected.markers.is_empty() {
            return Err(CommitError::Stale(unexpected.markers));
        }
        for (gid, version) in unexpected.versions {
            self.learnt.versions.insert(GroupId(gid), version);
        }
        for (gid, uid, epoch) in unexpected.epochs {
            self.learnt.learn_closed(GroupId(gid), Uid(uid), MembershipEpoch(epoch));
        }
        Ok(())
    }

    /// The latest ids of inboxes that these writes would not come after.
    fn behind(&self, writes: &[Write]) -> Vec<(Uid, MessageId)> {
        let latest = |uid: Uid| self.learnt.latest_ids.get(&uid).copied().unwrap_or_default();
        let mut behind: Vec<(Uid, MessageId)> =
            late(writes, &self.learnt).map(|row| (row.receiver, latest(row.receiver))).collect();
        behind.sort_unstable();
        behind.dedup();
        behind
    }

    /// The place of the first write that the database refuses for good. Writes may rest on those before them, so the first so many are
    /// tried, in halves.
    async fn first_unstorable(&self, writes: &[Write]) -> Result<usize, CommitError> {
        let (mut storable, mut refused) = (0, writes.len());
        while refused - storable > 1 {
            let half = storable + (refused - storable) / 2;
            match self.could_be_stored(&writes[..half]).await? {
                true => storable = half,
                false => refused = half,
            }
        }
        Ok(refused - 1)
    }

    async fn could_be_stored(&self, writes: &[Write]) -> Result<bool, CommitError> {
        let mut plan = CommitPlan::of(writes, &self.learnt).map_err(CommitError::Stale)?;
        if plan.arguments.is_empty() {
            return Ok(true);
        }
        plan.arguments.more.check_only();
        match self.call(&plan).await.0 {
            Err(Setback::Unstorable(_)) => Ok(false),
            Err(
                Setback::Refused(error)
                | Setback::Unknown(error)
                | Setback::Conflict(error)
                | Setback::Late(error),
            ) => Err(CommitError::Refused(error)),
            // The next call with all writes finds anything else that has changed meanwhile.
            Ok(_) | Err(Setback::Storable | Setback::KeyUsed | Setback::Overtaken) => Ok(true),
        }
    }
}

fn latest_ids(heads: &Heads, answer: &CommitAnswer) -> Result<Vec<(Uid, MessageId)>, StoreError> {
    let last = answer.last.iter().flatten();
    heads.receivers().zip(last).map(|(uid, last)| Ok((uid, lookup::message_id(*last)?))).collect()
}

/// Makes the heads that are missing, in a transaction of its own: one that held new heads and waited for others could wait in a circle.
async fn make_heads(db: &PgDb, heads: &Heads) -> Result<(), StoreError> {
    let columns = heads.columns();
    let make = sqlx::query(
        "INSERT INTO heads (partition_key, receiver, last_id)
         SELECT new.partition_key, new.receiver, 0 FROM unnest($1, $2) AS new(partition_key, receiver)
         ORDER BY new.partition_key COLLATE \"C\", new.receiver ON CONFLICT DO NOTHING",
    );
    let make = make.bind(columns.keys).bind(columns.receivers);
    db.limited(async { Ok(make.execute(&mut *db.for_queues().await?).await.map(drop)?) }).await
}

/// Waits until a commit whose answer was lost begins no more, and has ended, as far as that can be seen: while it runs, it holds its
/// heads.
async fn until_over(db: &PgDb, heads: &Heads, deadline: Deadline) {
    let columns = heads.columns();
    for _ in 0..MOST_LOOKS {
        let looked = async {
            sqlx::query(
                "SELECT FROM unnest($1, $2) AS held(partition_key, receiver) JOIN heads USING (partition_key, receiver)
                 ORDER BY heads.partition_key, heads.receiver FOR UPDATE OF heads",
            )
            .bind(&columns.keys)
            .bind(&columns.receivers)
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
