//! The text of the page as others than the eye meet it: a selection, a search, a screen reader; and mixed directions.

use tidemark_client::Conversation;

use super::ears::Tree;
use super::pictures::take;
use super::window::{Colours, Window};
use super::world::{World, find, say};

/// Where the page and all that scrolls as a whole stand: nothing may move them.
const PLACES: &str = "return JSON.stringify([document.documentElement, document.body].map((it) =>
    [it.scrollTop, it.scrollHeight <= innerHeight, it.scrollWidth <= innerWidth]))";

async fn with_a_long_talk(world: &World) -> Window {
    let (ben, ada) = (world.person("Ben").await, world.person("Ada").await);
    for n in 0..40 {
        ben.tells(&ada, &format!("question {n}")).await;
        ada.tells(&ben, &format!("answer {n}")).await;
        ada.tells(&ben, &format!("afterthought {n}")).await;
    }
    for n in 0..30 {
        world.person(&format!("Person {n:02}")).await.tells(&ada, "hello").await;
    }
    let newest = ada.http.seq().await.expect("a number").seq - 30;
    ada.http.mark_read(Conversation::User(ben.uid), newest).await.expect("marked");
    let window = world.visitor("Ada").await;
    window.pick("Ben").await;
    window.sees("afterthought 39").await;
    window
}

#[tokio::test]
async fn nothing_hidden_makes_the_page_scroll_or_is_found_in_it() {
    let world = World::start().await;
    let window = with_a_long_talk(&world).await;
    for size in [(1280, 800), (390, 844)] {
        window.size(size.0, size.1).await;
        assert_eq!(window.run(PLACES).await, "[[0,true,true],[0,true,true]]");
        window
            .run("for (const it of document.querySelectorAll('#log *, #list *')) it.scrollIntoView()")
            .await;
        assert_eq!(window.run(PLACES).await, "[[0,true,true],[0,true,true]]");
    }
    // The browser's own search goes through the visible text alone.
    let found = |text: &str| {
        format!(
            "getSelection().removeAllRanges(); let hits = 0;
            while (hits < 500 && find('{text}', true, false, false)) hits += 1; return hits"
        )
    };
    window.size(1280, 800).await;
    for text in ["Sent", " unread"] {
        assert_eq!(window.run(&found(text)).await, 0, "{text}");
    }
    // Older messages may have come to the top meanwhile.
    let shown = "[...document.querySelectorAll('#log .words')].filter((it) => it.textContent.includes('answer 3')).length";
    let hits =
        window.run(&found("answer 3").replace("return hits", &format!("return [hits, {shown}]"))).await;
    let (hits, shown) = (hits[0].as_u64(), hits[1].as_u64());
    assert!(hits == shown && hits >= Some(10), "{hits:?} of {shown:?}");
}

#[tokio::test]
async fn a_selection_copies_what_people_wrote_and_ears_hear_who() {
    let world = World::start().await;
    let window = with_a_long_talk(&world).await;
    window.until("document.querySelector('.who b').textContent === 'Ben'").await;
    window.allow_clipboard().await;
    window.write("#log", "").await;
    let choose = "const all = [...document.querySelectorAll('.msg')].slice(-3);
        getSelection().setBaseAndExtent(all[0], 0, all[2], all[2].childNodes.length);";
    window.run(choose).await;
    window.press("\u{E009}c\u{E009}").await;
    let copied = "const done = arguments[0], time = /\\d\\d?:\\d\\d(\\s[AP]M)?/g;
        navigator.clipboard.readText().then((text) => done(text.replace(time, 'TIME').split(/\\s*\\n\\s*/).join('|')))";
    let copied = window.run_async(copied).await;
    assert_eq!(copied, "Ben TIME|question 39|TIME|answer 39|afterthought 39");
    let heard = Tree::of(&window).await.said("log");
    let end =
        ["You:", "afterthought 39", "button “Actions for “afterthought 39”” hasPopup=menu", "image “Sent”"];
    assert!(heard.ends_with(&end.map(str::to_owned)), "{heard:?}");
}

#[tokio::test]
async fn forced_colours_show_what_colours_told() {
    let world = World::start().await;
    world.person("Ben").await;
    let window = world.newcomer("Ada").await;
    find(&window, "Ben").await;
    say(&window, "Is the tide in?").await;
    window.until("document.querySelector('.own .check')").await;
    window.colours(Colours::Forced).await;
    let hidden = "
        const colour = (element, name) => getComputedStyle(element)[name];
        const ground = (element) => {
          for (let at = element; at; at = at.parentElement) {
            const it = colour(at, 'backgroundColor');
            if (!it.endsWith(', 0)')) return it;
          }
          return colour(document.documentElement, 'backgroundColor');
        };
        const lost = [...document.querySelectorAll('.icon')].filter((it) => it.checkVisibility()
          && colour(it, 'backgroundColor') === ground(it.parentElement)).map((it) => it.className);
        const words = document.querySelector('.words');
        if (colour(words, 'borderTopColor') === ground(words)) lost.push('.words');
        const row = document.querySelector('.row[aria-current]');
        if (ground(row) === ground(row.parentElement)) lost.push('.row');
        if (ground(row) === colour(row.querySelector('.title'), 'color')) lost.push('.title');
        return JSON.stringify(lost);";
    assert_eq!(window.run(hidden).await, "[]");
    take(&window, "forced-colours.png", 1280, 800).await;
}

#[tokio::test]
async fn each_text_has_the_direction_of_its_own_words() {
    let world = World::start().await;
    let (rina, ada) = (world.person("רינה").await, world.person("Ada").await);
    let hebrew = "שלום Ada, מה נשמע?";
    rina.tells(&ada, hebrew).await;
    ada.tells(&rina, "Fine!").await;
    let gid = rina.group("קבוצה one", &[ada.uid]).await;
    let window = world.visitor("Ada").await;
    window.pick("רינה").await;
    window.sees(hebrew).await;
    window.write("#text", "שלום!").await;
    for (css, way) in [
        ("#list a[aria-current] .title", "rtl"),
        (".msg:not(.own) .words", "rtl"),
        (".own .words", "ltr"),
        (".who b", "rtl"),
        ("#pane-title", "rtl"),
        ("#text", "rtl"),
    ] {
        window
            .until(&format!("getComputedStyle(document.querySelector('{css}')).direction === '{way}'"))
            .await;
    }
    // A sentence of the page keeps its own direction around a name of another one.
    window.goto(&world.at(&format!("/c/g:{gid}"))).await;
    window
        .until("document.querySelector('.event')?.textContent === '\\u2068רינה\\u2069 created the group'")
        .await;
    window.until("getComputedStyle(document.querySelector('.event span')).direction === 'ltr'").await;
    window
        .until(
            "document.querySelector('#open-about') && document.querySelector('#list a[aria-current] .last')
            .textContent.startsWith('\\u2068רינה')",
        )
        .await;
    take(&window, "directions.png", 1280, 800).await;
}
