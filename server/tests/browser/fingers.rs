//! A phone, used with a finger: nothing needs a key, a mouse or a tooltip.

use serde_json::{Value, json};

use super::amend::choose;
use super::window::{ENTER, ESCAPE, Window};
use super::world::{World, connected, find, say, stored};

/// Makes the window that of a phone, and opens its page anew.
async fn hold(window: &Window) {
    let size = json!({"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": true});
    window.devtools("Emulation.setDeviceMetricsOverride", size).await;
    window
        .devtools("Emulation.setTouchEmulationEnabled", json!({"enabled": true, "maxTouchPoints": 1}))
        .await;
    window.reload().await;
    connected(window).await;
    window.until("matchMedia('(pointer: coarse)').matches").await;
}

/// The middle of an element.
async fn middle(window: &Window, css: &str) -> (f64, f64) {
    let ask = "const { left, top, width, height } = document.querySelector(CSS).getBoundingClientRect();
        return [left + width / 2, top + height / 2];";
    let place = window.run(&ask.replace("CSS", &json!(css).to_string())).await;
    let part = |at: usize| place[at].as_f64().expect("a number");
    (part(0), part(1))
}

/// A finger comes down, moves or leaves.
async fn finger(window: &Window, what: &str, place: Option<(f64, f64)>) {
    let points: Vec<Value> = place.into_iter().map(|(x, y)| json!({"x": x, "y": y})).collect();
    window.devtools("Input.dispatchTouchEvent", json!({"type": what, "touchPoints": points})).await;
}

/// Presses until the page takes it as a long press, and lifts the finger.
async fn press_long(window: &Window, css: &str) {
    window.run("window.isHeld = false; navigator.vibrate = () => { window.isHeld = true; }").await;
    let place = middle(window, css).await;
    finger(window, "touchStart", Some(place)).await;
    window.until("window.isHeld").await;
    finger(window, "touchEnd", None).await;
}

/// Moves a finger over an element, by pixels to the right and down.
async fn swipe(window: &Window, css: &str, right: f64, down: f64) {
    let (x, y) = middle(window, css).await;
    finger(window, "touchStart", Some((x, y))).await;
    for step in 1..=10 {
        let part = f64::from(step) / 10.0;
        finger(window, "touchMove", Some((x + part * right, y + part * down))).await;
    }
    finger(window, "touchEnd", None).await;
}

#[tokio::test]
async fn a_finger_breaks_lines_with_enter_and_sends_with_the_button() {
    let world = World::start().await;
    let ben = world.person("Ben").await;
    let window = world.newcomer("Ada").await;
    find(&window, "Ben").await;
    say(&window, "Is the tide in?").await;
    hold(&window).await;
    window.write("#text", &format!("one{ENTER}two")).await;
    window.until("document.getElementById('text').value === 'one\\ntwo'").await;
    assert_eq!(window.run("return document.getElementById('text').enterKeyHint").await, "enter");
    window.click("#send").await;
    window.sees("one\ntwo").await;
    // The keyboard stays, since the focus does.
    window.until("document.activeElement.id === 'text' && document.activeElement.value === ''").await;
    // A keyboard beside the screen sends, too.
    window.write("#text", &format!("three\u{E009}{ENTER}\u{E009}")).await;
    window.sees("three").await;
    window
        .until("[...document.querySelectorAll('.own .state')].every((it) => it.ariaLabel === 'Sent')")
        .await;
    assert_eq!(stored(&ben, "three").await, 1);
}

#[tokio::test]
async fn nothing_that_opens_covers_itself_with_a_keyboard_or_zooms() {
    let world = World::start().await;
    world.person("Ben").await;
    let window = world.newcomer("Ada").await;
    find(&window, "Ben").await;
    say(&window, "Is the tide in?").await;
    hold(&window).await;
    let field = "document.activeElement.matches('input, textarea')";
    assert_eq!(window.run(&format!("return {field}")).await, false, "a conversation opens without one");
    window.run("document.getElementById('open-emoji').click()").await;
    window.until("document.querySelector('#emoji-list .emoji')").await;
    assert_eq!(window.run(&format!("return {field}")).await, false, "emoji");
    window.run("document.getElementById('emoji').hidePopover()").await;
    window.goto(&world.at("/")).await;
    connected(&window).await;
    for (button, dialog) in
        [("open-find", "find"), ("open-group", "new-group"), ("open-settings", "settings")]
    {
        window.run(&format!("document.getElementById('{button}').click()")).await;
        window.until(&format!("document.getElementById('{dialog}').open")).await;
        assert_eq!(window.run(&format!("return {field}")).await, false, "{dialog}");
        window.run(&format!("document.getElementById('{dialog}').close()")).await;
    }
    let small = "return [...document.querySelectorAll('input, textarea')].filter((it) => !['radio', 'checkbox', 'hidden'].includes(it.type))
        .filter((it) => parseFloat(getComputedStyle(it).fontSize) < 16).map((it) => it.id)";
    assert_eq!(window.run(small).await, json!([]), "fields that an iPhone zooms");
}

#[tokio::test]
async fn a_long_press_opens_the_menu_of_a_message_and_tells_what_tooltips_say() {
    let world = World::start().await;
    let (ben, ada) = (world.person("Ben").await, world.person("Ada").await);
    ben.tells(&ada, "Is the tide in?").await;
    let window = world.visitor("Ada").await;
    window.pick("Ben").await;
    window.sees("Is the tide in?").await;
    choose(&window, "Is the tide in?", "React with 👍").await;
    window.until("document.querySelector('.smiley')").await;
    hold(&window).await;
    window.sees("Is the tide in?").await;
    window.until("document.querySelector('.smiley')").await;
    // The button that a mouse needs is there for ears alone.
    let seen = "const { width, height } = document.querySelector('.more').getBoundingClientRect(); return width <= 1 && height <= 1";
    assert_eq!(window.run(seen).await, true);
    press_long(&window, ".msg .words").await;
    window.until("document.getElementById('actions').matches(':popover-open')").await;
    let inside =
        "const { left, top, right, bottom } = document.getElementById('actions').getBoundingClientRect();
        return left >= 0 && top >= 0 && right <= innerWidth && bottom <= innerHeight;";
    assert_eq!(window.run(inside).await, true);
    window.until("document.querySelector('#actions .tips').textContent.endsWith('👍 1: You')").await;
    window.until("/\\d:\\d\\d/.test(document.querySelector('#actions .tips').textContent)").await;
    window.run("[...document.querySelectorAll('#actions button')].find((it) => it.textContent === 'Reply').click()").await;
    window
        .until("document.getElementById('context-text').textContent === 'Reply to Ben: Is the tide in?'")
        .await;

    // A button says its name, and is not pressed.
    press_long(&window, "#pin").await;
    window
        .until("document.querySelector('.tip:popover-open')?.textContent === 'Keep at the top of the list'")
        .await;
    assert_eq!(window.run("return document.getElementById('pin').ariaPressed").await, "false");
    finger(&window, "touchStart", Some((200.0, 400.0))).await;
    finger(&window, "touchEnd", None).await;
    window.until("!document.querySelector('.tip:popover-open')").await;
}

#[tokio::test]
async fn a_swipe_to_the_right_replies_and_one_up_or_down_scrolls() {
    let world = World::start().await;
    let (ben, ada) = (world.person("Ben").await, world.person("Ada").await);
    for n in 0..40 {
        ben.tells(&ada, &format!("number {n}")).await;
    }
    let window = world.visitor("Ada").await;
    window.pick("Ben").await;
    window.sees("number 39").await;
    window.press(ESCAPE).await;
    hold(&window).await;
    window.sees("number 39").await;
    window.until("!document.querySelector('.fresh-line')").await;
    let last = ".msg:last-child .words";
    let below = "(({ scrollHeight, scrollTop, clientHeight }) => scrollHeight - scrollTop - clientHeight)(document.getElementById('log'))";
    window.until(&format!("{below} < 2")).await;
    window.run("document.getElementById('log').addEventListener('scrollend', () => { window.hasRested = true; })").await;
    swipe(&window, last, 20.0, 300.0).await;
    window.until(&format!("window.hasRested && {below} > 100")).await;
    window.run("document.getElementById('log').scrollTop = 1e6").await;
    window.until(&format!("{below} < 2")).await;
    assert_eq!(window.run("return document.getElementById('context').hidden").await, true);
    swipe(&window, last, 30.0, 0.0).await;
    window.until("!document.querySelector('.msg:last-child').style.translate").await;
    assert_eq!(window.run("return document.getElementById('context').hidden").await, true, "too short");
    swipe(&window, last, 120.0, 5.0).await;
    window.until("document.getElementById('context-text').textContent === 'Reply to Ben: number 39'").await;
    window.until("!document.querySelector('.msg:last-child').style.translate").await;
}
