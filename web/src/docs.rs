//! The pages that describe the interface: plain data in, HTML out. The server makes the data from its OpenAPI document.

use askama::Template;

use crate::filters;
use crate::languages::Language;
use crate::views::render;

/// The page that lists the calls. Texts may hold code between backticks.
#[derive(Template)]
#[template(path = "docs.html")]
pub struct Docs<'a> {
    /// A description of the interface.
    pub about: &'a str,
    /// The calls, by subject.
    pub tags: &'a [Tag],
    /// Every code that a request may be refused with.
    pub codes: &'a [ApiRefusal],
    /// The types that answers have in common.
    pub types: &'a [Type],
}

/// Calls about one thing.
#[derive(Clone, Debug, Default)]
pub struct Tag {
    /// The thing.
    pub name: String,
    /// More about it.
    pub about: String,
    /// Its calls.
    pub calls: Vec<ApiCall>,
}

/// One call.
#[derive(Clone, Debug, Default)]
pub struct ApiCall {
    /// Its name, which is also its anchor in the page.
    pub id: String,
    /// `POST` and the like.
    pub method: String,
    /// Its address.
    pub path: String,
    /// A summary, in a sentence.
    pub summary: String,
    /// More about it.
    pub about: String,
    /// Whether the caller must be logged in.
    pub guarded: bool,
    /// The variable parts of its address.
    pub parameters: Vec<Field>,
    /// The fields of its body.
    pub body: Vec<Field>,
    /// The answers when it succeeds.
    pub answers: Vec<ApiAnswer>,
    /// The answers when it refuses.
    pub refusals: Vec<ApiRefusal>,
}

/// A field of a body or an answer, or a parameter.
#[derive(Clone, Debug, Default)]
pub struct Field {
    /// Its name, with those of the objects around it: `body.text`.
    pub name: String,
    /// Where it stands, for a parameter: `path` or `query`.
    pub place: String,
    /// Whether it must be there.
    pub required: bool,
    /// Its type and limits, in words.
    pub kind: String,
    /// The name of the [`Type`] that it has, or that its items have.
    pub refers: Option<String>,
    /// Its meaning.
    pub about: String,
    /// A value that it may have.
    pub example: String,
}

/// An answer to a call that succeeded.
#[derive(Clone, Debug, Default)]
pub struct ApiAnswer {
    /// Its status.
    pub status: String,
    /// Its meaning.
    pub about: String,
    /// The type of its body, in words, where it has no type of its own.
    pub kind: String,
    /// The name of the [`Type`] that the body has, or that its items have.
    pub refers: Option<String>,
}

/// A reason for which a call is refused.
#[derive(Clone, Debug, Default)]
pub struct ApiRefusal {
    /// The status of the answer.
    pub status: u16,
    /// Stable, for programs.
    pub code: String,
    /// When it comes.
    pub why: String,
    /// Whether the same request may succeed later.
    pub retryable: bool,
}

/// A type that several answers hold.
#[derive(Clone, Debug, Default)]
pub struct Type {
    /// Its name in the answers.
    pub name: String,
    /// A description of it.
    pub about: String,
    /// Its fields.
    pub fields: Vec<Field>,
}

/// A page with one text.
#[derive(Template)]
#[template(path = "guide.html")]
pub struct Guide<'a> {
    /// The subject of the text.
    pub title: &'a str,
    /// The text as HTML, which the caller has made safe.
    pub html: &'a str,
}

/// Renders the page that lists the calls.
pub fn docs(view: &Docs<'_>) -> String {
    render(view, Language::ENGLISH)
}

/// Renders a page with one text.
pub fn guide(view: &Guide<'_>) -> String {
    render(view, Language::ENGLISH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_marked_and_everything_else_is_text() {
        let tag = Tag { about: "`a<b` & <script>, `open".to_owned(), ..Tag::default() };
        let page = docs(&Docs { about: "", tags: &[tag], codes: &[], types: &[] });
        assert!(page.contains("<code>a&#60;b</code> &#38; &#60;script&#62;, <code>open</code>"), "{page}");
    }

    #[test]
    fn every_call_can_be_reached_by_its_name() {
        let call = ApiCall { id: "send".to_owned(), method: "POST".to_owned(), ..ApiCall::default() };
        let tag = Tag { name: "Messages".to_owned(), calls: vec![call], ..Tag::default() };
        let page = docs(&Docs { about: "", tags: &[tag], codes: &[], types: &[] });
        assert!(page.contains("href=\"#send\"") && page.contains("id=\"send\""));
        assert!(!page.contains("<style") && !page.contains(" style=") && page.matches("<h1").count() == 1);
    }
}
