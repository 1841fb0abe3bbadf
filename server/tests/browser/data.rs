//! The download of all that the server keeps of one: it is a file, and where it is refused the page says why and until when.

use serde_json::json;

use super::axe::{LANGUAGES, choose, faults};
use super::window::Window;
use super::world::{World, connected, open_settings};

/// The page's words once an account has had its ten downloads of the day, and without a connection, in each of `LANGUAGES`.
const REFUSED: [[&str; 2]; 2] = [
    [
        "That was too often. Try again after {}.",
        "The server cannot be reached. Check your connection and try again.",
    ],
    ["操作过于频繁，请在 {} 后再试。", "无法连接服务器，请检查网络后重试。"],
];

/// Keeps what the page gives the browser to save, and under which name.
const LISTEN: &str = "const { createObjectURL } = URL, { click } = HTMLElement.prototype;
    URL.createObjectURL = (file) => { window.saved = file; return createObjectURL(file); };
    HTMLElement.prototype.click = function () { window.savedAs = this.download; click.call(this); };";

/// Downloads what is left of the day's ten.
const OTHER_NINE: &str = "const done = arguments[0];
    Promise.all(Array.from({ length: 9 }, () => fetch('/api/v1/me/data').then((file) => file.text()))).then(() => done(true));";

/// The note below a link to the file.
const NOTE: &str = "document.querySelector('LINK').parentElement.nextElementSibling";

async fn says(window: &Window, link: &str, text: &str) {
    let note = NOTE.replace("LINK", link);
    window.until(&format!("{note}.textContent === {} && {note}.className === 'problem'", json!(text))).await;
}

#[tokio::test]
async fn ones_own_data_is_a_file_and_a_refusal_says_in_ones_language_when_it_works_again() {
    const LINK: &str = "#my-data";
    const OTHER_LINK: &str = "#delete-account a";
    let world = World::start().await;
    for ((language, tag), [refused, unreachable]) in LANGUAGES.into_iter().zip(REFUSED) {
        let window = world.window().await;
        choose(&window, &world, language, tag).await;
        world.sign_up(&window, &format!("Ada {language}")).await;
        window.run(LISTEN).await;
        open_settings(&window, "account").await;
        window.click(LINK).await;
        window.until(&format!("window.saved && !{}.textContent", NOTE.replace("LINK", LINK))).await;
        let name = window.run("return savedAs === `tidemark-${document.body.dataset.uid}.jsonl`").await;
        assert_eq!(name, true);
        let text = window.run_async("const done = arguments[0]; saved.text().then(done)").await;
        let lines: Vec<serde_json::Value> = text
            .as_str()
            .expect("a text")
            .lines()
            .map(|line| serde_json::from_str(line).expect("JSON"))
            .collect();
        assert_eq!(lines[0]["name"], format!("Ada {language}"));
        assert_eq!(lines[lines.len() - 1]["type"], "end");

        // After a tenth of a day there is one more: the minute in which that is, or one beside it.
        window.run("window.saved = null").await;
        window.run_async(OTHER_NINE).await;
        window.click(LINK).await;
        let note = NOTE.replace("LINK", LINK);
        let later = format!(
            "(() => {{
               const own = navigator.languages.find((it) => it.split('-')[0] === '{language}') ?? '{tag}';
               const format = new Intl.DateTimeFormat(own, {{ dateStyle: 'medium', timeStyle: 'short' }});
               const said = [-60, 0, 60, 120].map((late) => {}.replace('{{}}', format.format(Date.now() + 864e4 + late * 1_000)));
               return said.includes({note}.textContent) && {note}.className === 'problem';
             }})()",
            json!(refused)
        );
        window.until(&later).await;
        assert_eq!(faults(&window).await, "");
        window.run("document.getElementById('delete-account').open = true").await;
        window.click(OTHER_LINK).await;
        window.until(&later.replace(LINK, OTHER_LINK)).await;

        window.offline(true).await;
        window.click(LINK).await;
        says(&window, LINK, unreachable).await;
        window.offline(false).await;
        connected(&window).await;
        assert_eq!(window.run("return window.saved").await, json!(null));
    }
}
