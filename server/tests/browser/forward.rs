//! Messages are forwarded.

use tidemark_client::Recipient;

use super::amend::choose;
use super::pictures::take;
use super::window::{DOWN, ENTER};
use super::world::World;

#[tokio::test]
async fn a_message_is_forwarded_to_several_conversations_and_none_is_chosen_by_itself() {
    let world = World::start().await;
    let (ben, cat, ada) = (world.person("Ben").await, world.person("Cat").await, world.person("Ada").await);
    let gid = ada.group("Walkers", &[cat.uid]).await;
    ben.tells(&ada, "Low tide is at **nine**").await;
    cat.tells(&ada, "Morning").await;
    let window = world.visitor("Ada").await;
    window.pick("Ben").await;
    window.sees("Low tide is at ").await;
    choose(&window, "Low tide", "Forward…").await;
    window.until("document.getElementById('forward').open && document.querySelectorAll('#forward-list li').length >= 3").await;
    window.until("document.getElementById('forward-quote').textContent === 'Low tide is at nine'").await;
    let none = "!document.querySelector('#forward-list [aria-selected=true]') && document.getElementById('forward-send').disabled
        && !document.querySelector('#forward-chosen li')";
    window.write("#forward-find", ENTER).await;
    window.until(none).await;
    for (typed, name) in [("Wal", "Walkers"), ("Ca", "Cat")] {
        window.write("#forward-find", typed).await;
        window.until(&format!("[...document.querySelectorAll('#forward-list li')].map((it) => it.querySelector('.title').textContent).join() === '{name}'")).await;
        window.write("#forward-find", ENTER).await;
        window.until("!document.querySelector('#forward-list [aria-selected=true]')").await;
        window.write("#forward-find", &format!("{DOWN}{ENTER}")).await;
        window
            .until(&format!(
                "[...document.querySelectorAll('#forward-chosen bdi')].at(-1)?.textContent === '{name}'"
            ))
            .await;
    }
    take(&window, "forward.png", 1280, 800).await;
    window.write("#forward-send", ENTER).await;
    window.until("!document.getElementById('forward').open").await;
    window.until("document.getElementById('announce').textContent === 'Forwarded to 2 conversations.'").await;
    window.until("document.getElementById('pane-title').textContent === 'Ben'").await;

    let reader = world.visitor("Cat").await;
    for conversation in ["Ada", "Walkers"] {
        reader.pick(conversation).await;
        reader
            .until(
                "document.querySelector('.msg:not(.own) .forwarded')?.textContent === 'Forwarded from Ben'",
            )
            .await;
        reader.until("document.querySelector('.words strong')?.textContent === 'nine'").await;
    }
    cat.send(Recipient::Group(gid), "Thanks").await;
    window.pick("Walkers").await;
    window.until("document.querySelector('.own .forwarded')?.textContent === 'Forwarded from Ben'").await;
    choose(&window, "Low tide", "Edit").await;
    window.write("#text", &format!(" or ten{ENTER}")).await;
    window
        .until("document.querySelector('.own .edited') && !document.querySelector('.own .forwarded')")
        .await;
}
