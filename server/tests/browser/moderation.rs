//! What administrators do about members of their group: taking back messages, muting, slow mode.

use tidemark_client::{Draft, Recipient, Role};

use super::starred::choose;
use super::window::ENTER;
use super::world::{World, say, stored};

const ASKS: &str = "document.getElementById('ask').open";

/// Whether the last change of the group is told in words that begin so.
fn told(text: &str) -> String {
    format!("[...document.querySelectorAll('.event')].at(-1)?.textContent.startsWith('{text}')")
}

#[tokio::test]
async fn an_administrator_removes_a_message_and_all_see_who_did() {
    let world = World::start().await;
    let (ben, cleo) = (world.person("Ben").await, world.person("Cleo").await);
    let ada = world.person("Ada").await;
    let gid = ada.group("Harbour walk", &[ben.uid, cleo.uid]).await;
    ada.http.set_role(gid, ben.uid, Role::Administrator).await.expect("an administrator");
    cleo.send(Recipient::Group(gid), "Buy my boots").await;
    cleo.send(Recipient::Group(gid), "Good morning").await;
    let (bens, cleos) = (world.visitor("Ben").await, world.visitor("Cleo").await);
    for window in [&bens, &cleos] {
        window.pick("Harbour walk").await;
        window.sees("Buy my boots").await;
    }
    choose(&bens, "Buy my boots", "Remove for everybody…").await;
    bens.until(ASKS).await;
    bens.click("#ask-no").await;
    bens.until(&format!("!{ASKS}")).await;
    assert_eq!(stored(&ada, "Buy my boots").await, 1);
    choose(&bens, "Buy my boots", "Remove for everybody…").await;
    bens.click("#ask-yes").await;
    bens.sees("You removed this message").await;
    cleos.sees("Message removed by Ben").await;
    // The same in a window that saw it happen, after a reload, and in a browser that was not there.
    cleos.reload().await;
    let adas = world.visitor("Ada").await;
    adas.pick("Harbour walk").await;
    for window in [&cleos, &adas] {
        window.sees("Message removed by Ben").await;
        window.sees("Good morning").await;
        window.until("!document.body.textContent.includes('Buy my boots')").await;
    }
    assert_eq!(stored(&ada, "Buy my boots").await, 0);
    // A member is offered this for nobody's message.
    say(&adas, "That was spam").await;
    cleos.sees("That was spam").await;
    cleos.run("[...document.querySelectorAll('.msg')].at(-1).querySelector('.more').click()").await;
    let offered = "[...document.querySelectorAll('#actions button')].map((it) => it.textContent)";
    cleos.until(&format!("{offered}.includes('Reply')")).await;
    assert_eq!(cleos.run(&format!("return {offered}.includes('Remove for everybody…')")).await, false);
}

#[tokio::test]
async fn a_member_is_muted_in_the_dialog_and_the_box_says_until_when() {
    let world = World::start().await;
    let (ada, ben) = (world.person("Ada").await, world.person("Ben").await);
    let gid = ada.group("Harbour walk", &[ben.uid]).await;
    let (owner, bens) = (world.visitor("Ada").await, world.visitor("Ben").await);
    for window in [&owner, &bens] {
        window.pick("Harbour walk").await;
    }
    bens.write("#text", "a draft that stays").await;
    owner.click("#open-members").await;
    let more = "#members-list [aria-label='More about Ben']";
    let items = "[...document.querySelectorAll('#actions button')].map((it) => it.textContent).join()";
    owner.until(&format!("document.querySelector(\"{more}\")")).await;
    owner.click(more).await;
    owner.until(&format!("{items}.includes('Mute…')")).await;
    owner.click("#actions button:nth-last-child(2)").await;
    owner.until(&format!("{items} === 'For an hour,For a day,For a week,For good'")).await;
    owner.click("#actions button").await;
    owner
        .until("[...document.querySelectorAll('#members-list li')].some((li) => /Ben.*muted until/.test(li.textContent))")
        .await;
    bens.until(&told("Ada muted you until")).await;
    bens.until(
        "document.getElementById('locked-text').textContent.startsWith('You are muted in this group until ')",
    )
    .await;
    bens.until("document.getElementById('text').hidden && document.getElementById('hide').hidden").await;
    bens.reload().await;
    bens.until("!document.getElementById('locked').hidden").await;
    let draft = Draft::text(Recipient::Group(gid), "still here");
    assert_eq!(ben.http.send(&draft).await.expect_err("muted").code(), Some("muted"));

    owner.click(more).await;
    owner.until(&format!("{items}.includes('Lift the mute')")).await;
    owner.click("#actions button:nth-last-child(2)").await;
    bens.until(&told("Ada lifted your mute")).await;
    bens.until("document.getElementById('locked').hidden && document.getElementById('text').value === 'a draft that stays'")
        .await;
    say(&bens, "Thank you").await;
    owner.sees("Thank you").await;
}

#[tokio::test]
async fn slow_mode_is_set_in_the_dialog_and_the_box_counts_the_wait() {
    let world = World::start().await;
    let (ada, ben) = (world.person("Ada").await, world.person("Ben").await);
    let gid = ada.group("Harbour walk", &[ben.uid]).await;
    let (owner, bens) = (world.visitor("Ada").await, world.visitor("Ben").await);
    for window in [&owner, &bens] {
        window.pick("Harbour walk").await;
    }
    owner.click("#open-members").await;
    owner.until("!document.getElementById('describe').hidden").await;
    owner.click("#describe summary").await;
    owner.run("document.getElementById('describe-slow').value = '3600'").await;
    owner.click("#describe-form .primary").await;
    bens.until(&told("Ada turned slow mode on: one message of each member every 1 hour")).await;
    assert_eq!(ada.http.group(gid).await.expect("the group").slow_seconds, 3_600);
    let waits =
        "/Slow mode: .* in 3,[0-9]{3} seconds/.test(document.getElementById('slow-wait').textContent)";
    assert_eq!(bens.run(&format!("return {waits}")).await, false);
    say(&bens, "The one of this hour").await;
    owner.sees("The one of this hour").await;
    bens.until(&format!("{waits} && document.getElementById('send').disabled")).await;
    // What is typed meanwhile stays, and Enter does not send it.
    bens.write("#text", &format!("Another one{ENTER}")).await;
    bens.reload().await;
    bens.until(&format!("{waits} && document.getElementById('text').value === 'Another one'")).await;
    assert_eq!(stored(&ada, "Another one").await, 0);
    ada.http.set_slow_mode(gid, 0).await.expect("set");
    bens.until(&told("Ada turned slow mode off")).await;
    bens.until(
        "!document.getElementById('send').disabled && !document.getElementById('slow-wait').textContent",
    )
    .await;
    bens.write("#text", ENTER).await;
    owner.sees("Another one").await;
}
