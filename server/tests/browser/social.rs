//! Friends, moments, drafts that follow, and ticks.

use serde_json::json;
use tidemark_client::Recipient;

use super::people::is_kept;
use super::pictures::take;
use super::window::{ENTER, ESCAPE, Window};
use super::world::{World, find, open_about, open_person, say};

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

/// Unfolds what is said below the moments that are shown.
pub(super) async fn unfold(window: &Window) {
    let folded = "document.querySelectorAll('.moment [data-act=comments][aria-expanded=false]')";
    window.until("document.querySelector('.moment [data-act=comments]')").await;
    window.run(&format!("for (const it of {folded}) it.click()")).await;
    window.until(&format!("!{folded}.length")).await;
}

/// Chooses an item of the first menu of that page.
pub(super) async fn choose_of_page(window: &Window, words: &str) {
    let menu = "document.querySelector('#page [aria-haspopup=menu]')";
    window.until(menu).await;
    window.run(&format!("{menu}.click()")).await;
    let item = format!(
        "[...document.querySelectorAll('#actions:popover-open button')].find((it) => it.textContent === '{words}')"
    );
    window.until(&item).await;
    window.run(&format!("{item}.click()")).await;
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
    // Likes and comments are folded until they are asked for.
    ben.until("!document.querySelector('.moment input').checkVisibility()").await;
    unfold(&ben).await;
    ben.write(".moment input", &format!("Bring boots{ENTER}")).await;
    unfold(&ada).await;
    shows(&ada, "Bring boots").await;
    shows(&ada, "1 like (Ben)").await;
    ada.until("document.querySelector('.moment time').textContent === 'just now' && /\\d:\\d\\d/.test(document.querySelector('.moment time').title)").await;
    take(&ada, "moments.png", 1280, 800).await;
    // After a reload it is read from what this browser keeps, and nothing is new.
    ben.reload().await;
    unfold(&ben).await;
    shows(&ben, "Bring boots").await;
    shows(&ben, "Liked").await;

    choose_of_page(&ada, "Delete…").await;
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
    choose_of_page(&ada, "Delete…").await;
    ada.until("document.getElementById('ask').open").await;
    ada.run("document.getElementById('ask-yes').click()").await;
    ada.until("document.querySelector('.moment .trouble')").await;
    shows(&ada, "The tide is out").await;
    ada.run("window.allow()").await;

    // A comment that was written offline, to somebody who has ended the friendship meanwhile.
    unfold(&ben).await;
    ben.offline(true).await;
    ben.write(".moment input", &format!("Bring boots{ENTER}")).await;
    shows(&ben, "Bring boots").await;
    open(&ada, "contacts").await;
    choose_of_page(&ada, "Remove from friends…").await;
    ada.until("document.getElementById('ask').open").await;
    ada.run("document.getElementById('ask-yes').click()").await;
    ada.until("!document.querySelector('#page .contacts li')").await;
    ben.offline(false).await;
    let told = "document.querySelector('.moment .comments .trouble')?.innerText.trim().replace(/\\s+/g, ' ')";
    ben.until(&format!("{told} === 'This post is no longer there. Dismiss'")).await;
    shows(&ben, "Bring boots").await;
    ben.run("document.querySelector('.comments .trouble button').click()").await;
    ben.until("!document.querySelector('.moment')").await;

    open(&ada, "moments").await;
    choose_of_page(&ada, "Delete…").await;
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
    choose_of_page(&ben, "Block…").await;
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
    open_person(window).await;
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
    ada.until("document.getElementById('open-about').title === 'About Cem'").await;
    choose(&ada, "Block…").await;
    ada.until("document.getElementById('ask').open").await;
    ada.until("document.getElementById('ask-title').textContent === 'Block Cem?'").await;
    ada.click("#ask-yes").await;
    ada.until("!document.getElementById('ask').open && document.activeElement.id === 'about-more'").await;
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
    open_person(&cem).await;
    cem.until("[...document.querySelectorAll('#actions button')].map((it) => it.textContent).join() === 'Take back,Mute…,Go to a date…,Block…,Report…'").await;
    open(&ada, "contacts").await;
    shows(&ada, "Friend requests").await;
    shows(&ada, "Cem").await;
}

#[tokio::test]
async fn the_panel_is_that_of_the_open_conversation_and_whoever_is_seen_in_a_group_has_a_card() {
    let world = World::start().await;
    let (ben, ada, cleo) = (world.person("Ben").await, world.person("Ada").await, world.person("Cleo").await);
    let gid = ben.group("Harbour walk", &[ada.uid, cleo.uid]).await;
    ben.group("Island", &[ada.uid, cleo.uid]).await;
    ben.tells(&ada, "Is it far?").await;
    let group = Recipient::Group(gid);
    ben.send(group, "Low tide is at nine").await;
    let window = world.visitor("Ada").await;
    let name = "document.querySelector('#about:not([hidden]) #about-name')?.textContent";
    let hash = |hash: &str| format!("location.hash === '{hash}'");
    window.pick("Harbour walk").await;
    open_about(&window).await;
    window.until(&format!("{name} === 'Harbour walk'")).await;
    window.until("document.querySelectorAll('#members-list li').length === 3").await;
    window.click("#about-more").await;
    window.until("document.querySelector('#actions:popover-open')?.textContent === 'Go to a date…'").await;
    window.press(ESCAPE).await;
    // The owner first, then by name.
    let order = "return [...document.querySelectorAll('#members-list .title')].map((it) => it.textContent)";
    assert_eq!(window.run(order).await, json!(["Ben", "Ada", "Cleo"]));

    // From the list, a disc and a name to the person; the way back is that of the browser.
    let person = format!("#about/u:{}", ben.uid);
    for (css, back) in [("#members-list a", "#about"), (".msg .disc", ""), (".who b", "")] {
        window.until(&format!("document.querySelector('{css}')")).await;
        window.click(css).await;
        window.until(&format!("{} && {name} === 'Ben'", hash(&person))).await;
        window.until("!document.getElementById('about-more').hidden && document.getElementById('about-group').hidden").await;
        // Those of which the browser did not know who is in them, too.
        window.until("[...document.querySelectorAll('#about-groups-list a')].map((it) => it.textContent).sort().join() === 'Harbour walk,Island'").await;
        window.back().await;
        window.until(&hash(back)).await;
        if !back.is_empty() {
            window.until(&format!("{name} === 'Harbour walk'")).await;
            window.click("#about-close").await;
        }
        window.until("document.getElementById('about').hidden && !location.hash").await;
    }
    // The address can be opened anew, and closed in one step.
    window.click(".who b").await;
    window.until(&hash(&person)).await;
    window.reload().await;
    window.until(&format!("{name} === 'Ben'")).await;
    window.click("#about-write").await;
    window.until(&format!("location.pathname === '/c/u:{}' && !location.hash", ben.uid)).await;
    window.until("document.getElementById('about').hidden && document.activeElement.id === 'text'").await;

    // A menu or panel that is open does not stay over another conversation.
    open_person(&window).await;
    window.pick("Harbour walk").await;
    window
        .until("document.getElementById('about').hidden && !document.querySelector('#actions:popover-open')")
        .await;

    // On a phone it is a page of its own, which the browser's back button closes.
    window.size(390, 844).await;
    open_about(&window).await;
    window.until("document.getElementById('about').getBoundingClientRect().width === 390").await;
    window.until("document.documentElement.scrollWidth === 390").await;
    window.back().await;
    window
        .until("document.getElementById('about').hidden && document.getElementById('open').checkVisibility()")
        .await;
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
    unfold(&ben).await;
    ben.write(".moment input", &format!("Bring boots{ENTER}")).await;
    unfold(&ada).await;
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
