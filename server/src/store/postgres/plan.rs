//! Judges the writes of a call in order, each on what those before it did: what to store, what to expect in the
//! database, and what comes of it. Pure; the rules are those of `memory/state`.
//!
//! Nothing is read before. The plan goes by what [`Learnt`] says and takes for granted what the writes were decided
//! on. The call compares it under the locks; where something else is there it stores nothing, and the next plan knows
//! it.

use std::collections::{HashMap, HashSet};

use super::arguments::{CommitAnswer, CommitArguments};
use super::heads::{Heads, Position};
use super::learnt::{Learnt, PgPending};
use crate::domain::{Content, Conversation, GroupId, IdempotencyKey, MembershipEpoch, MessageId, Uid};
use crate::store::{Accept, AcceptanceId, CopyOutcome, Deliver, Outcome, Row, StoreError, Write};

/// The data that a call stores, and the outcome of each write then.
#[derive(Debug)]
pub(super) struct CommitPlan<'a> {
    pub(super) heads: Heads,
    pub(super) arguments: CommitArguments<'a>,
    planned: Vec<Planned>,
}

/// The planned outcome of a write.
#[derive(Debug)]
enum Planned {
    /// Nothing is stored.
    Nothing(Outcome),
    /// The place of its number among those of the call, if copies are owed; its copies.
    Accepted(Option<usize>, Vec<(Row, CopyOutcome, Position)>),
    Delivered(Vec<(Row, CopyOutcome, Position)>),
}

/// Ids of the caller that must come after what the inboxes hold, in the order of the writes.
fn given<'a>(writes: &'a [Write], learnt: &'a Learnt) -> impl Iterator<Item = Row> + 'a {
    let earlier = writes.iter().filter_map(|write| match write {
        Write::Deliver(deliver) if learnt.open.contains_key(&deliver.acceptance) => Some(deliver),
        _ => None,
    });
    let earlier = earlier.flat_map(|deliver| deliver.earlier_rows().take(1));
    rows_in_order(writes, learnt).filter(|row| !row.is_unnumbered()).copied().chain(earlier)
}

/// Those of them that are not larger than the latest ids, as far as these are known.
pub(super) fn late<'a>(writes: &'a [Write], learnt: &'a Learnt) -> impl Iterator<Item = Row> + 'a {
    let latest = |uid: Uid| learnt.latest_ids.get(&uid).copied().unwrap_or_default();
    given(writes, learnt).filter(move |row| row.message_id <= latest(row.receiver))
}

/// Rows whose ids must come after what the inboxes hold, or nothing of the call is stored: those of acceptances, and of deliveries that
/// are still owed anything.
pub(super) fn rows_in_order<'a>(writes: &'a [Write], learnt: &'a Learnt) -> impl Iterator<Item = &'a Row> {
    let looks_at = |write: &&Write| match write {
        Write::Accept(accept) => accept.begins_well(),
        Write::Deliver(deliver) => learnt.open.contains_key(&deliver.acceptance),
    };
    writes.iter().filter(looks_at).flat_map(Write::rows)
}

impl<'a> CommitPlan<'a> {
    /// Judges `writes`.
    ///
    /// # Errors
    /// The places of those that were decided on something that has changed.
    pub(super) fn of(writes: &'a [Write], learnt: &'a Learnt) -> Result<CommitPlan<'a>, Vec<usize>> {
        // The idempotency record of a post lies beside its sender's head, though no row does.
        let senders = writes.iter().filter_map(|write| match write {
            Write::Accept(accept) if accept.begins_well() => Some(accept.content.sender),
            _ => None,
        });
        let mut heads = Heads::of(rows_in_order(writes, learnt).map(|row| row.receiver).chain(senders));
        for row in given(writes, learnt) {
            heads.expect_below(&row);
        }
        let mut judge = Judge {
            learnt,
            heads,
            arguments: CommitArguments::default(),
            used: HashSet::new(),
            groups: HashMap::new(),
            closed: HashMap::new(),
            markers: HashMap::new(),
            served: HashSet::new(),
            stale: Vec::new(),
        };
        let mut planned = Vec::with_capacity(writes.len());
        for (at, write) in writes.iter().enumerate() {
            let judged = match (learnt.refused.get(&at), write) {
                (Some(why), _) => Err(Outcome::Rejected(why.clone())),
                (None, Write::Accept(accept)) => judge.accept(at, accept),
                (None, Write::Deliver(deliver)) => judge.deliver(deliver),
            };
            planned.push(judged.unwrap_or_else(Planned::Nothing));
        }
        let Judge { heads, arguments, stale, .. } = judge;
        if stale.is_empty() { Ok(CommitPlan { heads, arguments, planned }) } else { Err(stale) }
    }

    /// The outcomes, where nothing was to be stored or this is the answer.
    pub(super) fn outcomes(self, answer: Option<&CommitAnswer>) -> Result<Vec<Outcome>, StoreError> {
        let last = answer.and_then(|answer| answer.last.as_deref()).unwrap_or_default();
        let numbers = answer.and_then(|answer| answer.acceptances.as_deref()).unwrap_or_default();
        let numbered = |(mut row, copy, id): (Row, CopyOutcome, Position)| {
            if copy == CopyOutcome::Stored {
                row.message_id = id.id(last)?;
            }
            Ok((row, copy))
        };
        let outcome = |planned| {
            Ok(match planned {
                Planned::Nothing(outcome) => outcome,
                Planned::Accepted(pending, copies) => {
                    let number = pending.map_or(Some(0), |at| numbers.get(at).map(|n| n.cast_unsigned()));
                    let number = number.ok_or_else(|| StoreError::corrupt("an acceptance got no number"))?;
                    let copies = copies.into_iter().map(numbered).collect::<Result<_, StoreError>>()?;
                    Outcome::Accepted(AcceptanceId(number), copies)
                }
                Planned::Delivered(copies) => {
                    Outcome::Delivered(copies.into_iter().map(numbered).collect::<Result<_, StoreError>>()?)
                }
            })
        };
        self.planned.into_iter().map(outcome).collect()
    }
}

/// A group, as far as the writes have come.
#[derive(Clone, Copy)]
struct JudgedGroup {
    version: u64,
    /// By a write of the call.
    is_changed: bool,
}

struct Judge<'a> {
    learnt: &'a Learnt,
    heads: Heads,
    arguments: CommitArguments<'a>,
    used: HashSet<IdempotencyKey>,
    groups: HashMap<GroupId, JudgedGroup>,
    closed: HashMap<(GroupId, Uid), MembershipEpoch>,
    markers: HashMap<(Uid, Conversation), MessageId>,
    served: HashSet<(AcceptanceId, Uid)>,
    stale: Vec<usize>,
}

impl<'a> Judge<'a> {
    fn accept(&mut self, at: usize, accept: &'a Accept) -> Result<Planned, Outcome> {
        let content = &*accept.content;
        if !accept.begins_well() {
            return Err(Outcome::Rejected(Accept::FIRST_COPY.to_owned()));
        }
        let key = content.key();
        if key.is_some_and(|key| self.used.contains(&key) || self.learnt.used.contains(&key)) {
            return Err(Outcome::Rejected("this client_id has been accepted before".to_owned()));
        }
        self.compare_version(at, accept)?;
        self.compare_marker(at, content);
        let judge = |(nth, row): (usize, &Row)| {
            let twice = accept.rows[..nth].iter().any(|earlier| earlier.receiver == row.receiver);
            if twice { CopyOutcome::Already } else { self.judge(content, row) }
        };
        let copied: Vec<CopyOutcome> = accept.rows.iter().enumerate().map(judge).collect();
        if copied[0] == CopyOutcome::Void {
            return Err(Outcome::GroupChanged);
        }
        let ids = self.number(&accept.rows, &copied)?;

        self.used.extend(key);
        let ends = accept.change.as_ref().and_then(|change| change.ends);
        if let Some(change) = &accept.change {
            let changed = JudgedGroup { version: change.from_version + 1, is_changed: true };
            self.groups.insert(change.gid, changed);
            self.arguments.more.change(change);
        }
        // Members of a version that stands are in by epochs that go on.
        let is_sure = accept.group_version.is_some();
        let place = self.arguments.say(content);
        let copies = self.store(place, content, (&accept.rows, copied, ids), ends, is_sure);
        let own = self.heads.place(content.sender);
        self.arguments.record(place, accept, own, copies[0].2);
        let pending =
            (!accept.rest.is_empty()).then(|| self.arguments.more.owe(place, own, &accept.rest, ends));
        Ok(Planned::Accepted(pending, copies))
    }

    fn deliver(&mut self, deliver: &'a Deliver) -> Result<Planned, Outcome> {
        let &Deliver { acceptance, ref rows, ref earlier, .. } = deliver;
        if !deliver.is_in_order() {
            return Err(Outcome::Rejected(Deliver::EARLIER.to_owned()));
        }
        let learnt = self.learnt;
        let Some(PgPending { content, ends, owed }) = learnt.open.get(&acceptance) else {
            if acceptance.0 == 0 || acceptance > learnt.last_acceptance {
                return Err(Outcome::Rejected("there is no such acceptance".to_owned()));
            }
            let already = rows.iter().map(|row| (*row, CopyOutcome::Already));
            return Err(Outcome::Delivered(already.collect()));
        };
        let is_owed = |uid| owed.iter().any(|to| to.uid == uid) && !self.served.contains(&(acceptance, uid));
        let judge = |(nth, row): (usize, &Row)| {
            let twice = rows[..nth].iter().any(|earlier| earlier.receiver == row.receiver);
            if twice || !is_owed(row.receiver) { CopyOutcome::Already } else { self.judge(content, row) }
        };
        let copied: Vec<CopyOutcome> = rows.iter().enumerate().map(judge).collect();
        if copied.iter().all(|copied| *copied == CopyOutcome::Already) {
            return Err(Outcome::Delivered(rows.iter().copied().zip(copied).collect()));
        }
        let is_stored = copied[..] == [CopyOutcome::Stored];
        let earlier_rows: Vec<Row> = deliver.earlier_rows().filter(|_| is_stored).collect();
        let mut taken = Vec::with_capacity(earlier_rows.len());
        for row in &earlier_rows {
            let id = self.heads.next(row, learnt.latest_ids.get(&row.receiver).copied())?;
            self.heads.take(row.receiver, id);
            taken.push(id);
        }
        let ids = self.number(rows, &copied)?;
        for ((earlier, row), id) in earlier.iter().zip(&earlier_rows).zip(taken) {
            let place = self.arguments.say(&earlier.content);
            let head = self.heads.place(row.receiver);
            self.arguments.copy(place, &earlier.content, (row.receiver, head), id.0);
        }

        for (row, _) in rows.iter().zip(&copied).filter(|(_, copied)| **copied != CopyOutcome::Already) {
            self.served.insert((acceptance, row.receiver));
            self.arguments.more.serve(content.sender, acceptance, row.receiver);
        }
        let place = self.arguments.say(content);
        Ok(Planned::Delivered(self.store(place, content, (rows, copied, ids), *ends, false)))
    }

    /// Compares the version of the group on which an acceptance rests, with what is known of it or, in the call, with what is there.
    fn compare_version(&mut self, at: usize, accept: &Accept) -> Result<(), Outcome> {
        let (gid, expected) = match (&accept.change, accept.group_version, accept.content.target) {
            (Some(change), _, _) => (change.gid, change.from_version),
            (None, Some(version), Conversation::Group(gid)) => (gid, version),
            _ => return Ok(()),
        };
        if accept.change.as_ref().is_some_and(|change| !change.is_whole()) {
            return Err(Outcome::GroupChanged);
        }
        let known = self.learnt.versions.get(&gid).copied();
        let more = &mut self.arguments.more;
        let now = *self.groups.entry(gid).or_insert_with(|| {
            let version = known.unwrap_or(expected);
            more.expect_version(gid, version);
            JudgedGroup { version, is_changed: false }
        });
        if expected == now.version {
            return Ok(());
        }
        if now.is_changed || accept.group_version.is_none() {
            return Err(Outcome::GroupChanged);
        }
        match known {
            Some(_) => self.stale.push(at),
            // Two writes disagree; the call tells what is there.
            None => self.arguments.more.expect_version(gid, expected),
        }
        Ok(())
    }

    /// A read marker must move forward.
    fn compare_marker(&mut self, at: usize, content: &Content) {
        let Some(read_to) = content.read_to() else { return };
        let before = self.markers.insert((content.sender, content.target), read_to);
        match before {
            Some(before) if read_to <= before => self.stale.push(at),
            Some(_) => {}
            None => {
                let head = self.heads.place(content.sender);
                self.arguments.more.expect_forward(at, head, content.target, read_to);
            }
        }
    }

    /// Whether the membership epoch that the row was meant for still goes on (I13).
    fn judge(&self, content: &Content, row: &Row) -> CopyOutcome {
        let Conversation::Group(gid) = content.target else { return CopyOutcome::Stored };
        let member = (gid, row.receiver);
        let ended = self.closed.get(&member).max(self.learnt.closed.get(&member));
        match ended {
            Some(last) if row.epoch.0 != 0 && *last >= row.epoch => CopyOutcome::Void,
            _ => CopyOutcome::Stored,
        }
    }

    /// The ids of the rows that are stored; nothing is taken if one of them cannot have one.
    fn number(&self, rows: &[Row], copied: &[CopyOutcome]) -> Result<Vec<(Position, u64)>, Outcome> {
        let number = |(row, copied): (&Row, &CopyOutcome)| match copied {
            CopyOutcome::Stored => self.heads.next(row, self.learnt.latest_ids.get(&row.receiver).copied()),
            CopyOutcome::Already | CopyOutcome::Void => Ok((Position::default(), MessageId::MAX.get())),
        };
        rows.iter().zip(copied).map(number).collect()
    }

    /// Stores rows under their ids. `is_sure`: that the epochs go on is known otherwise.
    fn store(
        &mut self,
        place: i32,
        content: &Content,
        (rows, copied, ids): (&[Row], Vec<CopyOutcome>, Vec<(Position, u64)>),
        ends: Option<(Uid, MembershipEpoch)>,
        is_sure: bool,
    ) -> Vec<(Row, CopyOutcome, Position)> {
        let mut copies = Vec::with_capacity(rows.len());
        for ((row, copied), id) in rows.iter().zip(copied).zip(ids) {
            copies.push((*row, copied, id.0));
            if copied != CopyOutcome::Stored {
                continue;
            }
            let uid = row.receiver;
            self.heads.take(uid, id);
            self.arguments.copy(place, content, (uid, self.heads.place(uid)), id.0);
            let Conversation::Group(gid) = content.target else { continue };
            if row.epoch.0 != 0 && !is_sure {
                self.arguments.more.expect_epoch(gid, uid, row.epoch);
            }
            if let Some((_, epoch)) = ends.filter(|(leaver, _)| *leaver == uid) {
                let last = self.closed.entry((gid, uid)).or_default();
                *last = epoch.max(*last);
                self.arguments.more.end(gid, uid, epoch);
            }
        }
        copies
    }
}
