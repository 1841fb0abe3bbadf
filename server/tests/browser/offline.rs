//! The connection goes away and comes back: nothing is lost, nothing comes twice.

use tidemark_client::{Draft, Recipient};

use super::axe::{LANGUAGES, choose};
use super::window::{ENTER, Window};
use super::world::{World, connected, database_of, find, say, stored};

const BANNER: &str = "document.getElementById('banner')";
const BANNER_SAYS: &str = "document.getElementById('banner-text').textContent";

#[tokio::test]
async fn a_message_sent_while_offline_arrives_once() {
    let world = World::start().await;
    let ben = world.person("Ben").await;
    let ada = world.newcomer("Ada").await;
    let bens = world.visitor("Ben").await;
    find(&ada, "Ben").await;
    ada.offline(true).await;
    ada.until(&format!("{BANNER_SAYS}.startsWith('You are offline. Messages are kept')")).await;
    say(&ada, "written at sea").await;
    ada.until("document.querySelector('.own .state').ariaLabel === 'Waiting'").await;
    ada.offline(false).await;
    ada.until("['Sent', 'Delivered', 'Read'].includes(document.querySelector('.own .state')?.ariaLabel)")
        .await;
    ada.until(&format!("{BANNER}.hidden")).await;
    bens.pick("Ada").await;
    bens.sees("written at sea").await;
    assert_eq!(bens.copies("written at sea").await, 1);
    assert_eq!(ada.copies("written at sea").await, 1);
    assert_eq!(stored(&ben, "written at sea").await, 1);
}

/// In order, each once. How long it took is printed; a test of it on a machine that others use would say little.
#[tokio::test]
async fn a_hundred_messages_written_offline_arrive_in_their_order() {
    let world = World::start().await;
    let ben = world.person("Ben").await;
    let ada = world.newcomer("Ada").await;
    find(&ada, "Ben").await;
    ada.offline(true).await;
    ada.until(&format!("{BANNER_SAYS}.startsWith('You are offline. Messages are kept')")).await;
    let write = "const done = arguments[0], text = document.getElementById('text');
        (async () => {
          for (let n = 0; n < 100; n++) {
            text.value = `number ${n}`;
            document.getElementById('composer').requestSubmit();
            while (document.querySelectorAll('.own').length <= n) await new Promise((go) => setTimeout(go, 5));
          }
          done(true);
        })();";
    ada.run_async(write).await;
    ada.run("window.began = performance.now()").await;
    ada.offline(false).await;
    ada.until("[...document.querySelectorAll('.own .state')].every((it) => ['Sent', 'Delivered', 'Read'].includes(it.ariaLabel))").await;
    println!("all were sent after {} ms", ada.run("return performance.now() - window.began").await);
    let page = ben.http.range(&tidemark_client::RangeQuery::after(0)).await.expect("rows");
    let texts: Vec<_> = page.rows.iter().filter_map(tidemark_client::Entry::text).collect();
    assert_eq!(texts, (0..100).map(|n| format!("number {n}")).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_server_that_is_killed_while_someone_types_costs_nothing() {
    let world = World::start().await;
    let ben = world.person("Ben").await;
    let ada = world.newcomer("Ada").await;
    find(&ada, "Ben").await;
    say(&ada, "before").await;
    ada.until("['Sent', 'Delivered', 'Read'].includes(document.querySelector('.own .state')?.ariaLabel)")
        .await;
    ada.write("#text", "half a thou").await;

    let gone = world.kill_server().await;
    ada.until(&format!("{BANNER_SAYS} === 'Reconnecting…' && !{BANNER}.hidden")).await;
    ada.write("#text", "ght").await;
    ada.until("document.getElementById('text').value === 'half a thought'").await;
    let world = gone.restart().await;

    connected(&ada).await;
    ada.until(&format!("{BANNER}.hidden")).await;
    ada.until("document.getElementById('text').value === 'half a thought'").await;
    ada.reload().await;
    ada.until("document.getElementById('text')?.value === 'half a thought'").await;
    ada.write("#text", &format!(", and the rest{ENTER}")).await;
    ada.sees("half a thought, and the rest").await;
    ada.until("[...document.querySelectorAll('.own .state')].every((it) => ['Sent', 'Delivered', 'Read'].includes(it.ariaLabel))").await;
    let bens = world.visitor("Ben").await;
    bens.pick("Ada").await;
    bens.sees("half a thought, and the rest").await;
    assert_eq!(stored(&ben, "half a thought").await, 1);
}

#[tokio::test]
async fn what_was_sent_to_a_dead_server_arrives_in_order_and_once() {
    let world = World::start().await;
    let ben = world.person("Ben").await;
    let ada = world.newcomer("Ada").await;
    find(&ada, "Ben").await;
    let gone = world.kill_server().await;
    for n in 0..5 {
        say(&ada, &format!("number {n}")).await;
    }
    ada.until("document.querySelectorAll('.own .clock').length === 5").await;
    let world = gone.restart().await;
    ada.until("document.querySelectorAll('.own .check').length === 5").await;
    let bens = world.visitor("Ben").await;
    bens.pick("Ada").await;
    bens.sees("number 4").await;
    let seen = bens
        .run("return [...document.querySelectorAll('.words')].map((it) => it.lastChild.data).join()")
        .await;
    assert_eq!(seen, "number 0,number 1,number 2,number 3,number 4");
    assert_eq!(stored(&ben, "number").await, 5);
}

#[tokio::test]
async fn a_proxy_that_is_cut_in_the_middle_of_sends_and_comes_back_costs_nothing() {
    const ALL_SENT: &str = "[...document.querySelectorAll('.own .state')].every((it) => ['Sent', 'Delivered', 'Read'].includes(it.ariaLabel))";
    let (world, mut gate) = World::behind_a_gate().await;
    let ben = world.person("Ben").await;
    let ada = world.newcomer("Ada").await;
    find(&ada, "Ben").await;
    say(&ada, "number 0").await;
    ada.until(ALL_SENT).await;
    // Within the frame of the next message; then with the answer to one; then without one.
    for (n, (to_server, to_client)) in [(1, (40, u64::MAX)), (2, (u64::MAX, 0)), (3, (0, u64::MAX))] {
        gate.break_after(to_server, to_client);
        say(&ada, &format!("number {n}")).await;
        gate.broken().await;
        ada.until(&format!("!{BANNER}.hidden")).await;
        say(&ada, &format!("number {n} and a half")).await;
        gate.open().await;
        connected(&ada).await;
        ada.until(ALL_SENT).await;
        ada.until(&format!("{BANNER}.hidden")).await;
    }
    let bens = world.visitor("Ben").await;
    bens.pick("Ada").await;
    bens.sees("number 3 and a half").await;
    let seen =
        "return [...document.querySelectorAll('.words')].map((it) => it.lastChild.data.slice(7)).join()";
    let all = "0,1,1 and a half,2,2 and a half,3,3 and a half";
    assert_eq!((bens.run(seen).await, ada.run(seen).await), (all.into(), all.into()));
    assert_eq!(stored(&ben, "number").await, 7);
}

/// The answer to a send is lost with the server, and the row is older than what a browser that starts over syncs.
#[tokio::test]
async fn a_message_whose_answer_was_lost_is_shown_once() {
    let world = World::start().await;
    let ben = world.person("Ben").await;
    let ada = world.person("Ada").await;
    let window = world.visitor("Ada").await;
    find(&window, "Ben").await;
    window.offline(true).await;
    say(&window, "lost answer").await;
    window.until("document.querySelector('.own .state').ariaLabel === 'Waiting'").await;
    // The send that the browser made before it went away: the same message, accepted long ago.
    let ask = "const open = indexedDB.open('NAME'), done = arguments[0]; open.onsuccess = () => {
        const all = open.result.transaction('outbox').objectStore('outbox').getAll();
        all.onsuccess = () => done(all.result[0].client_id);
    };";
    let client_id = window.run_async(&ask.replace("NAME", &database_of(&window).await)).await;
    let client_id = client_id.as_str().expect("an id").parse().expect("a UUID");
    let text = serde_json::value::to_raw_value(&serde_json::json!({"text": "lost answer"})).expect("JSON");
    let draft = Draft { client_id, to: Recipient::User(ben.uid), body: text };
    ada.http.send(&draft).await.expect("sent");
    window.offline(false).await;
    window
        .until("['Sent', 'Delivered', 'Read'].includes(document.querySelector('.own .state')?.ariaLabel)")
        .await;
    for n in 0..3 {
        ben.tells(&ada, &format!("answer {n}")).await;
    }
    window.sees("answer 2").await;
    let shown = "return [...document.querySelectorAll('.words')].map((it) => it.lastChild.data).join()";
    assert_eq!(window.run(shown).await, "lost answer,answer 0,answer 1,answer 2");
    assert_eq!(stored(&ben, "lost answer").await, 1);
}

#[tokio::test]
async fn a_device_that_was_away_gets_exactly_what_it_missed() {
    let world = World::start().await;
    let ben = world.person("Ben").await;
    let ada = world.person("Ada").await;
    let window = world.visitor("Ada").await;
    ben.tells(&ada, "before").await;
    window.pick("Ben").await;
    window.sees("before").await;
    window.offline(true).await;
    window.until(&format!("!{BANNER}.hidden")).await;
    find(&window, "Ben").await;
    for n in 0..150 {
        ben.send(Recipient::User(ada.uid), &format!("missed {n}")).await;
    }
    window.offline(false).await;
    window.sees("missed 149").await;
    let seen = window
        .run("return [...document.querySelectorAll('.words')].map((it) => it.lastChild.data).join()")
        .await;
    let all: Vec<String> = (0..150).map(|n| format!("missed {n}")).collect();
    assert_eq!(seen, format!("before,{}", all.join(",")));
}

/// The page's question before two messages are lost, in each of `LANGUAGES`.
const UNSENT: [&str; 2] = [
    "2 messages are not sent yet. If you log out, they are lost.",
    "有 2 条消息尚未发送，退出登录后将会丢失。",
];

/// From now on no message leaves the page.
const HOLD: &str = r#"const { send } = WebSocket.prototype;
    WebSocket.prototype.send = function (text) { if (!text.includes('"type":"send"')) send.call(this, text); };"#;

/// Says two things that stay here, and asks to log out; answers the question with this button of it.
async fn log_out(window: &Window, said: [&str; 2], button: &str, question: &str, answer: &str) {
    window.run(HOLD).await;
    for text in said {
        say(window, text).await;
    }
    window.until("document.querySelectorAll('.own .clock').length === 2").await;
    window.run("document.getElementById('open-settings').click()").await;
    window.run(&format!("document.getElementById('{button}').click()")).await;
    window.until("document.getElementById('ask').open").await;
    window.until(&format!("document.getElementById('ask-text').textContent === '{question}'")).await;
    window.run(&format!("document.getElementById('{answer}').click()")).await;
}

#[tokio::test]
async fn whoever_logs_out_is_asked_before_messages_that_were_not_sent_are_lost() {
    let world = World::start().await;
    let (ben, _ada) = (world.person("Ben").await, world.person("Ada").await);
    let window = world.window().await;
    for (n, ((language, tag), question)) in LANGUAGES.into_iter().zip(UNSENT).enumerate() {
        choose(&window, &world, language, tag).await;
        world.log_in(&window, "Ada").await;
        find(&window, "Ben").await;
        let kept = [format!("kept {n}"), format!("kept, too, {n}")];
        log_out(&window, kept.each_ref().map(String::as_str), "log-out-all", question, "ask-no").await;
        window.until("!document.getElementById('ask').open && document.querySelectorAll('.own .clock').length === 2").await;
        window.run("document.getElementById('settings').close()").await;
        window.until("location.hash === ''").await;
        // All is as it was, and goes out with a page that holds nothing back.
        window.reload().await;
        connected(&window).await;
        window.sees(&kept[1]).await;
        window.until("document.querySelector('.own') && !document.querySelector('.own .clock')").await;
        assert_eq!(stored(&ben, "kept").await, 2 * (n + 1));
        log_out(&window, ["lost", "lost, too"], "log-out", question, "ask-yes").await;
        window.until("location.pathname === '/login'").await;
    }
    // Nothing of it comes from here any more, and nobody asks about what was sent.
    world.log_in(&window, "Ada").await;
    find(&window, "Ben").await;
    window.sees("kept 1").await;
    window.run("document.getElementById('log-out').click()").await;
    window.until("location.pathname === '/login'").await;
    assert_eq!(stored(&ben, "lost").await, 0);
}
