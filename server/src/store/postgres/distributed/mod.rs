//! A commit in the distributed layout: no transaction writes to two partitions.
//!
//! Each sender's writes are accepted in the sender's partition, with the copies for others owed. Then each receiver's
//! copies are delivered in the receiver's partition, and then they are owed no more. A copy that fails in between stays
//! owed; the queues deliver it later (`MessageStore::pending`). Groups have partitions of their own: `groups` changes
//! them. docs/CITUS.md has the rules.
//!
//! Calls for messages name no moment until which they may begin, as those of the plain layout do. After a lost answer
//! their outcome is unknown.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use futures_util::{StreamExt as _, stream};

use super::PgDb;
use crate::domain::{Content, Conversation, GroupId, MessageId, Uid};
use crate::store::{
    Accept, AcceptanceId, Behind, CommitError, CopyOutcome, Outcome, Recipient, Row, StoreError, Write,
};
use calls::{CallAnswer, CopyOf, Grounds, NewAcceptance, PgCallFailure};
use known::{OwedLookup, Tails, look_up_owed, tails};

mod calls;
mod deliver;
mod groups;
mod known;
mod owed;

pub(super) use groups::accept_changes;
pub(super) use owed::pending;

/// Calls of one commit that are under way at a time; each waits for a connection of the queues.
const AT_ONCE: usize = 16;

/// A copy of the call that is to be delivered.
struct Planned {
    /// The places of its write and of its row in it; `None`: an older copy.
    row: Option<(usize, usize)>,
    content: Arc<Content>,
    copy: CopyOf,
    id: MessageId,
}

/// The rows of a write and what became of them; `None`: it is not known to be there.
type CopiedRows = Vec<Option<(Row, CopyOutcome)>>;

/// One commit.
pub(super) struct Commit<'a> {
    db: &'a PgDb,
    writes: &'a [Write],
    /// The outcome of each write that has one already.
    outcomes: Vec<Option<Outcome>>,
    /// The number of each write that is stored, and its rows, as far as they are there.
    stored: HashMap<usize, (AcceptanceId, CopiedRows)>,
    /// Copies to deliver, by receiver, in the order of the writes.
    planned: BTreeMap<Uid, Vec<Planned>>,
    /// Copies that are owed no more, by sender.
    settled: BTreeMap<Uid, Vec<(AcceptanceId, Uid)>>,
    /// Groups that the call has changed, and their versions since.
    changed: HashMap<GroupId, u64>,
    /// Groups of which a change of the call was refused, and the version that it started from.
    unchanged: HashMap<GroupId, u64>,
    /// Why it is not known whether something was accepted.
    unknown: Option<StoreError>,
}

/// Makes the writes durable.
pub(super) async fn commit(db: &PgDb, writes: Vec<Write>) -> Result<Vec<Outcome>, CommitError> {
    let owed = look_up_owed(db, &writes).await.map_err(CommitError::Refused)?;
    let tails = match tails(db, &writes, &owed).await.map_err(CommitError::Refused)? {
        Ok(tails) => tails,
        Err(latest) => return Err(CommitError::Behind(Box::new(Behind { writes, latest }))),
    };
    let mut commit = Commit {
        db,
        writes: &writes,
        outcomes: vec![None; writes.len()],
        stored: HashMap::new(),
        planned: BTreeMap::new(),
        settled: BTreeMap::new(),
        changed: HashMap::new(),
        unchanged: HashMap::new(),
        unknown: None,
    };
    commit.refuse_old_ids(tails);
    commit.accept_all(&owed).await;
    commit.deliver_all().await;
    commit.settle_all().await;
    commit.outcomes()
}

fn is_well_formed(accept: &Accept) -> bool {
    accept.rows.first().is_some_and(|own| own.receiver == accept.content.sender)
}

/// The copies for others that an acceptance owes: its place among the rows, or none where somebody else delivers it.
fn copies_of(accept: &Accept) -> Vec<(Option<usize>, Recipient)> {
    let mut copies: Vec<(Option<usize>, Recipient)> =
        Vec::with_capacity(accept.rows.len() + accept.rest.len());
    let rows = accept.rows.iter().enumerate();
    let rows = rows.map(|(at, row)| (Some(at), Recipient { uid: row.receiver, epoch: row.epoch }));
    for (at, to) in rows.chain(accept.rest.iter().map(|to| (None, *to))) {
        let is_there = to.uid == accept.content.sender || copies.iter().any(|(_, other)| other.uid == to.uid);
        if !is_there {
            copies.push((at, to));
        }
    }
    copies
}

impl Commit<'_> {
    /// Refuses acceptances with copies for others whose ids come from the caller and are not larger than those before them in the call. (Own
    /// copies are judged under the lock.)
    fn refuse_old_ids(&mut self, mut tails: Tails) {
        for (at, write) in self.writes.iter().enumerate() {
            let Write::Accept(accept) = write else { continue };
            let others = || accept.rows.iter().filter(|row| row.receiver != accept.content.sender);
            let given = || others().filter(|row| !row.is_unnumbered());
            let is_old = |row: &Row| tails.get(&row.receiver).is_some_and(|tail| row.message_id <= *tail);
            if let Some(row) = given().find(|row| is_old(row)) {
                let why =
                    format!("id {} is not larger than the latest of user {}", row.message_id, row.receiver);
                self.outcomes[at] = Some(Outcome::Rejected(why));
                continue;
            }
            given().for_each(|row| _ = tails.insert(row.receiver, row.message_id));
        }
    }

    /// Accepts in order: the writes between two changes of groups at a time, by sender.
    async fn accept_all(&mut self, known: &OwedLookup) {
        let mut senders: BTreeMap<Uid, Vec<(usize, NewAcceptance)>> = BTreeMap::new();
        for (at, write) in self.writes.iter().enumerate() {
            if self.outcomes[at].is_some() {
                continue;
            }
            match write {
                Write::Deliver(deliver) => self.plan_delivery(at, deliver, known),
                Write::Accept(accept) if !is_well_formed(accept) => {
                    let why = "the sender's own copy must come first".to_owned();
                    self.outcomes[at] = Some(Outcome::Rejected(why));
                }
                Write::Accept(accept) if accept.change.is_some() => {
                    self.accept_now(std::mem::take(&mut senders)).await;
                    self.change(at, accept).await;
                }
                Write::Accept(accept) => {
                    let new = new_acceptance(accept).decided_again(is_decided_again(accept));
                    if self.rests_on_a_refused_change(accept) {
                        self.outcomes[at] = Some(Outcome::Stale);
                    } else {
                        senders.entry(accept.content.sender).or_default().push((at, new));
                    }
                }
            }
        }
        self.accept_now(senders).await;
    }

    /// Whether the acceptance was decided on a change of the call that has not come about.
    fn rests_on_a_refused_change(&self, accept: &Accept) -> bool {
        let Conversation::Group(gid) = accept.content.target else { return false };
        let (from, version) = (self.unchanged.get(&gid), accept.group_version);
        from.zip(version).is_some_and(|(from, version)| version > *from)
    }

    async fn accept_now(&mut self, senders: BTreeMap<Uid, Vec<(usize, NewAcceptance)>>) {
        let db = self.db;
        let accepting = senders.into_iter().map(async |(sender, writes)| {
            let (places, writes): (Vec<usize>, Vec<NewAcceptance>) = writes.into_iter().unzip();
            (places, accept_some(db, sender, &writes).await)
        });
        let accepted: Vec<_> = stream::iter(accepting).buffer_unordered(AT_ONCE).collect().await;
        for (places, answers) in accepted {
            for (at, answer) in places.into_iter().zip(answers) {
                match answer {
                    Ok(answer) => self.accepted(at, &answer),
                    Err(failure) => self.failed(at, failure),
                }
            }
        }
    }

    fn failed(&mut self, at: usize, failure: PgCallFailure) {
        self.outcomes[at] = Some(match failure {
            PgCallFailure::Unstorable(why) => Outcome::Rejected(why),
            PgCallFailure::Refused(error) => Outcome::Refused(error),
            PgCallFailure::Unknown(error) => {
                self.unknown = Some(error.clone());
                Outcome::Refused(error)
            }
        });
    }

    /// Notes what became of an acceptance, and plans its copies.
    fn accepted(&mut self, at: usize, answer: &CallAnswer) {
        let Write::Accept(accept) = &self.writes[at] else { return };
        let own = accept.rows[0];
        let refused = match answer.verdict.as_str() {
            "stored" => {
                self.note_stored(at, accept, answer.id());
                for ((nth, to), previous) in copies_of(accept).into_iter().zip(&answer.previous) {
                    let Some(nth) = nth else { continue };
                    let ends = accept.change.as_ref().and_then(|change| change.ends);
                    let (acceptance, previous) = (AcceptanceId(answer.id().get()), AcceptanceId(*previous));
                    let copy = CopyOf { acceptance, previous, to, ends };
                    self.plan(Some((at, nth)), &accept.content, copy, accept.rows[nth].message_id);
                }
                return;
            }
            "used" if accept.unused.is_some() => Outcome::Stale,
            "used" => Outcome::Rejected("this client_id has been accepted before".to_owned()),
            "closed" => changed_meanwhile(accept),
            "late" => Outcome::Rejected(format!(
                "id {} is not larger than the latest of user {}",
                own.message_id, own.receiver
            )),
            "end" => Outcome::Rejected(format!(
                "the inbox of user {} has reached the end of its ids",
                own.receiver
            )),
            "full" => Outcome::Refused(StoreError::unavailable(format!(
                "too many copies are owed for user {}: their receivers cannot be reached",
                own.receiver
            ))),
            "behind" | "after" => Outcome::Stale,
            other => Outcome::Refused(StoreError::corrupt(format!("accept_messages answers {other:?}"))),
        };
        self.outcomes[at] = Some(refused);
    }

    fn note_stored(&mut self, at: usize, accept: &Accept, id: MessageId) {
        let is_again =
            |nth: usize, row: &Row| accept.rows[..nth].iter().any(|one| one.receiver == row.receiver);
        let known = |(nth, row): (usize, &Row)| match nth {
            0 => Some((Row { message_id: id, ..*row }, CopyOutcome::Stored)),
            _ => is_again(nth, row).then_some((*row, CopyOutcome::Already)),
        };
        let rows = accept.rows.iter().enumerate().map(known).collect();
        self.stored.insert(at, (AcceptanceId(id.get()), rows));
    }

    fn outcomes(mut self) -> Result<Vec<Outcome>, CommitError> {
        if let Some(error) = self.unknown.take() {
            return Err(CommitError::Unknown(error));
        }
        let mut outcomes = Vec::with_capacity(self.writes.len());
        for (at, write) in self.writes.iter().enumerate() {
            let stored = self.stored.remove(&at);
            outcomes.push(match (self.outcomes[at].take(), write, stored) {
                (Some(outcome), ..) => outcome,
                (None, Write::Accept(accept), Some((_, rows))) if !has_ended(accept, &rows) => {
                    let why = "the change of the group is made, but is not in the inbox of its member yet";
                    Outcome::Refused(StoreError::unavailable(why))
                }
                (None, Write::Accept(accept), Some((number, rows))) => {
                    let number = if accept.rest.is_empty() { AcceptanceId(0) } else { number };
                    Outcome::Accepted(number, rows.into_iter().flatten().collect())
                }
                (None, Write::Deliver(_), Some((_, rows))) => {
                    Outcome::Delivered(rows.into_iter().flatten().collect())
                }
                (None, _, None) => Outcome::Refused(StoreError::unavailable("it was not tried")),
            });
        }
        Ok(outcomes)
    }
}

/// Whether the membership epoch that the acceptance ends has ended where its member is, if this call was to see to that: nobody who was put
/// out of a group sends to it after the answer.
fn has_ended(accept: &Accept, rows: &[Option<(Row, CopyOutcome)>]) -> bool {
    let Some((leaver, _)) = accept.change.as_ref().and_then(|change| change.ends) else { return true };
    let place = accept.rows.iter().position(|row| row.receiver == leaver);
    place.is_none_or(|place| rows[place].is_some())
}

/// Whether the queue decides it again, if something has changed.
fn is_decided_again(accept: &Accept) -> bool {
    accept.unused.is_some() || accept.group_version.is_some() || accept.content.client_id.is_none()
}

fn changed_meanwhile(accept: &Accept) -> Outcome {
    if accept.group_version.is_some() { Outcome::Stale } else { Outcome::GroupChanged }
}

fn new_acceptance(accept: &Accept) -> NewAcceptance {
    let owed: Vec<Recipient> = copies_of(accept).into_iter().map(|(_, to)| to).collect();
    let own = accept.rows[0];
    let change = accept.change.as_ref();
    let ends = change.and_then(|change| change.ends);
    let grounds = Grounds { epoch: own.epoch, is_change: change.is_some(), ends };
    NewAcceptance::new(&accept.content, accept.digest, own.message_id, grounds, &owed)
}

/// Accepts what one user sends; where the database refuses something in it for good, each by itself.
async fn accept_some(
    db: &PgDb,
    sender: Uid,
    writes: &[NewAcceptance],
) -> Vec<Result<CallAnswer, PgCallFailure>> {
    let whole = match calls::accept(db, sender, writes).await {
        Ok(answers) => return answers.into_iter().map(Ok).collect(),
        Err(failure) => failure,
    };
    if !matches!(whole, PgCallFailure::Unstorable(_)) || writes.len() == 1 {
        return writes.iter().map(|_| Err(whole.clone())).collect();
    }
    let mut answers: Vec<Result<CallAnswer, PgCallFailure>> = Vec::with_capacity(writes.len());
    for write in writes {
        // Nothing overtakes what is sent again.
        let failed = answers.iter().find_map(|answer| match answer {
            Err(failure @ (PgCallFailure::Refused(_) | PgCallFailure::Unknown(_))) => Some(failure.clone()),
            _ => None,
        });
        answers.push(match failed {
            Some(failure) => Err(failure),
            None => calls::accept(db, sender, std::slice::from_ref(write)).await.map(|mut one| one.remove(0)),
        });
    }
    answers
}
