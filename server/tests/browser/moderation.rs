//! What administrators do about members of their group: taking back messages.

use tidemark_client::{Recipient, Role};

use super::starred::choose;
use super::world::{World, say, stored};

const ASKS: &str = "document.getElementById('ask').open";

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
