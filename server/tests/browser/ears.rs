//! The page as a screen reader gets it: the browser's own accessibility tree, as lines of text.

use serde_json::{Value, json};
use tidemark_client::Recipient;

use super::amend::choose;
use super::window::{ENTER, Window};
use super::world::{World, befriend, connected, say};

/// Roles that are said; the node's own content is its name, or is within it.
const WHOLE: [&str; 11] = [
    "button",
    "link",
    "image",
    "heading",
    "textbox",
    "combobox",
    "checkbox",
    "radio",
    "option",
    "menuitem",
    "menuitemcheckbox",
];
/// Roles that are said before their content.
const HOLDS: [&str; 13] = [
    "log",
    "list",
    "navigation",
    "form",
    "feed",
    "article",
    "dialog",
    "group",
    "menu",
    "toolbar",
    "status",
    "alert",
    "alertdialog",
];
/// States that are said with a control.
const STATES: [&str; 5] = ["pressed", "hasPopup", "expanded", "disabled", "checked"];

/// The nodes of the accessibility tree.
pub(crate) struct Tree(Vec<Value>);

impl Tree {
    pub(crate) async fn of(window: &Window) -> Tree {
        let mut tree = window.devtools("Accessibility.getFullAXTree", json!({})).await;
        let Value::Array(nodes) = tree["nodes"].take() else { panic!("no tree: {tree}") };
        Tree(nodes)
    }

    /// Role and name of everything that is not left out.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .filter(|node| node["ignored"] == false)
            .map(|node| (text(node, "role"), text(node, "name")))
    }

    /// The lines said for the first node with this role, in order: one for each text and each control.
    pub(crate) fn said(&self, role: &str) -> Vec<String> {
        let first = self.nodes().find(|(each, _)| *each == role).unwrap_or_else(|| panic!("no {role}"));
        self.said_of(role, first.1)
    }

    /// The same, for the first node with this role and name.
    pub(crate) fn said_of(&self, role: &str, name: &str) -> Vec<String> {
        let by_id = |id: &Value| self.0.iter().find(|node| node["nodeId"] == *id).expect("a node");
        let is_it = |node: &&Value| {
            node["ignored"] == false && text(node, "role") == role && text(node, "name") == name
        };
        let mut waiting = vec![self.0.iter().find(is_it).unwrap_or_else(|| panic!("no {role} “{name}”"))];
        let mut said = Vec::new();
        while let Some(node) = waiting.pop() {
            let (role, name) = (text(node, "role"), text(node, "name"));
            let seen = node["ignored"] == false;
            if seen && role == "StaticText" {
                said.push(name.to_owned());
            } else if seen
                && (WHOLE.contains(&role) || HOLDS.contains(&role) || !text(node, "description").is_empty())
            {
                said.push(line(node));
            }
            if !(seen && (WHOLE.contains(&role) || role == "StaticText")) {
                waiting.extend(node["childIds"].as_array().into_iter().flatten().rev().map(by_id));
            }
        }
        said.retain(|line| !line.is_empty());
        said
    }
}

fn text<'a>(node: &'a Value, what: &str) -> &'a str {
    node[what]["value"].as_str().unwrap_or_default().trim()
}

fn line(node: &Value) -> String {
    let mut line = text(node, "role").to_owned();
    if !text(node, "name").is_empty() {
        line = format!("{line} “{}”", text(node, "name"));
    }
    for property in node["properties"].as_array().into_iter().flatten() {
        let (name, value) = (property["name"].as_str().unwrap_or_default(), &property["value"]["value"]);
        if STATES.contains(&name)
            && !["false", ""].contains(&value.as_str().unwrap_or("true"))
            && *value != false
        {
            line = format!("{line} {name}={}", value.to_string().trim_matches('"'));
        }
    }
    match text(node, "description") {
        "" => line,
        about => format!("{line} – {about}"),
    }
}

/// Without what is another one each day: `Nov 23, 2026, 6:22 AM` and `06:22 AM` are both a time.
pub(crate) fn timeless(lines: &[String]) -> String {
    let mut words: Vec<&str> = Vec::new();
    let lines = lines.join("\n ");
    for word in lines.split(' ') {
        let text = word.trim_end();
        if text.len() >= 4
            && text.split_once(':').is_some_and(|(hour, minute)| digits(hour) && digits(minute))
        {
            // A date before it goes, too.
            let date = words.iter().rposition(|word| word.ends_with('\n')).map_or(0, |last| last + 1);
            let date = date + words[date..].iter().position(|word| *word == "–").map_or(0, |dash| dash + 1);
            if words.last().is_some_and(|word| word.ends_with(',')) {
                words.truncate(date);
            }
            words.push(if word.ends_with('\n') { "TIME\n" } else { "TIME" });
        } else if ["AM", "PM"].contains(&text) {
            if word.ends_with('\n') {
                words.pop();
                words.push("TIME\n");
            }
        } else {
            words.push(word);
        }
    }
    words.join(" ").replace("\n ", "\n")
}

fn digits(text: &str) -> bool {
    text.len() <= 2 && text.bytes().all(|byte| byte.is_ascii_digit())
}

const LOG: &str = "log “Messages”
This is where Harbour walk begins.
Today
Ben created the group
article “Ben: Low tide is at nine”
Ben
TIME
Low tide is at
nine
button “Actions for “Low tide is at nine”” hasPopup=menu
button “👍 1” pressed=true – You
article “Cleo: I bring coffee”
Cleo
TIME
I bring coffee
button “Actions for “I bring coffee”” hasPopup=menu
article “You: Nine at the pier, then”
You
TIME
Nine at the pier, then
(edited)
button “Actions for “Nine at the pier, then”” hasPopup=menu
image “Sent”
article “You took a message back”
You took a message back
article “You: Thank you”
button “Reply to Cleo I bring coffee”
generic – TIME
You:
Thank you
button “Actions for “Thank you”” hasPopup=menu
image “Sent”
New
article “Ben: See you there”
Ben
TIME
See you there
button “Actions for “See you there”” hasPopup=menu";

const LIST: &str = "navigation “Conversations”
toolbar “Tools”
link “Ada” – Profile
button “Settings” hasPopup=dialog
button “Find people, conversations and messages (Ctrl+K)” hasPopup=dialog
button “New group” hasPopup=dialog
button “Starred messages” hasPopup=dialog
list
link “Moments”
link “Contacts”
button “Unread”
list
link “Cleo TIME Good morning 1 unread”
link “Ben TIME Is the tide in?”";

const COMPOSER: &str = "form “Write a message”
textbox “Message to Ben”
button “Add files”
button “Emoji” hasPopup=dialog
button “Record a voice message: hold, or press shortly”
button “Send (Enter)”";

const MOMENT: &str = "feed “Moments”
article “Ben: Low tide is at ten”
Ben
time – TIME
just now
Low tide is at
ten
button “Like”
button “Comment”";

#[tokio::test]
async fn the_log_is_read_as_people_would_tell_it() {
    let world = World::start().await;
    let (ada, ben, cleo) = (world.person("Ada").await, world.person("Ben").await, world.person("Cleo").await);
    let gid = ben.group("Harbour walk", &[ada.uid, cleo.uid]).await;
    let group = Recipient::Group(gid);
    ben.send(group, "Low tide is at **nine**").await;
    cleo.send(group, "I bring coffee").await;
    let window = world.visitor("Ada").await;
    window.pick("Harbour walk").await;
    window.sees("I bring coffee").await;
    let sent = "[...document.querySelectorAll('.own .state')].every((it) => it.ariaLabel === 'Sent')";
    say(&window, "Nine at the pier").await;
    window.until(sent).await;
    window.write("#text", "\u{E013}").await;
    window.until("!document.getElementById('context').hidden").await;
    window.write("#text", &format!(", then{ENTER}")).await;
    window.until("document.querySelector('.edited')").await;
    say(&window, "This was for Dov").await;
    window.until(sent).await;
    choose(&window, "This was for Dov", "Take back…").await;
    window.click("#ask-yes").await;
    window.sees("You took a message back").await;
    choose(&window, "I bring coffee", "Reply").await;
    say(&window, "Thank you").await;
    choose(&window, "Low tide", "React with 👍").await;
    window.until("document.querySelector('.smiley')").await;
    window.until(sent).await;
    window.run("document.hasFocus = () => false").await;
    ben.send(group, "See you there").await;
    window.sees("See you there").await;
    window.until("document.querySelector('.fresh-line')").await;
    let said = timeless(&Tree::of(&window).await.said("log"));
    assert_eq!(said, LOG);
}

#[tokio::test]
async fn the_list_the_composer_and_a_moment_are_read_without_repetition() {
    let world = World::start().await;
    let (ada, ben, cleo) = (world.person("Ada").await, world.person("Ben").await, world.person("Cleo").await);
    ben.tells(&ada, "Is the tide in?").await;
    cleo.tells(&ada, "Good morning").await;
    let window = world.visitor("Ada").await;
    window.pick("Ben").await;
    window.sees("Is the tide in?").await;
    window.until("document.querySelectorAll('#list .badge').length === 1").await;
    let tree = Tree::of(&window).await;
    assert_eq!(timeless(&tree.said("navigation")), LIST);
    assert_eq!(timeless(&tree.said("form")), COMPOSER);
    befriend(&window, ada.uid, &[&ben]).await;
    window.goto(&world.at("/moments")).await;
    connected(&window).await;
    window.until("document.querySelector('.moment')").await;
    assert_eq!(timeless(&Tree::of(&window).await.said("feed")), MOMENT);
}
