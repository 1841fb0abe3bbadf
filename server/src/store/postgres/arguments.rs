//! The arguments of `commit_messages` (migrations/postgres/functions), which explains them, and its answer.

use std::collections::BTreeMap;

use sqlx::postgres::PgRow;
use sqlx::{FromRow, PgConnection, Row as _};

use super::deadline::Deadline;
use super::effect::Effect;
use super::heads::{Heads, Position};
use super::more::More;
use crate::domain::{Content, Conversation, MessageId, Uid};
use crate::store::Accept;

const CALL: &str = "SELECT verdict, last, acceptances, facts::text FROM commit_messages($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, \
     $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28::jsonb, $29)";

/// The answer of the function.
#[derive(Debug)]
pub(super) struct CommitAnswer {
    pub(super) verdict: String,
    /// The latest id of each head before the call.
    pub(super) last: Option<Vec<i64>>,
    /// The numbers of the new acceptances with copies owed, in order.
    pub(super) acceptances: Option<Vec<i64>>,
    /// Facts of the database that were not expected, as JSON.
    pub(super) facts: Option<String>,
}

impl FromRow<'_, PgRow> for CommitAnswer {
    fn from_row(row: &PgRow) -> Result<CommitAnswer, sqlx::Error> {
        Ok(CommitAnswer {
            verdict: row.try_get("verdict")?,
            last: row.try_get("last")?,
            acceptances: row.try_get("acceptances")?,
            facts: row.try_get("facts")?,
        })
    }
}

/// The data to store.
#[derive(Debug, Default)]
pub(super) struct CommitArguments<'a> {
    contents: Vec<&'a Content>,
    copies: Vec<Copied>,
    records: Vec<SentRecord>,
    /// The newest row of each conversation and how far it was read, by its owner's head.
    conversations: BTreeMap<(i32, Conversation), (Position, MessageId)>,
    pub(super) more: More,
}

#[derive(Debug)]
struct Copied {
    content: i32,
    head: i32,
    id: Position,
    effect: Option<String>,
}

#[derive(Debug)]
struct SentRecord {
    content: i32,
    head: i32,
    id: Position,
    digest: [u8; 16],
}

impl<'a> CommitArguments<'a> {
    /// Whether there is nothing to store.
    pub(super) fn is_empty(&self) -> bool {
        self.contents.is_empty() && !self.more.serves()
    }

    /// Something is said; its place, for its copies.
    pub(super) fn say(&mut self, content: &'a Content) -> i32 {
        self.contents.push(content);
        self.contents.len() as i32
    }

    /// A copy of what stands at the place `at`.
    pub(super) fn copy(&mut self, at: i32, content: &Content, (receiver, head): (Uid, i32), id: Position) {
        self.copies.push(Copied { content: at, head, id, effect: Effect::json(content, receiver) });
        let read_to = content.read_to();
        if !content.is_shown() && read_to.is_none() {
            return;
        }
        let conversation = self.conversations.entry((head, content.conversation(receiver))).or_default();
        match read_to {
            Some(read_to) => conversation.1 = conversation.1.max(read_to),
            None => conversation.0 = id,
        }
    }

    /// The idempotency record of an acceptance whose content stands at the place `at`.
    pub(super) fn record(&mut self, at: i32, accept: &Accept, head: i32, id: Position) {
        if accept.content.client_id.is_some() {
            self.records.push(SentRecord { content: at, head, id, digest: accept.digest.0 });
        }
    }

    /// Calls the function.
    pub(super) async fn call(
        &self,
        heads: &Heads,
        deadline: Deadline,
        connection: &mut PgConnection,
    ) -> Result<CommitAnswer, sqlx::Error> {
        let heads = heads.columns();
        let contents = || self.contents.iter();
        // Rows of one inbox lie together, in the order of the key.
        let mut copies: Vec<&Copied> = self.copies.iter().collect();
        copies.sort_by_key(|copy| copy.head);
        let (copies, records) = (|| copies.iter(), || self.records.iter());
        let conversations = || self.conversations.iter();
        let plus = |id: Position| id.plus.cast_signed();
        sqlx::query_as(CALL)
            .bind(heads.keys)
            .bind(heads.receivers)
            .bind(heads.bases)
            .bind(heads.plus)
            .bind(heads.most)
            .bind(contents().map(|content| i16::from(content.kind.code())).collect::<Vec<_>>())
            .bind(contents().map(|content| i64::from(content.sender.0)).collect::<Vec<_>>())
            .bind(contents().map(|content| client(content)).collect::<Vec<_>>())
            .bind(contents().map(|content| content.body.as_json()).collect::<Vec<_>>())
            .bind(contents().map(|content| content.sent_at.0).collect::<Vec<_>>())
            .bind(contents().map(|content| content.target.to_string()).collect::<Vec<_>>())
            .bind(contents().map(|content| as_others_see(content).to_string()).collect::<Vec<_>>())
            .bind(copies().map(|copy| copy.content).collect::<Vec<_>>())
            .bind(copies().map(|copy| copy.head).collect::<Vec<_>>())
            .bind(copies().map(|copy| copy.id.base).collect::<Vec<_>>())
            .bind(copies().map(|copy| plus(copy.id)).collect::<Vec<_>>())
            .bind(copies().map(|copy| copy.effect.as_deref()).collect::<Vec<_>>())
            .bind(records().map(|record| record.content).collect::<Vec<_>>())
            .bind(records().map(|record| record.head).collect::<Vec<_>>())
            .bind(records().map(|record| record.id.base).collect::<Vec<_>>())
            .bind(records().map(|record| plus(record.id)).collect::<Vec<_>>())
            .bind(records().map(|record| record.digest.as_slice()).collect::<Vec<_>>())
            .bind(conversations().map(|((head, _), _)| *head).collect::<Vec<_>>())
            .bind(conversations().map(|((_, name), _)| name.to_string()).collect::<Vec<_>>())
            .bind(conversations().map(|(_, (last, _))| last.base).collect::<Vec<_>>())
            .bind(conversations().map(|(_, (last, _))| plus(*last)).collect::<Vec<_>>())
            .bind(conversations().map(|(_, (_, read_to))| read_to.get().cast_signed()).collect::<Vec<_>>())
            .bind(self.more.to_json())
            .bind(deadline.0)
            .fetch_one(connection)
            .await
    }
}

fn client(content: &Content) -> Option<&[u8]> {
    content.client_id.as_ref().map(|client_id| client_id.0.as_bytes().as_slice())
}

/// The conversation as those see it who did not send.
fn as_others_see(content: &Content) -> Conversation {
    match content.target {
        Conversation::MOMENTS => Conversation::MOMENTS,
        Conversation::User(_) => Conversation::User(content.sender),
        group => group,
    }
}
