//! Mentions: chosen while writing, seen in the pane, and told apart in the list until they are read. And who has read what
//! was written to a group.

use tidemark_client::{Conversation, Draft, Mentions, Recipient};

use super::starred::choose;
use super::window::{DOWN, ENTER, ESCAPE, Window};
use super::world::{Person, World, connected, find, say};

const AT: &str = "document.querySelector('#list .at')";

/// Waits until the list of names has so many lines.
async fn offers(window: &Window, lines: usize) {
    window.until(&format!("document.querySelectorAll('#mention-list li').length === {lines}")).await;
}

#[tokio::test]
async fn a_mention_is_chosen_by_keyboard_and_has_a_badge_of_its_own_until_it_is_read() {
    let world = World::start().await;
    let (ben, cleo, me) = (world.person("Ben").await, world.person("Cleo").await, world.person("Ada").await);
    let gid = ben.group("Harbour walk", &[cleo.uid, me.uid]).await;
    let (desk, phone) = (world.visitor("Cleo").await, world.visitor("Cleo").await);
    let ada = world.visitor("Ada").await;
    ada.pick("Harbour walk").await;
    ada.until("document.getElementById('pane-about').textContent === '3 members'").await;
    ada.write("#text", "me@").await;
    offers(&ada, 0).await;
    ada.write("#text", " @").await;
    offers(&ada, 3).await;
    ada.until("document.getElementById('announce').textContent.startsWith('3 people to mention')").await;
    let marked =
        "document.getElementById(document.getElementById('text').getAttribute('aria-activedescendant'))";
    ada.write("#text", DOWN).await;
    ada.until(&format!("{marked}?.ariaSelected === 'true' && {marked}.innerText.includes('Cleo')")).await;
    // Escape leaves the text as it is.
    ada.write("#text", ESCAPE).await;
    offers(&ada, 0).await;
    ada.write("#text", "C").await;
    offers(&ada, 0).await;
    ada.write("#text", " @cl").await;
    offers(&ada, 1).await;
    ada.write("#text", ENTER).await;
    ada.until("document.getElementById('text').value === 'me@ @C @Cleo '").await;
    ada.write("#text", &format!("is the tide in?{ENTER}")).await;
    ada.until("document.querySelector('.own .mention')?.textContent === '@Cleo'").await;

    for window in [&desk, &phone] {
        window.until(&format!("{AT}?.ariaLabel === '1 mention of you'")).await;
    }
    ben.send(Recipient::Group(gid), "It is").await;
    desk.until("document.querySelector('#list .badge').textContent === '2'").await;
    desk.pick("Harbour walk").await;
    desk.until("document.querySelector('.msg.to-me .mention.me')?.textContent === '@Cleo'").await;
    for window in [&desk, &phone] {
        window.until(&format!("!{AT} && !document.querySelector('#list .badge')")).await;
    }
    ada.until("!document.querySelector('#list .at')").await;
}

#[tokio::test]
async fn a_new_device_learns_of_mentions_and_a_mute_does_not_hide_them() {
    let world = World::start().await;
    let (ben, cleo) = (world.person("Ben").await, world.person("Cleo").await);
    let gid = ben.group("Harbour walk", &[cleo.uid]).await;
    let say = async |text: &str, users: &[u32], all| {
        let mentions = Mentions { users: users.to_vec(), all };
        let draft = Draft::text(Recipient::Group(gid), text).mentioning(&mentions);
        ben.http.send(&draft).await.expect("sent");
    };
    say("@Cleo: nine?", &[cleo.uid], false).await;
    ben.send(Recipient::Group(gid), "At the pier").await;
    let window = world.visitor("Cleo").await;
    window.until(&format!("{AT}?.ariaLabel === '1 mention of you'")).await;
    window.reload().await;
    connected(&window).await;
    window.until(&format!("{AT} && document.title === '(2) Tidemark'")).await;
    window.pick("Harbour walk").await;
    window.until(&format!("!{AT} && document.title === 'Harbour walk · Tidemark'")).await;
    window.click("#open-mute").await;
    window.until("document.getElementById('actions').matches(':popover-open')").await;
    window.run("document.querySelector('#actions button').click()").await;
    window.until("document.querySelector('.row.muted')").await;
    window.goto(&world.at("/")).await;
    connected(&window).await;
    ben.send(Recipient::Group(gid), "Nobody is told of this").await;
    window.until("document.querySelector('.row.muted .badge')?.textContent === '1'").await;
    assert_eq!(window.title().await, "Tidemark");
    say("@all: it is cancelled", &[], true).await;
    window.until(&format!("{AT} && document.title === '(1) Tidemark'")).await;
    // A message that was taken back mentions nobody.
    let newest = ben.http.conversations().await.expect("the list")[0].last.clone().expect("a row");
    let recall = format!("/conversations/g:{gid}/messages/{}/recall", newest.message_id);
    let of_ben = world.visitor("Ben").await;
    let call = "const done = arguments[0], body = JSON.stringify({ client_id: crypto.randomUUID() });
        fetch('/api/v1PATH', { method: 'POST', headers: { 'content-type': 'application/json' }, body })
          .then(({ status }) => done(status));";
    assert_eq!(of_ben.run_async(&call.replace("PATH", &recall)).await, 201);
    window.until(&format!("!{AT} && document.title === 'Tidemark'")).await;
}

#[tokio::test]
async fn an_author_sees_how_many_have_read_in_a_group_on_every_device() {
    let world = World::start().await;
    let (ben, cleo, ada) = (world.person("Ben").await, world.person("Cleo").await, world.person("Ada").await);
    let gid = ada.group("Harbour walk", &[ben.uid, cleo.uid]).await;
    let desk = world.visitor("Ada").await;
    desk.pick("Harbour walk").await;
    say(&desk, "Low tide is at nine").await;
    desk.until("document.querySelector('.own .state')?.ariaLabel === 'Sent'").await;
    let reads = async |person: &Person| {
        let last = person.http.conversations().await.expect("the list")[0].last.clone().expect("a row");
        person.http.mark_read(Conversation::Group(gid), last.message_id).await.expect("read");
    };
    let words = "document.querySelector('.own .read-by')?.textContent";
    let label = "[...document.querySelectorAll('.own .state')].at(-1).ariaLabel";
    reads(&ben).await;
    desk.until(&format!("{words} === 'Read by 1' && {label} === 'Read by 1 of 2'")).await;
    reads(&cleo).await;
    desk.until(&format!("{words} === 'Read by 2' && {label} === 'Read by 2 of 2'")).await;
    say(&desk, "At the pier").await;
    desk.until(&format!("{label} === 'Sent'")).await;
    // A browser that was not there when they read.
    let phone = world.visitor("Ada").await;
    phone.pick("Harbour walk").await;
    phone.until(&format!("{words} === 'Read by 2' && {label} === 'Sent'")).await;
    desk.reload().await;
    desk.until(&format!("{words} === 'Read by 2'")).await;
}

#[tokio::test]
async fn an_author_sees_who_has_read_in_a_group() {
    let world = World::start().await;
    let (ben, cleo, ada) = (world.person("Ben").await, world.person("Cleo").await, world.person("Ada").await);
    let gid = ada.group("Harbour walk", &[ben.uid, cleo.uid]).await;
    let desk = world.visitor("Ada").await;
    desk.pick("Harbour walk").await;
    desk.until("document.getElementById('pane-about').textContent === '3 members'").await;
    say(&desk, "Low tide is at nine").await;
    desk.until("document.querySelector('.own .state').ariaLabel === 'Sent'").await;
    choose(&desk, "Low tide is at nine", "Read by").await;
    desk.until("document.getElementById('readers-note').textContent === 'Nobody has read this message yet.'")
        .await;
    desk.run("document.getElementById('readers').close()").await;
    let last = ben.http.conversations().await.expect("the list")[0].last.clone().expect("a row");
    ben.http.mark_read(Conversation::Group(gid), last.message_id).await.expect("read");
    choose(&desk, "Low tide is at nine", "Read by").await;
    desk.until("document.getElementById('readers-note').textContent === '1 of 2 has read this message.'")
        .await;
    desk.until("document.querySelector('#readers-list li').textContent.endsWith('Ben')").await;
}

#[tokio::test]
async fn a_new_device_shows_the_ticks_of_earlier_messages() {
    let world = World::start().await;
    let (ben, ada) = (world.newcomer("Ben").await, world.newcomer("Ada").await);
    find(&ada, "Ben").await;
    say(&ada, "Low tide is at nine").await;
    ben.pick("Ada").await;
    ada.until("document.querySelector('.own .state').ariaLabel === 'Read'").await;
    let phone = world.visitor("Ada").await;
    phone.pick("Ben").await;
    phone.until("document.querySelector('.own .state')?.ariaLabel === 'Read'").await;
}
