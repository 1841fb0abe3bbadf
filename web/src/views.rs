//! The views: plain data in, one whole HTML page out.
//!
//! Stateless. The server's page handlers call them and add the headers.

use askama::Template;

use crate::filters;

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
}

/// The card with which one creates an account or logs in.
#[derive(Template)]
#[template(path = "sign_in.html")]
pub struct SignIn<'a> {
    /// Path to go to afterwards: `/`, or the conversation that was asked for. Only a path of this server is
    /// followed; anything else leads to `/`.
    pub next: &'a str,
    /// Whether everybody may create an account.
    pub offers_sign_up: bool,
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
}

/// The page on which a member makes such a link.
#[derive(Template)]
#[template(path = "new_invite.html")]
pub struct NewInvite<'a> {
    /// What people call the group.
    pub group: &'a str,
    /// Its number.
    pub gid: u64,
    /// The link, once it is made.
    pub link: Option<&'a str>,
    /// The most days that it may be good for.
    pub most_days: u32,
    /// The most people that may come in by it.
    pub most_uses: u32,
    /// What the form begins with.
    pub days: u32,
    /// What the form begins with.
    pub uses: u32,
}

/// A page that says what went wrong and what to do.
#[derive(Template)]
#[template(path = "failure.html")]
pub struct Failure<'a> {
    /// HTTP status of the answer, shown small.
    pub status: u16,
    /// What happened, in a few words.
    pub title: &'a str,
    /// What the reader can do about it, in one sentence.
    pub detail: &'a str,
}

/// Renders the chat page.
pub fn shell(view: &Shell<'_>) -> String {
    render(view)
}

/// Renders the page with the log-in card.
pub fn sign_in(view: &SignIn<'_>) -> String {
    render(view)
}

/// Renders the page that a guest opens.
pub fn invite(view: &Invite<'_>) -> String {
    render(view)
}

/// Renders the page on which a link is made.
pub fn new_invite(view: &NewInvite<'_>) -> String {
    render(view)
}

/// Renders an error page.
pub fn failure(view: &Failure<'_>) -> String {
    render(view)
}

/// Renders the page for an address that does not exist (status 404).
pub fn not_found() -> String {
    failure(&Failure {
        status: 404,
        title: "There is no such page",
        detail: "The address may be mistyped, or what was here is gone.",
    })
}

pub(crate) fn render(view: &impl Template) -> String {
    view.render().expect("writing into a String cannot fail")
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str = "<script>alert(1)</script>\"'&";

    #[test]
    fn a_name_is_text_wherever_it_stands() {
        let page = shell(&Shell { uid: 10_001, name: HOSTILE, text_limit: 8_000 });
        assert!(!page.contains("<script>alert"));
        assert!(page.contains("&#60;script&#62;alert(1)"));
        let page = sign_in(&SignIn { next: HOSTILE, offers_sign_up: true });
        assert!(!page.contains("<script>alert"));
    }

    #[test]
    fn the_shell_tells_the_scripts_whose_page_it_is() {
        let page = shell(&Shell { uid: 10_001, name: "Ada", text_limit: 8_000 });
        assert!(page.contains(r#"data-uid="10001""#));
        assert!(page.contains(r#"data-name="Ada""#));
        assert!(page.contains(r#"data-text-limit="8000""#));
    }

    #[test]
    fn every_page_works_without_inline_scripts_and_styles() {
        let pages = [
            shell(&Shell { uid: 1, name: "a", text_limit: 1 }),
            sign_in(&SignIn { next: "/", offers_sign_up: true }),
            not_found(),
        ];
        for page in pages {
            for (at, _) in page.match_indices("<script") {
                let tag = &page[at..at + page[at..].find('>').expect("the tag ends")];
                assert!(tag.contains(" src=\"/static/"), "inline or foreign: {tag}");
            }
            assert!(!page.contains("<style") && !page.contains(" style=") && !page.contains(" onclick="));
            assert!(!page.contains("//"), "nothing comes from another host");
        }
    }

    #[test]
    fn every_page_links_only_files_that_exist() {
        for page in [
            shell(&Shell { uid: 1, name: "a", text_limit: 1 }),
            sign_in(&SignIn { next: "/", offers_sign_up: true }),
            not_found(),
        ] {
            let mut links = 0;
            for part in page.split("\"/static/").skip(1) {
                let path = part.split('"').next().expect("the attribute ends");
                assert!(crate::asset(path).is_some_and(|found| found.immutable), "missing: {path}");
                links += 1;
            }
            assert!(links >= 3);
        }
    }

    #[test]
    fn the_error_page_says_what_to_do() {
        let page = not_found();
        assert!(
            page.contains("404") && page.contains("There is no such page") && page.contains("href=\"/\"")
        );
    }
}
