//! The pages of operators: plain data in, HTML out. Names are words of strangers, and are always text here.

use askama::Template;

use crate::filters;
use crate::languages::Language;
use crate::views::render;

/// People, by a part of their names; and how accounts are made here.
#[derive(Template)]
#[template(path = "admin/people.html")]
pub struct AdminPeople<'a> {
    /// The name of the operator.
    pub operator: &'a str,
    /// The text that was looked for; empty: nothing was.
    pub query: &'a str,
    /// The people with it in their names.
    pub found: &'a [AdminAccount],
    /// The people that may make an account, in a sentence.
    pub sign_up: &'a str,
    /// How much one account may do: what, how much, and the setting that says so.
    pub limits: &'a [(&'static str, String, &'static str)],
}

/// An account in a list.
#[derive(Clone, Debug, Default)]
pub struct AdminAccount {
    /// Its uid.
    pub uid: u32,
    /// Its name.
    pub name: String,
    /// In a word: open, locked, deleted, operator.
    pub state: &'static str,
    /// When it was made.
    pub created_at: String,
}

/// One person.
#[derive(Template)]
#[template(path = "admin/person.html")]
pub struct AdminPerson<'a> {
    /// The name of the operator.
    pub operator: &'a str,
    /// The account.
    pub account: &'a AdminAccount,
    /// Its sessions.
    pub sessions: &'a [AdminSession],
    /// The reports about it, newest first.
    pub reports: &'a [AdminReport],
}

/// A session in a list.
#[derive(Clone, Debug, Default)]
pub struct AdminSession {
    /// Its id.
    pub id: String,
    /// The name of the device.
    pub device: String,
    /// When it began.
    pub created_at: String,
    /// When it ends by itself.
    pub expires_at: String,
}

/// The reports that no operator has closed.
#[derive(Template)]
#[template(path = "admin/reports.html")]
pub struct AdminReports<'a> {
    /// The name of the operator.
    pub operator: &'a str,
    /// The reports, oldest first.
    pub reports: &'a [AdminReport],
    /// The number after which the next page goes on.
    pub newer: Option<u64>,
}

/// A report in a list.
#[derive(Clone, Debug, Default)]
pub struct AdminReport {
    /// Its number.
    pub number: u64,
    /// When it was made.
    pub made_at: String,
    /// The reason, in a word.
    pub reason: &'static str,
    /// The reporter's own words.
    pub words: String,
    /// The reported person: uid and name.
    pub about: (u32, String),
    /// The person that made it; `None`: the account is deleted.
    pub reporter: Option<(u32, String)>,
    /// The message that it is about, if it is about one.
    pub message: Option<AdminReported>,
    /// Whether an operator has closed it.
    pub is_closed: bool,
}

/// A reported message.
#[derive(Clone, Debug, Default)]
pub struct AdminReported {
    /// The group in which it was said; `None`: it was for the reporter alone.
    pub group: Option<u64>,
    /// Its text.
    pub text: String,
    /// When it was sent.
    pub sent_at: String,
}

/// What was done.
#[derive(Template)]
#[template(path = "admin/audit.html")]
pub struct AdminAudit<'a> {
    /// The name of the operator.
    pub operator: &'a str,
    /// The lines, newest first.
    pub lines: &'a [AdminAuditLine],
    /// The number before which the next page goes on.
    pub older: Option<u64>,
}

/// A line of the audit log.
#[derive(Clone, Debug, Default)]
pub struct AdminAuditLine {
    /// When.
    pub at: String,
    /// The person that did it: uid and name; `None`: a command on the machine.
    pub by: Option<(u32, String)>,
    /// What, in a word.
    pub action: String,
    /// To whom.
    pub person: Option<(u32, String)>,
    /// In which group.
    pub group: Option<u64>,
    /// What else there is to say.
    pub detail: String,
}

/// Renders people.
pub fn admin_people(view: &AdminPeople<'_>) -> String {
    render(view, Language::ENGLISH)
}

/// Renders a person.
pub fn admin_person(view: &AdminPerson<'_>) -> String {
    render(view, Language::ENGLISH)
}

/// Renders reports.
pub fn admin_reports(view: &AdminReports<'_>) -> String {
    render(view, Language::ENGLISH)
}

/// Renders the audit log.
pub fn admin_audit(view: &AdminAudit<'_>) -> String {
    render(view, Language::ENGLISH)
}
