//! A picture of every page in each language, light and dark, on a desktop and a phone, for those who look at them:
//! `PICTURES=target/gallery cargo test -p tidemark-server --test browser gallery`.

use tidemark_client::Recipient;

use super::axe::{LANGUAGES, choose};
use super::pictures::take;
use super::window::{BACKSPACE, ENTER, Window};
use super::world::{PASSWORD, World, befriend, connected};

/// One page in both sets of colours and both sizes.
async fn show(window: &Window, language: &str, page: &str) {
    for (place, width, height) in [("desktop", 1280, 800), ("phone", 390, 844)] {
        window.size(width, height).await;
        for theme in ["light", "dark"] {
            let set = format!("localStorage.setItem('theme', '{theme}'); dispatchEvent(new Event('theme'))");
            window.run(&set).await;
            take(window, &format!("{page}-{place}-{theme}-{language}.png"), width, height).await;
        }
    }
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
        world.sign_up(&window, &format!("Eve {language}")).await;
        window.until("!document.getElementById('start').hidden").await;
        show(&window, language, "home").await;
        let uid =
            window.run("return Number(document.body.dataset.uid)").await.as_u64().expect("a uid") as u32;
        let gid = ada.http.create_group("Harbour walk", &[uid, ben.uid]).await.expect("a group");
        for text in ["Low tide is at ten past nine on Saturday", "Nine at the pier, then"] {
            ada.send(Recipient::Group(gid), text).await;
        }
        ben.send(Recipient::Group(gid), "I bring coffee").await;
        ben.send(Recipient::User(uid), "Do you have a minute?").await;
        window.goto(&world.at(&format!("/c/g:{gid}"))).await;
        connected(&window).await;
        window.sees("I bring coffee").await;
        show(&window, language, "conversation").await;
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
        for (dialog, button) in [
            ("find", "open-find"),
            ("new-group", "open-group"),
            ("members", "open-members"),
            ("starred", "open-starred"),
            ("settings", "open-settings"),
        ] {
            window.run(&format!("document.getElementById('{button}').click()")).await;
            window.until(&format!("document.getElementById('{dialog}').open")).await;
            show(&window, language, dialog).await;
            window.run(&format!("document.getElementById('{dialog}').close()")).await;
        }
        window.click("#open-settings").await;
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
