//! Axe finds nothing wrong in requests and friends, in moments with everything below them, in long lists, and while the connection is
//! away: in every language and all colours, on a desktop and a phone.

use serde_json::{json, value::to_raw_value};
use tidemark_client::Conversation;
use uuid::Uuid;

use super::axe::{LANGUAGES, choose, log_out, look};
use super::social::unfold;
use super::window::ENTER;
use super::world::{World, befriend, connected, find, open_person, say, uid_of};

#[tokio::test]
async fn axe_finds_nothing_in_requests_and_in_what_is_said_below_a_moment() {
    let world = World::start().await;
    let (ada, ben, cem) = (world.person("Ada").await, world.person("Ben").await, world.person("Cem").await);
    let (dan, eve) = (world.person("Dan").await, world.person("Eve").await);
    let window = world.window().await;
    for (number, (language, tag)) in (1_u128..).zip(LANGUAGES) {
        choose(&window, &world, language, tag).await;
        // There the way to contacts stands beside the panel.
        window.size(1280, 800).await;
        world.sign_up(&window, &format!("New {language}")).await;
        let uid = uid_of(&window).await;
        let mut last = number << 96;
        let mut key = || {
            last += 1;
            Uuid::from_u128(last)
        };
        // Two ask, one of them with a line below the name; Dan is a friend whom one has blocked; Eve is asked, and refuses.
        befriend(&window, uid, &[&ada, &dan]).await;
        let about = to_raw_value(&json!({"about": "At sea until Monday"})).expect("JSON");
        ben.http.set_for_all(key(), "profile", &about).await.expect("set");
        for asks in [&ben, &cem] {
            asks.http.befriend(key(), uid, true).await.expect("asked");
        }
        let blocked = to_raw_value(&json!({"blocked": true})).expect("JSON");
        eve.http.set(key(), Conversation::User(uid), "block", &blocked).await.expect("blocked");
        find(&window, "Dan").await;
        open_person(&window).await;
        // The last but one item blocks; the last one reports.
        window.run("document.querySelector('#actions button:nth-last-child(2)').click()").await;
        window.until("document.getElementById('ask').open").await;
        window.run("document.getElementById('ask-yes').click()").await;
        // Not anew: the page may still be storing that Dan is blocked.
        window.click("#to-contacts").await;
        window.until("document.getElementById('contacts-find')").await;
        window.write("#contacts-find", "Eve").await;
        window.until("document.querySelector('#contacts-found li')").await;
        window.write("#contacts-find", ENTER).await;
        window.until("document.querySelector('#page .trouble button')").await;
        // Requests, friends, and who is blocked.
        window.until("[...document.querySelectorAll('#page .contacts')].map((it) => it.children.length).join() === '2,1,0,1'").await;
        window.until("document.getElementById('page').innerText.includes('At sea until Monday')").await;
        look(&window, &format!("friend requests in {language}")).await;

        // The moment of Ada is liked, and commented on by both; she deletes another one while it is being commented on.
        let said = ada.http.post_moment(key(), "Bring *boots*, see https://tide.example/", &[]).await;
        let gone = ada.http.post_moment(key(), "Or not", &[]).await.expect("posted");
        let said = said.expect("posted").message_id;
        ada.http.comment(key(), said, "And coffee").await.expect("said");
        window.goto(&world.at("/moments")).await;
        connected(&window).await;
        // Older moments may be there before these two.
        let second = ".moment:nth-child(2)";
        window.until(&format!("document.querySelector('{second}')?.innerText.includes('boots')")).await;
        unfold(&window).await;
        window.run(&format!("document.querySelector('{second} [data-act=like]').click()")).await;
        window.write(&format!("{second} input"), &format!("Which pier?{ENTER}")).await;
        window.until(&format!("document.querySelectorAll('{second} .comments li').length === 2")).await;
        window.until(&format!("document.querySelector('{second} .comments button')")).await;
        window.offline(true).await;
        window.until("document.body.dataset.phase === 'offline'").await;
        window.write(".moment input", &format!("Why?{ENTER}")).await;
        window.until("document.querySelector('.comments .state')").await;
        ada.http.delete_moment(key(), gone.message_id).await.expect("deleted");
        look(&window, &format!("a comment that waits in {language}")).await;
        window.offline(false).await;
        // Refused, and told above the feed.
        window.until("document.querySelector('#page-body > div > p > .trouble button')").await;
        connected(&window).await;
        window.click(".moment-form summary").await;
        window.until("document.querySelectorAll('.moment-form details input').length === 2").await;
        look(&window, &format!("comments, and who sees a moment, in {language}")).await;
        log_out(&window).await;
        // The page notices, and goes there by itself.
        window.until("location.pathname === '/login'").await;
    }
}

#[tokio::test]
async fn axe_finds_nothing_in_a_long_list_and_a_long_conversation() {
    let world = World::start().await;
    let (ada, ben) = (world.person("Ada").await, world.person("Ben").await);
    for number in 0..60 {
        ben.group(&format!("Pier {number}"), &[ada.uid]).await;
    }
    for number in 0..300 {
        ben.tells(&ada, &format!("wave {number}")).await;
    }
    let window = world.visitor("Ada").await;
    window.until("document.querySelectorAll('#list .row').length === 61").await;
    look(&window, "a long list").await;
    window.pick("Ben").await;
    // At the first that is unread, with the way to the newest.
    window.sees("wave 0").await;
    window.until("!document.getElementById('jump').hidden").await;
    look(&window, "the beginning of a long conversation").await;
}

#[tokio::test]
async fn axe_finds_nothing_while_the_connection_is_away() {
    let world = World::start().await;
    world.person("Ben").await;
    let mut windows = Vec::new();
    for (language, tag) in LANGUAGES {
        let window = world.window().await;
        choose(&window, &world, language, tag).await;
        world.sign_up(&window, &format!("Ada {language}")).await;
        find(&window, "Ben").await;
        say(&window, "Is it far?").await;
        windows.push((window, language));
    }
    let shown = "document.getElementById('banner').checkVisibility()";
    for ((window, language), words) in windows.iter().zip(["You are offline.", "网络不可用"]) {
        window.offline(true).await;
        window.until("document.body.dataset.phase === 'offline'").await;
        window
            .until(&format!(
                "{shown} && document.getElementById('banner-text').textContent.startsWith('{words}')"
            ))
            .await;
        say(window, "Written offline").await;
        look(window, &format!("the line of who is offline in {language}")).await;
        window.offline(false).await;
        connected(window).await;
        window.until(&format!("!{shown}")).await;
    }
    let _gone = world.stop_server().await;
    for ((window, language), words) in windows.iter().zip(["Reconnecting…", "正在重新连接…"]) {
        window
            .until(&format!("{shown} && document.getElementById('banner-text').textContent === '{words}'"))
            .await;
        window.until("document.getElementById('banner-now').checkVisibility()").await;
        look(window, &format!("the line of a connection that comes back in {language}")).await;
    }
}
