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
    /// The person whose page it is.
    pub uid: u64,
    /// The name that goes with `uid`.
    pub name: &'a str,
    /// Names the account, also where a new installation gives the same uids: what this browser keeps for it lies under this.
    pub account: &'a str,
    /// Longest text of a message, in characters; the composer counts down to it.
    pub text_characters: usize,
    /// Whether people make accounts by invitation, and so this one can invite.
    pub invites: bool,
    /// The language that the person chose, rather than the browser.
    pub chosen: Option<Language>,
}

/// The card with which one logs in or creates an account.
#[derive(Template)]
#[template(path = "sign_in.html")]
pub struct SignIn<'a> {
    /// The purpose of the card.
    pub way: CardPurpose,
    /// Path to go to afterwards: `/`, or the conversation that was asked for. Only a path of this server is
    /// followed; anything else leads to `/`.
    pub next: &'a str,
    /// The people who may create an account.
    pub sign_up: SignUp,
    /// The code in the link of an invitation to sign up; empty without one.
    pub invite: &'a str,
    /// Whether the session that was there has ended.
    pub has_ended: bool,
}

/// The purpose of the card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CardPurpose {
    /// For people who have an account.
    LogIn,
    /// For people who have none.
    SignUp,
    /// For people who have forgotten the password.
    Recover,
}

/// The people who may create an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignUp {
    /// Everybody.
    Open,
    /// The reader, who has followed the link of an invitation.
    Invited,
    /// People who have an invitation.
    ByInvitation,
    /// Nobody.
    Closed,
}

/// The page behind an invitation's link: into which group, from whom.
#[derive(Template)]
#[template(path = "invite.html")]
pub struct Invite<'a> {
    /// The name of the group.
    pub group: &'a str,
    /// The name of the member who invites.
    pub from: &'a str,
    /// The code in the link.
    pub code: &'a str,
    /// The name of the reader, if logged in.
    pub guest: Option<&'a str>,
    /// Whether everybody may create an account.
    pub sign_up_is_open: bool,
}

/// The page on which a member makes such a link.
#[derive(Template)]
#[template(path = "new_invite.html")]
pub struct NewInvite<'a> {
    /// The name of the group.
    pub group: &'a str,
    /// Its number.
    pub gid: u64,
    /// The most days that it may be good for.
    pub most_days: u32,
    /// The most people that may come in by it.
    pub most_uses: u32,
    /// The text in the form.
    pub days: &'a str,
    /// The text in the form.
    pub uses: &'a str,
    /// Which of the two cannot be.
    pub misfit: Option<Misfit>,
}

/// The field that does not fit in the form for a link.
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
    /// The name of the group.
    pub group: &'a str,
    /// Its number.
    pub gid: u64,
    /// The link.
    pub link: &'a str,
}

/// A request of a page was refused.
#[derive(Clone, Copy, Debug)]
pub struct PageFailure<'a> {
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
    /// The failure, in a few words.
    title: &'static str,
    /// The reason, and the reader's remedy.
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
pub fn failure(view: &PageFailure<'_>, language: Language) -> String {
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
