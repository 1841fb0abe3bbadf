//! The views: plain data in, one whole HTML page out.
//!
//! Stateless. The server's page handlers call them and add the headers.

use askama::Template;

use crate::filters;
use crate::languages::Language;

/// The chat itself, for someone who is logged in. One page for `/` and for `/c/{conversation}`: which
/// conversation is open is read from the address by the page's scripts.
#[derive(Template)]
#[template(path = "shell.html")]
pub struct Shell<'a> {
    /// Whose page it is.
    pub uid: u64,
    /// The name that goes with `uid`.
    pub name: &'a str,
    /// Longest text of a message, in characters; the composer counts down to it.
    pub text_limit: usize,
    /// Whether people make accounts by invitation, and so this one can invite.
    pub invites: bool,
    /// The language that the person chose, rather than the browser.
    pub chosen: Option<Language>,
}

/// The card with which one logs in or creates an account.
#[derive(Template)]
#[template(path = "sign_in.html")]
pub struct SignIn<'a> {
    /// Which of the two it does.
    pub way: Way,
    /// Path to go to afterwards: `/`, or the conversation that was asked for. Only a path of this server is
    /// followed; anything else leads to `/`.
    pub next: &'a str,
    /// Who may create an account.
    pub sign_up: SignUp,
    /// What stands in the link of an invitation to sign up; empty without one.
    pub invite: &'a str,
    /// Whether the session that was there has ended.
    pub has_ended: bool,
}

/// What the card does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// For those who have an account.
    LogIn,
    /// For those who have none.
    SignUp,
    /// For those who have forgotten the password.
    Recover,
}

/// Who may create an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignUp {
    /// Everybody.
    Open,
    /// The one who looks, who has followed the link of an invitation.
    Invited,
    /// Those who have an invitation.
    ByInvitation,
    /// Nobody.
    Closed,
}

/// The page behind an invitation's link: into which group, from whom.
#[derive(Template)]
#[template(path = "invite.html")]
pub struct Invite<'a> {
    /// What people call the group.
    pub group: &'a str,
    /// Who invites.
    pub from: &'a str,
    /// What stands in the link.
    pub code: &'a str,
    /// The name of the one who looks, if logged in.
    pub guest: Option<&'a str>,
    /// Whether everybody may create an account.
    pub sign_up_is_open: bool,
}

/// The page on which a member makes such a link.
#[derive(Template)]
#[template(path = "new_invite.html")]
pub struct NewInvite<'a> {
    /// What people call the group.
    pub group: &'a str,
    /// Its number.
    pub gid: u64,
    /// The most days that it may be good for.
    pub most_days: u32,
    /// The most people that may come in by it.
    pub most_uses: u32,
    /// What stands in the form.
    pub days: &'a str,
    /// What stands in the form.
    pub uses: &'a str,
    /// Which of the two cannot be.
    pub misfit: Option<Misfit>,
}

/// What does not fit in the form for a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misfit {
    /// How long it is good for.
    Days,
    /// How many people may come in by it.
    Uses,
}

/// The page with a link just made.
#[derive(Template)]
#[template(path = "invite_link.html")]
pub struct InviteLink<'a> {
    /// What people call the group.
    pub group: &'a str,
    /// Its number.
    pub gid: u64,
    /// The link.
    pub link: &'a str,
}

/// A request of a page was refused.
#[derive(Clone, Copy, Debug)]
pub struct Failure<'a> {
    /// HTTP status of the answer, shown small.
    pub status: u16,
    /// Why, as the API says it.
    pub code: &'a str,
}

/// A page that says what went wrong and what to do.
#[derive(Template)]
#[template(path = "failure.html")]
struct FailurePage {
    status: u16,
    /// What happened, in a few words.
    title: &'static str,
    /// Why, and what the reader can do about it.
    detail: String,
}

/// Renders the chat page.
pub fn shell(view: &Shell<'_>, language: Language) -> String {
    render(view, language)
}

/// Renders the page with the log-in card.
pub fn sign_in(view: &SignIn<'_>, language: Language) -> String {
    render(view, language)
}

/// Renders the page that a guest opens.
pub fn invite(view: &Invite<'_>, language: Language) -> String {
    render(view, language)
}

/// Renders the page on which a link is made.
pub fn new_invite(view: &NewInvite<'_>, language: Language) -> String {
    render(view, language)
}

/// Renders the page with a link just made.
pub fn invite_link(view: &InviteLink<'_>, language: Language) -> String {
    render(view, language)
}

/// Renders the page for a request that was refused.
pub fn failure(view: &Failure<'_>, language: Language) -> String {
    let is_about_invite = view.code.ends_with("_invite");
    let title = match is_about_invite {
        true => language.text("failure.invite"),
        false => language.text("failure.title"),
    };
    render(&FailurePage { status: view.status, title, detail: language.refusal(view.code) }, language)
}

/// Renders the page for an address that does not exist (status 404).
pub fn not_found(language: Language) -> String {
    let detail = language.text("not_found.detail").to_owned();
    render(&FailurePage { status: 404, title: language.text("not_found.title"), detail }, language)
}

pub(crate) fn render(view: &impl Template, language: Language) -> String {
    view.render_with_values(&language).expect("writing into a String cannot fail")
}

#[cfg(test)]
mod tests;
