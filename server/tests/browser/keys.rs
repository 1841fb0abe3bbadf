//! Everything can be done without a mouse and without seeing.

use serde_json::{Value, json};

use super::window::{ALT_DOWN, CONTROL_K, DOWN, ENTER, ESCAPE};
use super::world::World;

const TITLE: &str = "document.getElementById('pane-title').textContent";

#[tokio::test]
async fn keys_find_people_and_move_between_conversations() {
    let world = World::start().await;
    let (ben, cleo, ada) = (world.person("Ben").await, world.person("Cleo").await, world.person("Ada").await);
    ben.tells(&ada, "from Ben").await;
    cleo.tells(&ada, "from Cleo").await;
    let window = world.visitor("Ada").await;
    window.until("document.querySelectorAll('#list li').length === 2").await;

    window.press(CONTROL_K).await;
    window.until("document.querySelectorAll('#find-list li').length === 2").await;
    window.press(DOWN).await;
    window
        .until("document.querySelector('#find-list [aria-selected=true]').textContent.endsWith('Ben')")
        .await;
    window.press(ENTER).await;
    window.until(&format!("{TITLE} === 'Ben' && document.activeElement.id === 'text'")).await;
    window.run("document.querySelector('#list a').click()").await;
    window.until(&format!("{TITLE} === 'Cleo'")).await;
    window.press(ALT_DOWN).await;
    window.until(&format!("{TITLE} === 'Ben'")).await;
}

#[tokio::test]
async fn a_question_mark_opens_the_keys_and_escape_gives_the_focus_back() {
    let world = World::start().await;
    let ben = world.person("Ben").await;
    let ada = world.person("Ada").await;
    ben.tells(&ada, "hello").await;
    let window = world.visitor("Ada").await;
    window.pick("Ben").await;
    window.write("#text", "a question?").await;
    window.until("document.getElementById('text').value === 'a question?'").await;
    window.run("document.querySelector('#list a').focus()").await;
    window.press("?").await;
    window.until("document.getElementById('settings').open").await;
    window.until("document.querySelector('#fact-beats td')").await;
    window.press(ESCAPE).await;
    window.until("!document.getElementById('settings').open").await;
    window.until("document.activeElement === document.querySelector('#list a')").await;
}

#[tokio::test]
async fn escape_marks_as_read() {
    let world = World::start().await;
    let ben = world.person("Ben").await;
    let ada = world.person("Ada").await;
    for n in 0..60 {
        ben.tells(&ada, &format!("number {n}")).await;
    }
    let window = world.visitor("Ada").await;
    window.pick("Ben").await;
    window.until("document.querySelector('.fresh-line') && document.querySelector('.badge')").await;
    window.press(ESCAPE).await;
    window.until("!document.querySelector('.fresh-line') && !document.querySelector('.badge')").await;
    window.sees("number 59").await;
}

#[tokio::test]
async fn every_control_has_one_name() {
    let world = World::start().await;
    let ben = world.person("Ben").await;
    let ada = world.person("Ada").await;
    ben.tells(&ada, "hello").await;
    let window = world.visitor("Ada").await;
    window.pick("Ben").await;
    window.sees("hello").await;
    let pages = ["", "find", "new-group", "members", "settings"];
    let mut controls = 0;
    for dialog in pages {
        if !dialog.is_empty() {
            window.run(&format!("document.getElementById('{dialog}').showModal()")).await;
        }
        let tree = window.devtools("Accessibility.getFullAXTree", json!({})).await;
        for node in tree["nodes"].as_array().expect("nodes") {
            let role = node["role"]["value"].as_str().unwrap_or_default();
            let is_control = ["button", "link", "textbox", "searchbox", "combobox", "radio"].contains(&role);
            if is_control && node["ignored"] == false {
                controls += 1;
                let name = node["name"]["value"].as_str().unwrap_or_default().trim();
                assert!(!name.is_empty(), "{role} without a name in {dialog:?}: {node}");
            }
        }
        let roles: Vec<&Value> =
            tree["nodes"].as_array().expect("nodes").iter().map(|it| &it["role"]["value"]).collect();
        if dialog.is_empty() {
            for landmark in ["navigation", "main", "log", "form", "heading"] {
                assert!(roles.iter().any(|role| *role == landmark), "no {landmark}");
            }
        } else {
            assert!(roles.iter().any(|role| *role == "dialog"), "{dialog} is no dialog");
            window.run(&format!("document.getElementById('{dialog}').close()")).await;
        }
    }
    assert!(controls > 20, "{controls} controls");
}
