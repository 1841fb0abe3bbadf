//! People chat: one to one, in groups, on several devices.

use tidemark_client::Recipient;

use super::window::{ENTER, SHIFT_ENTER};
use super::world::{PASSWORD, World, database_of, find, open_about, open_settings, say, stored};

const UNREAD: &str = "document.querySelector('.row .badge')?.firstChild.data";

#[tokio::test]
async fn two_people_chat_both_ways() {
    let world = World::start().await;
    let ada = world.newcomer("Ada").await;
    let ben = world.newcomer("Ben").await;
    ada.until("!document.getElementById('list-blank').hidden").await;

    find(&ada, "Ben").await;
    say(&ada, "Is the tide in?").await;
    ada.until("['Sent', 'Delivered', 'Read'].includes(document.querySelector('.own .state')?.ariaLabel)")
        .await;

    ben.until(&format!("{UNREAD} === '1'")).await;
    assert_eq!(ben.title().await, "(1) Tidemark");
    ben.pick("Ada").await;
    ben.sees("Is the tide in?").await;
    ben.until(&format!("{UNREAD} === undefined && document.title === 'Ada · Tidemark'")).await;
    ben.write("#text", &format!("It is.{SHIFT_ENTER}Come along!{ENTER}")).await;
    ada.sees("It is.\nCome along!").await;
    ada.until("document.getElementById('announce').textContent === 'Ben: It is.\\nCome along!'").await;
}

/// Holds all of the browser's database for the person in the window, until `letGo()`.
const HOLD: &str = "const done = arguments[0], open = indexedDB.open(`tidemark-${document.body.dataset.account}`);
    open.onsuccess = () => {
      const meta = open.result.transaction([...open.result.objectStoreNames], 'readwrite').objectStore('meta');
      let held = true;
      window.letGo = () => { held = false; open.result.close(); };
      const again = () => { if (held) meta.get('position').onsuccess = again; };
      meta.get('position').onsuccess = () => { again(); done(true); };
    };";

#[tokio::test]
async fn an_own_message_is_shown_at_enter_and_once_however_late_it_is_stored() {
    let world = World::start().await;
    let ben = world.person("Ben").await;
    let ada = world.newcomer("Ada").await;
    find(&ada, "Ben").await;
    say(&ada, "Is the tide in?").await;
    let sent = "[...document.querySelectorAll('.own .state')].at(-1).ariaLabel === 'Sent'";
    ada.until(sent).await;
    assert_eq!(ada.run_async(HOLD).await, true);
    let enter = "const box = document.getElementById('text');
        box.value = 'At once';
        box.dispatchEvent(new Event('input'));
        box.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', bubbles: true, cancelable: true }));
        const last = [...document.querySelectorAll('.msg')].at(-1);
        return [last.querySelector('.words').textContent, last.querySelector('.state').ariaLabel, box.value];";
    assert_eq!(ada.run(enter).await, serde_json::json!(["At once", "Waiting", ""]));
    ada.run("document.querySelector('.msg:last-child').marked = true; letGo()").await;
    ada.until(sent).await;
    ada.until("document.querySelector('.msg:last-child').marked").await;
    assert_eq!(ada.copies("At once").await, 1);
    ada.reload().await;
    ada.until(sent).await;
    assert_eq!(ada.copies("At once").await, 1);
    assert_eq!(stored(&ben, "At once").await, 1);
}

#[tokio::test]
async fn a_message_turns_from_waiting_to_stored_in_place() {
    let world = World::start().await;
    world.person("Ben").await;
    let ada = world.newcomer("Ada").await;
    find(&ada, "Ben").await;
    ada.offline(true).await;
    say(&ada, "Patience").await;
    ada.until("document.querySelector('.own .state').ariaLabel === 'Waiting'").await;
    ada.run("document.querySelector('.own').marked = true").await;
    ada.offline(false).await;
    ada.until("['Sent', 'Delivered', 'Read'].includes(document.querySelector('.own .state')?.ariaLabel)")
        .await;
    ada.until("document.querySelector('.own').marked && document.querySelectorAll('.own').length === 1")
        .await;
}

#[tokio::test]
async fn markup_is_text() {
    let world = World::start().await;
    let ben = world.person("<img src=x onerror=document.title=1>").await;
    let ada = world.newcomer("Ada").await;
    let uid = ada.run("return Number(document.body.dataset.uid)").await.as_u64().expect("a uid");
    let hostile = "<script>document.title='hacked'</script><b>bold</b> javascript:alert(1) &amp;";
    ben.send(Recipient::User(u32::try_from(uid).expect("a uid")), hostile).await;
    ada.pick("<img src=x onerror=document.title=1>").await;
    ada.sees(hostile).await;
    ada.until("!document.querySelector('#app b:not(.who b), #app img:not(.mark), .words *:not(.unseen)')")
        .await;
    assert!(ada.title().await.ends_with("<img src=x onerror=document.title=1> · Tidemark"));
}

#[tokio::test]
async fn a_group_is_made_changed_and_left() {
    let world = World::start().await;
    world.person("Dov").await;
    let ada = world.newcomer("Ada").await;
    let ben = world.newcomer("Ben").await;

    ada.click("#open-group").await;
    ada.write("#group-name", "Harbour walk").await;
    ada.write("#group-find", "Ben").await;
    ada.until("document.querySelector('#group-list li')").await;
    ada.write("#group-find", ENTER).await;
    ada.until("document.querySelector('#group-members li')").await;
    ada.click("#new-group-form .primary").await;
    ada.until("document.getElementById('pane-title').textContent === 'Harbour walk'").await;
    say(&ada, "Saturday at nine?").await;

    ben.pick("Harbour walk").await;
    ben.sees("Saturday at nine?").await;
    ben.until("document.querySelector('.event').textContent === 'Ada created the group'").await;
    say(&ben, "Fine with me").await;
    ada.sees("Fine with me").await;

    ada.click("#open-about").await;
    ada.until("document.querySelectorAll('#members-list li').length === 2").await;
    ada.write("#members-find", "Dov").await;
    ada.until("document.querySelector('#members-found li')").await;
    ada.write("#members-find", ENTER).await;
    ada.until("document.querySelectorAll('#members-list li').length === 3").await;
    ada.click("#members-list [title='More about Ben']").await;
    ada.until("document.querySelectorAll('#actions:popover-open button').length === 5").await;
    ada.click("#actions button:nth-child(4)").await;
    ada.click("#ask-yes").await;
    ada.until("document.querySelectorAll('#members-list li').length === 2").await;
    ben.until("[...document.querySelectorAll('.event')].at(-1).textContent === 'Ada removed you'").await;
    ben.until("document.getElementById('text').disabled").await;

    ada.click("#leave").await;
    ada.click("#ask-yes").await;
    ada.until("document.getElementById('about').hidden && document.getElementById('text').disabled").await;
    ada.until("[...document.querySelectorAll('.event')].at(-1).textContent === 'You left'").await;
}

#[tokio::test]
async fn a_new_browser_knows_the_people_of_a_group_and_who_was_put_out() {
    let world = World::start().await;
    let ben = world.person("Ben").await;
    let ada = world.person("Ada").await;
    let inside = ben.group("Inside", &[ada.uid]).await;
    let outside = ben.group("Outside", &[ada.uid]).await;
    ben.http.remove_member(outside, ada.uid).await.expect("removed");
    ben.send(Recipient::Group(inside), "you are in").await;
    let window = world.visitor("Ada").await;
    window.pick("Inside").await;
    window.sees("you are in").await;
    window.until("document.querySelector('.who b').textContent === 'Ben'").await;
    window.until("!document.getElementById('text').disabled").await;
    window.pick("Outside").await;
    window.until("document.getElementById('text').disabled").await;
    open_about(&window).await;
    window
        .until("document.getElementById('about-group').hidden && document.getElementById('invite').hidden")
        .await;
}

#[tokio::test]
async fn reading_on_one_device_clears_the_badge_on_the_other() {
    let world = World::start().await;
    let ben = world.person("Ben").await;
    let ada = world.person("Ada").await;
    for text in ["one", "two", "three"] {
        ben.tells(&ada, text).await;
    }
    let desk = world.visitor("Ada").await;
    let phone = world.visitor("Ada").await;
    for window in [&desk, &phone] {
        window.until(&format!("{UNREAD} === '3' && document.title === '(3) Tidemark'")).await;
    }
    phone.pick("Ben").await;
    phone.until("document.querySelector('.fresh-line')").await;
    desk.until(&format!("{UNREAD} === undefined && document.title === 'Tidemark'")).await;
    ben.tells(&ada, "four").await;
    desk.until(&format!("{UNREAD} === undefined && document.querySelector('.last').textContent === 'four'"))
        .await;
}

#[tokio::test]
async fn a_refused_message_can_be_tried_again_or_discarded() {
    let world = World::start().await;
    let ben = world.person("Ben").await;
    let ada = world.newcomer("Ada").await;
    let uid = ada.run("return Number(document.body.dataset.uid)").await.as_u64().expect("a uid");
    let uid = u32::try_from(uid).expect("a uid");
    let gid = ben.group("Harbour walk", &[uid]).await;
    ada.pick("Harbour walk").await;
    ada.offline(true).await;
    ada.until("document.body.dataset.phase === 'offline'").await;
    ben.http.remove_member(gid, uid).await.expect("removed");
    say(&ada, "Anyone there?").await;
    ada.offline(false).await;
    ada.until("document.querySelector('.failed .state')?.ariaLabel === 'Not sent'").await;
    let button = |text: &str| {
        format!("[...document.querySelectorAll('.trouble button')].find((it) => it.textContent === '{text}')")
    };
    let watch = "window.states = []; const message = document.querySelector('.msg.failed');
        new MutationObserver(() => states.push(message.querySelector('.state').ariaLabel))
            .observe(message, { childList: true });";
    ada.run(watch).await;
    ada.run(&format!("{}.click()", button("Try again"))).await;
    ada.until("window.states.join() === 'Waiting,Not sent'").await;
    ada.run(&format!("{}.click()", button("Discard"))).await;
    ada.until("!document.querySelector('.msg')").await;
}

#[tokio::test]
async fn logging_out_everywhere_ends_the_other_window_too() {
    let world = World::start().await;
    let ben = world.person("Ben").await;
    let ada = world.person("Ada").await;
    ben.tells(&ada, "a secret").await;
    let desk = world.visitor("Ada").await;
    let phone = world.visitor("Ada").await;
    phone.pick("Ben").await;
    phone.sees("a secret").await;
    let database = database_of(&desk).await;
    open_settings(&desk, "account").await;
    desk.click("#log-out-all").await;
    for window in [&desk, &phone] {
        window.until("document.getElementById('sign-in')").await;
    }
    let kept = "const open = indexedDB.open('NAME'); const done = arguments[0]; open.onsuccess = () => {
        const names = [...open.result.objectStoreNames];
        if (!names.length) return done(0);
        const all = open.result.transaction('rows').objectStore('rows').count();
        all.onsuccess = () => done(all.result);
    };";
    for window in [&desk, &phone] {
        assert_eq!(window.run_async(&kept.replace("NAME", &database)).await, 0);
    }
}

#[tokio::test]
async fn a_guest_comes_into_a_group_by_a_link() {
    let world = World::start().await;
    let gid = world.person("Ada").await.group("Harbour walk", &[]).await;
    let ada = world.visitor("Ada").await;
    ada.goto(&world.at(&format!("/c/g:{gid}"))).await;
    ada.until("!document.getElementById('open-about').hidden").await;
    ada.click("#open-about").await;
    ada.until("document.querySelectorAll('#members-list li').length === 1").await;
    ada.click("#invite").await;
    ada.until("document.getElementById('uses')").await;
    ada.click("button.primary").await;
    ada.until("document.getElementById('link')").await;
    let link = ada.run("return document.getElementById('link').textContent").await;
    ada.allow_clipboard().await;
    ada.click("#copy").await;
    ada.until("document.getElementById('copied').textContent === 'Copied.'").await;
    assert_eq!(ada.clipboard().await, link);
    // Where the browser refuses that, one key copies what is marked.
    ada.run("getSelection().empty(); navigator.clipboard.writeText = async () => { throw new Error('no'); }")
        .await;
    ada.click("#copy").await;
    let told = "The link is selected. Copy it with Ctrl+C or ⌘C.";
    ada.until(&format!("document.getElementById('copied').textContent === '{told}'")).await;
    assert_eq!(ada.run("return getSelection().toString()").await, link);

    // Somebody without an account is asked who he is first, and comes back to the invitation.
    let guest = world.window().await;
    guest.goto(link.as_str().expect("a link")).await;
    guest.until("document.querySelector('h1').textContent === 'Harbour walk'").await;
    guest.click("a[href^='/sign-up']").await;
    guest.until("document.getElementById('name')").await;
    guest.write("#name", "Ben").await;
    guest.write("#password", PASSWORD).await;
    guest.click("button.primary").await;
    guest.until("document.querySelector('form[action^=\"/invites/\"]')").await;
    guest.click("button.primary").await;
    guest.until("location.pathname.startsWith('/c/g:')").await;
    guest.until("document.title === 'Harbour walk · Tidemark'").await;
    guest.until("document.querySelector('.event').textContent === 'You joined by a link from Ada'").await;
    ada.goto(&world.at(&format!("/c/g:{gid}"))).await;
    ada.until("[...document.querySelectorAll('.event')].at(-1)?.textContent === 'Ben joined by your link'")
        .await;
}
