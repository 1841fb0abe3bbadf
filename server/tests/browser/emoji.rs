//! The emoji to choose from: by keyboard, by search, in the composer and as reactions.

use super::ears::Tree;
use super::pictures::take;
use super::window::{DOWN, ENTER, ESCAPE};
use super::world::{World, find};

const OPEN: &str = "document.getElementById('emoji').matches(':popover-open')";
const MARKED: &str = "document.querySelector('#emoji-list [aria-selected]')?.ariaLabel";
const RIGHT: &str = "\u{E014}";

#[tokio::test]
async fn emoji_are_found_by_name_and_put_where_the_caret_is() {
    let world = World::start().await;
    world.person("Ben").await;
    let ada = world.newcomer("Ada").await;
    find(&ada, "Ben").await;
    let fetched = "return performance.getEntriesByType('resource').filter(({ name }) => name.includes('/emoji-')).length";
    assert_eq!(ada.run(fetched).await, 0, "the names come when they are needed");
    ada.write("#text", "Hello !").await;
    ada.run("document.getElementById('text').setSelectionRange(6, 6)").await;
    ada.write("#open-emoji", ENTER).await;
    ada.until(&format!(
        "{OPEN} && {MARKED} === 'grinning face' && document.activeElement.id === 'emoji-find'"
    ))
    .await;
    assert!(
        ada.run("return document.querySelectorAll('#emoji-list .emoji').length").await.as_u64() > Some(1_800)
    );
    // Right, down, and what is marked is said and in view.
    ada.press(&RIGHT.repeat(2)).await;
    ada.press(DOWN).await;
    let below = "(() => {
        const all = [...document.querySelectorAll('#emoji-list .emoji')];
        return all.indexOf(document.querySelector('#emoji-list [aria-selected]')) === 10;
    })()";
    ada.until(below).await;
    ada.until(&format!("document.getElementById('emoji-name').textContent === {MARKED}")).await;
    ada.until("document.getElementById('emoji-find').getAttribute('aria-activedescendant') === 'emoji-10'")
        .await;
    take(&ada, "emoji.png", 1280, 800).await;
    ada.press("water wave").await;
    ada.until(&format!("{MARKED} === 'water wave'")).await;
    ada.press(ENTER).await;
    ada.until(&format!("!{OPEN} && document.getElementById('text').value === 'Hello 🌊!'")).await;
    ada.until("document.activeElement.id === 'text'").await;
    // Nothing is found, nothing is put in; Esc gives the focus back.
    ada.write("#open-emoji", ENTER).await;
    ada.press(&format!("no such thing{ENTER}")).await;
    ada.until("document.getElementById('emoji-name').textContent === 'No emoji has this name.'").await;
    ada.press(ESCAPE).await;
    ada.until(&format!("!{OPEN} && document.activeElement.id === 'open-emoji'")).await;
    assert_eq!(ada.run(fetched).await, 2, "all emoji, and their names in one language");
}

#[tokio::test]
async fn emoji_are_offered_by_name_while_one_writes_and_a_tone_and_the_last_ones_are_kept() {
    let world = World::start().await;
    world.person("Ben").await;
    let ada = world.newcomer("Ada").await;
    find(&ada, "Ben").await;
    let offered = "document.querySelector('#mention-list li[aria-selected=true]')?.textContent.trim()";
    ada.write("#text", "At 12:30 :thumbs_u").await;
    ada.until(&format!("{offered} === '👍thumbs up'")).await;
    ada.until("document.getElementById('mention-list').ariaLabel === 'Emoji'").await;
    ada.press(ENTER).await;
    ada.until("document.getElementById('text').value === 'At 12:30 👍 '").await;
    ada.press(":D").await;
    ada.until("document.getElementById('mention-list').hidden && document.getElementById('text').value.endsWith(':D')").await;

    let first = "document.querySelector('#emoji-list .emojis')";
    ada.write("#open-emoji", ENTER).await;
    ada.until(&format!("{OPEN} && {first}?.ariaLabel === 'Chosen last' && {first}.textContent === '👍'"))
        .await;
    ada.run(
        "const tone = document.getElementById('emoji-tone');
         tone.value = '🏽';
         tone.dispatchEvent(new Event('change'))",
    )
    .await;
    ada.press("waving hand").await;
    ada.until("document.querySelector('#emoji-list [aria-selected]')?.textContent === '👋🏽'").await;
    ada.press(ENTER).await;
    ada.until("document.getElementById('text').value.includes('👋🏽')").await;
    ada.reload().await;
    ada.until("document.getElementById('app') && document.body.dataset.phase === 'open'").await;
    ada.write("#open-emoji", ENTER).await;
    ada.until(&format!("{OPEN} && {first}?.textContent === '👋🏽👍'")).await;
    ada.until("document.getElementById('emoji-tone').value === '🏽'").await;
    take(&ada, "emoji-recent.png", 1280, 800).await;
}

#[tokio::test]
async fn any_emoji_can_be_a_reaction() {
    let world = World::start().await;
    let (ben, ada) = (world.person("Ben").await, world.person("Ada").await);
    ben.tells(&ada, "We are there").await;
    let window = world.visitor("Ada").await;
    window.size(390, 844).await;
    window.pick("Ben").await;
    window.sees("We are there").await;
    window
        .until("document.querySelector('.who b').textContent === 'Ben' && !document.querySelector('.row .badge')")
        .await;
    window.write(".more", ENTER).await;
    window.until("document.activeElement.ariaLabel === 'React with 👍'").await;
    window.press(&DOWN.repeat(6)).await;
    window.until("document.activeElement.title === 'More reactions…'").await;
    window.press(ENTER).await;
    window.until(&format!("{OPEN} && document.querySelector('#emoji-list .emoji')")).await;
    let inside =
        "const { left, top, right, bottom } = document.getElementById('emoji').getBoundingClientRect();
        return left >= 0 && top >= 0 && right <= innerWidth && bottom <= innerHeight;";
    assert_eq!(window.run(inside).await, true);
    window.press("sailboat").await;
    window.until(&format!("{MARKED} === 'sailboat'")).await;
    assert!(Tree::of(&window).await.nodes().any(|node| node == ("option", "sailboat")));
    window.press(ENTER).await;
    window.until("document.querySelector('.smiley')?.textContent === '⛵ 1'").await;
    window.until("document.activeElement.closest('.msg')").await;
}
