//! A way back in: recovery codes, shown once, used once, made again; invitations to sign up.

use serde_json::json;

use super::axe::{LANGUAGES, choose, log_out, look};
use super::window::{ENTER, ESCAPE, Window};
use super::world::{PASSWORD, World, connected, open_settings, say};

/// Which elements with words of their own are printed, by their id, or what they are.
async fn on_paper(window: &Window) -> String {
    window.devtools("Emulation.setEmulatedMedia", json!({"media": "print"})).await;
    window.until("matchMedia('print').matches").await;
    let printed = "return [...document.querySelectorAll('body *')]
        .filter((it) => it.checkVisibility({ visibilityProperty: true }) && [...it.childNodes].some((part) => part.data?.trim()))
        .map((it) => it.id || it.localName).join()";
    let printed = window.run(printed).await;
    window.devtools("Emulation.setEmulatedMedia", json!({"media": ""})).await;
    printed.as_str().expect("a text").to_owned()
}

#[tokio::test]
async fn recovery_codes_wait_until_after_the_first_message_and_are_there_until_they_are_kept() {
    let world = World::start().await;
    world.person("Ben").await;
    let window = world.window().await;
    world.sign_up(&window, "Ada").await;
    let reminder = "document.getElementById('reminder').checkVisibility()";
    window.until("!document.getElementById('start').hidden").await;
    assert_eq!(window.run(&format!("return {reminder}")).await, false);
    window.click("#start-find").await;
    window.write("#find-text", "Ben").await;
    window.until("document.querySelector('#find-list li')").await;
    window.write("#find-text", ENTER).await;
    say(&window, "Low tide is at nine").await;
    window.until(reminder).await;
    look(&window, "the reminder of the recovery codes").await;
    window.size(1280, 800).await;
    window.click("#reminder-later").await;
    window.until(&format!("!{reminder} && document.activeElement.id === 'text'")).await;

    // Later is until the page is loaded again; in the settings it stands meanwhile.
    window.click("#open-settings").await;
    window.click("#codes-notice").await;
    window.until("document.querySelectorAll('#codes-list li').length === 8").await;
    window.reload().await;
    window.until("document.querySelectorAll('#codes-list li').length === 8").await;
    window.press(ESCAPE).await;
    window.until(reminder).await;
    // Somebody else in this tab is not shown them.
    log_out(&window).await;
    window.until("location.pathname === '/login'").await;
    world.log_in(&window, "Ben").await;
    open_settings(&window, "recovery").await;
    window.until("document.getElementById('recovery-left').textContent").await;
    let seen =
        "return [document.getElementById('codes').hidden, document.getElementById('codes-notice').hidden]";
    assert_eq!(window.run(seen).await, json!([true, true]));
    log_out(&window).await;
    window.until("location.pathname === '/login'").await;
    world.log_in(&window, "Ada").await;
    window.pick("Ben").await;
    window.until(reminder).await;
    window.click("#reminder a").await;
    window.until("document.querySelectorAll('#codes-list li').length === 8").await;
    window.click("#codes-done").await;
    window
        .until("document.getElementById('codes').hidden && document.getElementById('codes-notice').hidden")
        .await;
    window.press(ESCAPE).await;
    window.until(&format!("!{reminder}")).await;
    window.reload().await;
    connected(&window).await;
    window.sees("Low tide is at nine").await;
    assert_eq!(window.run(&format!("return {reminder}")).await, false);
}

#[tokio::test]
async fn who_has_forgotten_the_password_comes_back_in_with_a_code() {
    let world = World::start().await;
    let window = world.window().await;
    window.goto(&world.at("/sign-up")).await;
    window.write("#name", "Ada").await;
    window.write("#password", &format!("{PASSWORD}{ENTER}")).await;
    connected(&window).await;
    open_settings(&window, "recovery").await;
    window.until("document.querySelectorAll('#codes-list li').length === 8").await;
    window.until("document.getElementById('codes-download').href.startsWith('blob:')").await;
    window.run("window.print = () => { window.printed = true; }").await;
    window.click("#codes-print").await;
    window.until("window.printed").await;
    assert_eq!(on_paper(&window).await, "p,code,code,code,code,code,code,code,code");
    let code = window.run("return document.querySelector('#codes-list li').textContent").await;
    let code = code.as_str().expect("a text").to_owned();

    let other = world.window().await;
    other.goto(&world.at("/login?next=/contacts")).await;
    other.click("a[href^='/recover']").await;
    other.until("document.querySelector('h1').textContent === 'Choose a new password'").await;
    for (typed, problem) in [
        ("", "Enter a recovery code."),
        ("0000", "The name or the recovery code is wrong, or the code was used already."),
    ] {
        other.run("document.getElementById('sign-in').reset()").await;
        other.write("#name", "Ada").await;
        other.write("#code", typed).await;
        other.write("#password", &format!("another word{ENTER}")).await;
        other.until(&format!("document.getElementById('code-problem').textContent === '{problem}'")).await;
        other.until("document.activeElement.id === 'code'").await;
    }
    other.write("#code", "").await;
    other.run("document.getElementById('sign-in').reset()").await;
    other.write("#name", "ada").await;
    other.write("#code", &code.to_lowercase()).await;
    other.write("#password", &format!("another word{ENTER}")).await;
    connected(&other).await;
    other.until("location.pathname === '/contacts'").await;
    window.until("location.pathname === '/login'").await;

    // The settings say how many are left, and make others.
    open_settings(&other, "recovery").await;
    other.until("document.getElementById('recovery-left').textContent === 'You have 7 codes left.'").await;
    other.write("#recovery-password", &format!("guess guess{ENTER}")).await;
    other
        .until("document.getElementById('recovery-password-problem').textContent === 'This is not your current password.'")
        .await;
    other.run("document.getElementById('recovery-form').reset()").await;
    other.write("#recovery-password", &format!("another word{ENTER}")).await;
    other.until("document.querySelectorAll('#codes-list li').length === 8").await;
    other.until("document.getElementById('recovery-left').textContent === 'You have 8 codes left.'").await;
    assert_eq!(on_paper(&other).await, "p,code,code,code,code,code,code,code,code");

    // The device has a name, and gets another one.
    open_settings(&other, "devices").await;
    other.until("/Chrome on Linux/.test(document.getElementById('devices-list').textContent)").await;
    other.click("#devices-list li button").await;
    other.until("document.querySelector('#devices-list input') === document.activeElement").await;
    other.press(&format!("The laptop{ENTER}")).await;
    other.until("document.querySelector('#devices-list bdi')?.textContent === 'The laptop'").await;
}

#[tokio::test]
async fn where_one_is_invited_a_link_leads_to_an_account_and_to_who_made_it() {
    let world = World::by_invitation().await;
    world.add("Ada").await;
    let ada = world.visitor("Ada").await;
    ada.goto(&world.at("/contacts")).await;
    connected(&ada).await;
    // English comes last, which the rest of the test reads.
    for (language, tag) in LANGUAGES.into_iter().rev() {
        ada.run("document.getElementById('open-settings').click()").await;
        ada.until("document.getElementById('settings').open").await;
        ada.run(&format!("document.querySelector('#language [value={language}]').click()")).await;
        ada.until(&format!("document.documentElement.lang === '{tag}'")).await;
        connected(&ada).await;
        ada.until("document.getElementById('invite-somebody')").await;
        ada.run("document.getElementById('invite-somebody').click()").await;
        ada.until("document.getElementById('invite-link').value").await;
        ada.until("document.querySelector('[aria-labelledby=invite-title] li')").await;
        look(&ada, &format!("an invitation to sign up in {language}")).await;
    }
    ada.until("/^Open until /.test(document.querySelector('[aria-labelledby=invite-title] li').textContent)")
        .await;
    let link = ada.run("return document.getElementById('invite-link').value").await;
    let uid = ada.run("return document.body.dataset.uid").await;
    let uid = uid.as_str().expect("a uid");

    let guest = world.window().await;
    for (language, tag) in LANGUAGES.into_iter().rev() {
        choose(&guest, &world, language, tag).await;
        for path in ["/login", "/sign-up"] {
            guest.goto(&world.at(path)).await;
            look(&guest, &format!("{path} by invitation in {language}")).await;
        }
    }
    guest.goto(&world.at("/sign-up")).await;
    guest.until("/you need an invitation/.test(document.body.textContent)").await;
    guest.goto(link.as_str().expect("a link")).await;
    guest.write("#name", "Ben").await;
    guest.write("#password", &format!("{PASSWORD}{ENTER}")).await;
    connected(&guest).await;
    guest.until(&format!("location.pathname === '/c/u:{uid}' && document.title === 'Ada · Tidemark'")).await;
}
