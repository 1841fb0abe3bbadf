//! Search on the page: in one conversation and in everything, in this browser and on the server, and from a hit to its message.

use serde_json::{Value, json};
use tidemark_client::{Conversation, Draft, Recipient};
use uuid::Uuid;

use super::axe::look;
use super::window::{CONTROL_F, CONTROL_K, DOWN, ENTER, ESCAPE, SHIFT_ENTER, Window};
use super::world::{Person, World, befriend, connected, uid_of};

const F3: &str = "\u{E033}";

/// The texts of the hits in the panel, in their order.
const HITS: &str = "[...document.querySelectorAll('#search-hits .two-lines')].map((it) => it.textContent)";

/// What the search says of itself.
const NOTE: &str = "document.getElementById('search-note').textContent";

/// The words that are marked in the message in view that one was led to last, by its text.
fn is_led_to(text: &str, marks: &[&str]) -> String {
    format!(
        "(() => {{
          const log = document.getElementById('log').getBoundingClientRect();
          const words = [...document.querySelectorAll('#log .words')].find((it) => it.textContent === {});
          const {{ top, bottom }} = words?.getBoundingClientRect() ?? {{}};
          return top >= log.top && bottom <= log.bottom
            && [...words.querySelectorAll('mark')].map((it) => it.textContent).join() === {};
        }})()",
        json!(text),
        json!(marks.join(","))
    )
}

/// Types words into the field of the panel, instead of those that stand there, and waits until all has been searched.
async fn look_for(window: &Window, words: &str) {
    window.run("document.getElementById('search-text').select()").await;
    window.write("#search-text", words).await;
    window.until("document.getElementById('search-hits').ariaBusy === 'false'").await;
}

async fn begin(window: &Window) {
    window.press(CONTROL_F).await;
    window.until("document.activeElement.id === 'search-text' && location.hash === '#search'").await;
}

async fn hits(window: &Window) -> Value {
    window.run(&format!("return {HITS}")).await
}

/// Ada, who has read a conversation of so many messages of Ben's behind a first one.
async fn told(world: &World, first: &str, messages: usize) -> (Person, Person) {
    let (ben, ada) = (world.person("Ben").await, world.person("Ada").await);
    ben.tells(&ada, first).await;
    for n in 0..messages {
        ben.tells(&ada, &format!("number {n}")).await;
    }
    let line = ada.http.conversations().await.expect("the list").remove(0);
    ada.http.mark_read(line.id, line.last.expect("a row").message_id).await.expect("marked");
    (ben, ada)
}

#[tokio::test]
async fn a_message_far_back_is_found_and_shown_with_its_words_marked() {
    let world = World::start().await;
    let (_, ada) = told(&world, "Low **tide** is at nine, the tides of May", 250).await;
    let window = world.visitor("Ada").await;
    window.pick("Ben").await;
    begin(&window).await;
    look_for(&window, "TIDE low").await;
    window.until(&format!("{NOTE} === '1 found.'")).await;
    window.until("document.querySelector('#search-hits b').textContent === 'Ben'").await;
    window.click("#search-hits .hit").await;
    window.until(&is_led_to("Low tide is at nine, the tides of May", &["Low", "tide", "tide"])).await;
    window.until("document.activeElement.closest('#log .msg') && location.hash === '#search'").await;
    // The words are those of the search: they are marked no longer than it is open, and the log stays.
    // It has stopped.
    window.until("(() => { const before = window.seenAt, now = document.getElementById('log').scrollTop; window.seenAt = now; return now === before; })()").await;
    let place = window.run("return document.getElementById('log').scrollTop").await;
    window.press(ESCAPE).await;
    window
        .until(
            "document.getElementById('search').hidden && !document.querySelector('mark') && !location.hash",
        )
        .await;
    window.run("document.getElementById('open-search').focus()").await;
    assert_eq!(window.run("return document.getElementById('log').scrollTop").await, place);
    // The address is that of the message.
    window.reload().await;
    connected(&window).await;
    window.until("[...document.querySelectorAll('#log .words')].some((it) => it.textContent.startsWith('Low tide'))").await;
    drop(ada);
}

#[tokio::test]
async fn keys_lead_from_hit_to_hit_and_back_to_where_one_was() {
    let world = World::start().await;
    let (ben, ada) = told(&world, "Boots one", 60).await;
    for text in ["Boots two", "no", "boots three", "Bring boots"] {
        ben.tells(&ada, text).await;
    }
    let window = world.visitor("Ada").await;
    window.pick("Ben").await;
    window.sees("Bring boots").await;
    window.until("document.activeElement.id === 'text'").await;
    begin(&window).await;
    // Once more, and the browser's own search is wanted.
    window
        .run("addEventListener('keydown', ({ defaultPrevented }) => { window.isTaken = defaultPrevented; })")
        .await;
    window.press(CONTROL_F).await;
    assert_eq!(window.run("return window.isTaken").await, false);
    look_for(&window, "boots").await;
    assert_eq!(hits(&window).await, json!(["Bring boots", "boots three", "Boots two", "Boots one"]));
    window.press(ENTER).await;
    window.until(&is_led_to("Bring boots", &["boots"])).await;
    window.press(&format!("{ENTER}{ENTER}")).await;
    window.until(&format!("{NOTE} === '3 of 4'")).await;
    window.press(F3).await;
    window.until(&is_led_to("Boots one", &["Boots"])).await;
    window
        .until(
            "document.activeElement.id === 'search-text' && document.getElementById('search-older').disabled",
        )
        .await;
    window.press(SHIFT_ENTER).await;
    window.until(&is_led_to("Boots two", &["Boots"])).await;
    window.until("document.querySelector('.hit[aria-current]').textContent.includes('Boots two')").await;
    // One hit after the other is one step of the browser's history.
    window.back().await;
    window.until("location.hash === '#search' && !location.pathname.includes('/m/')").await;
    window.until("document.getElementById('jump').hidden").await;
    window.write("#search-text", DOWN).await;
    window
        .until(
            "document.activeElement.matches('.hit') && document.activeElement.textContent.includes('Bring')",
        )
        .await;
    window.press(DOWN).await;
    window.press(ENTER).await;
    window.until(&is_led_to("boots three", &["boots"])).await;
    window.until("document.activeElement.closest('.msg')").await;
    begin_again(&window).await;
    window.press(ESCAPE).await;
    window.until("document.getElementById('search').hidden && document.activeElement.id === 'text'").await;
}

/// The focus goes to the field of a search that is open.
async fn begin_again(window: &Window) {
    window.press(CONTROL_F).await;
    window
        .until("document.activeElement.id === 'search-text' && getSelection().toString() === 'boots'")
        .await;
}

#[tokio::test]
async fn messages_and_moments_are_found_beside_people_and_conversations() {
    let world = World::start().await;
    let (ben, ada) = told(&world, "The harbour is closed", 3).await;
    let gid = ben.group("Harbour walk", &[ada.uid]).await;
    ben.send(Recipient::Group(gid), "We meet at the harbour <b>gate</b>").await;
    for n in 0..300 {
        ben.send(Recipient::Group(gid), &format!("number {n}")).await;
    }
    let window = world.visitor("Ada").await;
    befriend(&window, uid_of(&window).await, &[&ben]).await;
    ben.http.post_moment(Uuid::from_u128(9), "A day at the harbour", &[]).await.expect("posted");
    window.press(CONTROL_K).await;
    window.write("#find-text", "harbour").await;
    window.until("document.querySelector('#find-list li')?.textContent.includes('Harbour walk')").await;
    let found = "[...document.querySelectorAll('#find-hits .hit')]";
    window.until(&format!("{found}.length === 3 && !document.querySelector('#find-hits mark b')")).await;
    let named = format!("return {found}.map((it) => it.querySelector('b').textContent)");
    assert_eq!(window.run(&named).await, json!(["Moments · Ben", "Harbour walk · Ben", "Ben"]));
    window.run(&format!("{found}[1].click()")).await;
    window.until(&is_led_to("We meet at the harbour <b>gate</b>", &["harbour"])).await;
    // Its marks are gone elsewhere.
    window.pick("Ben").await;
    window.sees("number 2").await;
    assert_eq!(window.run("return document.querySelectorAll('#log mark').length").await, 0);

    window.press(CONTROL_K).await;
    window.write("#find-text", "harbour").await;
    window.until(&format!("{found}.length === 3")).await;
    window.click("#find-all").await;
    window.until(&format!("location.hash === '#search/all' && {HITS}.length === 3")).await;
    window.click("#search-hits .hit").await;
    window
        .until("location.pathname === '/moments' && document.activeElement.matches('.moment') && document.activeElement.querySelector('mark')?.textContent === 'harbour'")
        .await;
    window.run("document.querySelectorAll('#search-hits .hit')[2].click()").await;
    window.until(&is_led_to("The harbour is closed", &["harbour"])).await;
    // What is open now can be looked through alone.
    window.run("document.querySelector('#search-where [value=here]').click()").await;
    window.until(&format!("location.hash === '#search' && {HITS}.join() === 'The harbour is closed'")).await;
    // Somebody without a name, and Enter.
    window.press(CONTROL_K).await;
    window.write("#find-text", "gate").await;
    window
        .until("document.getElementById('find-note').textContent && document.querySelector('#find-hits li')")
        .await;
    window.write("#find-text", ENTER).await;
    window.until(&format!("location.hash === '#search/all' && {HITS}.length === 1")).await;
}

#[tokio::test]
async fn edited_messages_are_found_as_they_stand_and_one_that_is_taken_back_goes() {
    let world = World::start().await;
    let (ben, ada) = (world.person("Ben").await, world.person("Ada").await);
    let mut ids = Vec::new();
    for text in ["low tide", "the tide turns", "ebb", "tide tables"] {
        ids.push(ben.http.send(&Draft::text(Recipient::User(ada.uid), text)).await.expect("sent").message_id);
    }
    // Far behind what a new browser fetches, which learns of changes of rows that it does not have.
    for n in 0..300 {
        ben.tells(&ada, &format!("number {n}")).await;
    }
    let (with_ada, key) = (Conversation::User(ada.uid), |n: u128| Uuid::from_u128(n));
    ben.http.edit(key(1), with_ada, ids[2], "spring tide").await.expect("edited");
    ben.http.recall(key(2), with_ada, ids[0]).await.expect("recalled");
    let window = world.visitor("Ada").await;
    window.pick("Ben").await;
    begin(&window).await;
    look_for(&window, "tide").await;
    assert_eq!(hits(&window).await, json!(["tide tables", "spring tide", "the tide turns"]));
    ben.http.recall(key(3), with_ada, ids[1]).await.expect("recalled");
    ben.http.edit(key(4), with_ada, ids[3], "tables").await.expect("edited");
    window.until(&format!("{HITS}.join() === 'spring tide' && {NOTE} === '1 found.'")).await;
    ada.http
        .delete_message(key(5), Conversation::User(ben.uid), newest_with(&ada, "spring tide").await)
        .await
        .expect("deleted");
    window.until(&format!("!{HITS}.length && {NOTE}.startsWith('Nothing found.')")).await;
}

/// The id of the person's row of the message that was edited to this text.
async fn newest_with(person: &Person, text: &str) -> u64 {
    let rows = person.http.range(&tidemark_client::RangeQuery::after(0)).await.expect("rows").rows;
    let is_it = |row: &&tidemark_client::Entry| {
        row.kind == tidemark_client::Kind::Message && row.body.get().contains(text)
    };
    rows.iter().find(is_it).expect(text).message_id
}

#[tokio::test]
async fn words_are_found_in_any_script_whatever_their_accents() {
    let world = World::start().await;
    let (ben, ada) = (world.person("Ben").await, world.person("Ada").await);
    for text in ["我们明天去北京开会", "Crème brûlée für alle", "Встреча в Одессе", "Strasse", "北风吹京城"]
    {
        ben.tells(&ada, text).await;
    }
    let window = world.visitor("Ada").await;
    window.pick("Ben").await;
    begin(&window).await;
    for (words, text, mark) in [
        ("北京", "我们明天去北京开会", "北京"),
        ("BRULEE", "Crème brûlée für alle", "brûlée"),
        ("одесс", "Встреча в Одессе", "Одесс"),
        ("straße", "Strasse", "Strasse"),
    ] {
        for offline in [false, true] {
            window.offline(offline).await;
            look_for(&window, words).await;
            window.until(&format!("{HITS}.join() === {}", json!(text))).await;
            window.until(&is_led_to(text, &[mark])).await;
        }
        window.offline(false).await;
        connected(&window).await;
    }
}

#[tokio::test]
async fn without_the_server_what_is_on_the_device_is_searched() {
    let world = World::start().await;
    let (ben, ada) = told(&world, "tide at nine", 250).await;
    ben.tells(&ada, "tide at ten").await;
    let window = world.visitor("Ada").await;
    window.pick("Ben").await;
    window.sees("tide at ten").await;
    window.offline(true).await;
    window.until("document.body.dataset.phase === 'offline'").await;
    begin(&window).await;
    look_for(&window, "tide").await;
    assert_eq!(hits(&window).await, json!(["tide at ten"]), "the rest was not fetched");
    window.until(&format!("{NOTE} === '1 found. Only what is on this device was searched.'")).await;
    window.press(ENTER).await;
    window.until(&is_led_to("tide at ten", &["tide"])).await;
    // The rest comes by itself when the connection is back, and one stays at the hit.
    window.offline(false).await;
    window.until(&format!("{HITS}.join() === 'tide at ten,tide at nine' && {NOTE} === '1 of 2'")).await;
}

#[tokio::test]
async fn what_is_on_the_device_comes_first_while_the_server_hangs() {
    let (world, gate) = World::behind_a_gate().await;
    let (ben, ada) = told(&world, "tide at nine", 250).await;
    ben.tells(&ada, "tide at ten").await;
    let window = world.visitor("Ada").await;
    window.pick("Ben").await;
    window.sees("tide at ten").await;
    begin(&window).await;
    gate.hold_answers(true);
    window.write("#search-text", "tide").await;
    window.until(&format!("{HITS}.join() === 'tide at ten' && {NOTE}.endsWith('Searching…')")).await;
    // Nothing that was asked before comes between.
    window.write("#search-text", " nine").await;
    window.until(&format!("!{HITS}.length")).await;
    gate.hold_answers(false);
    window.until(&format!("{HITS}.join() === 'tide at nine' && {NOTE} === '1 found.'")).await;
    look_for(&window, "tide").await;
    assert_eq!(hits(&window).await, json!(["tide at ten", "tide at nine"]));
}

#[tokio::test]
async fn a_person_and_days_narrow_what_is_found() {
    let world = World::start().await;
    let (ben, cleo, ada) = (world.person("Ben").await, world.person("Cleo").await, world.person("Ada").await);
    let gid = ben.group("Harbour walk", &[ada.uid, cleo.uid]).await;
    for (person, text) in [(&ben, "tide by Ben"), (&cleo, "tide by Cleo"), (&ada, "tide by Ada")] {
        person.send(Recipient::Group(gid), text).await;
    }
    let window = world.visitor("Ada").await;
    window.pick("Harbour walk").await;
    begin(&window).await;
    window.click("#search-filters summary").await;
    window.until("document.querySelectorAll('#search-who option').length === 4").await;
    let choose = |field: &str, value: &str| {
        format!(
            "const it = document.getElementById('search-{field}'); it.value = {value}; it.dispatchEvent(new Event('change'))"
        )
    };
    // Without a word, too.
    window.run(&choose("who", &format!("'{}'", cleo.uid))).await;
    window.until(&format!("{HITS}.join() === 'tide by Cleo'")).await;
    look_for(&window, "tide").await;
    assert_eq!(hits(&window).await, json!(["tide by Cleo"]));
    window.run(&choose("who", "''")).await;
    window.until(&format!("{HITS}.length === 3")).await;
    let day = |days: i32| {
        format!(
            "new Date(Date.now() + {days} * 864e5 - new Date().getTimezoneOffset() * 6e4).toISOString().slice(0, 10)"
        )
    };
    for (from, to, count) in [(0, 0, 3), (1, 2, 0), (-2, -1, 0), (-1, 1, 3)] {
        window.run(&choose("from", &day(from))).await;
        window.run(&choose("to", &day(to))).await;
        window
            .until(&format!(
                "document.getElementById('search-hits').ariaBusy === 'false' && {HITS}.length === {count}"
            ))
            .await;
    }
    window.until("document.querySelector('#search-filters summary').textContent === 'Filters (2)'").await;
}

#[tokio::test]
async fn a_phone_shows_the_hits_or_the_message_and_back_leads_to_the_hits() {
    let world = World::start().await;
    let (ben, ada) = told(&world, "tide at nine", 80).await;
    ben.tells(&ada, "tide at ten").await;
    let window = world.visitor("Ada").await;
    window.size(390, 844).await;
    window.pick("Ben").await;
    window.click("#open-search").await;
    window.write("#search-text", "tide").await;
    window.until(&format!("{HITS}.length === 2")).await;
    assert_eq!(
        window
            .run("return document.getElementById('log').checkVisibility({ visibilityProperty: true })")
            .await,
        false
    );
    window.run("document.querySelectorAll('#search-hits .hit')[1].click()").await;
    window.until(&is_led_to("tide at nine", &["tide"])).await;
    window.until("!document.getElementById('search-body').checkVisibility() && document.getElementById('text').checkVisibility()").await;
    window.click("#search-newer").await;
    window.until(&is_led_to("tide at ten", &["tide"])).await;
    window.back().await;
    window.until("document.getElementById('search-body').checkVisibility() && document.querySelector('.hit[aria-current]')").await;
    window.back().await;
    window
        .until(
            "document.getElementById('search').hidden && document.getElementById('pane').checkVisibility()",
        )
        .await;
    window.until("document.documentElement.scrollWidth <= 390").await;
}

#[tokio::test]
async fn axe_finds_nothing_in_any_state_of_a_search() {
    let (world, gate) = World::behind_a_gate().await;
    let (ben, ada) = (world.person("Ben").await, world.person("Ada").await);
    for n in 0..120 {
        ben.tells(&ada, &format!("tide [{n}](https://example.org) `tide` **tide**")).await;
    }
    let window = world.visitor("Ada").await;
    window.pick("Ben").await;
    begin(&window).await;
    look(&window, "nothing typed").await;
    window.click("#search-filters summary").await;
    for (words, says) in [
        ("t", "Type at least two characters."),
        ("...", "Write a word to look for"),
        (&*"x".repeat(201), "The search is too long."),
        ("nowhere", "Nothing found."),
        ("tide", "50 found so far."),
    ] {
        look_for(&window, words).await;
        window.until(&format!("{NOTE}.startsWith('{says}')")).await;
        look(&window, says).await;
    }
    window.size(390, 844).await;
    window.write("#search-text", ENTER).await;
    window.until("!document.getElementById('search-body').checkVisibility()").await;
    look(&window, "the bar over a conversation").await;
    window.size(1280, 800).await;
    gate.hold_answers(true);
    window.run("document.getElementById('search-text').focus()").await;
    window.write("#search-text", "s").await;
    window.until(&format!("{NOTE}.endsWith('Searching…')")).await;
    look(&window, "while the server hangs").await;
    gate.hold_answers(false);
    window.press(ESCAPE).await;
    window.press(CONTROL_K).await;
    window.write("#find-text", "tide").await;
    window.until("document.querySelectorAll('#find-hits li').length === 5").await;
    look(&window, "messages beside people").await;
}
