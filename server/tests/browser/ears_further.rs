//! A walk through a group with a screen reader: the conversation in the list, the panel, who has read, what is pinned, mentioned and
//! removed, the ways back to the newest, and the dialogs.

use tidemark_client::{Conversation, Draft, Mentions, Recipient};

use super::ears::{Tree, timeless};
use super::starred::choose;
use super::window::{ESCAPE, Window};
use super::world::{World, open_about, open_person, open_settings, say};

/// What is said of the first part of the page with this role.
async fn said(window: &Window, role: &str) -> String {
    timeless(&Tree::of(window).await.said(role))
}

/// Role and name of everything in the page.
async fn names(window: &Window) -> String {
    let tree = Tree::of(window).await;
    let names: Vec<_> = tree.nodes().map(|(role, name)| format!("{role} “{name}”")).collect();
    timeless(&names)
}

const REMOVAL: &str = "\
alertdialog “Remove this message of Cleo?” – Buy my boots Nobody in the group can read it any more. They see that you removed it.
heading “Remove this message of Cleo?”
Buy my boots
Nobody in the group can read it any more. They see that you removed it.
form
button “Cancel”
button “Remove it”";

const LOG: &str = "log “Messages”
This is where Harbour walk begins.
Today
You created the group
article “You removed this message”
Cleo
TIME
You removed this message
article “Ben: Is @Ada there?”
Ben
TIME
Is
@Ada
there?
button “Actions for “Is @Ada there?”” hasPopup=menu
article “You: Low tide is at nine”
You
TIME
Low tide is at nine
button “Actions for “Low tide is at nine”” hasPopup=menu
image “Read by 1 of 2”";

const READERS: &str = "dialog “Read by”
heading “Read by”
status
1 of 2 has read this message.
list
Ben
form
button “Close”";

const FORWARD: &str = "dialog “Forward to…”
form
heading “Forward to…”
Low tide is at nine
list “Chosen conversations”
combobox “Name of a person or conversation” hasPopup=listbox expanded=true
option “Harbour walk”
button “Forward” disabled=true
button “Cancel”
form";

const REPORT: &str = "\
dialog “Report this message of Ben?” – Is @Ada there? The administrators of the group and the people who run this server see the \
message and what you write. The group is not told who reported it.
form
heading “Report this message of Ben?”
Is @Ada there?
The administrators of the group and the people who run this server see the message and what you write. The group is not told who \
reported it.
What is wrong with it?
combobox “What is wrong with it?” hasPopup=menu
In your own words, if you like
textbox “In your own words, if you like”
status
button “Report”
button “Close”
form";

const PANEL: &str = "heading “Group”
button “Close”
heading “Harbour walk”
3 members
link “Invite by link”
button “More about Harbour walk” hasPopup=menu
heading “Pinned messages”
list
button “You: Low tide is at nine”
heading “Members”
combobox “Add someone” hasPopup=listbox
list
link “Ada”
owner, you
link “Ben”
button “More about Ben” hasPopup=menu
link “Cleo”
button “More about Cleo” hasPopup=menu
group
Open invitations
group
Name, topic, history, slow mode
group
Reports
group
Banned people
button “Leave group”";

#[tokio::test]
async fn a_group_its_panel_and_what_its_messages_became_are_said() {
    let world = World::start().await;
    let (ben, cleo, ada) = (world.person("Ben").await, world.person("Cleo").await, world.person("Ada").await);
    let gid = ada.group("Harbour walk", &[ben.uid, cleo.uid]).await;
    let window = world.visitor("Ada").await;
    window.pick("Harbour walk").await;
    cleo.send(Recipient::Group(gid), "Buy my boots").await;
    let mentions = Mentions { users: vec![ada.uid], all: false };
    let draft = Draft::text(Recipient::Group(gid), "Is @Ada there?").mentioning(&mentions);
    ben.http.send(&draft).await.expect("sent");
    window.until("document.querySelector('.mention.me')").await;
    choose(&window, "Buy my boots", "Remove for everybody…").await;
    window.until("document.getElementById('ask').open").await;
    assert_eq!(said(&window, "alertdialog").await, REMOVAL);
    window.click("#ask-yes").await;
    window.sees("You removed this message").await;
    say(&window, "Low tide is at nine").await;
    window.until("document.querySelector('.own .state').ariaLabel === 'Sent'").await;
    let last = ben.http.conversations().await.expect("the list")[0].last.clone().expect("a row");
    ben.http.mark_read(Conversation::Group(gid), last.message_id).await.expect("read");
    window.until("document.querySelector('.own .state').ariaLabel === 'Read by 1 of 2'").await;
    assert_eq!(said(&window, "log").await, LOG);
    choose(&window, "Low tide is at nine", "Pin for everybody").await;
    window.until("!document.getElementById('pins').hidden").await;
    let all = names(&window).await;
    for wanted in [
        "button “1 pinned message: You: Low tide is at nine”",
        "link “Harbour walk Read TIME You: Low tide is at nine”",
        "button “Keep at the top of the list”",
        "button “Mute”",
        "link “About Harbour walk”",
        "button “Unread”",
    ] {
        assert!(all.lines().any(|name| name == wanted), "{wanted}: {all}");
    }
    for (text, item, dialog, wanted) in [
        ("Low tide is at nine", "Read by", "readers", READERS),
        ("Low tide is at nine", "Forward…", "forward", FORWARD),
        ("Is @Ada there?", "Report…", "report", REPORT),
    ] {
        choose(&window, text, item).await;
        window.until(&format!("document.getElementById('{dialog}').open")).await;
        if dialog == "readers" {
            window.until("document.querySelector('#readers-list li')").await;
        }
        assert_eq!(said(&window, "dialog").await, wanted);
        window.press(ESCAPE).await;
        window.until(&format!("!document.getElementById('{dialog}').open")).await;
    }
    open_about(&window).await;
    window.until("document.querySelectorAll('#members-list li').length === 3").await;
    let panel = timeless(&Tree::of(&window).await.said_of("region", "Group"));
    assert_eq!(panel, PANEL);
}

const MUTES: &str = "menu “Actions”
menuitem “Mute for an hour”
menuitem “Mute for a day”
menuitem “Mute always”";

const TOOLS: &str = "toolbar “Tools of this conversation”
button “Keep at the top of the list” pressed=true
button “Muted” hasPopup=menu
link “Search in this conversation (Ctrl+F)”
link “About Ben”";

const PERSON: &str = "menu “Actions”
menuitem “Add as a friend”
menuitem “Mute…”
menuitem “Go to a date…”
menuitem “Block…”
menuitem “Report…”";

const LOOK: &str = "heading “Colours and language”
heading “Colours”
radio “As the system” checked=true
As the system
radio “Light”
Light
radio “Dark”
Dark
heading “Language”
form “Language”
button “As the browser”
button “English”
button “简体中文”";

#[tokio::test]
async fn what_one_has_set_and_the_ways_through_a_long_conversation_are_said() {
    let world = World::start().await;
    let (ben, ada) = (world.person("Ben").await, world.person("Ada").await);
    for number in 0..60 {
        ben.tells(&ada, &format!("wave {number}")).await;
    }
    let window = world.visitor("Ada").await;
    window.pick("Ben").await;
    window.sees("wave 0").await;
    window.until("!document.getElementById('jump').hidden").await;
    assert!(names(&window).await.contains("button “Jump to newest ("));
    window.write("#text", "A draft").await;
    window.click("#pin").await;
    window.click("#open-mute").await;
    window.until("document.querySelector('#actions:popover-open button')").await;
    assert_eq!(said(&window, "menu").await, MUTES);
    window.run("[...document.querySelectorAll('#actions button')].at(-1).click()").await;
    window.until("document.getElementById('pin').ariaPressed === 'true' && document.getElementById('open-mute').title === 'Muted'").await;
    assert_eq!(timeless(&Tree::of(&window).await.said_of("toolbar", "Tools of this conversation")), TOOLS);
    open_person(&window).await;
    assert_eq!(said(&window, "menu").await, PERSON);
    window.run("[...document.querySelectorAll('#actions button')][2].click()").await;
    window.until("document.getElementById('date').open").await;
    let date = said(&window, "dialog").await;
    assert!(date.starts_with("dialog “Go to a date”\nform\nheading “Go to a date”\nDay\n"), "{date}");
    window.press(ESCAPE).await;
    window.click("#to-contacts").await;
    window.until("document.querySelector('#list .draft')").await;
    let list = said(&window, "navigation").await;
    assert!(list.contains("\nlink “Ben Pinned Muted TIME Draft: A draft "), "{list}");
    open_settings(&window, "look").await;
    let look = said(&window, "dialog").await;
    assert!(look.ends_with(LOOK), "{look}");
}
