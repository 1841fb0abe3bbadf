//! Starred messages: found again from anywhere, on every device.

use tidemark_client::{Kind, RangeQuery};
use uuid::Uuid;

use super::window::Window;
use super::world::{World, connected};

/// The texts of the messages that the dialog shows, in its order.
const LISTED: &str =
    "[...document.querySelectorAll('#starred-list .block')].map((it) => it.textContent).join(' | ')";

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

#[tokio::test]
async fn devices_that_star_different_messages_while_they_are_offline_keep_both() {
    let world = World::start().await;
    let (ben, ada) = (world.person("Ben").await, world.person("Ada").await);
    for text in ["Low tide is at nine", "Bring boots", "And a lamp"] {
        ben.tells(&ada, text).await;
    }
    let (desk, phone) = (world.visitor("Ada").await, world.visitor("Ada").await);
    for window in [&desk, &phone] {
        window.pick("Ben").await;
        window.sees("And a lamp").await;
        window.offline(true).await;
    }
    choose(&desk, "Low tide", "Star").await;
    choose(&desk, "And a lamp", "Star").await;
    choose(&phone, "Bring boots", "Star").await;
    desk.until("document.querySelectorAll('.msg .icon.star').length === 2").await;
    phone.until("document.querySelectorAll('.msg .icon.star').length === 1").await;
    for window in [&desk, &phone] {
        window.offline(false).await;
    }
    for window in [&desk, &phone] {
        window.until("document.querySelectorAll('.msg .icon.star').length === 3").await;
    }
    for window in [&desk, &phone] {
        window.offline(true).await;
    }
    choose(&desk, "Low tide", "Remove star").await;
    choose(&phone, "Bring boots", "Remove star").await;
    for window in [&desk, &phone] {
        window.offline(false).await;
    }
    let new = world.visitor("Ada").await;
    new.pick("Ben").await;
    for window in [&desk, &phone, &new] {
        window.until("document.querySelectorAll('.msg .icon.star').length === 1").await;
        window
            .until("document.querySelector('.msg:has(.icon.star)').textContent.includes('And a lamp')")
            .await;
    }
}

#[tokio::test]
async fn many_starred_messages_are_shown_page_by_page() {
    let world = World::start().await;
    let (ben, ada) = (world.person("Ben").await, world.person("Ada").await);
    for n in 0..35 {
        ben.tells(&ada, &format!("number {n}")).await;
    }
    let rows = ada.http.range(&RangeQuery::after(0)).await.expect("rows").rows;
    for row in rows.iter().filter(|row| row.kind == Kind::Message) {
        let key = Uuid::from_u128(row.message_id.into());
        ada.http.star(key, row.conversation, row.message_id, true).await.expect("starred");
    }
    let window = world.visitor("Ada").await;
    connected(&window).await;
    window.pick("Ben").await;
    window.until("document.querySelectorAll('.msg .icon.star').length >= 30").await;
    window.click("#open-starred").await;
    window.until(&format!("{LISTED}.startsWith('number 34 |') && {LISTED}.endsWith('| number 5')")).await;
    window.click("#starred-more").await;
    window.until(&format!("{LISTED}.endsWith('| number 0')")).await;
    window.until("document.getElementById('starred-more').hidden").await;
    window.until("document.activeElement.textContent.includes('number 4')").await;
}
