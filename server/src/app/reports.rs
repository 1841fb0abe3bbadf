//! Reports of messages and people. One of a group's message goes to the group's administrators and to the operators,
//! any other one to the operators alone.
//!
//! [`Reports`] is for people, [`ReportList`] for operators: it needs no queues, so a command beside a server has it, too.

use std::collections::HashMap;
use std::sync::Arc;

use super::{Audit, Audited, Groups};
use crate::domain::message::Person;
use crate::domain::{
    ClientId, Clock, Complaint, Conversation, GroupId, Kind, LONGEST_REPORT, MessageId, NewReport,
    REPORTS_A_DAY, Reason, Report, ReportedMessage, Role, Timestamp, Uid,
};
use crate::queue::SendError;
use crate::store::{Directory, MessageStore, ReportOutcome, ShownName, StoreError};

/// For how long a report is kept.
const KEPT_MS: i64 = 365 * DAY_MS;

const DAY_MS: i64 = 86_400_000;

/// Why a report was not made or not dismissed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ReportError {
    /// The reporter's own words break a rule.
    #[error("a report has at most {LONGEST_REPORT} characters of text, without NUL; shorten it")]
    Words,
    /// Somebody reports themselves.
    #[error("nobody reports themselves or their own messages; delete the message instead")]
    Oneself,
    /// The account has made as many as it may in a day.
    #[error("you can make at most {REPORTS_A_DAY} reports a day; try again tomorrow")]
    TooMany,
    /// The group has no such report.
    #[error("this group has no such report; list its reports again")]
    Unknown,
    /// The message or the group is not there for the caller, or the person is not.
    #[error(transparent)]
    Send(#[from] SendError),
    /// Storage failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What the reporter says.
#[derive(Clone, Debug)]
pub struct Statement {
    /// By which a repetition is known.
    pub client_id: ClientId,
    /// What is wrong.
    pub reason: Reason,
    /// In the reporter's own words; may be empty.
    pub words: String,
}

/// A report as operators see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedReport {
    /// What is kept.
    pub report: Report,
    /// The name of the person that it is about.
    pub about: Person,
    /// Its maker; `None`: the account is deleted.
    pub reporter: Option<Person>,
}

/// A report as the administrators of a group see it. They do not learn who made it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupReport {
    /// Its number.
    pub number: u64,
    /// What it says.
    pub complaint: Complaint,
    /// The sender of the message.
    pub about: Person,
    /// The caller's own copy of the message, unless it is gone.
    pub copy: Option<MessageId>,
}

/// Making reports, and what administrators of groups do about them.
#[derive(Clone)]
pub struct Reports {
    directory: Arc<Directory>,
    store: Arc<dyn MessageStore>,
    groups: Groups,
    audit: Audit,
    clock: Clock,
}

impl Reports {
    /// Use cases over the reports of `directory`, about the messages of `store`.
    pub fn new(
        directory: Arc<Directory>,
        store: Arc<dyn MessageStore>,
        groups: Groups,
        clock: Clock,
    ) -> Reports {
        let audit = Audit::new(Arc::clone(&directory), clock.clone());
        Reports { directory, store, groups, audit, clock }
    }

    /// Reports somebody else's message: the row of that conversation in the inbox of `by`. Its text is kept with the report.
    pub async fn message(
        &self,
        by: Uid,
        conversation: Conversation,
        row: MessageId,
        statement: Statement,
    ) -> Result<(), ReportError> {
        let entry = self.store.entry(by, row).await?;
        let entry = entry.filter(|entry| entry.conversation() == conversation);
        let content = entry.ok_or(SendError::NotInConversation)?.content;
        let (text, key) = match content.kind {
            Kind::Recalled => Err(SendError::Recalled)?,
            Kind::Message => (content.body.said(), content.key()),
            _ => Err(SendError::NoMessage)?,
        };
        let (Some(text), Some(key)) = (text, key) else { return Err(SendError::NoMessage.into()) };
        let gid = match conversation {
            Conversation::Group(gid) => Some(gid),
            Conversation::User(_) => None,
        };
        let message = ReportedMessage { key, gid, text, sent_at: content.sent_at };
        self.keep(by, content.sender, Some(message), statement).await
    }

    /// Reports a person.
    pub async fn person(&self, by: Uid, about: Uid, statement: Statement) -> Result<(), ReportError> {
        match self.directory.shown_names(&[about]).await?.pop().flatten() {
            None => Err(SendError::UnknownUser(about.0))?,
            Some(name) if name.is_deleted() => Err(SendError::AccountDeleted(about.0))?,
            Some(_) => self.keep(by, about, None, statement).await,
        }
    }

    async fn keep(
        &self,
        by: Uid,
        about: Uid,
        message: Option<ReportedMessage>,
        statement: Statement,
    ) -> Result<(), ReportError> {
        let Statement { client_id, reason, words } = statement;
        let words = words.trim().to_owned();
        if about == by {
            return Err(ReportError::Oneself);
        }
        if words.chars().count() > LONGEST_REPORT || words.contains('\0') {
            return Err(ReportError::Words);
        }
        let made_at = self.clock.now();
        let today = Timestamp(made_at.0 - made_at.0.rem_euclid(DAY_MS));
        let complaint = Complaint { made_at, reason, words, about, message };
        let new = NewReport { reporter: by, client_id, complaint };
        match self.directory.put_report(&new, today, REPORTS_A_DAY).await? {
            ReportOutcome::Kept => Ok(()),
            ReportOutcome::KeyReused => Err(SendError::ClientIdReused)?,
            ReportOutcome::TooMany => Err(ReportError::TooMany),
        }
    }

    /// The reports of messages of a group that nobody has dismissed, oldest first, for its owner and administrators: those with numbers
    /// above `after`, at most `limit`.
    pub async fn of_group(
        &self,
        by: Uid,
        gid: GroupId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<GroupReport>, ReportError> {
        self.administrator(by, gid).await?;
        let reports = self.directory.reports_of_group(gid, after, limit).await?;
        let people = reports.iter().map(|report| report.complaint.about).collect();
        let names = Names::of(&self.directory, people).await?;
        let mut shown = Vec::with_capacity(reports.len());
        for Report { number, complaint, .. } in reports {
            let copy = match &complaint.message {
                Some(message) => self.copy(by, message).await?,
                None => None,
            };
            shown.push(GroupReport { number, about: names.person(complaint.about), complaint, copy });
        }
        Ok(shown)
    }

    /// The row of a message in the inbox of `by`, if its text is still there.
    async fn copy(&self, by: Uid, message: &ReportedMessage) -> Result<Option<MessageId>, StoreError> {
        let copy = self.store.copies(message.key, &[by]).await?.pop().flatten();
        let Some(copy) = copy else { return Ok(None) };
        let row = self.store.entry(by, copy).await?;
        Ok(row.filter(|row| row.content.kind == Kind::Message).map(|_| copy))
    }

    /// Takes a report off the list of a group. The operators keep it on theirs.
    pub async fn dismiss(&self, by: Uid, gid: GroupId, number: u64) -> Result<(), ReportError> {
        self.administrator(by, gid).await?;
        let report = self.directory.report(number).await?.filter(|report| report.gid() == Some(gid));
        let about = report.ok_or(ReportError::Unknown)?.complaint.about;
        if self.directory.dismiss_report(gid, number, self.clock.now()).await? {
            let detail = format!("report {number}");
            self.audit.note_in_group(by, Audited::ReportDismissed, about, gid, &detail).await;
        }
        Ok(())
    }

    async fn administrator(&self, by: Uid, gid: GroupId) -> Result<(), SendError> {
        match self.groups.role(by, gid).await? {
            Role::Member => Err(SendError::AdministratorsOnly),
            Role::Administrator | Role::Owner => Ok(()),
        }
    }

    /// The reports that `by` has made, oldest first: those with numbers above `after`, at most `limit`.
    pub async fn own(&self, by: Uid, after: u64, limit: usize) -> Result<Vec<Report>, StoreError> {
        self.directory.reports_by(by, after, limit).await
    }

    /// Forgets up to `limit` that are a year old, and tells how many.
    pub async fn forget_old(&self, limit: usize) -> Result<u64, StoreError> {
        self.directory.forget_reports(Timestamp(self.clock.now().0 - KEPT_MS), limit).await
    }
}

/// All reports, for operators.
#[derive(Clone)]
pub struct ReportList {
    directory: Arc<Directory>,
    audit: Audit,
    clock: Clock,
}

impl ReportList {
    /// Use cases over the reports of `directory`.
    pub fn new(directory: Arc<Directory>, clock: Clock) -> ReportList {
        let audit = Audit::new(Arc::clone(&directory), clock.clone());
        ReportList { directory, audit, clock }
    }

    /// The open reports, or with `closed_too` all, oldest first: those with numbers above `after`, at most `limit`.
    pub async fn page(
        &self,
        closed_too: bool,
        after: u64,
        limit: usize,
    ) -> Result<Vec<NamedReport>, StoreError> {
        self.named(self.directory.all_reports(closed_too, after, limit).await?).await
    }

    /// The newest reports about a person, open or closed, at most `limit`.
    pub async fn about(&self, person: Uid, limit: usize) -> Result<Vec<NamedReport>, StoreError> {
        self.named(self.directory.reports_about(person, limit).await?).await
    }

    async fn named(&self, reports: Vec<Report>) -> Result<Vec<NamedReport>, StoreError> {
        let mut people: Vec<Uid> = reports.iter().map(|report| report.complaint.about).collect();
        people.extend(reports.iter().filter_map(|report| report.reporter));
        let names = Names::of(&self.directory, people).await?;
        let named = |report: Report| NamedReport {
            about: names.person(report.complaint.about),
            reporter: report.reporter.map(|uid| names.person(uid)),
            report,
        };
        Ok(reports.into_iter().map(named).collect())
    }

    /// Closes a report, for good, and notes that `by` did it (`None`: a command). `false`: there is none of this number.
    pub async fn close(&self, by: Option<Uid>, number: u64) -> Result<bool, StoreError> {
        let Some(report) = self.directory.report(number).await? else { return Ok(false) };
        if self.directory.close_report(number, self.clock.now()).await? {
            let (about, detail) = (report.complaint.about, format!("report {number}"));
            self.audit.note(by, Audited::ReportClosed, about, &detail).await;
        }
        Ok(true)
    }
}

/// Names of people, as others see them.
struct Names(HashMap<Uid, String>);

impl Names {
    async fn of(directory: &Directory, mut uids: Vec<Uid>) -> Result<Names, StoreError> {
        uids.sort_unstable();
        uids.dedup();
        let names = directory.shown_names(&uids).await?;
        let named = uids.into_iter().zip(names);
        Ok(Names(named.filter_map(|(uid, name)| Some((uid, name.map(ShownName::into_text)?))).collect()))
    }

    fn person(&self, uid: Uid) -> Person {
        Person { uid, name: self.0.get(&uid).cloned().unwrap_or_else(|| uid.to_string()) }
    }
}
