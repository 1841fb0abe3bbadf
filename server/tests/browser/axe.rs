//! Axe (npm's `axe-core`, unchanged) finds nothing wrong: on every page of the chat, in every language and all colours, on a
//! desktop and a phone.

use std::sync::LazyLock;

use tidemark_client::{Conversation, Draft, Recipient};
use uuid::Uuid;

use super::packages::from_npm;
use super::window::{BACKSPACE, COLOURS, Colours, ENTER, Window};
use super::world::{PASSWORD, World, befriend, connected, open_about, open_person, open_settings, say};

/// The checks of axe, as a script.
static AXE: LazyLock<String> = LazyLock::new(|| {
    let folder = from_npm("axe-core-4.14.1", &["axe-core@4.14.1"]);
    std::fs::read_to_string(folder.join("node_modules/axe-core/axe.min.js")).expect("axe")
});

/// Everything that axe finds wrong.
pub(crate) async fn faults(window: &Window) -> String {
    if window.run("return !window.axe").await == true {
        window.run(AXE.as_str()).await;
    }
    let run = "const done = arguments[0];
        axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'],
            rules: { 'label-content-name-mismatch': { enabled: true } } })
          .then((found) => done(found.violations.flatMap((it) => it.nodes.map((node) =>
            it.id + ': ' + node.html.slice(0, 200) + ' ' + node.failureSummary)).join('\\n')), (why) => done(String(why)));";
    window.run_async(run).await.as_str().expect("a text").to_owned()
}

/// Looks at a page in all colours and at two widths.
pub(crate) async fn look(window: &Window, page: &str) {
    for colours in COLOURS {
        window.colours(colours).await;
        let theme = match colours {
            Colours::Light => "light",
            Colours::Dark => "dark",
            Colours::Forced => "",
        };
        if !theme.is_empty() {
            let root = "document.documentElement";
            window
                .until(&format!(
                    "{root}.dataset.theme === '{theme}' && getComputedStyle({root}).colorScheme === '{theme}'"
                ))
                .await;
        }
        for (width, height) in [(1280, 800), (390, 844)] {
            window.size(width, height).await;
            assert_eq!(faults(window).await, "", "{page} in {colours:?} colours at {width}");
            window.until(&format!("document.documentElement.scrollWidth <= {width}")).await;
        }
    }
}

pub(crate) async fn choose(window: &Window, world: &World, language: &str, tag: &str) {
    window.goto(&world.at("/login")).await;
    // The page that follows may be in the same language, and until it is there another address would be left again.
    window.run("window.isBefore = true").await;
    window.click(&format!(".languages [value={language}]")).await;
    window.until(&format!("!window.isBefore && document.documentElement.lang === '{tag}'")).await;
}

pub(crate) const LANGUAGES: [(&str, &str); 2] = [("en", "en"), ("zh", "zh-Hans")];

/// Opens all that is folded.
const UNFOLD: &str = "for (const it of document.querySelectorAll('details')) it.open = true";

pub(crate) async fn log_out(window: &Window) {
    let log_out = "const done = arguments[0];
        fetch('/api/v1/sessions/current', { method: 'DELETE' }).then(() => done(true));";
    window.run_async(log_out).await;
}

/// Makes an invitation to a group as the person in the window, and answers its code.
async fn invite(window: &Window, gid: u64) -> String {
    let make = "const done = arguments[0], body = '{}', headers = { 'content-type': 'application/json' };
        fetch('/api/v1/groups/GID/invites', { method: 'POST', headers, body })
          .then((answer) => answer.json()).then(({ code }) => done(code));";
    let code = window.run_async(&make.replace("GID", &gid.to_string())).await;
    code.as_str().expect("a code").to_owned()
}

#[tokio::test]
async fn axe_finds_nothing_before_one_is_logged_in() {
    let world = World::start().await;
    let ada = world.person("Ada").await;
    let gid = ada.group("Harbour walk", &[]).await;
    let member = world.visitor("Ada").await;
    let code = invite(&member, gid).await;
    let window = world.window().await;
    for (language, tag) in LANGUAGES {
        choose(&window, &world, language, tag).await;
        let invite = format!("/invites/{code}");
        for path in ["/login?ended=yes", "/sign-up", "/recover", &invite, "/invites/nothing", "/nothing"] {
            window.goto(&world.at(path)).await;
            window.until("document.querySelector('h1')").await;
            look(&window, &format!("{path} in {language}")).await;
        }
    }
}

#[tokio::test]
async fn axe_finds_nothing_in_the_chat() {
    let world = World::start().await;
    let (ada, ben) = (world.person("Ada").await, world.person("Ben").await);
    let window = world.window().await;
    for (language, tag) in LANGUAGES {
        // A new account each time, whose home is empty.
        choose(&window, &world, language, tag).await;
        world.sign_up(&window, &format!("New {language}")).await;
        window.until("!document.getElementById('start').hidden").await;
        look(&window, &format!("an empty home in {language}")).await;
        let uid =
            window.run("return Number(document.body.dataset.uid)").await.as_u64().expect("a uid") as u32;
        let members = [uid, ben.uid];
        let gid = ada.group(&format!("Walk {language}"), &members).await;
        ada.send(Recipient::Group(gid), "Nine at the pier").await;
        ben.send(Recipient::Group(gid), "I bring coffee").await;
        window.until("document.querySelector('#list .badge')").await;
        look(&window, &format!("the list in {language}")).await;

        window.goto(&world.at(&format!("/c/g:{gid}"))).await;
        connected(&window).await;
        window.sees("I bring coffee").await;
        look(&window, &format!("a conversation in {language}")).await;
        window.write("#text", "@").await;
        window.until("document.querySelectorAll('#mention-list li').length === 3").await;
        look(&window, &format!("whom to mention in {language}")).await;
        window.write("#text", BACKSPACE).await;
        befriend(&window, uid, &[&ada, &ben]).await;
        for page in ["contacts", "moments"] {
            window.goto(&world.at(&format!("/{page}"))).await;
            connected(&window).await;
            window.until("document.querySelectorAll('.contacts li, .moment').length > 1").await;
            if page == "contacts" {
                window.run("document.querySelector('#contacts-qr').open = true").await;
                window.until("document.querySelector('#contacts-qr svg')").await;
            }
            look(&window, &format!("{page} in {language}")).await;
        }
        window.goto(&world.at(&format!("/c/g:{gid}"))).await;
        connected(&window).await;
        open_about(&window).await;
        window.until("document.querySelectorAll('#members-list li').length === 3").await;
        look(&window, &format!("the panel of a group in {language}")).await;
        window.click("#members-list a").await;
        window.until("location.hash.startsWith('#about/u:')").await;
        look(&window, &format!("the card of a person in {language}")).await;
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
            window.run(UNFOLD).await;
            look(&window, &format!("the dialog {dialog} in {language}")).await;
            window.run(&format!("document.getElementById('{dialog}').close()")).await;
            window.until("!location.hash").await;
        }
        for section in ["account", "privacy", "notifications", "look", "diagnostics"] {
            open_settings(&window, section).await;
            window.run(UNFOLD).await;
            look(&window, &format!("{section} in the settings in {language}")).await;
        }
        for step in ["document.getElementById('days')", "document.getElementById('link')"] {
            if step.contains("days") {
                window.goto(&world.at(&format!("/groups/{gid}/invite"))).await;
            } else {
                window.click("button.primary").await;
            }
            window.until(step).await;
            look(&window, &format!("{step} in {language}")).await;
        }
        let link = window.run("return document.getElementById('link').textContent").await;
        window.goto(link.as_str().expect("a link")).await;
        window.until("document.querySelector('form[action^=\"/invites/\"]')").await;
        look(&window, &format!("an invitation to a group, for who is logged in, in {language}")).await;
        log_out(&window).await;
    }
}

#[tokio::test]
async fn axe_finds_nothing_in_what_opens_over_a_conversation() {
    let world = World::start().await;
    let (ada, ben, cleo) = (world.person("Ada").await, world.person("Ben").await, world.person("Cleo").await);
    let gid = ada.group("Harbour walk", &[ben.uid, cleo.uid]).await;
    ada.http.ban(gid, cleo.uid).await.expect("banned");
    // Of one pinned message there is no menu.
    for (key, text) in [(1, "Low tide is at nine"), (2, "Bring boots")] {
        let sent = ada.http.send(&Draft::text(Recipient::Group(gid), text)).await.expect("sent");
        let pin = ada.http.pin(Uuid::from_u128(key), Conversation::Group(gid), sent.message_id, true);
        pin.await.expect("pinned");
        let [star, reaction] = [64, 96].map(|shift| Uuid::from_u128(key << shift));
        let (conversation, id) = (Conversation::Group(gid), sent.message_id);
        ada.http.star(star, conversation, id, true).await.expect("starred");
        ada.http.react(reaction, conversation, id, &["👍".to_owned()]).await.expect("a reaction");
        let reply = Draft::reply_as(Uuid::from_u128(key << 48), Recipient::Group(gid), "I do", id);
        ada.http.send(&reply).await.expect("sent");
    }
    ben.tells(&ada, "Is it far?").await;
    let window = world.window().await;
    for (language, tag) in LANGUAGES {
        choose(&window, &world, language, tag).await;
        world.log_in(&window, "Ada").await;
        invite(&window, gid).await;
        window.goto(&world.at(&format!("/c/g:{gid}"))).await;
        connected(&window).await;
        window.sees("Bring boots").await;
        window.until("!document.getElementById('pins').hidden").await;

        window.run("document.getElementById('open-emoji').click()").await;
        let marked = "document.querySelector('#emoji-list [aria-selected]')";
        window.until(marked).await;
        // All of them are more than 1,800, made alike; a search for a name leaves a few.
        let name = window.run(&format!("return {marked}.ariaLabel")).await;
        window.write("#emoji-find", name.as_str().expect("a name")).await;
        window
            .until(&format!("{marked} && document.querySelectorAll('#emoji-list .emoji').length < 160"))
            .await;
        look(&window, &format!("the emoji in {language}")).await;
        window.run("document.getElementById('emoji').hidePopover()").await;

        window.write("#text", "@").await;
        window.until("document.querySelectorAll('#mention-list li').length > 1").await;
        look(&window, &format!("the people to mention in {language}")).await;
        window.write("#text", BACKSPACE).await;
        window.until("document.getElementById('mention-list').hidden").await;

        window.run("document.querySelector('.own .more').click()").await;
        window.run("document.querySelectorAll('#actions > .action')[3].click()").await;
        window
            .until("document.getElementById('forward').open && document.querySelector('#forward-list li')")
            .await;
        look(&window, &format!("the dialog forward in {language}")).await;
        window.run("document.getElementById('forward').close()").await;

        for (conversation, button, items) in [
            ("Harbour walk", "#open-mute", 3),
            ("Harbour walk", "#pins", 2),
            ("Harbour walk", ".own .more", 12),
        ] {
            window.pick(conversation).await;
            window.until(&format!("document.querySelector('{button}')?.checkVisibility()")).await;
            window.run(&format!("document.querySelector('{button}').click()")).await;
            let shown = format!(
                "document.getElementById('actions').matches(':popover-open')
                   && document.querySelectorAll('#actions button').length >= {items}"
            );
            window.until(&shown).await;
            look(&window, &format!("the menu of {button} in {language}")).await;
            if button != ".own .more" {
                window.run("document.getElementById('actions').hidePopover()").await;
            }
        }
        // The last item deletes the message, and asks before that.
        window.run("document.querySelector('#actions > button:last-of-type').click()").await;
        window.until("document.getElementById('ask').open").await;
        look(&window, &format!("a question in {language}")).await;
        window.run("document.getElementById('ask-no').click()").await;

        open_about(&window).await;
        window.until("document.querySelector('#bans li') && document.querySelector('#invites li')").await;
        window.until("!document.getElementById('describe').hidden").await;
        window.until("document.querySelectorAll('#members-list button').length === 1").await;
        window.run(UNFOLD).await;
        look(&window, &format!("the members, for the owner, in {language}")).await;
        window.run("document.querySelector('#members-list [aria-haspopup]').click()").await;
        window.until("document.querySelectorAll('#actions:popover-open button').length === 5").await;
        look(&window, &format!("the menu of a member in {language}")).await;
        window.run("document.getElementById('actions').hidePopover()").await;
        window.click("#about-close").await;
        window.until("!location.hash").await;
        window.pick("Ben").await;
        open_person(&window).await;
        look(&window, &format!("the menu of a person in {language}")).await;
        window.run("document.getElementById('actions').hidePopover()").await;

        window.run("document.getElementById('open-starred').click()").await;
        window.until("document.querySelectorAll('#starred-list li').length === 2").await;
        look(&window, &format!("starred messages in {language}")).await;
        window.run("document.getElementById('starred').close()").await;

        // Refused, since Ada is removed before the message gets there.
        let other = ben.group(&format!("Walk {language}"), &[ada.uid]).await;
        window.pick(&format!("Walk {language}")).await;
        window.offline(true).await;
        window.until("document.body.dataset.phase === 'offline'").await;
        ben.http.remove_member(other, ada.uid).await.expect("removed");
        say(&window, "Anyone there?").await;
        window.offline(false).await;
        window
            .until("document.querySelector('.failed .trouble') && !document.getElementById('locked').hidden")
            .await;
        window.until("document.body.dataset.phase === 'open'").await;
        look(&window, &format!("a message that was not sent in {language}")).await;
        log_out(&window).await;
        // The page notices, and goes there by itself.
        window.until("location.pathname === '/login'").await;
    }
}

#[tokio::test]
async fn axe_finds_nothing_when_an_account_is_made_and_deleted() {
    let world = World::start().await;
    let window = world.window().await;
    for (language, tag) in LANGUAGES {
        choose(&window, &world, language, tag).await;
        window.goto(&world.at("/sign-up")).await;
        window.write("#name", &format!("New {language}")).await;
        window.write("#password", &format!("{PASSWORD}{ENTER}")).await;
        connected(&window).await;
        open_settings(&window, "recovery").await;
        window.until("document.querySelectorAll('#codes-list li').length === 8").await;
        look(&window, &format!("the codes of a new account in {language}")).await;
        window.click("#codes-done").await;
        window.until("document.getElementById('codes').hidden").await;
        window.write("#recovery-password", &format!("{PASSWORD}{ENTER}")).await;
        window.until("document.querySelectorAll('#codes-list li').length === 8").await;
        look(&window, &format!("new codes in the settings in {language}")).await;

        open_settings(&window, "account").await;
        window.click("#delete-account summary").await;
        window.write("#delete-password", &format!("{PASSWORD}{ENTER}")).await;
        window.until("document.getElementById('ask').open").await;
        look(&window, &format!("the question before an account is deleted in {language}")).await;
        window.run("document.getElementById('ask-yes').click()").await;
        window.until("document.getElementById('deleted')?.hidden === false").await;
        window.until(&format!("document.documentElement.lang === '{tag}'")).await;
        look(&window, &format!("the card after an account is deleted in {language}")).await;
    }
}

#[tokio::test]
async fn axe_finds_nothing_in_the_description_of_the_interface() {
    let world = World::start().await;
    let window = world.window().await;
    for path in ["/docs", "/docs/websocket"] {
        window.goto(&world.at(path)).await;
        window.until("document.querySelectorAll('h2').length > 5").await;
        // One of the folded parts, which are all made alike.
        window.run("document.querySelector('details')?.setAttribute('open', '')").await;
        look(&window, path).await;
    }
    // Axe reports a name without the visible text (WCAG 2.5.3). Not every release of axe has that rule among its tags.
    window.goto(&world.at("/nothing")).await;
    window.run("document.querySelector('a.button').ariaLabel = 'Start again'").await;
    let found = faults(&window).await;
    assert!(found.contains("label-content-name-mismatch: <a"), "{found}");
}
