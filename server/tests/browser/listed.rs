//! The list of conversations: its menu, the archive, what is marked as unread, and the filter.

use serde_json::json;

use super::window::{ENTER, ESCAPE, RIGHT, Window};
use super::world::{World, connected, find};

const ASKS: &str = "document.getElementById('ask').open";

/// Opens the menu of a conversation in the list as the right button of a mouse does, and chooses an item.
async fn choose(window: &Window, title: &str, item: &str) {
    let row = format!(
        "[...document.querySelectorAll('#list a')].find((row) => row.querySelector('.title').textContent === {})",
        json!(title)
    );
    window.until(&row).await;
    window
        .run(&format!(
            "{row}.dispatchEvent(new MouseEvent('contextmenu', {{ bubbles: true, cancelable: true }}))"
        ))
        .await;
    pick(window, item).await;
}

/// Chooses an item of the menu that is open.
async fn pick(window: &Window, item: &str) {
    let button = format!(
        "[...document.querySelectorAll('#actions:popover-open button')].find((it) => it.textContent === {})",
        json!(item)
    );
    window.until(&button).await;
    window.run(&format!("{button}.click()")).await;
}

/// An expression for the titles in the list.
const TITLES: &str = "[...document.querySelectorAll('#list a .title')].map((it) => it.textContent).join()";
const ARCHIVE: &str = "document.querySelector('#list .archive')?.textContent";

#[tokio::test]
async fn an_archived_conversation_comes_back_with_a_new_message_unless_it_is_muted() {
    let world = World::start().await;
    let (ben, cleo, ada) = (world.person("Ben").await, world.person("Cleo").await, world.person("Ada").await);
    ben.tells(&ada, "one").await;
    cleo.tells(&ada, "two").await;
    let (window, other) = (world.visitor("Ada").await, world.visitor("Ada").await);
    window.until(&format!("{TITLES} === 'Cleo,Ben'")).await;
    choose(&window, "Ben", "Archive").await;
    for each in [&window, &other] {
        each.until(&format!("{TITLES} === 'Cleo' && {ARCHIVE} === 'Archived (1)1'")).await;
        each.until("document.title.startsWith('(1) ')").await;
    }
    window.click("#list .archive").await;
    window.until(&format!("{TITLES} === 'Cleo,Ben'")).await;
    ben.tells(&ada, "three").await;
    other.until(&format!("{TITLES} === 'Ben,Cleo' && {ARCHIVE} === undefined")).await;

    choose(&window, "Ben", "Mute…").await;
    pick(&window, "Mute always").await;
    choose(&window, "Ben", "Archive").await;
    other.until(&format!("{TITLES} === 'Cleo' && {ARCHIVE} === 'Archived (1)1'")).await;
    ben.tells(&ada, "four").await;
    cleo.tells(&ada, "five").await;
    other.until("document.querySelector('#list .last').textContent === 'five'").await;
    assert_eq!(other.run(&format!("return {TITLES}")).await, "Cleo");
    // A person who opens it sees it in the list, and takes it out again.
    find(&other, "Ben").await;
    other.sees("four").await;
    other.until(&format!("{TITLES} === 'Cleo,Ben'")).await;
    choose(&other, "Ben", "Take out of the archive").await;
    window.until(&format!("{TITLES} === 'Cleo,Ben' && {ARCHIVE} === undefined")).await;
}

#[tokio::test]
async fn what_is_marked_as_unread_is_so_on_every_device_until_it_is_opened() {
    let world = World::start().await;
    let (ben, cleo, ada) = (world.person("Ben").await, world.person("Cleo").await, world.person("Ada").await);
    ben.tells(&ada, "one").await;
    cleo.tells(&ada, "two").await;
    let (window, other) = (world.visitor("Ada").await, world.visitor("Ada").await);
    window.until("document.title === '(2) Tidemark'").await;
    choose(&window, "Ben", "Mark as read").await;
    choose(&window, "Cleo", "Mark as read").await;
    other.until("document.title === 'Tidemark'").await;
    choose(&window, "Ben", "Mark as unread").await;
    let marked = "document.querySelector('#list .fresh .badge')?.ariaLabel === 'Marked as unread'";
    other.until(&format!("document.title === '(1) Tidemark' && {marked}")).await;
    // The filter shows that one alone; the one that is open stays.
    other.click("#only-unread").await;
    other.until(&format!("{TITLES} === 'Ben'")).await;
    other.pick("Ben").await;
    for each in [&window, &other] {
        each.until("!document.querySelector('#list .badge')").await;
    }
    other.until(&format!("{TITLES} === 'Ben' && document.title === 'Ben · Tidemark'")).await;
    other.run("history.back()").await;
    other.until("!document.getElementById('list-none').hidden").await;
    other.click("#only-unread").await;
    other.until(&format!("{TITLES} === 'Cleo,Ben'")).await;
}

#[tokio::test]
async fn the_menu_of_the_list_is_used_by_keyboard_and_a_group_is_left_there() {
    let world = World::start().await;
    let ben = world.person("Ben").await;
    let ada = world.person("Ada").await;
    ben.group("Harbour walk", &[ada.uid]).await;
    let window = world.visitor("Ada").await;
    window.until(&format!("{TITLES} === 'Harbour walk'")).await;
    window.run("document.querySelector('#list a').focus()").await;
    window.press(RIGHT).await;
    window.until("document.activeElement.ariaLabel === 'More about Harbour walk'").await;
    window.press(ENTER).await;
    window
        .until(
            "document.querySelector('#actions:popover-open button:focus')?.textContent === 'Mark as unread'",
        )
        .await;
    window.press(ESCAPE).await;
    window.until("document.activeElement.ariaLabel === 'More about Harbour walk'").await;
    choose(&window, "Harbour walk", "Keep at the top of the list").await;
    window.until("document.querySelector('#list .icon.pin')").await;
    choose(&window, "Harbour walk", "Leave group…").await;
    window
        .until(&format!(
            "{ASKS} && document.getElementById('ask-title').textContent === 'Leave Harbour walk?'"
        ))
        .await;
    window.click("#ask-yes").await;
    window.until(&format!("!{ASKS}")).await;
    window.reload().await;
    connected(&window).await;
    window.until("document.querySelector('#list .last').textContent.includes('You left')").await;
}
