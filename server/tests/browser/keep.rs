//! The data that a browser keeps: rows, cursor, drafts; and tabs that share them.

use tidemark_client::Conversation;

use super::window::{ENTER, Window};
use super::world::{World, connected, database_of, find, say, stored};

/// No call and no socket leaves a page that starts with this.
const CUT_OFF: &str = "fetch = () => Promise.reject(new TypeError('cut off'));
    WebSocket = class { close() {} };";

#[tokio::test]
async fn a_reload_paints_from_the_browsers_own_rows() {
    let world = World::start().await;
    let ben = world.person("Ben").await;
    let ada = world.person("Ada").await;
    let window = world.visitor("Ada").await;
    for text in ["one", "two", "three"] {
        ben.tells(&ada, text).await;
    }
    window.pick("Ben").await;
    window.sees("three").await;
    window.before_every_page(CUT_OFF).await;
    window.reload().await;
    for text in ["one", "two", "three"] {
        window.sees(text).await;
    }
    window.until("document.querySelector('#list .title').textContent === 'Ben'").await;
    window.until("!document.getElementById('banner').hidden").await;
}

#[tokio::test]
async fn a_reload_asks_only_for_what_is_newer() {
    let world = World::start().await;
    let ben = world.person("Ben").await;
    let ada = world.person("Ada").await;
    let window = world.visitor("Ada").await;
    ben.tells(&ada, "before").await;
    window.until("document.querySelector('.last')?.textContent === 'before'").await;
    let seq = ada.http.seq().await.expect("a number").seq;
    window.goto("about:blank").await;
    ben.tells(&ada, "meanwhile").await;
    window.goto(&world.at("/")).await;
    connected(&window).await;
    window.until("document.querySelector('.last')?.textContent === 'meanwhile'").await;
    window.click("#open-settings").await;
    let first = "[...document.querySelectorAll('#fact-beats tr')].at(-1)?.textContent";
    window.until(&format!("/{seq}1 row, up to \\d+$/.test({first})")).await;
}

#[tokio::test]
async fn a_new_browser_fetches_history_as_it_is_asked_for() {
    let world = World::start().await;
    let ben = world.person("Ben").await;
    let ada = world.person("Ada").await;
    for n in 0..30 {
        ben.tells(&ada, &format!("number {n}")).await;
    }
    let window = world.window().await;
    let path = format!("/c/u:{}", ben.uid);
    window.goto(&world.at(&path)).await;
    window.until("document.body.dataset.next.startsWith('/c/u:')").await;
    window.write("#name", "Ada").await;
    window.write("#password", "a long enough password").await;
    window.click("button.primary").await;
    window.sees("number 29").await;
    window.sees("number 0").await;
    window.until("document.querySelector('.start') && document.querySelectorAll('.msg').length === 30").await;
}

/// Smaller versions are upgraded by IndexedDB; larger ones it refuses to open.
#[tokio::test]
async fn what_a_page_of_another_version_kept_is_dropped_and_fetched_anew() {
    let world = World::start().await;
    let ben = world.person("Ben").await;
    let ada = world.person("Ada").await;
    ben.tells(&ada, "as the server has it").await;
    let window = world.visitor("Ada").await;
    let database = database_of(&window).await;
    window.goto(&world.at("/docs")).await;
    let script = "const done = arguments[0], opening = indexedDB.open('NAME', 99);
         opening.onupgradeneeded = () => {
           for (const name of [...opening.result.objectStoreNames]) opening.result.deleteObjectStore(name);
           opening.result.createObjectStore('rows');
         };
         opening.onsuccess = () => { opening.result.close(); done(true); };";
    assert_eq!(window.run_async(&script.replace("NAME", &database)).await, true);
    window.goto(&world.at("/")).await;
    connected(&window).await;
    window.pick("Ben").await;
    window.sees("as the server has it").await;
}

#[tokio::test]
async fn a_draft_is_kept_for_each_conversation() {
    let world = World::start().await;
    world.person("Ben").await;
    world.person("Cleo").await;
    let ada = world.newcomer("Ada").await;
    find(&ada, "Ben").await;
    ada.write("#text", "Dear Ben").await;
    find(&ada, "Cleo").await;
    ada.until("document.getElementById('text').value === ''").await;
    ada.until(
        "[...document.querySelectorAll('.last')].some((line) => line.textContent === 'Draft: Dear Ben')",
    )
    .await;
    ada.reload().await;
    ada.pick("Ben").await;
    ada.until("document.getElementById('text').value === 'Dear Ben'").await;
}

#[tokio::test]
async fn what_was_typed_just_before_the_page_is_left_is_kept() {
    let world = World::start().await;
    world.person("Ben").await;
    let ada = world.newcomer("Ada").await;
    find(&ada, "Ben").await;
    for _ in 0..3 {
        ada.write("#text", "hm").await;
        ada.reload().await;
        connected(&ada).await;
        ada.until("document.getElementById('text').value.endsWith('hm')").await;
    }
    assert_eq!(ada.run("return document.getElementById('text').value").await, "hmhmhm");
}

#[tokio::test]
async fn what_was_typed_just_before_the_session_ends_elsewhere_is_a_draft_of_the_next_one() {
    let world = World::start().await;
    let (ben, ada) = (world.person("Ben").await, world.person("Ada").await);
    ben.tells(&ada, "Write me").await;
    let (desk, phone) = (world.visitor("Ada").await, world.visitor("Ada").await);
    desk.pick("Ben").await;
    desk.write("#text", "half").await;
    // Other devices know of this, and of nothing that follows.
    phone.until("document.querySelector('.last')?.textContent === 'Draft: half'").await;
    let out = "fetch('/api/v1/sessions', { method: 'DELETE' })";
    desk.run(&format!(
        "const box = document.getElementById('text');
         box.value = 'half a line';
         box.dispatchEvent(new Event('input'));
         {out}"
    ))
    .await;
    desk.until("document.getElementById('sign-in')").await;
    // Of others nothing is left.
    let counts = "const done = arguments[0];
        indexedDB.databases().then(([{ name }]) => {
            const open = indexedDB.open(name);
            open.onsuccess = () => {
                const stores = ['rows', 'conversations', 'names', 'drafts'], at = open.result.transaction(stores);
                const asked = stores.map((store) => at.objectStore(store).count());
                at.oncomplete = () => {
                    open.result.close();
                    done(asked.map(({ result }) => result).join());
                };
            };
        });";
    assert_eq!(desk.run_async(counts).await, "0,0,0,1");
    world.log_in(&desk, "Ada").await;
    desk.pick("Ben").await;
    desk.until("document.getElementById('text').value === 'half a line'").await;
    let phone = world.visitor("Ada").await;
    phone.until("document.querySelector('.last')?.textContent === 'Draft: half a line'").await;
}

#[tokio::test]
async fn a_database_that_the_browser_deletes_is_filled_anew_and_nothing_typed_is_lost() {
    let world = World::start().await;
    let (ben, ada) = (world.person("Ben").await, world.person("Ada").await);
    ben.tells(&ada, "Is the tide in?").await;
    let window = world.visitor("Ada").await;
    window.pick("Ben").await;
    window.sees("Is the tide in?").await;
    let delete = serde_json::json!({"origin": world.at(""), "storageTypes": "indexeddb"});
    // The message that waited goes out, too.
    window.offline(true).await;
    window.until("document.body.dataset.phase === 'offline'").await;
    say(&window, "At nine").await;
    window.write("#text", "and a dra").await;
    window.run("window.isOld = true").await;
    window.devtools("Storage.clearDataForOrigin", delete.clone()).await;
    window.write("#text", "ft").await;
    window.offline(false).await;
    connected(&window).await;
    let sent = "[...document.querySelectorAll('.own .state')].every((it) => ['Sent', 'Delivered', 'Read'].includes(it.ariaLabel))";
    window.sees("Is the tide in?").await;
    window.sees("At nine").await;
    window.until(sent).await;
    assert_eq!(window.run("return document.getElementById('text').value").await, "and a draft");
    // Once more, with a connection.
    window.devtools("Storage.clearDataForOrigin", delete).await;
    window.write("#text", "!").await;
    window.write("#text", ENTER).await;
    window.sees("and a draft!").await;
    window.until(sent).await;
    ben.tells(&ada, "Fine").await;
    window.sees("Fine").await;
    window.sees("Is the tide in?").await;
    window.until("document.getElementById('banner').hidden && window.isOld").await;
    for text in ["At nine", "and a draft!"] {
        assert_eq!(window.copies(text).await, 1, "{text}");
        assert_eq!(stored(&ben, text).await, 1, "{text}");
    }
}

/// Puts a text of so many characters into the box.
async fn fill_box(window: &Window, characters: usize) {
    let fill = format!(
        "const box = document.getElementById('text');
         box.value = 'x'.repeat({characters});
         box.dispatchEvent(new Event('input'));"
    );
    window.run(&fill).await;
}

async fn box_has(window: &Window, characters: usize) {
    window.until(&format!("document.getElementById('text').value.length === {characters}")).await;
}

#[tokio::test]
async fn a_draft_too_long_for_other_devices_is_on_none_of_them_and_stays_on_its_own() {
    let world = World::start().await;
    let (ben, ada) = (world.person("Ben").await, world.person("Ada").await);
    ben.tells(&ada, "Write me").await;
    let (desk, phone) = (world.visitor("Ada").await, world.visitor("Ada").await);
    desk.pick("Ben").await;
    fill_box(&desk, 20).await;
    phone.pick("Ben").await;
    box_has(&phone, 20).await;
    fill_box(&desk, 8_001).await;
    box_has(&phone, 0).await;
    // Neither what the phone writes now nor what the desk hears of itself takes it away. Another device has what the phone wrote, so the
    // server has it, and the message is behind it.
    fill_box(&phone, 30).await;
    let other = world.visitor("Ada").await;
    other.until("document.querySelector('.last')?.textContent === `Draft: ${'x'.repeat(30)}`").await;
    ben.tells(&ada, "And soon").await;
    desk.sees("And soon").await;
    box_has(&desk, 8_001).await;
    desk.reload().await;
    connected(&desk).await;
    box_has(&desk, 8_001).await;
    // Short enough again, it is on both.
    fill_box(&desk, 7_000).await;
    box_has(&phone, 7_000).await;
}

#[tokio::test]
async fn tabs_of_one_browser_share_a_socket_and_agree() {
    let world = World::start().await;
    let ben = world.person("Ben").await;
    let ada = world.person("Ada").await;
    let window = world.visitor("Ada").await;
    ben.tells(&ada, "hello").await;
    window.pick("Ben").await;
    window.new_tab(&world.at(&format!("/c/u:{}", ben.uid))).await;
    window.sees("hello").await;
    connected(&window).await;
    say(&window, "from the second tab").await;
    window
        .until("['Sent', 'Delivered', 'Read'].includes(document.querySelector('.own .state')?.ariaLabel)")
        .await;
    window.tab(0).await;
    window.sees("from the second tab").await;
    let metrics = ada.http.metrics().await.expect("metrics");
    let open = metrics.lines().find_map(|line| line.strip_prefix("tidemark_connections "));
    assert_eq!(open, Some("1"), "{metrics}");
    for tab in [1, 0, 1, 0, 1] {
        window.tab(tab).await;
        connected(&window).await;
        ben.tells(&ada, &format!("seen in tab {tab}")).await;
        window.sees(&format!("seen in tab {tab}")).await;
    }
    // Leading goes to and fro with the eyes, and on when the tab that led is closed.
    window.close_tab().await;
    window.tab(0).await;
    ben.tells(&ada, "still there?").await;
    window.sees("still there?").await;
    say(&window, "still here").await;
    window.until("['Sent', 'Delivered', 'Read'].includes([...document.querySelectorAll('.own .state')].at(-1).ariaLabel)").await;
}

/// Web Locks are missing on plain HTTP from another machine: then each tab has a socket, and the database is what
/// they share.
#[tokio::test]
async fn tabs_without_locks_do_not_disturb_each_other() {
    let world = World::start().await;
    let ben = world.person("Ben").await;
    let ada = world.person("Ada").await;
    let window = world.visitor("Ada").await;
    ben.tells(&ada, "hello").await;
    let without = "Object.defineProperty(navigator, 'locks', { value: undefined })";
    let conversation = world.at(&format!("/c/u:{}", ben.uid));
    window.before_every_page(without).await;
    window.goto(&conversation).await;
    window.sees("hello").await;
    window.new_tab("about:blank").await;
    window.before_every_page(without).await;
    window.goto(&conversation).await;
    window.sees("hello").await;
    connected(&window).await;
    say(&window, "from the second").await;
    window.tab(0).await;
    window.sees("from the second").await;
    say(&window, "from the first").await;
    ben.tells(&ada, "to both").await;
    for tab in [0, 1] {
        window.tab(tab).await;
        window.sees("to both").await;
        let shown = "return [...document.querySelectorAll('.words')].map((it) => it.lastChild.data).join()";
        assert_eq!(window.run(shown).await, "hello,from the second,from the first,to both");
    }
    let page =
        ben.http.conversation_messages(Conversation::User(ada.uid), None, Some(100)).await.expect("rows");
    assert_eq!(page.rows.len(), 4);
}

#[tokio::test]
async fn a_restored_server_makes_the_page_start_over() {
    let world = World::start().await;
    let ben = world.person("Ben").await;
    let ada = world.person("Ada").await;
    let window = world.visitor("Ada").await;
    ben.tells(&ada, "saved").await;
    window.pick("Ben").await;
    window.sees("saved").await;
    let list = ada.http.conversations().await.expect("the list");
    ada.http.mark_read(list[0].id, list[0].last.as_ref().expect("a row").message_id).await.expect("marked");
    let gone = world.stop_server().await;
    let files = gone.copy_files();
    let world = gone.restart().await;
    connected(&window).await;
    window.reload().await;
    window.sees("saved").await;
    window.until("!document.querySelector('.fresh-line')").await;
    // Nobody looks at it.
    window.new_tab("about:blank").await;
    for n in 0..5 {
        ben.tells(&ada, &format!("lost {n}")).await;
    }
    window.tab(0).await;
    window.sees("lost 4").await;
    window.until("document.querySelector('.fresh-line')").await;
    window.write("#text", "not sent yet").await;

    let mut gone = world.kill_server().await;
    gone.put_back(files).await;
    let world = gone.restart().await;
    connected(&window).await;
    ben.tells(&ada, "after the restore").await;
    window.sees("after the restore").await;
    // Fetched anew, which may come after what has just been told.
    window.sees("saved").await;
    let shown = window
        .run("return [...document.querySelectorAll('.words')].map((it) => it.lastChild.data).join()")
        .await;
    assert_eq!(shown, "saved,after the restore");
    let line = window.run("return document.querySelectorAll('.fresh-line').length").await;
    assert_eq!(line, 0, "what was new is gone, and somebody looked when the last one came");
    window.until("document.getElementById('text').value === 'not sent yet'").await;
    drop(world);
}
