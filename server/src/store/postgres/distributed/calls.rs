//! The functions of the distributed layout. Their files (migrations/postgres/distributed) explain the arguments and
//! answers. Each call is one statement and one transaction, in one partition.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;
use sqlx::postgres::PgArguments;
use sqlx::query::QueryScalar;
use tracing::debug;

use super::super::PgDb;
use super::super::setback::{MOST_CONFLICTS, Setback, setback};
use crate::domain::{Content, Conversation, GroupChange, GroupId, Member, MembershipEpoch, MessageId, Uid};
use crate::store::postgres::effect::Effect;
use crate::store::{Accept, AcceptanceId, Earlier, Recipient, StoreError, group_settings};

/// Why a call did not do what it was to do.
#[derive(Clone, Debug)]
pub(super) enum PgCallFailure {
    /// The database refuses something in it for good; nothing is stored.
    Unstorable(String),
    /// Nothing is stored.
    Refused(StoreError),
    /// It may be stored.
    Unknown(StoreError),
}

impl From<PgCallFailure> for StoreError {
    fn from(failure: PgCallFailure) -> StoreError {
        match failure {
            PgCallFailure::Unstorable(why) => StoreError::corrupt(why),
            PgCallFailure::Refused(error) | PgCallFailure::Unknown(error) => error,
        }
    }
}

/// A row of one inbox.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct NewEntry {
    kind: u8,
    conversation: String,
    sender: u32,
    client_id: Option<String>,
    body: String,
    sent_at: i64,
    is_shown: bool,
    read_to: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    effect: Option<Effect>,
}

impl NewEntry {
    fn new(content: &Content, receiver: Uid) -> NewEntry {
        NewEntry {
            kind: content.kind.code(),
            conversation: content.conversation(receiver).to_string(),
            sender: content.sender.0,
            client_id: content.client_id.map(|client_id| client_id.0.simple().to_string()),
            body: content.body.as_json().to_owned(),
            sent_at: content.sent_at.0,
            is_shown: content.is_shown(),
            read_to: content.read_to().unwrap_or_default().get(),
            effect: Effect::of(content, receiver),
        }
    }
}

/// Something that a user sends.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct NewAcceptance {
    entry: NewEntry,
    digest: String,
    id: u64,
    gid: u64,
    epoch: u32,
    is_change: bool,
    ends_uid: Option<u32>,
    ends_epoch: Option<u32>,
    owed: Vec<NewOwed>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct NewOwed {
    recipient: u32,
    epoch: u32,
}

impl NewAcceptance {
    /// `accept`, with these copies owed.
    pub(super) fn new(accept: &Accept, owed: &[Recipient]) -> NewAcceptance {
        let (content, own, change) = (&*accept.content, accept.rows[0], accept.change.as_ref());
        let ends = change.and_then(|change| change.ends);
        let (ends_uid, ends_epoch) = ends.map(|(uid, epoch)| (uid.0, epoch.0)).unzip();
        NewAcceptance {
            entry: NewEntry::new(content, content.sender),
            digest: hex(&accept.digest.0),
            id: own.message_id.get(),
            gid: group_of(content),
            epoch: own.epoch.0,
            is_change: change.is_some(),
            ends_uid,
            ends_epoch,
            owed: owed.iter().map(|to| NewOwed { recipient: to.uid.0, epoch: to.epoch.0 }).collect(),
        }
    }
}

/// A copy for one receiver.
#[derive(Clone, Debug, Serialize)]
pub(super) struct NewCopy {
    pub(super) acceptance: u64,
    previous: u64,
    entry: NewEntry,
    id: u64,
    gid: u64,
    epoch: u32,
    ends: u32,
    is_void: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    earlier: Vec<EarlierEntry>,
}

/// A row that the receiver gets before the copy.
#[derive(Clone, Debug, Serialize)]
struct EarlierEntry {
    id: u64,
    entry: NewEntry,
}

/// Which copy of an acceptance, for whom.
#[derive(Clone, Copy, Debug)]
pub(super) struct CopyOf {
    pub(super) acceptance: AcceptanceId,
    /// The sender's acceptance that must be there before it.
    pub(super) previous: AcceptanceId,
    pub(super) to: Recipient,
    /// The membership epoch that ends with one of the copies.
    pub(super) ends: Option<(Uid, MembershipEpoch)>,
}

impl NewCopy {
    /// A copy of `content`, under `id` or the next one.
    pub(super) fn new(content: &Content, of: CopyOf, id: MessageId) -> NewCopy {
        let CopyOf { acceptance, previous, to, ends } = of;
        let ends = ends.filter(|(uid, _)| *uid == to.uid).map_or(0, |(_, epoch)| epoch.0);
        NewCopy {
            acceptance: acceptance.0,
            previous: previous.0,
            entry: NewEntry::new(content, to.uid),
            id: id.get(),
            gid: group_of(content),
            epoch: to.epoch.0,
            ends,
            is_void: false,
            earlier: Vec::new(),
        }
    }

    /// The same with what the receiver gets before it.
    pub(super) fn after(self, earlier: &[Earlier], receiver: Uid) -> NewCopy {
        let row = |Earlier { content, message_id }: &Earlier| EarlierEntry {
            id: message_id.get(),
            entry: NewEntry::new(content, receiver),
        };
        NewCopy { earlier: earlier.iter().map(row).collect(), ..self }
    }

    /// The user that said it.
    pub(super) fn sender(&self) -> u32 {
        self.entry.sender
    }

    /// The same without a row.
    pub(super) fn without_a_row(&self) -> NewCopy {
        NewCopy { is_void: true, earlier: Vec::new(), ..self.clone() }
    }
}

/// The answer for one acceptance or copy.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct CallAnswer {
    pub(super) verdict: String,
    id: Option<u64>,
    /// Of each copy owed, in order.
    #[serde(default)]
    pub(super) previous: Vec<u64>,
}

impl CallAnswer {
    /// The id that it has; of one that is late, the latest of its inbox.
    pub(super) fn id(&self) -> MessageId {
        self.id.and_then(MessageId::new).unwrap_or_default()
    }
}

/// The outcome of a change of a group.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "verdict", rename_all = "lowercase")]
pub(super) enum ChangeAnswer {
    Made,
    Stale,
    Owed(Box<Unaccepted>),
}

/// A change of a group that is made, and not accepted yet.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Unaccepted {
    pub(super) version: u64,
    pub(super) actor: u32,
    pub(super) accept: NewAcceptance,
}

fn group_of(content: &Content) -> u64 {
    match content.target {
        Conversation::Group(gid) => gid.0,
        Conversation::User(_) => 0,
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Accepts what `sender` sends; one answer for each.
pub(super) async fn accept(
    db: &PgDb,
    sender: Uid,
    writes: &[NewAcceptance],
) -> Result<Vec<CallAnswer>, PgCallFailure> {
    const CALL: &str = "SELECT accept_messages($1, $2, $3::jsonb)";
    called(db, || of_user(CALL, sender, writes), |json| one_each(json, writes.len())).await
}

/// Delivers copies to `receiver`; one answer for each.
pub(super) async fn deliver(
    db: &PgDb,
    receiver: Uid,
    copies: &[NewCopy],
) -> Result<Vec<CallAnswer>, PgCallFailure> {
    const CALL: &str = "SELECT deliver_copies($1, $2, $3::jsonb)";
    called(db, || of_user(CALL, receiver, copies), |json| one_each(json, copies.len())).await
}

/// The `sender` owes these copies no more.
pub(super) async fn settle(
    db: &PgDb,
    sender: Uid,
    copies: &[(AcceptanceId, Uid)],
) -> Result<(), PgCallFailure> {
    const CALL: &str = "SELECT settle_copies($1, $2, $3::jsonb)";
    #[derive(Serialize)]
    struct Settled {
        acceptance: u64,
        recipient: u32,
    }
    let settled: Vec<Settled> = copies
        .iter()
        .map(|(acceptance, uid)| Settled { acceptance: acceptance.0, recipient: uid.0 })
        .collect();
    called(db, || of_user(CALL, sender, &settled), |_| Ok(())).await
}

/// Somebody whose membership changes.
#[derive(Clone, Debug, Serialize)]
struct ChangedMember {
    uid: u32,
    epoch: u32,
    active: bool,
    standing: u8,
    since: i64,
}

/// The change of a group.
pub(super) struct NewChange<'a> {
    change: &'a GroupChange,
    by: Uid,
    members: Vec<ChangedMember>,
    accept: NewAcceptance,
}

impl NewChange<'_> {
    /// `change` by `by`, with what is to be accepted then.
    pub(super) fn new(change: &GroupChange, by: Uid, accept: NewAcceptance) -> NewChange<'_> {
        let member = |member: &Member| {
            let (standing, since) = member.standing.code();
            let (uid, epoch, active) = (member.uid.0, member.epoch.0, member.is_active());
            ChangedMember { uid, epoch, active, standing, since }
        };
        NewChange { change, by, members: change.members.iter().map(member).collect(), accept }
    }
}

/// Changes a group.
pub(super) async fn change(db: &PgDb, wanted: &NewChange<'_>) -> Result<ChangeAnswer, PgCallFailure> {
    const CALL: &str = "SELECT change_group($1, $2, $3, $4::jsonb, $5::jsonb, $6::jsonb)";
    let NewChange { change, by, members, accept } = wanted;
    let query = || {
        sqlx::query_scalar(CALL)
            .bind(change.gid.0.cast_signed())
            .bind(change.from_version.cast_signed())
            .bind(i64::from(by.0))
            .bind(json(&group_settings::changed(change.setting.as_ref())))
            .bind(json(members))
            .bind(json(accept))
    };
    called(db, query, read).await
}

/// The change that leads to this version is accepted.
pub(super) async fn settle_change(db: &PgDb, gid: GroupId, version: u64) -> Result<(), PgCallFailure> {
    const CALL: &str = "SELECT settle_change($1, $2)";
    let query = || sqlx::query_scalar(CALL).bind(gid.0.cast_signed()).bind(version.cast_signed());
    called(db, query, |_| Ok(())).await
}

/// Changes that are not accepted yet, at most `limit`.
pub(super) async fn unaccepted(
    connection: &mut PgConnection,
    limit: i64,
) -> Result<Vec<(GroupId, Unaccepted)>, StoreError> {
    let rows: Vec<(i64, i64, i64, String)> =
        sqlx::query_as("SELECT gid, version, actor, accept::text FROM changes ORDER BY gid LIMIT $1")
            .bind(limit)
            .fetch_all(connection)
            .await?;
    let change = |(gid, version, actor, accept): (i64, i64, i64, String)| {
        let accept = serde_json::from_str(&accept).map_err(StoreError::corrupt)?;
        let actor = u32::try_from(actor).map_err(StoreError::corrupt)?;
        let version = version.cast_unsigned();
        Ok((GroupId(gid.cast_unsigned()), Unaccepted { version, actor, accept }))
    };
    rows.into_iter().map(change).collect()
}

type Query = QueryScalar<'static, sqlx::Postgres, Option<String>, PgArguments>;

fn of_user(call: &'static str, uid: Uid, things: &[impl Serialize]) -> Query {
    sqlx::query_scalar(call).bind(uid.partition_key().to_string()).bind(i64::from(uid.0)).bind(json(things))
}

fn json(things: &(impl Serialize + ?Sized)) -> String {
    serde_json::to_string(things).expect("plain numbers and texts")
}

fn read<T: DeserializeOwned>(json: &str) -> Result<T, StoreError> {
    serde_json::from_str(json).map_err(|error| StoreError::corrupt(format!("the answer {json}: {error}")))
}

fn one_each(json: &str, asked: usize) -> Result<Vec<CallAnswer>, StoreError> {
    let answers: Vec<CallAnswer> = read(json)?;
    match answers.len() == asked {
        true => Ok(answers),
        false => Err(StoreError::corrupt(format!("the answer to {asked} writes is {json}"))),
    }
}

/// Calls a function, again where another transaction was in the way.
async fn called<T>(
    db: &PgDb,
    query: impl Fn() -> Query,
    read: impl Fn(&str) -> Result<T, StoreError>,
) -> Result<T, PgCallFailure> {
    let mut conflicts = 0;
    loop {
        let mut connection = db.for_queues().await.map_err(PgCallFailure::Refused)?;
        let call = async {
            let called = query().fetch_one(&mut *connection).await;
            Ok(called.inspect_err(|error| db.standby.heard(error)).map_err(setback))
        };
        match db.limited(call).await.unwrap_or_else(|silence| Err(Setback::Unknown(silence))) {
            Ok(answer) => return read(&answer.unwrap_or_default()).map_err(PgCallFailure::Unknown),
            Err(Setback::Conflict(error) | Setback::Late(error)) => {
                conflicts += 1;
                if conflicts >= MOST_CONFLICTS {
                    return Err(PgCallFailure::Refused(error));
                }
                debug!(%error, "a call is tried again");
            }
            Err(Setback::Unstorable(why)) => return Err(PgCallFailure::Unstorable(why)),
            Err(Setback::Refused(error)) => return Err(PgCallFailure::Refused(error)),
            Err(Setback::Unknown(error)) => return Err(PgCallFailure::Unknown(error)),
            Err(other @ (Setback::KeyUsed | Setback::Overtaken | Setback::Storable)) => {
                return Err(PgCallFailure::Unknown(StoreError::corrupt(format!("{other:?}"))));
            }
        }
    }
}
