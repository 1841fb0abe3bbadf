//! Deleting one's account in the settings, and what others see of it then.

use super::social::befriend;
use super::window::{ENTER, Window};
use super::world::{PASSWORD, World, find, open_settings, say};

/// Types a password into the form, and answers the question that follows.
async fn try_to_delete(window: &Window, password: &str, answer: &str) {
    window.write("#delete-password", &format!("{password}{ENTER}")).await;
    window.until("document.getElementById('ask').open").await;
    window.run(&format!("document.getElementById('ask-{answer}').click()")).await;
    window.until("!document.getElementById('ask').open").await;
}

#[tokio::test]
async fn an_account_is_deleted_in_the_settings_and_others_see_that() {
    let world = World::start().await;
    let ben = world.newcomer("Ben").await;
    let ada = world.newcomer("Ada").await;
    befriend(&ada, &ben).await;
    find(&ada, "Ben").await;
    say(&ada, "Low tide is at nine").await;
    ben.pick("Ada").await;
    ben.sees("Low tide is at nine").await;
    let other = world.visitor("Ada").await;

    open_settings(&ada, "account").await;
    ada.click("#delete-account summary").await;
    ada.until("document.querySelector('#delete-account a[href=\"/api/v1/me/data\"]').offsetParent !== null")
        .await;
    ada.write("#delete-password", ENTER).await;
    ada.until("document.getElementById('delete-password-problem').textContent === 'Enter a password.'").await;
    try_to_delete(&ada, "guess guess", "yes").await;
    ada.until(
        "document.getElementById('delete-password-problem').textContent === 'This is not your current password.'",
    )
    .await;
    // Answering no keeps the account, and the typed password.
    try_to_delete(&ada, PASSWORD, "no").await;
    ada.until("document.activeElement.id === 'delete-password'").await;
    ada.write("#delete-password", ENTER).await;
    ada.until("document.getElementById('ask').open").await;
    ada.run("document.getElementById('ask-yes').click()").await;
    ada.until("location.pathname === '/login'").await;
    ada.until("document.getElementById('deleted')?.textContent === 'Your account is deleted.'").await;
    let kept = ada
        .run_async("const done = arguments[0]; indexedDB.databases().then((all) => done(all.length));")
        .await;
    assert_eq!(kept, 0, "nothing of it stays in the browser");
    ada.reload().await;
    ada.until("document.getElementById('deleted')?.hidden").await;
    ada.write("#name", "Ada").await;
    ada.write("#password", &format!("{PASSWORD}{ENTER}")).await;
    ada.until("document.querySelector('#password-problem').textContent !== ''").await;
    other.until("location.pathname === '/login'").await;

    ben.until("document.getElementById('pane-title').textContent === 'Deleted account'").await;
    ben.until("document.getElementById('list').innerText.includes('Deleted account')").await;
    ben.until("document.getElementById('locked').innerText.includes('This account is deleted.')").await;
    ben.until("document.getElementById('text').offsetParent === null").await;
    ben.sees("Low tide is at nine").await;
    ben.run("document.querySelector('a[href=\"/contacts\"]').click()").await;
    ben.until("document.getElementById('page-body').innerText.includes('No friends yet.')").await;
    // A new browser learns it from the list of conversations.
    let new = world.visitor("Ben").await;
    new.pick("Deleted account").await;
    new.sees("Low tide is at nine").await;
    new.until("!document.getElementById('locked').hidden").await;
}
