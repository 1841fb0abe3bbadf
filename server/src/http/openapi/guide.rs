//! The page about the WebSocket: `docs/PROTOCOL.md` as HTML.

use std::sync::LazyLock;

use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, TagEnd, html};
use tidemark_web as web;

/// The page.
pub(super) fn websocket() -> &'static str {
    static PAGE: LazyLock<String> = LazyLock::new(|| {
        let html = to_html(include_str!("../../../../docs/PROTOCOL.md"));
        web::guide(&web::Guide { title: "The WebSocket protocol", html: &html })
    });
    &PAGE
}

/// `markdown` as HTML. Headings can be linked to; links to documents that this server does not serve become plain text.
fn to_html(markdown: &str) -> String {
    let mut events: Vec<Event<'_>> = Parser::new_ext(markdown, Options::ENABLE_TABLES).collect();
    for at in 0..events.len() {
        if matches!(events[at], Event::Start(Tag::Heading { .. })) {
            let anchor = anchor(&events[at + 1..]);
            let Event::Start(Tag::Heading { id, .. }) = &mut events[at] else { continue };
            *id = Some(anchor.into());
        }
    }
    let mut served = true;
    let events = events.into_iter().filter_map(|event| match event {
        Event::Start(Tag::Link { link_type, dest_url, title, id }) => {
            let dest_url = place(dest_url);
            served = dest_url.is_some();
            Some(Event::Start(Tag::Link { link_type, dest_url: dest_url?, title, id }))
        }
        Event::End(TagEnd::Link) => served.then_some(Event::End(TagEnd::Link)),
        Event::Html(text) | Event::InlineHtml(text) => Some(Event::Text(text)),
        event => Some(event),
    });
    let mut page = String::new();
    html::push_html(&mut page, events);
    page
}

/// The anchor of the heading that begins here, as GitHub makes it.
fn anchor(events: &[Event<'_>]) -> String {
    let within = events.iter().take_while(|event| !matches!(event, Event::End(TagEnd::Heading(_))));
    let words = within.filter_map(|event| match event {
        Event::Text(text) | Event::Code(text) => Some(text.to_lowercase()),
        _ => None,
    });
    let kept = |c: char| match c {
        ' ' => Some('-'),
        c => (c.is_alphanumeric() || c == '-' || c == '_').then_some(c),
    };
    words.collect::<String>().chars().filter_map(kept).collect()
}

/// Where what a document links to lies on this server.
fn place(link: CowStr<'_>) -> Option<CowStr<'_>> {
    match link.as_ref() {
        "API.md" => Some("/docs".into()),
        within if within.starts_with('#') => Some(link),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_tables_and_links_lead_somewhere() {
        let page = websocket();
        for frame in ["heartbeat", "send", "read", "welcome", "alive", "entries", "sent", "error"] {
            assert!(page.contains(&format!("<strong><code>{frame}</code></strong>")), "{frame}");
        }
        assert!(page.contains("<table>") && !page.contains(".md\"") && !page.contains("<script>"));
        for link in page.split("href=\"#").skip(1) {
            let anchor = link.split('"').next().expect("it ends");
            assert!(page.contains(&format!("id=\"{anchor}\"")), "{anchor}");
        }
    }

    #[test]
    fn html_in_a_text_stays_a_text() {
        assert_eq!(to_html("a <b>c</b> [x](y.md)"), "<p>a &lt;b&gt;c&lt;/b&gt; x</p>\n");
    }
}
