//! A walk through a chat with a screen reader: what opens, what waits, what fails, and who is there.

use super::ears::{Tree, timeless};
use super::window::{ENTER, ESCAPE, Window};
use super::world::{World, connected, say, uid_of};

async fn said(window: &Window, role: &str) -> String {
    timeless(&Tree::of(window).await.said(role))
}

const MENU: &str = "menu “Actions”
group “Reactions”
menuitemcheckbox “React with 👍”
menuitemcheckbox “React with ❤️”
menuitemcheckbox “React with 😂”
menuitemcheckbox “React with 😮”
menuitemcheckbox “React with 😢”
menuitemcheckbox “React with 🙏”
menuitem “More reactions…”
menuitem “Reply”
menuitem “Copy text”
menuitem “Copy link”
menuitem “Forward…”
menuitem “Star”
menuitem “Pin for everybody”
menuitem “Report…”
menuitem “Delete for me…”
TIME";

const QUESTION: &str = "alertdialog “Delete this message for you?” – Is the tide in? It disappears from all your devices. Others keep it.
heading “Delete this message for you?”
Is the tide in?
It disappears from all your devices. Others keep it.
form
button “Cancel”
button “Delete”";

#[tokio::test]
async fn menus_and_dialogs_say_what_they_are_and_what_is_in_them() {
    let world = World::start().await;
    let (ben, ada) = (world.person("Ben").await, world.person("Ada").await);
    ben.tells(&ada, "Is the tide in?").await;
    let window = world.visitor("Ada").await;
    window.pick("Ben").await;
    window.sees("Is the tide in?").await;
    window.run("document.querySelector('.more').click()").await;
    window.until("document.activeElement.ariaLabel === 'React with 👍'").await;
    assert_eq!(said(&window, "menu").await, MENU);
    window.run("[...document.querySelectorAll('#actions button')].at(-1).click()").await;
    window.until("document.getElementById('ask').open").await;
    assert_eq!(said(&window, "alertdialog").await, QUESTION);
    window.press(ESCAPE).await;
    for (dialog, begins) in [
        (
            "find",
            "dialog “Find people, conversations and messages”\ncombobox “Find people, conversations and messages”",
        ),
        ("new-group", "dialog “New group”\nform\nheading “New group”"),
        ("starred", "dialog “Starred messages”\nheading “Starred messages”"),
        ("keys", "dialog “Keyboard”\nheading “Keyboard”\nEnter\nSend the message"),
        ("settings", "dialog “Settings”\nnavigation “Settings”\nheading “Settings”"),
    ] {
        window.run(&format!("document.getElementById('{dialog}').showModal()")).await;
        let said = said(&window, "dialog").await;
        assert!(said.starts_with(begins), "{dialog}: {said}");
        window.run(&format!("document.getElementById('{dialog}').close()")).await;
    }
}

const WAITING: &str = "article “You: At nine”
You
TIME
At nine
image “Waiting”";

const FAILED: &str = "article “You: Anyone there?”
You
TIME
Anyone there?
image “Not sent”
Not sent: This group does not exist, or you are not in it.
button “Try again”
button “Discard”";

#[tokio::test]
async fn what_waits_what_failed_and_a_lost_connection_are_said() {
    let world = World::start().await;
    let (ben, ada) = (world.person("Ben").await, world.person("Ada").await);
    ben.tells(&ada, "Is the tide in?").await;
    let gid = ben.group("Harbour walk", &[ada.uid]).await;
    let window = world.visitor("Ada").await;
    window.pick("Ben").await;
    window.sees("Is the tide in?").await;
    window.offline(true).await;
    window.until("!document.getElementById('banner').hidden").await;
    let banner = said(&window, "status").await;
    assert_eq!(banner, "status\nYou are offline. Messages are kept and sent when you are back.");
    say(&window, "At nine").await;
    let log = said(&window, "log").await;
    assert!(log.ends_with(WAITING), "{log}");
    ben.http.remove_member(gid, ada.uid).await.expect("removed");
    window.pick("Harbour walk").await;
    say(&window, "Anyone there?").await;
    window.offline(false).await;
    window.until("document.querySelector('.failed .trouble')").await;
    window.until("document.getElementById('banner').hidden").await;
    let log = said(&window, "log").await;
    assert!(log.contains(FAILED), "{log}");
    connected(&window).await;
}

#[tokio::test]
async fn who_is_typing_and_what_is_new_is_said() {
    let world = World::start().await;
    let (ben, ada) = (world.newcomer("Ben").await, world.person("Ada").await);
    let uid = uid_of(&ben).await;
    let window = world.visitor("Ada").await;
    ben.goto(&world.at(&format!("/c/u:{}", ada.uid))).await;
    connected(&ben).await;
    for text in ["one", "two"] {
        say(&ben, text).await;
    }
    window.until("document.querySelector('.row .badge')?.textContent === '2'").await;
    let list = said(&window, "navigation").await;
    assert!(list.ends_with("link “Ben TIME two 2 unread”"), "{list}");
    window.goto(&world.at(&format!("/c/u:{uid}"))).await;
    window.sees("two").await;
    ben.write("#text", "three").await;
    window.until("document.getElementById('pane-about').textContent === 'Ben is typing…'").await;
    let tree = Tree::of(&window).await;
    let names: Vec<_> = tree.nodes().map(|(role, name)| format!("{role} {name}")).collect();
    for wanted in [
        "heading Ben",
        "StaticText Ben is typing…",
        "toolbar Tools of this conversation",
        "form Write a message",
    ] {
        assert!(names.iter().any(|name| name == wanted), "{wanted}: {names:?}");
    }
    ben.write("#text", ENTER).await;
    window.until("document.getElementById('announce').textContent === 'Ben: three'").await;
}
