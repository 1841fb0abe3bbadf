//! The audit log: what operators, and administrators of groups, have done to others. It is only added to; lines go after a year, and
//! beyond 100,000 of them. People stand there by their uids, so nothing of a deleted account is left in it.

use std::sync::Arc;

use crate::domain::{Clock, GroupId, Timestamp, Uid};
use crate::store::{AuditLine, Directory, StoreError};

/// For how long a line is kept, in milliseconds.
const KEPT_MS: i64 = 365 * 24 * 60 * 60 * 1_000;

/// Lines that are kept.
const MOST: u64 = 100_000;

/// Something that was done. The words are stored and must stay stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audited {
    /// An account was made by the operator.
    AccountAdded,
    /// An account was locked.
    AccountLocked,
    /// An account was unlocked.
    AccountUnlocked,
    /// An account was deleted by the operator.
    AccountDeleted,
    /// An account got another name from the operator.
    AccountRenamed,
    /// An account got another password from the operator.
    PasswordReset,
    /// A session was ended by an operator.
    SessionEnded,
    /// All sessions of an account were ended by an operator.
    SessionsEnded,
    /// An account was made an operator's.
    OperatorMade,
    /// An account is no operator's any longer.
    OperatorEnded,
    /// A member was removed from a group.
    MemberRemoved,
    /// A person was banned from a group.
    MemberBanned,
    /// A ban was lifted.
    BanLifted,
    /// A member was muted in a group.
    MemberMuted,
    /// A mute was lifted.
    MuteLifted,
    /// A member got another role.
    RoleChanged,
    /// An operator is done with a report.
    ReportClosed,
    /// An administrator of a group is done with a report.
    ReportDismissed,
}

impl Audited {
    /// The word.
    pub fn as_str(self) -> &'static str {
        match self {
            Audited::AccountAdded => "account_added",
            Audited::AccountLocked => "account_locked",
            Audited::AccountUnlocked => "account_unlocked",
            Audited::AccountDeleted => "account_deleted",
            Audited::AccountRenamed => "account_renamed",
            Audited::PasswordReset => "password_reset",
            Audited::SessionEnded => "session_ended",
            Audited::SessionsEnded => "sessions_ended",
            Audited::OperatorMade => "operator_made",
            Audited::OperatorEnded => "operator_ended",
            Audited::MemberRemoved => "member_removed",
            Audited::MemberBanned => "member_banned",
            Audited::BanLifted => "ban_lifted",
            Audited::MemberMuted => "member_muted",
            Audited::MuteLifted => "mute_lifted",
            Audited::RoleChanged => "role_changed",
            Audited::ReportClosed => "report_closed",
            Audited::ReportDismissed => "report_dismissed",
        }
    }
}

/// A line with the names of its people, as they are called now.
#[derive(Clone, Debug)]
pub struct NamedAuditLine {
    /// The line.
    pub line: AuditLine,
    /// The name of the person that did it; `None`: a command of the operator.
    pub by: Option<String>,
    /// The name of the person to whom it was done.
    pub person: Option<String>,
}

/// The log. Cheap to clone.
#[derive(Clone)]
pub struct Audit {
    directory: Arc<Directory>,
    clock: Clock,
}

impl Audit {
    /// The log in `directory`.
    pub fn new(directory: Arc<Directory>, clock: Clock) -> Audit {
        Audit { directory, clock }
    }

    /// Adds what was done by `by` (`None`: a command of the operator) to `person`. What cannot be stored stands in the server's log.
    pub async fn note(&self, by: Option<Uid>, what: Audited, person: Uid, detail: &str) {
        self.add(by, what, person, None, detail).await;
    }

    /// The same in a group.
    pub async fn note_in_group(&self, by: Uid, what: Audited, person: Uid, gid: GroupId, detail: &str) {
        self.add(Some(by), what, person, Some(gid), detail).await;
    }

    async fn add(&self, by: Option<Uid>, what: Audited, person: Uid, group: Option<GroupId>, detail: &str) {
        let action = what.as_str();
        let line = AuditLine {
            number: 0,
            at: self.clock.now(),
            by,
            action: action.to_owned(),
            person: Some(person),
            group,
            detail: detail.to_owned(),
        };
        // It is done by now, so the caller is not refused.
        if let Err(error) = self.directory.add_audit_line(&line).await {
            tracing::warn!(%error, ?by, action, %person, ?group, detail, "a line of the audit log cannot be stored");
        }
    }

    /// The newest lines with numbers below `before`, the newest first, at most `limit`.
    pub async fn lines(&self, before: Option<u64>, limit: usize) -> Result<Vec<NamedAuditLine>, StoreError> {
        let lines = self.directory.audit_lines(before, limit).await?;
        let people: Vec<Uid> = lines.iter().flat_map(|line| [line.by, line.person]).flatten().collect();
        let mut names = self.directory.names(&people).await?.into_iter();
        let mut name =
            |uid: Option<Uid>| uid.map(|uid| names.next().flatten().unwrap_or_else(|| format!("user {uid}")));
        let named = lines.into_iter().map(|line| {
            let (by, person) = (name(line.by), name(line.person));
            NamedAuditLine { line, by, person }
        });
        Ok(named.collect())
    }

    /// Forgets old lines, at most `limit`. Says how many.
    pub async fn forget_old(&self, limit: usize) -> Result<u64, StoreError> {
        let since = Timestamp(self.clock.now().0.saturating_sub(KEPT_MS));
        self.directory.forget_audit_lines(since, MOST, limit).await
    }
}
