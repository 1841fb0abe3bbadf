//! Messages are edited, taken back, answered and reacted to.

use tidemark_client::Recipient;

use super::pictures::take;
use super::window::{DOWN, ENTER, ESCAPE, UP, Window};
use super::world::{World, find, say, stored};

/// Opens the menu of the message that says `text`, and chooses the item with this label.
pub(crate) async fn choose(window: &Window, text: &str, label: &str) {
    window
        .until(&format!(
            "[...document.querySelectorAll('.more')].some((it) => it.ariaLabel.includes('{text}'))"
        ))
        .await;
    window
        .run(&format!(
            "[...document.querySelectorAll('.more')].find((it) => it.ariaLabel.includes('{text}')).click()"
        ))
        .await;
    window.until("document.getElementById('actions').matches(':popover-open')").await;
    window
        .run(&format!(
            "[...document.querySelectorAll('#actions button')]
                .find((it) => it.textContent === '{label}' || it.ariaLabel === '{label}').click()"
        ))
        .await;
    window.until("!document.getElementById('actions').matches(':popover-open')").await;
}

/// Waits until no message on the page says it.
async fn forgets(window: &Window, text: &str) {
    window
        .until(&format!(
            "![...document.querySelectorAll('.words')].some((it) => it.textContent.includes('{text}'))"
        ))
        .await;
}

#[tokio::test]
async fn an_edited_message_says_so_on_every_screen_and_after_a_reload() {
    let world = World::start().await;
    let ben = world.newcomer("Ben").await;
    let ada = world.newcomer("Ada").await;
    find(&ada, "Ben").await;
    say(&ada, "Low tide is at nine").await;
    ben.pick("Ada").await;
    ben.sees("Low tide is at nine").await;
    ada.until("['Sent', 'Delivered', 'Read'].includes(document.querySelector('.own .state')?.ariaLabel)")
        .await;

    // The button of its menu stands beside it and covers nothing.
    let beside = "const box = (css) => document.querySelector(css).getBoundingClientRect();
        return box('.own .more').right <= box('.own .words').left;";
    assert_eq!(ada.run(beside).await, true);

    // From the empty box, by key alone; Esc changes nothing.
    ada.write("#text", UP).await;
    ada.until("document.getElementById('text').value === 'Low tide is at nine'").await;
    ada.write("#text", ESCAPE).await;
    ada.until("document.getElementById('text').value === '' && document.getElementById('context').hidden")
        .await;
    ada.write("#text", UP).await;
    ada.until("!document.getElementById('context').hidden").await;
    ada.write("#text", &format!(", or ten{ENTER}")).await;
    for window in [&ada, &ben] {
        window.sees("Low tide is at nine, or ten").await;
        window
            .until("document.querySelector('.msg .edited') && document.querySelectorAll('.msg').length === 1")
            .await;
        window.until("document.querySelector('.row .last').textContent.endsWith('nine, or ten')").await;
    }
    ben.reload().await;
    ben.sees("Low tide is at nine, or ten").await;
}

#[tokio::test]
async fn a_message_that_is_taken_back_is_gone_from_every_screen() {
    let world = World::start().await;
    let cleo = world.person("Cleo").await;
    let ada = world.newcomer("Ada").await;
    find(&ada, "Cleo").await;
    say(&ada, "This was for Ben").await;
    say(&ada, "Good morning").await;
    ada.until("[...document.querySelectorAll('.own .state')].every((it) => ['Sent', 'Delivered', 'Read'].includes(it.ariaLabel))").await;
    let other = world.visitor("Cleo").await;
    other.pick("Ada").await;
    other.sees("This was for Ben").await;

    choose(&ada, "This was for Ben", "Take back…").await;
    ada.until("document.getElementById('ask').open").await;
    ada.click("#ask-no").await;
    ada.until("!document.getElementById('ask').open").await;
    ada.sees("This was for Ben").await;
    choose(&ada, "This was for Ben", "Take back…").await;
    ada.click("#ask-yes").await;
    ada.sees("You took a message back").await;
    other.sees("Ada took a message back").await;
    forgets(&other, "This was for Ben").await;
    assert_eq!(stored(&cleo, "This was for Ben").await, 0);
    other.reload().await;
    other.sees("Ada took a message back").await;
    other.sees("Good morning").await;
    // A browser that was not there finds the same.
    let third = world.visitor("Cleo").await;
    third.pick("Ada").await;
    third.sees("Ada took a message back").await;
    forgets(&third, "This was for Ben").await;
}

#[tokio::test]
async fn reactions_are_counted_and_taken_away_again() {
    let world = World::start().await;
    let ben = world.newcomer("Ben").await;
    let ada = world.newcomer("Ada").await;
    find(&ada, "Ben").await;
    say(&ada, "We leave at eight").await;
    ada.until("['Sent', 'Delivered', 'Read'].includes(document.querySelector('.own .state')?.ariaLabel)")
        .await;
    ben.pick("Ada").await;
    ben.sees("We leave at eight").await;
    choose(&ben, "We leave at eight", "React with 👍").await;
    let shown = |text: &str| format!("document.querySelector('.msg .smileys')?.textContent === '{text}'");
    ben.until(&shown("👍 1")).await;
    ada.until(&shown("👍 1")).await;
    ada.click(".smiley").await;
    for window in [&ada, &ben] {
        window.until(&shown("👍 2")).await;
        window.until("document.querySelector('.smiley').ariaPressed === 'true'").await;
    }
    ben.click(".smiley").await;
    ada.until(&shown("👍 1")).await;
    ada.click(".smiley").await;
    for window in [&ada, &ben] {
        window.until("!document.querySelector('.smiley')").await;
    }
    // Nothing of this counts as unread or as the last word.
    ada.until("!document.querySelector('.row .badge') && document.title === 'Ben · Tidemark'").await;
    ada.until("document.querySelector('.row .last').textContent === 'You: We leave at eight'").await;
}

#[tokio::test]
async fn a_reply_shows_what_it_replies_to_and_leads_there() {
    let world = World::start().await;
    let ben = world.person("Ben").await;
    let ada = world.person("Ada").await;
    ben.tells(&ada, "Which pier?").await;
    for n in 0..80 {
        ben.tells(&ada, &format!("line {n}")).await;
    }
    let window = world.visitor("Ada").await;
    window.pick("Ben").await;
    window.sees("Which pier?").await;
    choose(&window, "Which pier?", "Reply").await;
    window.until("document.getElementById('context-text').textContent === 'Reply to Ben: Which pier?'").await;
    window.write("#text", &format!("The old one{ENTER}")).await;
    window.sees("The old one").await;
    window.until("document.querySelector('.quote')?.textContent === 'Ben Which pier?'").await;
    window.until("document.getElementById('context').hidden").await;
    window
        .until("[...document.querySelectorAll('.own .state')].every((it) => ['Sent', 'Delivered', 'Read'].includes(it.ariaLabel))")
        .await;
    window.reload().await;
    window.until("document.querySelector('.quote')?.textContent === 'Ben Which pier?'").await;
    window.click(".quote").await;
    window.until("document.activeElement.ariaLabel === 'Actions for “Which pier?”'").await;
}

#[tokio::test]
async fn what_is_done_offline_is_seen_at_once_and_sent_later() {
    let world = World::start().await;
    let ben = world.newcomer("Ben").await;
    let ada = world.newcomer("Ada").await;
    find(&ada, "Ben").await;
    say(&ada, "Saturday").await;
    ada.until("['Sent', 'Delivered', 'Read'].includes(document.querySelector('.own .state')?.ariaLabel)")
        .await;
    ben.pick("Ada").await;
    ben.sees("Saturday").await;
    ada.offline(true).await;
    ada.until("document.body.dataset.phase === 'offline'").await;
    ada.write("#text", UP).await;
    ada.until("!document.getElementById('context').hidden").await;
    ada.write("#text", &format!(" or Sunday{ENTER}")).await;
    ada.sees("Saturday or Sunday").await;
    choose(&ada, "Saturday or Sunday", "React with 🙏").await;
    ada.until("document.querySelector('.smiley')").await;
    ada.offline(false).await;
    ben.sees("Saturday or Sunday").await;
    ben.until("document.querySelector('.smiley')?.textContent === '🙏 1'").await;
}

#[tokio::test]
async fn the_message_under_the_mouse_is_answered_and_reacted_to_beside_it() {
    let world = World::start().await;
    let ben = world.person("Ben").await;
    let ada = world.newcomer("Ada").await;
    let uid = ada.run("return Number(document.body.dataset.uid)").await.as_u64().expect("a uid") as u32;
    ben.send(Recipient::User(uid), "We leave at eight").await;
    ada.pick("Ben").await;
    ada.sees("We leave at eight").await;
    ada.click(".msg .words").await;
    ada.click(".msg .hover .tool:last-child").await;
    ada.until("document.querySelector('.context').checkVisibility() && document.activeElement.id === 'text'")
        .await;
    ada.click(".msg .words").await;
    ada.click(".msg .hover .tool").await;
    ada.click(".chooser .emoji").await;
    ada.until("document.querySelectorAll('.msg .smiley[aria-pressed=true]').length === 1").await;
    // Outside of messages it is gone, and ears never hear of it.
    ada.click("#pane-title").await;
    ada.until("!document.querySelector('.hover')").await;
}

#[tokio::test]
async fn a_message_is_deleted_for_oneself_alone_and_stays_so() {
    let world = World::start().await;
    let ben = world.newcomer("Ben").await;
    let ada = world.newcomer("Ada").await;
    find(&ada, "Ben").await;
    say(&ada, "A secret").await;
    say(&ada, "No secret").await;
    ben.pick("Ada").await;
    ben.sees("A secret").await;
    choose(&ben, "A secret", "Delete for me…").await;
    ben.until("document.getElementById('ask').open").await;
    ben.run("document.getElementById('ask-yes').click()").await;
    forgets(&ben, "A secret").await;
    ben.reload().await;
    ben.sees("No secret").await;
    forgets(&ben, "A secret").await;
    ada.sees("A secret").await;
}

#[tokio::test]
async fn a_message_is_forwarded_and_a_conversation_is_kept_at_the_top_on_every_device() {
    let world = World::start().await;
    let (ben, cat) = (world.person("Ben").await, world.person("Cat").await);
    let ada = world.newcomer("Ada").await;
    let uid = ada.run("return Number(document.body.dataset.uid)").await.as_u64().expect("a uid") as u32;
    ben.send(Recipient::User(uid), "Low tide is at **nine**").await;
    cat.send(Recipient::User(uid), "Morning").await;
    ada.pick("Ben").await;
    ada.sees("Low tide is at ").await;
    choose(&ada, "Low tide", "Forward…").await;
    ada.until("document.getElementById('forward').open").await;
    ada.write("#forward-find", "Cat").await;
    ada.until("document.querySelector('#forward-list li')?.innerText.includes('Cat')").await;
    ada.write("#forward-find", &format!("{DOWN}{ENTER}")).await;
    ada.until("document.querySelector('#forward-chosen li')?.textContent.startsWith('Cat')").await;
    ada.write("#forward-send", ENTER).await;
    ada.until("document.getElementById('pane-title').textContent === 'Cat'").await;
    ada.until("document.querySelector('.own .forwarded')?.textContent === 'Forwarded from Ben'").await;
    ada.until("document.querySelector('.own .words strong, .own .words b')?.textContent === 'nine'").await;

    let first = "document.querySelector('#list .title').textContent";
    ada.until(&format!("{first} === 'Cat'")).await;
    ada.pick("Ben").await;
    ada.run("document.getElementById('pin').click()").await;
    ada.until(&format!("{first} === 'Ben' && document.getElementById('pin').ariaPressed === 'true'")).await;
    let other = world.visitor("Ada").await;
    other.until(&format!("{first} === 'Ben'")).await;
    ada.run("document.getElementById('pin').click()").await;
    for window in [&ada, &other] {
        window.until(&format!("{first} === 'Cat'")).await;
    }
}

#[tokio::test]
async fn the_menu_is_used_by_keyboard_and_fits_a_phone() {
    let world = World::start().await;
    let ben = world.person("Ben").await;
    let ada = world.person("Ada").await;
    ben.tells(&ada, "A question").await;
    let window = world.visitor("Ada").await;
    window.size(390, 844).await;
    window.pick("Ben").await;
    window.sees("A question").await;
    // Nothing more to come that fills the message anew.
    window.until("document.querySelector('.who b').textContent === 'Ben' && !document.querySelector('.row .badge')").await;
    window.write(".more", ENTER).await;
    window.until("document.activeElement.ariaLabel === 'React with 👍'").await;
    for _ in 0..7 {
        window.write("#actions :focus", DOWN).await;
    }
    window.until("document.activeElement.textContent === 'Reply'").await;
    let inside =
        "const { left, top, right, bottom } = document.getElementById('actions').getBoundingClientRect();
        return left >= 0 && top >= 0 && right <= innerWidth && bottom <= innerHeight;";
    assert_eq!(window.run(inside).await, true);
    let dots = "const { width, height } = document.querySelector('.more .icon').getBoundingClientRect();
        const button = document.querySelector('.more').getBoundingClientRect();
        return width >= 16 && height >= 16 && button.width >= 24 && button.height >= 24;";
    assert_eq!(window.run(dots).await, true, "the button is large enough to be hit (WCAG 2.5.8)");
    take(&window, "message-actions.png", 390, 844).await;
    window.write("#actions :focus", ESCAPE).await;
    window.until("document.activeElement.ariaLabel === 'Actions for “A question”'").await;
    window.until("document.documentElement.scrollWidth === 390").await;
}
