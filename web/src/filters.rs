//! Filters for the templates: texts in the view's language, the address of a static file, the disc that stands for a person, and
//! texts with code in them.
//!
//! Stateless; called by the templates alone. The disc's rules are the same in `static/characters.js` and `static/dom.js`.

#![expect(unreachable_pub, reason = "what `filter_fn` makes is always public")]

use std::fmt::{Display, Write as _};

use askama::filters::{Html, Safe, escape};
use askama::{Result, Values};
use unicode_segmentation::UnicodeSegmentation as _;

use crate::languages::{Message, of_view, script};

/// Colours for discs in `app.css` (`.tint-0` and up).
const TINTS: u64 = 8;

/// The address of a static file, with the content's hash in it.
#[askama::filter_fn]
pub(crate) fn asset(name: &str, _: &dyn Values) -> Result<String> {
    Ok(crate::asset_url(name))
}

/// The text of a key of the catalogues, in the view's language.
#[askama::filter_fn]
pub(crate) fn t(key: &str, values: &dyn Values) -> Result<Message> {
    Ok(Message::new(of_view(values).text(key)))
}

/// A text with `value` in the place of `{name}`.
#[askama::filter_fn]
pub(crate) fn with(message: Message, _: &dyn Values, name: &str, value: &dyn Display) -> Result<Message> {
    Ok(message.with(name, value))
}

/// The address of the file from which scripts take the texts of the view's language; what stands before does not matter.
#[askama::filter_fn]
pub(crate) fn texts(_: &str, values: &dyn Values) -> Result<String> {
    Ok(crate::asset_url(&script(of_view(values))))
}

/// The letter of a disc.
#[askama::filter_fn]
pub(crate) fn initial(name: &str, _: &dyn Values) -> Result<String> {
    Ok(letter_of(name))
}

/// The first character of a name as people see it, upper case. A capital of several letters (`SS` for `ß`) is none.
fn letter_of(name: &str) -> String {
    let letter = name.graphemes(true).next().unwrap_or_default();
    let capital = letter.to_uppercase();
    if capital.graphemes(true).nth(1).is_none() { capital } else { letter.to_owned() }
}

/// The class that colours a person's disc: always the same for the same uid.
#[askama::filter_fn]
pub(crate) fn tint(uid: &u64, _: &dyn Values) -> Result<impl Display> {
    Ok(format!("tint-{}", uid % TINTS))
}

/// A text in which backticks enclose code, as HTML that is safe whatever the text holds.
#[askama::filter_fn]
pub(crate) fn prose(text: &str, _: &dyn Values) -> Result<Safe<String>> {
    let mut html = String::with_capacity(text.len() + 32);
    for (at, part) in text.split('`').enumerate() {
        if at > 0 {
            html.push_str(if at % 2 == 1 { "<code>" } else { "</code>" });
        }
        write!(html, "{}", escape(part, Html)?).expect("writing into a String cannot fail");
    }
    if text.matches('`').count() % 2 == 1 {
        html.push_str("</code>");
    }
    Ok(Safe(html))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As in `web/tests/characters.test.js`.
    #[test]
    fn the_letter_of_a_disc_is_what_people_see_as_one() {
        for (name, letter) in [
            ("ann", "A"),
            ("🏳️‍🌈 Pride", "🏳️‍🌈"),
            ("👩🏽‍💻", "👩🏽‍💻"),
            ("🇫🇷🇩🇪", "🇫🇷"),
            ("e\u{301}a", "E\u{301}"),
            ("ß", "ß"),
            ("ﬁn", "ﬁ"),
            ("小明", "小"),
            ("क्षि", "क्षि"),
            ("𞤢", "𞤀"),
            ("", ""),
        ] {
            assert_eq!(letter_of(name), letter, "{name}");
        }
    }
}
