//! A picture of every page in each language, light, dark and in forced colours, wide and on a phone, for people who look at them:
//! `cargo xtask pictures`. Those in Chinese need a font that has it, such as Debian's `fonts-noto-cjk`.

use tidemark_client::{Conversation, Draft, History, Recipient};
use uuid::Uuid;

use super::axe::{LANGUAGES, choose};
use super::pictures::{folder, take};
use super::window::{BACKSPACE, COLOURS, Colours, ENTER, Window};
use super::world::{PASSWORD, Person, World, befriend, connected, open_about, open_settings};

/// A group that shows earlier messages to those who join it, with two pinned messages, and somebody who joins it.
async fn group(owner: &Person, other: &Person, joins: u32) -> u64 {
    let gid = owner.group("Harbour walk", &[other.uid]).await;
    owner.http.set_history(gid, History::Visible).await.expect("set");
    for text in ["Low tide is at ten past nine on Saturday", "Nine at the pier, then"] {
        let sent = owner.http.send(&Draft::text(Recipient::Group(gid), text)).await.expect("sent");
        let pin = owner.http.pin(
            Uuid::from_u128(u128::from(gid) << 64 | u128::from(sent.message_id)),
            Conversation::Group(gid),
            sent.message_id,
            true,
        );
        pin.await.expect("pinned");
    }
    owner.http.add_member(gid, joins).await.expect("added");
    other.send(Recipient::Group(gid), "I bring coffee").await;
    gid
}

/// Stars all messages that are shown.
const STAR_ALL: &str = "const done = arguments[0], id = location.pathname.slice(3);
    const headers = { 'content-type': 'application/json' };
    const body = () => JSON.stringify({ client_id: crypto.randomUUID(), starred: true });
    const star = ({ dataset }) => fetch(`/api/v1/conversations/${id}/messages/${dataset.row}/star`, { method: 'POST', headers, body: body() });
    Promise.all([...document.querySelectorAll('.msg')].map(star)).then(() => done(true));";

/// One page in all colours and both sizes; where nobody wants the pictures, the first of them.
pub(crate) async fn show(window: &Window, language: &str, page: &str) {
    let (places, sets) = if folder().is_some() { (2, COLOURS.len()) } else { (1, 1) };
    for (place, width, height) in [("wide", 1280, 800), ("phone", 390, 844)].into_iter().take(places) {
        window.size(width, height).await;
        for colours in COLOURS.into_iter().take(sets) {
            window.colours(colours).await;
            let name = format!("{colours:?}").to_lowercase();
            if colours != Colours::Forced {
                window.until(&format!("document.documentElement.dataset.theme === '{name}'")).await;
            }
            take(window, &format!("{page}-{place}-{name}-{language}.png"), width, height).await;
        }
    }
    window.colours(Colours::Light).await;
    window.size(1280, 800).await;
}

#[tokio::test]
async fn every_page_can_be_pictured() {
    let world = World::start().await;
    let (ada, ben) = (world.person("Ada").await, world.person("Ben").await);
    let window = world.window().await;
    for (language, tag) in LANGUAGES {
        choose(&window, &world, language, tag).await;
        for (path, page) in [
            ("/login?ended=yes", "log-in"),
            ("/sign-up", "sign-up"),
            ("/recover", "recover"),
            ("/invites/nothing", "failure"),
        ] {
            window.goto(&world.at(path)).await;
            window.until("document.querySelector('h1')").await;
            show(&window, language, page).await;
        }
        window.goto(&world.at("/sign-up")).await;
        window.write("#name", &format!("Eve {language}")).await;
        window.write("#password", &format!("{PASSWORD}{ENTER}")).await;
        connected(&window).await;
        window.until("!document.getElementById('start').hidden").await;
        show(&window, language, "home").await;
        open_settings(&window, "recovery").await;
        window.until("document.querySelectorAll('#codes-list li').length === 8").await;
        show(&window, language, "codes").await;
        let uid =
            window.run("return Number(document.body.dataset.uid)").await.as_u64().expect("a uid") as u32;
        let gid = group(&ada, &ben, uid).await;
        ben.send(Recipient::User(uid), "Do you have a minute?").await;
        window.goto(&world.at(&format!("/c/g:{gid}"))).await;
        connected(&window).await;
        window.sees("I bring coffee").await;
        window.until("!document.getElementById('pins').hidden").await;
        show(&window, language, "conversation").await;
        window.click("#open-search").await;
        window.write("#search-text", "nine").await;
        window.until("document.querySelectorAll('#search-hits mark').length > 1").await;
        show(&window, language, "search").await;
        window.click("#search-close").await;
        window.until("!location.hash").await;
        window.click("#pins").await;
        window.until("document.querySelectorAll('#actions button').length === 2").await;
        show(&window, language, "pins").await;
        window.run("document.getElementById('actions').hidePopover()").await;
        for (button, page) in [("#open-mute", "mute"), (".more", "menu"), ("#open-emoji", "emoji")] {
            window.click(button).await;
            window.until("document.querySelector(':popover-open :is([role=menuitem], .emoji)')").await;
            show(&window, language, page).await;
            window.run("document.querySelector(':popover-open').hidePopover()").await;
        }
        window.write("#text", "@").await;
        window.until("document.querySelectorAll('#mention-list li').length === 3").await;
        show(&window, language, "mention").await;
        window.write("#text", BACKSPACE).await;
        befriend(&window, uid, &[&ada, &ben]).await;
        for page in ["contacts", "moments"] {
            window.goto(&world.at(&format!("/{page}"))).await;
            connected(&window).await;
            window.until("document.querySelectorAll('.contacts li, .moment').length > 1").await;
            show(&window, language, page).await;
        }
        window.goto(&world.at(&format!("/c/g:{gid}"))).await;
        connected(&window).await;
        window.run_async(STAR_ALL).await;
        window.until("document.querySelectorAll('.words .star').length === 3").await;
        show(&window, language, "stars").await;
        open_about(&window).await;
        window.until("document.querySelectorAll('#members-list li').length === 3").await;
        show(&window, language, "group").await;
        window.click("#about-close").await;
        window.until("!location.hash").await;
        for (dialog, button) in [
            ("find", "open-find"),
            ("new-group", "open-group"),
            ("starred", "open-starred"),
            ("settings", "open-settings"),
            ("keys", "open-keys"),
        ] {
            window.run(&format!("document.getElementById('{button}').click()")).await;
            window.until(&format!("document.getElementById('{dialog}').open")).await;
            if dialog == "starred" {
                window.until("document.querySelectorAll('#starred li').length === 3").await;
            }
            show(&window, language, dialog).await;
            window.run(&format!("document.getElementById('{dialog}').close()")).await;
            window.until("!location.hash").await;
        }
        for section in ["account", "devices", "privacy", "notifications", "look", "diagnostics"] {
            open_settings(&window, section).await;
            show(&window, language, &format!("settings-{section}")).await;
        }
        open_settings(&window, "account").await;
        window.click("#delete-account summary").await;
        window.run("document.getElementById('delete-account').scrollIntoView()").await;
        show(&window, language, "delete-account").await;
        window.write("#delete-password", &format!("{PASSWORD}{ENTER}")).await;
        window.until("document.getElementById('ask').open").await;
        show(&window, language, "delete-ask").await;
        for dialog in ["ask", "settings"] {
            window.run(&format!("document.getElementById('{dialog}').close()")).await;
        }
        window.goto(&world.at(&format!("/groups/{gid}/invite"))).await;
        window.until("document.getElementById('days')").await;
        show(&window, language, "new-invite").await;
        window.click("button.primary").await;
        window.until("document.getElementById('link')").await;
        show(&window, language, "invite-link").await;
        let link = window.run("return document.getElementById('link').textContent").await;
        let log_out = "const done = arguments[0];
            fetch('/api/v1/sessions/current', { method: 'DELETE' }).then(() => done(true));";
        window.run_async(log_out).await;
        window.goto(link.as_str().expect("a link")).await;
        window.until("document.querySelector('h1')").await;
        show(&window, language, "invite").await;
    }
}

#[tokio::test]
async fn what_owners_and_inviters_see_can_be_pictured() {
    let world = World::by_invitation().await;
    world.add("Ada").await;
    let window = world.window().await;
    for (language, tag) in LANGUAGES {
        choose(&window, &world, language, tag).await;
        world.log_in(&window, "Ada").await;
        window.goto(&world.at("/contacts")).await;
        connected(&window).await;
        window.click("#invite-somebody").await;
        window.until("document.querySelector('[aria-labelledby=invite-title] li')").await;
        show(&window, language, "sign-up-invite").await;
        let link = window.run("return document.getElementById('invite-link').value").await;
        let make = "const done = arguments[0], headers = { 'content-type': 'application/json' };
            fetch('/api/v1/groups', { method: 'POST', headers, body: JSON.stringify({ name: 'Harbour walk', members: [] }) })
              .then((answer) => answer.json()).then(({ gid }) => done(gid));";
        let gid = window.run_async(make).await;
        window.goto(&world.at(&format!("/c/g:{gid}"))).await;
        connected(&window).await;
        open_about(&window).await;
        window.until("!document.getElementById('describe').hidden").await;
        window.click("#describe summary").await;
        window.run("document.getElementById('describe-history').scrollIntoView({ block: 'center' })").await;
        show(&window, language, "group-history").await;
        window.click("#about-close").await;
        window.until("!location.hash").await;
        open_settings(&window, "recovery").await;
        show(&window, language, "recovery").await;
        let log_out = "const done = arguments[0];
            fetch('/api/v1/sessions/current', { method: 'DELETE' }).then(() => done(true));";
        window.run_async(log_out).await;
        // The page notices, and goes there by itself.
        window.until("location.pathname === '/login'").await;
        for (address, page) in [
            (link.as_str().expect("a link"), "sign-up-invited"),
            (&world.at("/sign-up"), "invitation-needed"),
        ] {
            window.goto(address).await;
            window.until("document.querySelector('h1')").await;
            show(&window, language, page).await;
        }
    }
}
