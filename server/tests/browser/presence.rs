//! Typing and online, as other windows show them.

use super::people::is_kept;
use super::window::{ENTER, Window};
use super::world::{World, connected, find, say};

/// Waits until the line under the title of the open conversation says this.
async fn about(window: &Window, text: &str) {
    window.until(&format!("document.getElementById('pane-about').textContent === '{text}'")).await;
}

/// Keeps what the line under the title says from now on.
async fn record(window: &Window) {
    window
        .run(
            "window.lines = [];
             new MutationObserver(() => lines.push(document.getElementById('pane-about').textContent))
               .observe(document.getElementById('pane-about'), { childList: true, characterData: true, subtree: true });",
        )
        .await;
}

/// Sets a box of the privacy settings.
async fn set_privacy(window: &Window, name: &str, on: bool) {
    window.run("document.getElementById('open-settings').click()").await;
    let input = format!("document.getElementById('privacy-{name}')");
    window.until(&format!("{input}?.checked === {}", !on)).await;
    window.run(&format!("{input}.click()")).await;
    window.until(&format!("{input}.checked === {on}")).await;
    window.run("document.getElementById('settings').close()").await;
}

#[tokio::test]
async fn typing_is_shown_until_the_message_comes_or_the_person_stops() {
    let world = World::start().await;
    let (ben, ada) = (world.newcomer("Ben").await, world.newcomer("Ada").await);
    find(&ada, "Ben").await;
    say(&ada, "Hello").await;
    ben.pick("Ada").await;
    about(&ben, "online").await;
    about(&ada, "online").await;
    let typing = "Ben is typing…";
    ben.write("#text", "Good").await;
    about(&ada, typing).await;
    ada.until("document.getElementById('pane-about').classList.contains('online')").await;
    ada.until(&format!("document.querySelector('#list a .last').textContent === '{typing}'")).await;
    assert_eq!(
        ada.run("return [...document.querySelectorAll('[role=status], [aria-live]')].filter((it) => it.textContent.includes('typing')).length").await,
        0,
        "whoever listens to the page is not told each time"
    );
    ben.write("#text", &format!(" morning{ENTER}")).await;
    ada.sees("Good morning").await;
    about(&ada, "online").await;
    // Typing without sending is shown for some seconds.
    ben.write("#text", "Well").await;
    about(&ada, typing).await;
    about(&ada, "online").await;
}

#[tokio::test]
async fn who_is_there_is_shown_and_a_reload_changes_nothing() {
    let world = World::start().await;
    let (ben, ada) = (world.newcomer("Ben").await, world.newcomer("Ada").await);
    find(&ada, "Ben").await;
    about(&ada, "online").await;
    record(&ada).await;
    ben.reload().await;
    connected(&ben).await;
    find(&ben, "Ada").await;
    about(&ben, "online").await;
    assert_eq!(ada.run("return lines.filter((line) => line !== 'online').length").await, 0);
    ben.goto("about:blank").await;
    about(&ada, "").await;
}

#[tokio::test]
async fn whoever_shows_neither_typing_nor_presence_is_not_shown_them_either() {
    let world = World::start().await;
    let (ben, ada) = (world.newcomer("Ben").await, world.newcomer("Ada").await);
    find(&ada, "Ben").await;
    say(&ada, "Hello").await;
    about(&ada, "online").await;
    ben.pick("Ada").await;
    about(&ben, "online").await;
    set_privacy(&ben, "presence", false).await;
    about(&ada, "").await;
    ben.pick("Ada").await;
    about(&ben, "").await;
    set_privacy(&ben, "typing", false).await;
    is_kept(&ben, "({ privacy }) => privacy?.typing === false").await;
    ben.pick("Ada").await;
    record(&ada).await;
    record(&ben).await;
    ben.write("#text", "secret").await;
    ada.write("#text", "open").await;
    ada.write("#text", &format!(" and sent{ENTER}")).await;
    ben.sees("open and sent").await;
    ben.write("#text", &format!("!{ENTER}")).await;
    ada.sees("secret!").await;
    for window in [&ada, &ben] {
        assert_eq!(window.run("return lines.filter((line) => line).length").await, 0);
    }
    set_privacy(&ben, "presence", true).await;
    about(&ada, "online").await;
}

#[tokio::test]
async fn typing_in_a_second_tab_is_told_by_the_first_and_shown_in_both() {
    let world = World::start().await;
    let (ben, ada) = (world.newcomer("Ben").await, world.newcomer("Ada").await);
    find(&ada, "Ben").await;
    say(&ada, "Hello").await;
    ben.pick("Ada").await;
    ben.new_tab(&world.at("/")).await;
    connected(&ben).await;
    ben.pick("Ada").await;
    about(&ben, "online").await;
    ben.write("#text", "From here").await;
    about(&ada, "Ben is typing…").await;
    ada.write("#text", "I see").await;
    about(&ben, "Ada is typing…").await;
}

#[tokio::test]
async fn it_is_shown_when_somebody_was_there_last_unless_one_of_the_two_hides_it() {
    let world = World::start().await;
    let (ben, ada) = (world.newcomer("Ben").await, world.newcomer("Ada").await);
    find(&ben, "Ada").await;
    say(&ben, "Hello").await;
    ada.pick("Ben").await;
    about(&ada, "online").await;
    ben.goto("about:blank").await;
    ada.until("/^last seen today at \\d/.test(document.getElementById('pane-about').textContent)").await;
    ada.until("!document.getElementById('pane-about').classList.contains('online')").await;
    // Whoever hides it is not told of others.
    set_privacy(&ada, "last-seen", false).await;
    about(&ada, "").await;
    set_privacy(&ada, "last-seen", true).await;
    ada.until("document.getElementById('pane-about').textContent.startsWith('last seen today')").await;
    ben.goto(&world.at("/")).await;
    connected(&ben).await;
    about(&ada, "online").await;
}
