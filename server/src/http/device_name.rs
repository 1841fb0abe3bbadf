//! The name of a device, from its `User-Agent`, until its owner gives it another one: "Firefox on Linux". Pure.

use axum::http::{HeaderMap, header};

use crate::app::LABEL_CHARACTERS;
use crate::domain::is_visible;

/// Marks in the headers of browsers, and the browsers' names. If a header has several of them, the first one here is right.
const BROWSERS: [(&str, &str); 8] = [
    ("Edg", "Edge"),
    ("OPR/", "Opera"),
    ("SamsungBrowser/", "Samsung Internet"),
    ("Firefox/", "Firefox"),
    ("FxiOS/", "Firefox"),
    ("CriOS/", "Chrome"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
];

/// The same for systems.
const SYSTEMS: [(&str, &str); 7] = [
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Android", "Android"),
    ("CrOS", "ChromeOS"),
    ("Windows", "Windows"),
    ("Macintosh", "macOS"),
    ("Linux", "Linux"),
];

/// A name for the device that sent these headers; empty when they do not tell.
pub(super) fn device_name(headers: &HeaderMap) -> String {
    let agent = headers.get(header::USER_AGENT).and_then(|agent| agent.to_str().ok()).unwrap_or_default();
    let found = |known: &[(&str, &'static str)]| {
        known.iter().find(|(mark, _)| agent.contains(mark)).map(|&(_, name)| name)
    };
    match (found(&BROWSERS), found(&SYSTEMS)) {
        (Some(browser), Some(system)) => format!("{browser} on {system}"),
        (Some(browser), None) => browser.to_owned(),
        // A program, by the name that it gives itself: `curl/8.5.0`.
        (None, _) => {
            let name: String = agent.split(['/', ' ']).next().unwrap_or_default().chars().collect();
            let name: String = name.chars().take(LABEL_CHARACTERS).collect();
            if is_visible(&name) { name } else { String::new() }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn browsers_and_programs_are_told_apart() {
        for (agent, name) in [
            ("Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", "Firefox on Linux"),
            (
                "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 \
                 Safari/537.36 Edg/140.0.0.0",
                "Edge on Windows",
            ),
            (
                "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) \
                 Version/18.5 Mobile/15E148 Safari/604.1",
                "Safari on iPhone",
            ),
            (
                "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Mobile \
                 Safari/537.36",
                "Chrome on Android",
            ),
            ("curl/8.5.0", "curl"),
            ("my bot", "my"),
            ("", ""),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::USER_AGENT, agent.parse().expect("a value"));
            assert_eq!(device_name(&headers), name);
        }
        assert_eq!(device_name(&HeaderMap::new()), "");
    }

    #[test]
    fn a_name_is_short_and_visible() {
        let mut headers = HeaderMap::new();
        headers.insert(header::USER_AGENT, "x".repeat(5_000).parse().expect("a value"));
        assert_eq!(device_name(&headers).len(), LABEL_CHARACTERS);
        headers.insert(header::USER_AGENT, "a\tb".parse().expect("a value"));
        assert_eq!(device_name(&headers), "");
    }
}
