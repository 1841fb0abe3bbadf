//! The place where somebody reads: what is on the screen belongs to the conversation of the box, also where the network is slow or the
//! server hangs; what was read is what was seen; and a conversation opens where one was.

use tidemark_client::{Draft, Recipient};

use super::starred::choose;
use super::window::Window;
use super::world::{Person, World, connected, open_about, open_person};

/// Ada with a group of Ben's that has so many messages, "number 0" and on, none of which she has read.
async fn told(world: &World, messages: usize) -> (Person, Person, u64) {
    let (ben, ada) = (world.person("Ben").await, world.person("Ada").await);
    let gid = ben.group("Harbour walk", &[ada.uid]).await;
    for n in 0..messages {
        ben.send(Recipient::Group(gid), &format!("number {n}")).await;
    }
    (ben, ada, gid)
}

/// A script that opens the conversation with this title.
fn open(title: &str) -> String {
    format!(
        "[...document.querySelectorAll('#list a')].find((row) => row.querySelector('.title').textContent === '{title}').click();"
    )
}

/// How many messages the server takes as unread in the newest conversation.
async fn unread(person: &Person) -> u64 {
    person.http.conversations().await.expect("the list")[0].unread
}

/// The numbers of the messages in the document, in their order.
const NUMBERS: &str =
    "[...document.querySelectorAll('#log .words')].map((it) => Number(it.textContent.slice(7)))";

/// Scrolls by steps until a message is in view.
async fn scroll_to(window: &Window, text: &str, step: i32) {
    let script = "const done = arguments[0], log = document.getElementById('log');
        const inView = () => [...log.querySelectorAll('.words')].some((it) => {
          const { top, bottom } = it.getBoundingClientRect(), box = log.getBoundingClientRect();
          return it.textContent === 'TEXT' && top > box.top && bottom < box.bottom;
        });
        (async () => {
          for (let steps = 0; steps < 2000 && !inView(); steps++) {
            log.scrollTop += STEP;
            await new Promise((go) => requestAnimationFrame(() => setTimeout(go, 5)));
            const all = NUMBERS;
            if (all.some((number, at) => at && number !== all[at - 1] + 1)) return done(all);
          }
          done(inView());
        })();";
    let script = script.replace("TEXT", text).replace("STEP", &step.to_string()).replace("NUMBERS", NUMBERS);
    assert_eq!(window.run_async(&script).await, true, "{text}; else numbers with a gap between them");
}

/// Waits until the place that is kept is the one where somebody is.
async fn rests(window: &Window) {
    let at = "((place, log) => place && Math.abs(log.querySelector(`[data-row=\"${place.id}\"]`)?.getBoundingClientRect().bottom
        - log.getBoundingClientRect().top - place.offset) <= 1)(history.state?.place, document.getElementById('log'))";
    window.until(at).await;
}

/// The first message in view, and where it stands.
const FIRST: &str = "(() => {
    const log = document.getElementById('log'), { top } = log.getBoundingClientRect();
    const first = [...log.querySelectorAll('.msg')].find((it) => it.getBoundingClientRect().bottom > top);
    return first && [first.querySelector('.words').textContent, Math.round(first.getBoundingClientRect().bottom - top)];
  })()";

/// Has the first message of today shown, by the menu in the panel.
async fn go_to_today(window: &Window) {
    open_person(window).await;
    let date =
        "[...document.querySelectorAll('#actions button')].find((it) => it.textContent === 'Go to a date…')";
    window.run(&format!("{date}.click()")).await;
    window.until("document.getElementById('date').open").await;
    let today = "const at = new Date(), two = (n) => String(n).padStart(2, '0');
        document.getElementById('date-day').value = [at.getFullYear(), two(at.getMonth() + 1), two(at.getDate())].join('-');
        document.querySelector('#date .primary').click()";
    window.run(today).await;
}

/// Waits until that message stands there again, to a pixel or two.
async fn stands_at(window: &Window, first: &serde_json::Value) {
    let (text, bottom) = (&first[0], &first[1]);
    let there = format!(
        "(() => {{
          const log = document.getElementById('log'), {{ top }} = log.getBoundingClientRect();
          const row = [...log.querySelectorAll('.msg')].find((it) => it.querySelector('.words').textContent === {text});
          return row && Math.abs(row.getBoundingClientRect().bottom - top - {bottom}) <= 2;
        }})()"
    );
    window.until(&there).await;
}

#[tokio::test]
async fn nothing_on_the_screen_belongs_to_another_conversation_than_the_box_although_the_server_hangs() {
    let (world, gate) = World::behind_a_gate().await;
    let (ben, ada, _) = told(&world, 300).await;
    ben.tells(&ada, "For you alone").await;
    let window = world.visitor("Ada").await;
    window.pick("Ben").await;
    window.sees("For you alone").await;
    gate.hold_answers(true);
    let at_once = format!(
        "{} const of = (id) => document.getElementById(id);
         return JSON.stringify([of('text').ariaLabel, of('text').placeholder, of('pane-title').textContent,
           of('log').querySelectorAll('.msg').length, of('log').ariaBusy]);",
        open("Harbour walk")
    );
    assert_eq!(
        window.run(&at_once).await,
        r#"["Message to Harbour walk","Message to Harbour walk","Harbour walk",0,"true"]"#
    );
    window.until("getComputedStyle(document.querySelector('.loading')).opacity === '1'").await;
    // Back to what is here, and there once more: the first way does not come back over the second.
    assert_eq!(
        window.run(&format!("{} return document.getElementById('log').textContent", open("Ben"))).await,
        "Loading messages…"
    );
    window.sees("For you alone").await;
    window.run(&open("Harbour walk")).await;
    gate.hold_answers(false);
    window.until("document.querySelector('.fresh-line')").await;
    assert_eq!(window.copies("For you alone").await, 0);
    window.sees("number 0").await;
}

#[tokio::test]
async fn a_page_that_is_opened_anew_shows_what_it_has_although_the_server_hangs() {
    let (world, gate) = World::behind_a_gate().await;
    let (_, _, _) = told(&world, 300).await;
    let window = world.visitor("Ada").await;
    window.pick("Harbour walk").await;
    window.sees("number 0").await;
    scroll_to(&window, "number 60", 200).await;
    rests(&window).await;
    let first = window.run(&format!("return {FIRST}")).await;
    window.until("navigator.serviceWorker.controller").await;
    gate.hold_answers(true);
    window.run("location.reload()").await;
    stands_at(&window, &first).await;
    gate.hold_answers(false);
    connected(&window).await;
    stands_at(&window, &first).await;
}

#[tokio::test]
async fn one_request_on_a_slow_line_brings_the_first_of_many_unread_messages() {
    let world = World::start().await;
    told(&world, 500).await;
    let window = world.visitor("Ada").await;
    window.until("document.querySelector('.row .badge')?.textContent === '500'").await;
    window.slow(300, 400).await;
    let watch = "const { fetch } = window, asked = [];
        window.fetch = (path, options) => { if (path.includes('/messages?')) asked.push(path); return fetch(path, options); };
        new MutationObserver((_, observer) => {
          if (!document.querySelector('#log .msg')) return;
          observer.disconnect();
          window.before = [asked.length, document.querySelector('.fresh-line') !== null];
        }).observe(document.getElementById('log'), { childList: true });";
    window.run(&format!("{watch} {}", open("Harbour walk"))).await;
    window.until("window.before?.join() === '1,true'").await;
    window.until(&format!("{NUMBERS}[0] === 0")).await;
}

#[tokio::test]
async fn what_was_seen_is_read_on_every_device_and_a_conversation_opens_where_one_was() {
    let world = World::start().await;
    let (ben, ada, _) = told(&world, 400).await;
    ben.tells(&ada, "see you").await;
    let (desk, phone) = (world.visitor("Ada").await, world.visitor("Ada").await);
    desk.pick("Harbour walk").await;
    desk.sees("number 0").await;
    scroll_to(&desk, "number 194", 300).await;
    // All in view, and nothing below.
    let seen = "Math.max(...[...document.querySelectorAll('#log .msg')].filter((it) =>
          it.getBoundingClientRect().bottom <= document.getElementById('log').getBoundingClientRect().bottom + 1)
        .map((it) => Number(it.querySelector('.words').textContent.slice(7))))";
    let left = format!("String(399 - {})", "SEEN");
    rests(&desk).await;
    let seen = desk.run(&format!("return {seen}")).await.as_i64().expect("a number");
    let left = left.replace("SEEN", &seen.to_string());
    let badge = "[...document.querySelectorAll('.row')].find((it) => it.textContent.includes('Harbour walk')).querySelector('.badge')?.textContent";
    for window in [&desk, &phone] {
        window.until(&format!("{badge} === {left}")).await;
    }
    let lines = ada.http.conversations().await.expect("the list");
    let line = lines.iter().find(|line| line.title == "Harbour walk").expect("a line");
    assert_eq!(i64::try_from(line.unread).expect("small"), 399 - seen);
    let first = desk.run(&format!("return {FIRST}")).await;
    desk.pick("Ben").await;
    desk.sees("see you").await;
    desk.pick("Harbour walk").await;
    stands_at(&desk, &first).await;
    desk.reload().await;
    stands_at(&desk, &first).await;
    // Another device opens at the first that is unread; both go on in both directions.
    phone.pick("Harbour walk").await;
    phone.until(&format!(
        "document.querySelector('.fresh-line')?.nextElementSibling?.querySelector('.words').textContent === 'number {}'",
        seen + 1
    ))
    .await;
    scroll_to(&phone, "number 3", -300).await;
    scroll_to(&phone, "number 399", 400).await;
    phone.until(&format!("{badge} === undefined")).await;
    desk.until(&format!("{badge} === undefined")).await;
    assert_eq!(unread(&ada).await, 0);
}

#[tokio::test]
async fn the_wheel_scrolls_over_the_button_that_leads_to_the_newest() {
    let world = World::start().await;
    told(&world, 200).await;
    let window = world.visitor("Ada").await;
    window.pick("Harbour walk").await;
    window
        .until("!document.getElementById('jump').hidden && document.getElementById('jump').checkVisibility()")
        .await;
    let at = window
        .run(
            "const { x, y, width, height } = document.getElementById('jump').getBoundingClientRect();
            window.was = document.getElementById('log').scrollTop;
            return [x + width / 2, y + height / 2]",
        )
        .await;
    let wheel = serde_json::json!({"type": "mouseWheel", "x": at[0], "y": at[1], "deltaX": 0, "deltaY": 120});
    window.devtools("Input.dispatchMouseEvent", wheel).await;
    window.until("document.getElementById('log').scrollTop >= window.was + 100").await;
}

#[tokio::test]
async fn the_document_stays_small_when_many_messages_come_while_somebody_reads_further_up() {
    let world = World::start().await;
    let (ben, _, gid) = told(&world, 150).await;
    let window = world.visitor("Ada").await;
    window.pick("Harbour walk").await;
    window.run("document.getElementById('jump').click()").await;
    window.sees("number 149").await;
    scroll_to(&window, "number 80", -200).await;
    let first = window.run(&format!("return {FIRST}")).await;
    let watch = "window.most = 0;
        new MutationObserver(() => { window.most = Math.max(window.most, document.getElementById('log').children.length); })
          .observe(document.getElementById('log'), { childList: true })";
    window.run(watch).await;
    for n in 150..1_000 {
        ben.send(Recipient::Group(gid), &format!("number {n}")).await;
    }
    window.until("document.querySelector('.row .last').textContent.endsWith('number 999')").await;
    stands_at(&window, &first).await;
    let most = window.run("return window.most").await.as_u64().expect("a number");
    assert!((100..=300).contains(&most), "{most} lines in the document");
    window.click("#jump").await;
    window.sees("number 999").await;
}

#[tokio::test]
async fn one_is_led_to_what_a_reply_quotes_to_a_link_and_to_a_day_and_back() {
    let world = World::start().await;
    let (ben, ada, gid) = told(&world, 400).await;
    let rows =
        ben.http.conversation_messages(tidemark_client::Conversation::Group(gid), None, Some(200)).await;
    let oldest = rows.expect("rows").next_before.expect("more");
    let far = tidemark_client::ConversationPlace::Around(oldest - 150);
    let rows = ben
        .http
        .conversation_at(tidemark_client::Conversation::Group(gid), far, Some(1))
        .await
        .expect("rows")
        .rows;
    let (quoted, text) = (rows[0].message_id, rows[0].body.get().to_owned());
    let text = text.split('"').nth(3).expect("the text");
    let reply = Draft::reply_as(uuid::Uuid::from_u128(77), Recipient::Group(gid), "That one", quoted);
    ben.http.send(&reply).await.expect("sent");

    let window = world.visitor("Ada").await;
    window.allow_clipboard().await;
    window.pick("Harbour walk").await;
    window.until("document.querySelector('.fresh-line')").await;
    window.run("document.getElementById('jump').click()").await;
    window.sees("That one").await;
    window.click(".quote").await;
    // The quoted message is not among the rows that this browser has.
    window.sees(text).await;
    window.until("location.pathname.includes('/m/') && !document.getElementById('jump-back').hidden").await;
    choose(&window, text, "Copy link").await;
    let link = window.clipboard().await;
    assert!(link.contains(&format!("/c/g:{gid}/m/{}:", ben.uid)), "{link}");
    window.click("#jump-back").await;
    window.sees("That one").await;
    window.until("document.getElementById('jump').hidden && !location.pathname.includes('/m/')").await;

    // Another device, and another person: the same message.
    for name in ["Ada", "Ben"] {
        let other = world.visitor(name).await;
        other.goto(&link).await;
        other.sees(text).await;
        other.until(&format!("document.getElementById('pane-title').textContent === 'Harbour walk' && {NUMBERS}.length > 20")).await;
    }
    // The link of a message that nobody sent leads to the conversation, and says so.
    let nobodys = uuid::Uuid::nil();
    window.goto(&world.at(&format!("/c/g:{gid}/m/{}:{nobodys}", ben.uid))).await;
    window.until("document.getElementById('jump-note').textContent === 'That message was deleted, or you do not have it.'").await;

    go_to_today(&window).await;
    window.sees("number 0").await;
    assert_eq!(unread(&ada).await, 0, "the end was seen");
}

#[tokio::test]
async fn the_panel_opens_and_closes_beside_the_place_where_one_reads() {
    let world = World::start().await;
    told(&world, 200).await;
    let window = world.visitor("Ada").await;
    window.pick("Harbour walk").await;
    window.sees("number 0").await;
    open_about(&window).await;
    scroll_to(&window, "number 60", 200).await;
    rests(&window).await;
    window.until("location.hash === '#about'").await;
    let first = window.run(&format!("return {FIRST}")).await;
    window.click("#about-close").await;
    window.until("document.getElementById('about').hidden && !location.hash").await;
    stands_at(&window, &first).await;

    // It stays beside the message that one is led to, and on the way back.
    go_to_today(&window).await;
    window.until("location.pathname.includes('/m/') && location.hash === '#about'").await;
    let in_view = "[...document.querySelectorAll('#log .words')].some((it) => it.textContent === 'number 0'
        && it.getBoundingClientRect().top > document.getElementById('log').getBoundingClientRect().top)";
    window.until(in_view).await;
    window.click("#members-list a").await;
    window.until("location.hash.startsWith('#about/u:')").await;
    window.click("#about-close").await;
    window
        .until(
            "document.getElementById('about').hidden && !location.hash && location.pathname.includes('/m/')",
        )
        .await;
    window.click("#jump-back").await;
    window.until("!location.pathname.includes('/m/') && location.hash === '#about'").await;
    stands_at(&window, &first).await;
    window.until("document.getElementById('about').checkVisibility()").await;
}
