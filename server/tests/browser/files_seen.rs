//! Pictures in the viewer and in moments, voice messages, and files as people have them who cannot see or use a mouse.

use super::amend::choose;
use super::axe::look;
use super::files::{chosen, paste};
use super::social::{open, press};
use super::window::{ENTER, ESCAPE, Window};
use super::world::{World, befriend, connected, find, say, uid_of};

const RIGHT: &str = "\u{E014}";
const LEFT: &str = "\u{E012}";

/// A microphone that hears one tone.
const MICROPHONE: &str = "Object.defineProperty(navigator, 'mediaDevices', { configurable: true, value: { getUserMedia: async () => {
    if (window.isDenied) throw new DOMException('no', 'NotAllowedError');
    const context = new AudioContext(), tone = context.createOscillator(), to = context.createMediaStreamDestination();
    tone.connect(to);
    tone.start();
    return to.stream;
  } } });";

async fn send_picture(window: &Window, name: &str) {
    paste(window, name, 800, 600).await;
    chosen(window, 1).await;
    window.write("#text", ENTER).await;
    window
        .until(&format!(
            "[...document.querySelectorAll('button.picture img')].some((it) => it.alt === 'Picture, {name}' && it.naturalWidth)"
        ))
        .await;
}

/// Waits until the viewer shows this picture.
async fn views(window: &Window, name: &str) {
    window
        .until(&format!(
            "document.querySelector('.viewer[open] .viewed img')?.alt === 'Picture, {name}' && document.querySelector('.viewed img').naturalWidth"
        ))
        .await;
}

#[tokio::test]
async fn the_viewer_is_used_by_keyboard_and_gives_the_focus_back() {
    let world = World::start().await;
    let (_, ada) = (world.person("Ben").await, world.newcomer("Ada").await);
    find(&ada, "Ben").await;
    for name in ["one.png", "two.png", "three.png"] {
        send_picture(&ada, name).await;
        say(&ada, &format!("That was {name}")).await;
    }
    ada.run("document.querySelectorAll('button.picture')[1].focus()").await;
    ada.press(ENTER).await;
    views(&ada, "two.png").await;
    ada.press(RIGHT).await;
    views(&ada, "three.png").await;
    ada.press(RIGHT).await;
    ada.until("document.querySelector('.about-viewed').textContent.includes('This is the last picture.')")
        .await;
    ada.press(LEFT).await;
    views(&ada, "two.png").await;
    ada.press(LEFT).await;
    views(&ada, "one.png").await;
    let scale = "Number(/scale\\(([\\d.]+)\\)/.exec(document.querySelector('.viewed img').style.transform)?.[1] ?? 1)";
    ada.press("+").await;
    ada.until(&format!("{scale} === 1.5")).await;
    ada.press("+").await;
    ada.press("-").await;
    ada.until(&format!("{scale} === 1.5")).await;
    ada.press("0").await;
    ada.until(&format!("{scale} === 1")).await;
    ada.press(ESCAPE).await;
    ada.until("!document.querySelector('.viewer') && document.activeElement.querySelector('img')?.alt === 'Picture, two.png'").await;

    // Two taps, and the wheel.
    ada.click("button.picture").await;
    views(&ada, "one.png").await;
    ada.run(
        "const at = { bubbles: true, button: 0, clientX: 640, clientY: 400, pointerId: 1, pointerType: 'mouse' };
         const stage = document.querySelector('.viewed');
         stage.setPointerCapture = () => {};
         for (const type of ['pointerdown', 'pointerup', 'pointerdown', 'pointerup']) stage.dispatchEvent(new PointerEvent(type, at))",
    )
    .await;
    ada.until(&format!("{scale} === 2.5")).await;
    ada.run("document.querySelector('.viewed').dispatchEvent(new WheelEvent('wheel', { deltaY: 2_000, cancelable: true }))").await;
    ada.until(&format!("{scale} === 1")).await;
    ada.press(ESCAPE).await;

    // It is forwarded without being sent again, and gone where it was taken back.
    choose(&ada, "That was one.png", "Copy link").await;
    ada.run("document.querySelector('button.picture').closest('.msg').querySelector('.more').click()").await;
    ada.until("document.querySelector('#actions:popover-open button')").await;
    ada.until(
        "![...document.querySelectorAll('#actions button')].some((it) => it.textContent === 'Copy text')",
    )
    .await;
    ada.run("[...document.querySelectorAll('#actions button')].find((it) => it.textContent === 'Forward…').click()").await;
    ada.until("document.getElementById('forward-quote').textContent === '📷 Picture'").await;
    ada.until("document.querySelector('#forward-list li')").await;
    ada.click("#forward-list li").await;
    ada.until("document.querySelector('#forward-chosen li')").await;
    ada.click("#forward-send").await;
    ada.until("document.querySelectorAll('button.picture img').length === 4").await;
    ada.until("[...document.querySelectorAll('.forwarded')].at(-1).parentElement.querySelector('button.picture img').naturalWidth").await;
}

#[tokio::test]
async fn a_moment_has_pictures_that_friends_see() {
    let world = World::start().await;
    let ben = world.person("Ben").await;
    let ada = world.newcomer("Ada").await;
    befriend(&ada, uid_of(&ada).await, &[&ben]).await;
    let bens = world.visitor("Ben").await;
    open(&ada, "moments").await;
    for (count, name) in ["one.png", "two.png", "three.png", "four.png"].into_iter().enumerate() {
        paste(&ada, name, 640, 480).await;
        ada.until(&format!("document.querySelectorAll('.moment-form .chosen').length === {}", count + 1))
            .await;
    }
    press(&ada, "Post").await;
    open(&bens, "moments").await;
    for window in [&ada, &bens] {
        window
            .until("[...document.querySelectorAll('.moment')].some((it) => [...it.querySelectorAll('button.picture img')].filter((one) => one.naturalWidth).length === 4)")
            .await;
    }
    bens.run("document.querySelectorAll('.moment button.picture')[2].click()").await;
    views(&bens, "three.png").await;
    bens.press(ESCAPE).await;
    ada.until("!document.querySelector('.moment-form .chosen')").await;
}

#[tokio::test]
async fn a_voice_message_is_recorded_by_keyboard_or_a_press_and_says_why_it_cannot_be() {
    let world = World::start().await;
    let _ben = world.person("Ben").await;
    let ada = world.newcomer("Ada").await;
    ada.before_every_page(MICROPHONE).await;
    ada.reload().await;
    connected(&ada).await;
    find(&ada, "Ben").await;
    ada.write("#text", "Listen to").await;
    let recording = "document.querySelector('.recording').checkVisibility() && document.querySelector('.recording .time').textContent";
    ada.run("document.getElementById('record').focus()").await;
    ada.press(ENTER).await;
    ada.until(&format!("{recording} === '0:01'")).await;
    ada.press(ESCAPE).await;
    ada.until(
        "!document.querySelector('.recording').checkVisibility() && document.activeElement.id === 'record'",
    )
    .await;
    ada.press(ENTER).await;
    ada.until(&format!("{recording} === '0:01'")).await;
    ada.press(ENTER).await;
    ada.until("document.querySelector('.own .voice .waves i')").await;
    ada.until("document.querySelectorAll('.own .voice').length === 1 && document.getElementById('text').value === 'Listen to'").await;
    ada.until("document.querySelector('.own .voice .waves').ariaValueText === '0:00'").await;
    ada.click(".own .voice button").await;
    ada.until("document.querySelector('.own .voice audio').currentTime > 0").await;

    ada.run("window.isDenied = true").await;
    ada.click("#record").await;
    ada.until("[...document.querySelectorAll('#composer > .problem')].some((it) => it.textContent.startsWith('This browser does not let the page use the microphone'))")
        .await;
}

#[tokio::test]
async fn axe_finds_nothing_in_files() {
    let world = World::start().await;
    let ben = world.person("Ben").await;
    let ada = world.newcomer("Ada").await;
    befriend(&ada, uid_of(&ada).await, &[&ben]).await;
    ada.before_every_page(MICROPHONE).await;
    ada.reload().await;
    connected(&ada).await;
    find(&ada, "Ben").await;
    for name in ["one.png", "two.png"] {
        paste(&ada, name, 800, 600).await;
    }
    chosen(&ada, 2).await;
    look(&ada, "files above the box").await;
    ada.write("#text", &format!("Two pictures{ENTER}")).await;
    ada.until("document.querySelectorAll('button.picture img').length === 2").await;
    send_picture(&ada, "three.png").await;
    ada.run(
        "const clipboardData = new DataTransfer();
         clipboardData.items.add(new File(['Low tide'], 'tides.txt', { type: 'text/plain' }));
         document.getElementById('text').dispatchEvent(new ClipboardEvent('paste', { clipboardData, bubbles: true, cancelable: true }))",
    )
    .await;
    chosen(&ada, 1).await;
    ada.write("#text", ENTER).await;
    ada.until("document.querySelector('a.card-of-file')").await;
    ada.run("document.getElementById('record').focus()").await;
    ada.press(ENTER).await;
    ada.until("document.querySelector('.recording .time').textContent === '0:01'").await;
    look(&ada, "a recording").await;
    ada.run("document.querySelector('.recording .send').click()").await;
    ada.until("document.querySelector('.own .voice .waves i')").await;
    look(&ada, "files in a conversation").await;
    // The narrowest phone, and text of twice the size.
    for (width, zoom) in [(320, ""), (640, "200%")] {
        ada.size(width, 640).await;
        ada.run(&format!("document.documentElement.style.zoom = '{zoom}'")).await;
        ada.until("document.documentElement.scrollWidth <= innerWidth && document.getElementById('text').offsetWidth > 60").await;
    }
    ada.run("document.documentElement.style.zoom = ''").await;
    ada.size(1280, 800).await;
    ada.run("document.querySelector('button.picture').click()").await;
    views(&ada, "one.png").await;
    look(&ada, "the viewer").await;
    ada.press(ESCAPE).await;
    ada.goto(&world.at("/moments")).await;
    ada.until("document.querySelector('#moment-text')").await;
    paste(&ada, "four.png", 800, 600).await;
    ada.until("document.querySelector('.moment-form .chosen')").await;
    look(&ada, "pictures of a moment").await;
    press(&ada, "Post").await;
    ada.until("document.querySelector('.moment button.picture img')?.naturalWidth").await;
    look(&ada, "a moment with a picture").await;
}
