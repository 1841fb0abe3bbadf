//! The server refuses changes of messages that come too late, and some settings. The page says so, and keeps what was typed into a
//! message.

use serde_json::json;

use super::amend::choose as choose_action;
use super::axe::{LANGUAGES, choose, log_out, look};
use super::window::{ENTER, Window};
use super::world::{World, connected, find, say, stored};

/// With these the time to change a message is over at once.
const TIMES: [&str; 2] = ["TIDEMARK_MESSAGES__EDIT_SECONDS", "TIDEMARK_MESSAGES__RECALL_SECONDS"];

/// The page's words, in each of `LANGUAGES`: to edit, to take back, and that it is too late.
const WORDS: [[&str; 3]; 2] = [
    ["Edit", "Take back…", "Not changed: This message is too old to be edited or taken back."],
    ["编辑", "撤回…", "修改失败：消息发送时间过久，无法再修改或撤回。"],
];

const TYPED: &str = "Low tide is at nine, or ten";

/// Waits until so many changes are refused, all with these words.
async fn are_refused(window: &Window, many: usize, why: &str) {
    let said = "[...document.querySelectorAll('.trouble')].map((it) => it.firstChild.data)";
    window.until(&format!("{said}.length === {many} && {said}.every((it) => it === {})", json!(why))).await;
}

#[tokio::test]
async fn a_change_that_comes_too_late_is_refused_in_ones_language_and_what_was_typed_stays() {
    let world = World::start().await;
    let ben = world.person("Ben").await;
    let mut windows = Vec::new();
    for ((language, tag), words) in LANGUAGES.into_iter().zip(WORDS) {
        let window = world.window().await;
        choose(&window, &world, language, tag).await;
        world.sign_up(&window, &format!("Ada {language}")).await;
        find(&window, "Ben").await;
        say(&window, "Low tide is at nine").await;
        say(&window, "This was for Cleo").await;
        choose_action(&window, "Low tide", words[0]).await;
        window.write("#text", ", or ten").await;
        windows.push((window, words));
    }
    // The time ends while they type.
    let gone = world.stop_server().await;
    for (window, _) in &windows {
        window.until("document.body.dataset.phase !== 'open'").await;
    }
    let _running = gone.restart_with(&TIMES.map(|time| (time, "0".to_owned()))).await;
    for (window, [_, recall, too_late]) in &windows {
        connected(window).await;
        window.until(&format!("document.getElementById('text').value === '{TYPED}'")).await;
        window.write("#text", ENTER).await;
        are_refused(window, 1, too_late).await;
        window.sees("Low tide is at nine").await;
        window.sees(TYPED).await;
        choose_action(window, "for Cleo", recall).await;
        window.until("document.getElementById('ask').open").await;
        window.run("document.getElementById('ask-yes').click()").await;
        are_refused(window, 2, too_late).await;
        window.sees("This was for Cleo").await;

        // All of that after a reload, too, until it is given up.
        window.reload().await;
        connected(window).await;
        are_refused(window, 2, too_late).await;
        window.sees(TYPED).await;
        for left in [1, 0] {
            window.run("document.querySelector('.trouble button:last-child').click()").await;
            are_refused(window, left, too_late).await;
        }
        window.sees("Low tide is at nine").await;
        assert_eq!(window.copies(TYPED).await, 0);
    }
    assert_eq!(stored(&ben, "or ten").await, 0);
    assert_eq!(stored(&ben, "This was for Cleo").await, 2);
}

/// The page's notes on a mute and on a profile that the server refuses, in each of `LANGUAGES`.
const NOT_SET: [[&str; 2]; 2] = [
    [
        "“Mute (Ben)” was not changed: This cannot be set like that.",
        "“Profile” was not changed: This cannot be set like that.",
    ],
    ["“免打扰 (Ben)”未能更改：无法这样设置。", "“个人资料”未能更改：无法这样设置。"],
];

/// From now on the page mutes with a value that no server takes.
const SPOIL: &str = r#"const { send } = WebSocket.prototype;
    WebSocket.prototype.send = function (text) { send.call(this, text.replace('"value":{}', '"value":7')); };"#;

/// Waits until that is shown in this part of the page, and looks at it.
async fn is_told(window: &Window, part: &str, why: &str) {
    let note = format!("document.querySelector('{part} > #refusal:not([hidden])')");
    window.until(&format!("{note}?.firstElementChild.textContent === {}", json!(why))).await;
    look(window, &format!("“{why}” in {part}")).await;
}

async fn dismiss(window: &Window) {
    window.click("#refusal-dismiss").await;
    window.until("document.getElementById('refusal').hidden").await;
}

#[tokio::test]
async fn a_setting_that_is_refused_is_told_in_ones_language_and_is_as_it_was() {
    let world = World::start().await;
    let (ben, ada) = (world.person("Ben").await, world.person("Ada").await);
    ben.tells(&ada, "Is it far?").await;
    let window = world.window().await;
    for ((language, tag), [mute, profile]) in LANGUAGES.into_iter().zip(NOT_SET) {
        choose(&window, &world, language, tag).await;
        world.log_in(&window, "Ada").await;
        window.pick("Ben").await;
        window.until("document.querySelector('#open-mute .bell')").await;
        window.run(SPOIL).await;
        window.click("#open-mute").await;
        window.until("document.querySelectorAll('#actions button').length === 3").await;
        window.run("document.querySelector('#actions button:last-child').click()").await;
        is_told(&window, "#app", mute).await;
        window.until("document.querySelector('#open-mute .bell')").await;
        dismiss(&window).await;

        // The server refuses a NUL in the line of a profile. The note stands inside the open dialog, since nothing outside it can be pressed;
        // it moves out when the dialog closes.
        window.run("document.getElementById('open-settings').click()").await;
        window.run("document.getElementById('profile-about').value = 'At sea\0'").await;
        window.run("document.querySelector('#profile-form button').click()").await;
        is_told(&window, "#settings", profile).await;
        window.until("document.getElementById('profile-about').value === ''").await;
        assert_eq!(window.run("return document.getElementById('profile-done').textContent").await, "");
        window.run("document.getElementById('settings').close()").await;
        window.until("document.querySelector('#app > #refusal:not([hidden])')").await;
        dismiss(&window).await;
        log_out(&window).await;
        // The page notices, and goes there by itself.
        window.until("location.pathname === '/login'").await;
    }
}
