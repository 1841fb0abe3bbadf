//! The scripts that each page fetches: those that it needs, and others when somebody opens the parts that they show.

use serde_json::{Value, json};

use super::social::open;
use super::window::Window;
use super::world::World;

/// Which of these the page has fetched since it was opened.
async fn fetched(window: &Window, names: &[&str]) -> Value {
    window.until("document.readyState === 'complete'").await;
    let ask =
        "const all = performance.getEntriesByType('resource').map(({ name }) => name.split('/').at(-1));
        return NAMES.filter((name) => all.includes(name));";
    window.run(&ask.replace("NAMES", &json!(names).to_string())).await
}

/// All scripts that the page has fetched, by their names.
const SCRIPTS: &str =
    "return performance.getEntriesByType('resource').map(({ name }) => name.split('/').at(-1))
    .filter((name) => name.endsWith('.js')).sort()";

#[tokio::test]
async fn a_page_fetches_no_script_before_it_is_needed() {
    let world = World::start().await;
    let window = world.window().await;
    for (path, needed) in [
        ("/login", json!(["sign_in.js"])),
        ("/sign-up", json!(["sign_in.js"])),
        ("/recover", json!(["sign_in.js"])),
        ("/invites/nothing", json!([])),
        ("/docs", json!([])),
        ("/docs/websocket", json!([])),
    ] {
        window.goto(&world.at(path)).await;
        window.until("document.querySelector('h1')").await;
        let some = ["sign_in.js", "chat.js", "emoji-list.js", "qr.js"];
        assert_eq!(fetched(&window, &some).await, needed, "{path}");
        // The colours of each come with a script, which shows that scripts are seen here.
        assert_eq!(fetched(&window, &["theme.js"]).await, json!(["theme.js"]), "{path}");
    }
    // Whoever types is about to come in.
    window.goto(&world.at("/login")).await;
    window.write("#name", "A").await;
    window
        .until("performance.getEntriesByType('resource').some(({ name }) => name.endsWith('/chat.js'))")
        .await;

    let ada = world.newcomer("Ada").await;
    assert_eq!(ada.run(SCRIPTS).await, json!(["chat.js", "texts-en.js", "theme.js"]));
    let later =
        ["contacts.js", "lean-qr.js", "qr.js", "moments.js", "emoji-list.js", "emoji-en.js", "emoji-zh.js"];
    assert_eq!(fetched(&ada, &later).await, json!([]));
    open(&ada, "contacts").await;
    assert_eq!(fetched(&ada, &later).await, json!(["contacts.js"]));
    ada.run("document.querySelector('#contacts-qr summary').click()").await;
    ada.until("document.querySelector('#contacts-qr svg')").await;
    assert_eq!(fetched(&ada, &later).await, json!(["contacts.js", "lean-qr.js", "qr.js"]));
    open(&ada, "moments").await;
    assert_eq!(fetched(&ada, &later).await, json!(["contacts.js", "lean-qr.js", "qr.js", "moments.js"]));
}
