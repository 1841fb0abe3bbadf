//! Messages that are pinned for everybody in a conversation.

use tidemark_client::Recipient;

use super::starred::choose;
use super::world::{World, connected};

#[tokio::test]
async fn a_pinned_message_stands_above_the_log_of_everybody_and_leads_there() {
    let world = World::start().await;
    let (ben, ada) = (world.person("Ben").await, world.person("Ada").await);
    let gid = ada.group("Harbour walk", &[ben.uid]).await;
    for text in ["Low tide is at nine", "Bring boots"] {
        ada.send(Recipient::Group(gid), text).await;
    }
    let (owner, member) = (world.visitor("Ada").await, world.visitor("Ben").await);
    for window in [&owner, &member] {
        window.pick("Harbour walk").await;
        window.sees("Bring boots").await;
    }
    choose(&owner, "Low tide", "Pin for everybody").await;
    let bar = "document.getElementById('pins')";
    for window in [&owner, &member] {
        window.until(&format!("!{bar}.hidden && {bar}.textContent.includes('Low tide is at nine')")).await;
    }
    member.run("document.querySelector('.msg .more').click()").await;
    member.until("document.querySelectorAll('#actions button').length > 3").await;
    let offered =
        "return [...document.querySelectorAll('#actions button')].some((it) => /pin/i.test(it.textContent))";
    assert_eq!(member.run(offered).await, false, "a member is offered nothing that would be refused");
    // One who comes later, to a long conversation.
    for n in 0..300 {
        ada.send(Recipient::Group(gid), &format!("number {n}")).await;
    }
    let phone = world.visitor("Ben").await;
    phone.pick("Harbour walk").await;
    phone.until(&format!("{bar}.textContent.includes('Low tide is at nine')")).await;
    phone.click("#pins").await;
    phone.until("[...document.querySelectorAll('.msg .words')].some((it) => it.textContent === 'Low tide is at nine')").await;
    choose(&phone, "Low tide", "Star").await;
    choose(&owner, "number 299", "Pin for everybody").await;
    owner
        .until(&format!(
            "{bar}.textContent.startsWith('2 pinned') || {bar}.textContent.includes('2 pinned messages')"
        ))
        .await;
    owner.click("#pins").await;
    owner.until("document.querySelectorAll('#actions button').length === 2").await;
    // They stand below the beginning of the bar, also when the window changes its size meanwhile.
    let stands = "(() => {
        const [menu, bar] = ['actions', 'pins'].map((id) => document.getElementById(id).getBoundingClientRect());
        return Math.abs(menu.left - bar.left) < 5 && Math.abs(menu.top - bar.bottom) < 2 && menu.right <= innerWidth;
      })()";
    for (width, height) in [(1280, 800), (390, 844), (1280, 800)] {
        owner.size(width, height).await;
        owner.until(stands).await;
    }
    owner.run("document.querySelectorAll('#actions button')[1].click()").await;
    owner.until("[...document.querySelectorAll('.msg .words')].some((it) => it.textContent.startsWith('Low tide'))").await;
    choose(&owner, "Low tide", "Unpin for everybody").await;
    for window in [&owner, &member, &phone] {
        window
            .until(&format!(
                "/1 pinned message\\b/.test({bar}.textContent) && {bar}.textContent.includes('number 299')"
            ))
            .await;
    }
    // A message that was taken back is no longer pinned: nobody could unpin it.
    owner.click("#pins").await;
    choose(&owner, "number 299", "Take back…").await;
    owner.click("#ask-yes").await;
    for window in [&owner, &member, &phone] {
        window.until(&format!("{bar}.hidden")).await;
    }
    phone.reload().await;
    connected(&phone).await;
    // It opens where one was.
    phone.until("!document.getElementById('jump').hidden").await;
    phone.run("document.getElementById('jump').click()").await;
    phone.until("document.querySelector('.gone')").await;
    assert_eq!(phone.run(&format!("return {bar}.hidden")).await, true);
}
