//! Each refusal by the server stands, in the person's language, where the request was made: as one sentence, until it is read. So do
//! refusals of requests that were made offline and came too late, after others' actions.

use serde_json::{json, value::to_raw_value};
use tidemark_client::{Conversation, Kind, RangeQuery};
use uuid::Uuid;

use super::amend::choose as choose_action;
use super::axe::choose;
use super::social::{open, press, shows, unfold};
use super::window::{ENTER, Window};
use super::world::{Person, World, connected, open_person, say, stored};

/// Where it is told, and in which words, in the order of the page. The names of people are those of the test.
const SAID: [(&str, &[&str]); 5] = [
    // Two changes of another person's message.
    ("Ben", &["修改失败：只能修改自己发送或发布的内容。", "修改失败：只能修改自己发送或发布的内容。"]),
    // A person who has blocked her takes neither a message nor a request.
    ("Cem", &["发送失败：对方不接受来自你的消息、申请或其他互动。"]),
    // A person who takes messages from friends alone, and is no longer a friend, takes no message.
    ("Eve", &["发送失败：对方只接收好友的消息，请先发送好友申请。"]),
    ("/contacts", &["Cem：对方不接受来自你的消息、申请或其他互动。"]),
    // A comment on a moment deleted meanwhile; a like of a moment that she may no longer see, and a comment on it.
    ("/moments", &["这条动态已不存在。", "这条动态已不存在。", "这条动态已不存在。"]),
];

/// From now on the page changes this message, whichever it means to change.
const SPOIL: &str = "const { send } = WebSocket.prototype;
    WebSocket.prototype.send = function (text) {
      const frame = JSON.parse(text);
      send.call(this, JSON.stringify(['edit', 'recall'].includes(frame.type) ? { ...frame, message_id: THEIRS } : frame));
    };";

/// Waits until the open page tells of these refusals alone.
async fn are_told(window: &Window, words: &[&str]) {
    let told = "JSON.stringify([...document.querySelectorAll('#open:not([hidden]) .trouble, #page:not([hidden]) .trouble')]
        .map((it) => it.firstChild.data.trim()))";
    window.until(&format!("{told} === {}", json!(json!(words).to_string()))).await;
}

/// Opens a conversation by its title, or a page by its path.
async fn go(window: &Window, place: &str) {
    match place.strip_prefix('/') {
        Some(page) => open(window, page).await,
        None => window.pick(place).await,
    }
}

/// Each wants to be the other's friend; the key is of this pair alone.
async fn befriend(one: &Person, other: &Person) {
    for (from, to) in [(one, other), (other, one)] {
        let key = Uuid::from_u128(u128::from(from.uid) << 32 | u128::from(to.uid));
        from.http.befriend(key, to.uid, true).await.expect("asked");
    }
}

#[tokio::test]
async fn each_refusal_is_one_sentence_in_ones_language_where_it_was_asked_for() {
    let world = World::start().await;
    let ada = world.person("Ada").await;
    let [ben, cem, eve, fay] = [
        world.person("Ben").await,
        world.person("Cem").await,
        world.person("Eve").await,
        world.person("Fay").await,
    ];
    for friend in [&ben, &eve, &fay] {
        befriend(&ada, friend).await;
    }
    let key = Uuid::from_u128;
    let deleted = ben.http.post_moment(key(1), "The tide is out", &[]).await.expect("posted");
    fay.http.post_moment(key(2), "Low tide is at ten", &[]).await.expect("posted");
    for person in [&ben, &cem, &eve] {
        person.tells(&ada, "Is it far?").await;
    }
    let window = world.window().await;
    choose(&window, &world, "zh", "zh-Hans").await;
    world.log_in(&window, "Ada").await;
    open(&window, "contacts").await;
    open(&window, "moments").await;
    shows(&window, "The tide is out").await;

    window.pick("Ben").await;
    say(&window, "Nine at the pier").await;
    say(&window, "Or ten").await;
    window.until("document.querySelectorAll('.own .more').length === 2").await;
    // The page offers no change of another person's message, and the server refuses one, too.
    for (message, offered) in [(".own", true), (".msg:not(.own)", false)] {
        window.run(&format!("document.querySelector('{message} .more').click()")).await;
        window.until("document.querySelector('#actions:popover-open button')").await;
        let items =
            "const items = [...document.querySelectorAll('#actions button')].map((it) => it.textContent);
            return ['引用', '编辑', '撤回…'].map((each) => items.includes(each))";
        assert_eq!(window.run(items).await, json!([true, offered, offered]), "{message}");
        window.run("document.getElementById('actions').hidePopover()").await;
    }
    let rows = ada.http.range(&RangeQuery::after(0)).await.expect("rows").rows;
    let theirs = rows.iter().find(|row| row.kind == Kind::Message && row.sender == ben.uid).expect("a row");
    let (bens, id) = (Conversation::User(ben.uid), theirs.message_id);
    let refused = [ada.http.edit(key(3), bens, id, "It is").await, ada.http.recall(key(4), bens, id).await];
    for answer in refused {
        assert_eq!(answer.expect_err("not hers").code(), Some("not_yours"));
    }
    window.run(&SPOIL.replace("THEIRS", &id.to_string())).await;
    choose_action(&window, "Nine at the pier", "编辑").await;
    window.write("#text", &format!(", or ten{ENTER}")).await;
    choose_action(&window, "Or ten", "撤回…").await;
    window.until("document.getElementById('ask').open").await;
    window.run("document.getElementById('ask-yes').click()").await;
    are_told(&window, SAID[0].1).await;

    // All else is asked for offline; the others are faster.
    window.offline(true).await;
    window.until("document.body.dataset.phase === 'offline'").await;
    let blocked = to_raw_value(&json!({"blocked": true})).expect("JSON");
    cem.http.set(key(5), Conversation::User(ada.uid), "block", &blocked).await.expect("blocked");
    let privacy = to_raw_value(&json!({"write": "friends"})).expect("JSON");
    eve.http.set_for_all(key(6), "privacy", &privacy).await.expect("set");
    for (number, person) in [(7, &eve), (8, &fay)] {
        person.http.befriend(key(number), ada.uid, false).await.expect("ended");
    }
    ben.http.delete_moment(key(9), deleted.message_id).await.expect("deleted");
    for person in ["Cem", "Eve"] {
        window.pick(person).await;
        say(&window, "Anyone there?").await;
    }
    window.pick("Cem").await;
    open_person(&window).await;
    window.until("document.querySelector('#actions button')?.textContent === '加为好友'").await;
    window.run("document.querySelector('#actions button').click()").await;
    open(&window, "moments").await;
    window.until("document.querySelectorAll('.moment').length === 2").await;
    window.run("document.querySelector('.moment:nth-child(1) [data-act=like]').click()").await;
    unfold(&window).await;
    for (moment, text) in [(1, "Bring boots"), (2, "Which pier?")] {
        window.write(&format!(".moment:nth-child({moment}) input"), &format!("{text}{ENTER}")).await;
        shows(&window, text).await;
    }
    // To all friends: nothing is refused, and who is none any more does not get it.
    window.write("#moment-text", "To my friends").await;
    press(&window, "发表").await;
    shows(&window, "To my friends").await;
    window.offline(false).await;
    connected(&window).await;

    window.until("!document.querySelector('.moment .who .state')").await;
    assert_eq!(stored(&ben, "To my friends").await, 1);
    for person in [&eve, &fay] {
        assert_eq!(stored(person, "To my friends").await, 0);
    }
    for (place, words) in SAID {
        go(&window, place).await;
        are_told(&window, words).await;
    }
    // The typed text stands beside it, whatever has become of the moment.
    for text in ["Bring boots", "Which pier?"] {
        shows(&window, text).await;
    }
    window.until("!document.getElementById('page').innerText.includes('The tide is out')").await;
    // Also after a reload, until each is read.
    window.reload().await;
    connected(&window).await;
    for (place, words) in SAID {
        go(&window, place).await;
        for read in 0..words.len() {
            are_told(&window, &words[read..]).await;
            window.run("document.querySelector('#open:not([hidden]) .trouble button:last-child, #page:not([hidden]) .trouble button').click()").await;
        }
        are_told(&window, &[]).await;
    }
}
