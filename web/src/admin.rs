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

/// Renders the audit log.
pub fn admin_audit(view: &AdminAudit<'_>) -> String {
    render(view, Language::ENGLISH)
}
