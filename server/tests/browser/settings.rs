//! The settings: a list of sections, each with an address.

use super::window::{ESCAPE, Window};
use super::world::World;

/// Waits until these are seen: the list, and the section with this name, if any.
async fn shows(window: &Window, list: bool, section: &str) {
    let seen = "[...document.querySelectorAll('#settings > section')].filter((it) => it.checkVisibility()).map((it) => it.id.slice(9)).join()";
    window
        .until(&format!(
            "document.querySelector('.sections').checkVisibility() === {list} && {seen} === '{section}'"
        ))
        .await;
}

async fn is_closed(window: &Window) {
    window.until("!document.getElementById('settings').open && !location.hash").await;
}

#[tokio::test]
async fn each_section_of_the_settings_has_an_address_and_a_phone_shows_the_list_first() {
    let world = World::start().await;
    let window = world.newcomer("Ada").await;
    window.goto(&world.at("/moments")).await;
    window.until("document.getElementById('moment-text')").await;
    window.goto(&world.at("/contacts#settings/privacy")).await;
    window.until("document.getElementById('settings')?.open").await;
    shows(&window, true, "privacy").await;
    window.until("document.querySelector('.sections [aria-current]').hash === '#settings/privacy'").await;
    window.press(ESCAPE).await;
    is_closed(&window).await;

    // From section to section there is no step for the way back, since the list stands beside them.
    window.click("#open-settings").await;
    shows(&window, true, "profile").await;
    for section in ["devices", "look", "diagnostics"] {
        window.click(&format!(".sections [href='#settings/{section}']")).await;
        shows(&window, true, section).await;
        window.until(&format!("location.hash === '#settings/{section}'")).await;
    }
    window.click(".sections form button").await;
    is_closed(&window).await;
    window.until("location.pathname === '/contacts'").await;

    window.size(390, 844).await;
    window.run("document.querySelector('.back').click()").await;
    window.until("document.getElementById('open-settings').checkVisibility()").await;
    window.click("#open-settings").await;
    shows(&window, true, "").await;
    window.click(".sections [href='#settings/privacy']").await;
    shows(&window, false, "privacy").await;
    window.until("document.documentElement.scrollWidth === 390").await;
    window.back().await;
    shows(&window, true, "").await;
    window.click(".sections [href='#settings/account']").await;
    shows(&window, false, "account").await;
    // Closing goes back all the way.
    window.press(ESCAPE).await;
    is_closed(&window).await;
    window.until("document.getElementById('open-settings').checkVisibility()").await;
}
