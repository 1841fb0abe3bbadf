//! Friends, moments, drafts that follow, and ticks.

use serde_json::json;

use super::people::is_kept;
use super::pictures::take;
use super::window::{ENTER, Window};
use super::world::{World, find, say};

/// Opens one of the pages beside the conversations.
pub(super) async fn open(window: &Window, page: &str) {
    window.run(&format!("document.querySelector('a[href=\"/{page}\"]').click()")).await;
    // Its script comes when it is opened; the fields of a page are named after it.
    let field = page.trim_end_matches('s');
    window
        .until(&format!(
            "location.pathname === '/{page}' && document.querySelector('#page-body [id^={field}]')"
        ))
        .await;
}

/// Presses a button of that page by its words.
pub(super) async fn press(window: &Window, words: &str) {
    let buttons = "[...document.querySelectorAll('#page button')]";
    window.until(&format!("{buttons}.some((it) => it.textContent === '{words}')")).await;
    window.run(&format!("{buttons}.find((it) => it.textContent === '{words}').click()")).await;
}

/// Waits until that page shows it.
pub(super) async fn shows(window: &Window, text: &str) {
    window.until(&format!("document.getElementById('page').innerText.includes('{text}')")).await;
}

pub(super) async fn badge(window: &Window, page: &str, text: &str) {
    window
        .until(&format!(
            "document.querySelector('#to-{page} .badge').textContent === '{text}'
            && !document.querySelector('#to-{page} .badge').hidden"
        ))
        .await;
}

/// Each adds the other one under Contacts: Ada asks, and Ben accepts.
pub(super) async fn befriend(ada: &Window, ben: &Window) {
    open(ada, "contacts").await;
    ada.write("#contacts-find", "Ben").await;
    ada.until("document.querySelector('#contacts-found li')").await;
    ada.write("#contacts-find", ENTER).await;
    shows(ada, "No answer yet").await;
    badge(ben, "contacts", "1").await;
    open(ben, "contacts").await;
    press(ben, "Accept").await;
    ben.until("document.querySelector('#to-contacts .badge').hidden").await;
    shows(ada, "Friends").await;
}

#[tokio::test]
async fn friends_share_moments_likes_and_comments_until_one_is_deleted() {
    let world = World::start().await;
    let ben = world.newcomer("Ben").await;
    let ada = world.newcomer("Ada").await;
    befriend(&ada, &ben).await;
    ada.size(1280, 800).await;
    take(&ada, "contacts.png", 1280, 800).await;

    open(&ada, "moments").await;
    ada.write("#moment-text", "The tide is out").await;
    press(&ada, "Post").await;
    shows(&ada, "The tide is out").await;
    badge(&ben, "moments", "1").await;
    open(&ben, "moments").await;
    shows(&ben, "The tide is out").await;
    ben.until("document.querySelector('#to-moments .badge').hidden").await;
    press(&ben, "Like").await;
    ben.write(".moment input", &format!("Bring boots{ENTER}")).await;
    shows(&ada, "Bring boots").await;
    shows(&ada, "1 like (Ben)").await;
    take(&ada, "moments.png", 1280, 800).await;
    // After a reload it is read from what this browser keeps, and nothing is new.
    ben.reload().await;
    shows(&ben, "Bring boots").await;
    shows(&ben, "Liked").await;

    press(&ada, "Delete").await;
    ada.until("document.getElementById('ask').open").await;
    ada.run("document.getElementById('ask-yes').click()").await;
    for window in [&ada, &ben] {
        window.until("!document.querySelector('.moment')").await;
    }
    // A new browser of the same person has friends and moments, too.
    let other = world.visitor("Ada").await;
    open(&other, "contacts").await;
    shows(&other, "Ben").await;
}

#[tokio::test]
async fn what_is_refused_about_a_moment_is_told_there() {
    let world = World::start().await;
    let ben = world.newcomer("Ben").await;
    let ada = world.newcomer("Ada").await;
    befriend(&ada, &ben).await;
    open(&ada, "moments").await;
    ada.write("#moment-text", "The tide is out").await;
    press(&ada, "Post").await;
    open(&ben, "moments").await;
    shows(&ben, "The tide is out").await;

    // A deletion that the server refuses: the moment stands there, with the reason, and can be deleted again.
    let refuse = "const { fetch } = window;
        window.fetch = (path, ...rest) => path.endsWith('/delete')
          ? Promise.resolve(Response.json({ code: 'internal', detail: 'no', retryable: false }, { status: 500 }))
          : fetch(path, ...rest);
        window.allow = () => { window.fetch = fetch; };";
    ada.run(refuse).await;
    press(&ada, "Delete").await;
    ada.until("document.getElementById('ask').open").await;
    ada.run("document.getElementById('ask-yes').click()").await;
    ada.until("document.querySelector('.moment .trouble')").await;
    shows(&ada, "The tide is out").await;
    ada.run("window.allow()").await;

    // A comment that was written offline, to somebody who has ended the friendship meanwhile.
    ben.offline(true).await;
    ben.write(".moment input", &format!("Bring boots{ENTER}")).await;
    shows(&ben, "Bring boots").await;
    open(&ada, "contacts").await;
    press(&ada, "Remove").await;
    ada.until("document.getElementById('ask').open").await;
    ada.run("document.getElementById('ask-yes').click()").await;
    ada.until("![...document.querySelectorAll('#page button')].some((it) => it.textContent === 'Remove')")
        .await;
    ben.offline(false).await;
    let told = "document.querySelector('.moment .comments .trouble')?.innerText.trim().replace(/\\s+/g, ' ')";
    ben.until(&format!("{told} === 'This post is no longer there. Dismiss'")).await;
    shows(&ben, "Bring boots").await;
    ben.run("document.querySelector('.comments .trouble button').click()").await;
    ben.until("!document.querySelector('.moment')").await;

    open(&ada, "moments").await;
    press(&ada, "Delete").await;
    ada.until("document.getElementById('ask').open").await;
    ada.run("document.getElementById('ask-yes').click()").await;
    ada.until("!document.querySelector('.moment')").await;
    // The refusal went when the same was asked again.
    let kept = "const open = indexedDB.databases().then(([{ name }]) => new Promise((resolve) => {
            const request = indexedDB.open(name);
            request.onsuccess = () => resolve(request.result);
        }));
        const done = arguments[arguments.length - 1];
        open.then((db) => {
            const count = db.transaction('outbox').objectStore('outbox').count();
            count.onsuccess = () => done(count.result);
        });";
    assert_eq!(ada.run_async(kept).await, 0);
}

#[tokio::test]
async fn a_blocked_person_is_told_and_a_draft_follows_to_another_device() {
    let world = World::start().await;
    let ben = world.newcomer("Ben").await;
    let ada = world.newcomer("Ada").await;
    befriend(&ada, &ben).await;
    press(&ben, "Block").await;
    ben.until("document.getElementById('ask').open").await;
    ben.run("document.getElementById('ask-yes').click()").await;
    shows(&ben, "Unblock").await;
    find(&ada, "Ben").await;
    ada.write("#text", &format!("Hello?{ENTER}")).await;
    ada.until("document.querySelector('.trouble')?.textContent.includes('This person does not take messages or anything else from you.')").await;
    press(&ben, "Unblock").await;
    ben.until("![...document.querySelectorAll('#page button')].some((it) => it.textContent === 'Unblock')")
        .await;

    ada.write("#text", "To be or").await;
    let other = world.visitor("Ada").await;
    other.until("document.querySelector('#list')?.innerText.includes('To be or')").await;
    other.pick("Ben").await;
    other.until("document.getElementById('text').value === 'To be or'").await;
    // Sent from there, it is a draft nowhere any more.
    other.write("#text", &format!(" not to be{ENTER}")).await;
    ada.run("document.activeElement.blur()").await;
    ada.until("document.getElementById('text').value === ''").await;
}

#[tokio::test]
async fn ticks_say_how_far_a_message_has_come() {
    let world = World::start().await;
    let ben = world.newcomer("Ben").await;
    let ada = world.newcomer("Ada").await;
    find(&ada, "Ben").await;
    say(&ada, "Low tide is at nine").await;
    ada.until("document.querySelector('.own .state').ariaLabel === 'Delivered'").await;
    ben.pick("Ada").await;
    ada.until("document.querySelector('.own .state').ariaLabel === 'Read'").await;
    // One who wants to be quiet tells nothing of it.
    ben.run("document.getElementById('open-settings').click()").await;
    ben.run("document.querySelector('#privacy-form [name=quiet]').click()").await;
    ben.until("document.querySelector('#privacy-form [name=quiet]').checked").await;
    ben.run("document.getElementById('settings').close()").await;
    say(&ada, "Or at ten").await;
    ben.sees("Or at ten").await;
    say(&ben, "Thank you").await;
    ada.sees("Thank you").await;
    let last = "[...document.querySelectorAll('.own .state')].at(-1).ariaLabel";
    ada.until(&format!("{last} === 'Sent'")).await;
}

/// Chooses an item of the menu of the person of the open conversation.
async fn choose(window: &Window, words: &str) {
    window.until("!document.getElementById('open-person').hidden").await;
    window.click("#open-person").await;
    window.until("document.getElementById('actions').matches(':popover-open')").await;
    let item = "[...document.querySelectorAll('#actions button')].find((it) => it.textContent === 'WORDS')";
    let item = item.replace("WORDS", words);
    window.until(&item).await;
    window.run(&format!("{item}.click()")).await;
}

#[tokio::test]
async fn a_stranger_who_writes_is_blocked_or_befriended_from_the_conversation() {
    let world = World::start().await;
    let ada = world.newcomer("Ada").await;
    let cem = world.newcomer("Cem").await;
    find(&cem, "Ada").await;
    say(&cem, "Buy my boat").await;
    ada.pick("Cem").await;
    ada.sees("Buy my boat").await;
    ada.until("document.getElementById('open-person').title === 'More about Cem'").await;
    choose(&ada, "Block").await;
    ada.until("document.getElementById('ask').open").await;
    ada.until("document.getElementById('ask-title').textContent === 'Block Cem?'").await;
    ada.click("#ask-yes").await;
    ada.until("!document.getElementById('ask').open && document.activeElement.id === 'open-person'").await;
    is_kept(&ada, "(settings) => settings.block?.blocked").await;

    let refusal = "This person does not take messages or anything else from you.";
    cem.write("#text", &format!("Half the price{ENTER}")).await;
    cem.until(&format!("document.querySelector('#log .trouble')?.textContent.includes('{refusal}')")).await;
    // So is a request, which says so where requests are.
    choose(&cem, "Add as a friend").await;
    open(&cem, "contacts").await;
    shows(&cem, &format!("Ada: {refusal}")).await;

    choose(&ada, "Unblock").await;
    is_kept(&ada, "(settings) => !settings.block").await;
    find(&cem, "Ada").await;
    cem.click("#log .trouble button").await;
    ada.sees("Half the price").await;
    choose(&cem, "Add as a friend").await;
    badge(&ada, "contacts", "1").await;
    // The menu offers no second request to the same person.
    cem.click("#open-person").await;
    cem.until("document.querySelector('#actions button')?.textContent === 'Block'").await;
    open(&ada, "contacts").await;
    shows(&ada, "Friend requests").await;
    shows(&ada, "Cem").await;
}

#[tokio::test]
async fn the_menu_of_a_group_offers_nothing_about_a_person() {
    let world = World::start().await;
    let (ben, ada) = (world.person("Ben").await, world.person("Ada").await);
    ben.group("Harbour walk", &[ada.uid]).await;
    ben.tells(&ada, "Is it far?").await;
    let window = world.visitor("Ada").await;
    let is_open = "document.getElementById('actions').matches(':popover-open')";
    window.pick("Ben").await;

    // At once, and not only when the group has been shown.
    let at_once = "const title = (row) => row.querySelector('.title').textContent;
         [...document.querySelectorAll('#list a')].find((row) => title(row) === 'Harbour walk').click();
         document.getElementById('open-person').click();
         return [...document.querySelectorAll('#actions button')].map((it) => it.textContent);";
    assert_eq!(window.run(at_once).await, json!(["Go to a date…"]));

    // A menu that is open does not stay over another conversation.
    window.until(is_open).await;
    window.back().await;
    window.until("document.getElementById('pane-title').textContent === 'Ben'").await;
    assert_eq!(window.run(&format!("return {is_open}")).await, false);
}

#[tokio::test]
async fn a_comment_is_deleted_for_everybody_only_when_that_is_confirmed() {
    let world = World::start().await;
    let ben = world.newcomer("Ben").await;
    let ada = world.newcomer("Ada").await;
    befriend(&ada, &ben).await;
    open(&ada, "moments").await;
    ada.write("#moment-text", "The tide is out").await;
    press(&ada, "Post").await;
    open(&ben, "moments").await;
    shows(&ben, "The tide is out").await;
    ben.write(".moment input", &format!("Bring boots{ENTER}")).await;
    shows(&ada, "Bring boots").await;
    let delete = ".comments button[aria-label='Delete: Bring boots']";
    for (answer, rest) in [("#ask-no", 1), ("#ask-yes", 0)] {
        ben.until(&format!("document.querySelector(\"{delete}\")")).await;
        ben.run(&format!("document.querySelector(\"{delete}\").click()")).await;
        ben.until("document.getElementById('ask').open").await;
        ben.until("document.getElementById('ask-title').textContent === 'Delete this comment?'").await;
        ben.until("document.getElementById('ask-quote').textContent === 'Bring boots'").await;
        ben.click(answer).await;
        ben.until("!document.getElementById('ask').open").await;
        ben.until(&format!("document.querySelectorAll('.comments li').length === {rest}")).await;
    }
    ada.until("document.querySelector('.moment') && !document.querySelector('.comments li')").await;
}
