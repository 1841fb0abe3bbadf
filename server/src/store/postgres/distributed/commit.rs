//! One commit: deliveries are planned, acceptances made, and all copies delivered and settled.
//!
//! The writes of each sender are accepted by themselves, and a change of a group before what comes after it. Where some
//! of a call is stored and some is not, for now, the outcome of the whole is unknown: the queue looks what is there.
//! Calls name no moment until which they may begin, as those of the plain layout do. After a lost answer their outcome is
//! unknown, too.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use futures_util::{StreamExt as _, stream};

use super::calls::{self, CallAnswer, CopyOf, NewAcceptance, PgCallFailure};
use super::owed::{self, OwedCopies};
use crate::domain::{Content, Conversation, GroupId, MessageId, Uid};
use crate::store::postgres::PgDb;
use crate::store::{
    Accept, AcceptanceId, Behind, CommitError, CopyOutcome, Outcome, PendingKey, Recipient, Row, StoreError,
    Write,
};

/// Calls of one commit that are under way at a time; each waits for a connection of the queues.
pub(super) const AT_ONCE: usize = 16;

/// A copy of the commit that is to be delivered.
pub(super) struct Planned {
    /// The place of its write, and of its row in it.
    pub(super) row: (usize, usize),
    pub(super) content: Arc<Content>,
    pub(super) copy: CopyOf,
    pub(super) id: MessageId,
}

/// The rows of a write and what became of them; `None`: it is not known to be there.
type CopiedRows = Vec<Option<(Row, CopyOutcome)>>;

/// See the module.
pub(super) struct Commit<'a> {
    pub(super) db: &'a PgDb,
    pub(super) writes: &'a [Write],
    /// The outcomes of writes of which nothing is stored for good.
    pub(super) outcomes: Vec<Option<Outcome>>,
    /// The number of each write that is stored, and its rows, as far as they are there.
    pub(super) stored: HashMap<usize, (AcceptanceId, CopiedRows)>,
    /// Copies to deliver, by receiver, in the order of the writes.
    pub(super) planned: BTreeMap<Uid, Vec<Planned>>,
    /// Copies that are owed no more, by sender.
    pub(super) settled: BTreeMap<Uid, Vec<(AcceptanceId, Uid)>>,
    /// Groups that the call has changed, and their versions since.
    pub(super) changed: HashMap<GroupId, u64>,
    /// Groups of which a change of the call was refused, and the version that it started from.
    pub(super) unchanged: HashMap<GroupId, u64>,
    /// Inboxes whose latest ids are not below those that a copy brings.
    pub(super) behind: Vec<(Uid, MessageId)>,
    /// Writes that were decided on something that has changed.
    stale: Vec<usize>,
    /// Why a write is not done now.
    refused: Option<StoreError>,
    /// Why it is not known whether a write was done.
    pub(super) unknown: Option<StoreError>,
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

pub(super) fn new_acceptance(accept: &Accept) -> NewAcceptance {
    let owed: Vec<Recipient> = copies_of(accept).into_iter().map(|(_, to)| to).collect();
    NewAcceptance::new(accept, &owed)
}

impl<'a> Commit<'a> {
    pub(super) fn new(db: &'a PgDb, writes: &'a [Write]) -> Commit<'a> {
        Commit {
            db,
            writes,
            outcomes: vec![None; writes.len()],
            stored: HashMap::new(),
            planned: BTreeMap::new(),
            settled: BTreeMap::new(),
            changed: HashMap::new(),
            unchanged: HashMap::new(),
            behind: Vec::new(),
            stale: Vec::new(),
            refused: None,
            unknown: None,
        }
    }

    /// Makes the writes durable.
    pub(super) async fn run(mut self) -> Result<Vec<Outcome>, CommitError> {
        let owed = self.look_up_owed().await.map_err(CommitError::Refused)?;
        self.accept_all(&owed).await;
        self.deliver_all().await;
        self.settle_all().await;
        self.outcomes()
    }

    /// The copies still owed by the acceptances of the deliveries, read without locks.
    async fn look_up_owed(&self) -> Result<HashMap<PendingKey, OwedCopies>, StoreError> {
        let deliveries = self.writes.iter().filter_map(|write| match write {
            Write::Deliver(deliver) => Some(owed::key(deliver)),
            Write::Accept(_) => None,
        });
        let keys: Vec<PendingKey> = deliveries.collect();
        if keys.is_empty() {
            return Ok(HashMap::new());
        }
        self.db.limited(async { owed::open(&mut *self.db.for_queues().await?, &keys).await }).await
    }

    /// Accepts in order: the writes between two changes of groups at a time, by sender.
    async fn accept_all(&mut self, owed: &HashMap<PendingKey, OwedCopies>) {
        let mut senders: BTreeMap<Uid, Vec<(usize, NewAcceptance)>> = BTreeMap::new();
        for (at, write) in self.writes.iter().enumerate() {
            match write {
                Write::Deliver(deliver) => self.plan_delivery(at, deliver, owed),
                Write::Accept(accept)
                    if accept.rows.first().is_none_or(|own| own.receiver != accept.content.sender) =>
                {
                    self.outcomes[at] = Some(Outcome::Rejected(Accept::FIRST_COPY.to_owned()));
                }
                Write::Accept(accept) => match &accept.change {
                    Some(change) => {
                        self.accept_now(std::mem::take(&mut senders)).await;
                        self.change(at, accept, change).await;
                    }
                    None if self.rests_on_a_refused_change(accept) => {
                        self.outcomes[at] = Some(Outcome::GroupChanged);
                    }
                    None => {
                        let sender = senders.entry(accept.content.sender).or_default();
                        sender.push((at, new_acceptance(accept)));
                    }
                },
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

    pub(super) fn failed(&mut self, at: usize, failure: PgCallFailure) {
        match failure {
            PgCallFailure::Unstorable(why) => self.outcomes[at] = Some(Outcome::Rejected(why)),
            PgCallFailure::Refused(error) => self.refused = Some(error),
            PgCallFailure::Unknown(error) => self.unknown = Some(error),
        }
    }

    /// Notes what became of an acceptance, and plans its copies.
    pub(super) fn accepted(&mut self, at: usize, answer: &CallAnswer) {
        let Write::Accept(accept) = &self.writes[at] else { return };
        let own = accept.rows[0];
        self.outcomes[at] = Some(match answer.verdict.as_str() {
            "stored" => return self.note_stored(at, accept, answer),
            "used" if accept.unused.is_some() => return self.stale.push(at),
            "behind" => return self.stale.push(at),
            "full" => {
                let why = format!("too many copies are owed for user {}", own.receiver);
                return self.refused = Some(StoreError::unavailable(why));
            }
            "closed" => Outcome::GroupChanged,
            "used" => Outcome::Rejected("this client_id has been accepted before".to_owned()),
            "late" => Outcome::Rejected(format!(
                "id {} is not larger than the latest of user {}",
                own.message_id, own.receiver
            )),
            "end" => Outcome::Rejected(format!(
                "the inbox of user {} has reached the end of its ids",
                own.receiver
            )),
            other => {
                return self.unknown =
                    Some(StoreError::corrupt(format!("accept_messages answers {other:?}")));
            }
        });
    }

    fn note_stored(&mut self, at: usize, accept: &Accept, answer: &CallAnswer) {
        let is_again =
            |nth: usize, row: &Row| accept.rows[..nth].iter().any(|one| one.receiver == row.receiver);
        let known = |(nth, row): (usize, &Row)| match nth {
            0 => Some((Row { message_id: answer.id(), ..*row }, CopyOutcome::Stored)),
            _ => is_again(nth, row).then_some((*row, CopyOutcome::Already)),
        };
        let acceptance = AcceptanceId(answer.id().get());
        self.stored.insert(at, (acceptance, accept.rows.iter().enumerate().map(known).collect()));
        for ((nth, to), previous) in copies_of(accept).into_iter().zip(&answer.previous) {
            let Some(nth) = nth else { continue };
            let ends = accept.change.as_ref().and_then(|change| change.ends);
            let copy = CopyOf { acceptance, previous: AcceptanceId(*previous), to, ends };
            self.plan((at, nth), &accept.content, copy, accept.rows[nth].message_id);
        }
    }

    fn outcomes(mut self) -> Result<Vec<Outcome>, CommitError> {
        if let ([Write::Deliver(_)], [_, ..]) = (self.writes, &self.behind[..]) {
            return Err(CommitError::Behind(Box::new(Behind {
                writes: self.writes.to_vec(),
                latest: self.behind,
            })));
        }
        let nothing_is_stored = self.stored.is_empty() && self.unknown.is_none();
        let changed =
            (!self.stale.is_empty()).then(|| StoreError::unavailable("others have changed its grounds"));
        match self.unknown.or(self.refused).or(changed) {
            None => {}
            Some(_) if nothing_is_stored && !self.stale.is_empty() => {
                return Err(CommitError::Stale(self.stale));
            }
            Some(error) if nothing_is_stored => return Err(CommitError::Refused(error)),
            Some(error) => return Err(CommitError::Unknown(error)),
        }
        let outcome = |(at, write): (usize, &Write)| {
            if let Some(outcome) = self.outcomes[at].take() {
                return outcome;
            }
            let (number, rows) = self.stored.remove(&at).unwrap_or_default();
            let rows = rows.into_iter().flatten().collect();
            match write {
                Write::Accept(accept) if accept.rest.is_empty() => Outcome::Accepted(AcceptanceId(0), rows),
                Write::Accept(_) => Outcome::Accepted(number, rows),
                Write::Deliver(_) => Outcome::Delivered(rows),
            }
        };
        Ok(self.writes.iter().enumerate().map(outcome).collect())
    }
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
