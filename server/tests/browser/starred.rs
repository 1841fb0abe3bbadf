//! Starred messages: found again from anywhere, on every device.

use super::window::Window;
use super::world::{World, connected};

/// Chooses an item of the menu of the message with this text.
pub(crate) async fn choose(window: &Window, text: &str, item: &str) {
    let message = format!(
        "[...document.querySelectorAll('.msg')].find((it) => it.querySelector('.words').textContent.startsWith('{text}'))"
    );
    window.until(&format!("{message}?.querySelector('.more')")).await;
    window.run(&format!("{message}.querySelector('.more').click()")).await;
    let found = format!(
        "[...document.querySelectorAll('#actions button')].find((it) => it.textContent === '{item}')"
    );
    window.until(&found).await;
    window.run(&format!("{found}.click()")).await;
}

#[tokio::test]
async fn a_starred_message_is_found_again_on_every_device_and_leads_there() {
    let world = World::start().await;
    let (ben, ada) = (world.person("Ben").await, world.person("Ada").await);
    ben.tells(&ada, "Low tide is at nine").await;
    let desk = world.visitor("Ada").await;
    desk.pick("Ben").await;
    choose(&desk, "Low tide", "Star").await;
    desk.until("document.querySelector('.msg .icon.star')?.ariaLabel === 'Starred'").await;
    // Far above what a new browser fetches at first.
    for n in 0..300 {
        ben.tells(&ada, &format!("number {n}")).await;
    }
    desk.reload().await;
    connected(&desk).await;
    let phone = world.visitor("Ada").await;
    for window in [&desk, &phone] {
        window.goto(&world.at("/")).await;
        connected(window).await;
        window.click("#open-starred").await;
        window.until("document.querySelector('#starred-list .action')?.textContent.includes('Low tide is at nine')").await;
        window.click("#starred-list .action").await;
        window
            .until("!document.getElementById('starred').open && location.pathname.startsWith('/c/u:')")
            .await;
        window.until("[...document.querySelectorAll('.msg .words')].some((it) => it.textContent.startsWith('Low tide'))").await;
    }
    phone.click("#open-starred").await;
    phone.until("document.querySelector('#starred-list .tool')").await;
    phone.click("#starred-list .tool").await;
    phone.until("!document.querySelector('#starred-list li') && document.getElementById('starred-note').textContent").await;
    for window in [&desk, &phone] {
        window.until("!document.querySelector('.msg .icon.star')").await;
    }
}
