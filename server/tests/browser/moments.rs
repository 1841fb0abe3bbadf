//! Moments: who sees them, and the mark of those that are new, on every device.

use uuid::Uuid;

use super::social::{badge, open, press, shows, unfold as unfold_talk};
use super::window::{ENTER, Window};
use super::world::{World, befriend, connected, stored, uid_of};

/// Unfolds who can see the next moment, and waits until so many are chosen of so many.
async fn unfold(window: &Window, chosen: usize, all: usize) {
    window.until("!document.querySelector('.moment-form details').open").await;
    window.click(".moment-form summary").await;
    let boxes = "document.querySelectorAll('.moment-form details input";
    window.until(&format!("{boxes}').length === {all} && {boxes}:checked').length === {chosen}")).await;
}

/// The texts of moments, the newest first.
const FEED: &str = "return [...document.querySelectorAll('.moment .words')].map((it) => it.innerText)";

#[tokio::test]
async fn a_post_to_all_friends_but_one_is_seen_by_the_others_alone() {
    let world = World::start().await;
    let (ben, cleo, dan) = (world.person("Ben").await, world.person("Cleo").await, world.person("Dan").await);
    let ada = world.newcomer("Ada").await;
    befriend(&ada, uid_of(&ada).await, &[&ben, &cleo, &dan]).await;
    let (bens, cleos) = (world.visitor("Ben").await, world.visitor("Cleo").await);
    open(&ada, "moments").await;
    unfold(&ada, 3, 3).await;
    let said =
        "[...document.querySelectorAll('.moment-form label')].map((it) => it.innerText.trim()).sort().join()";
    ada.until(&format!("{said} === 'Ben,Cleo,Dan'")).await;
    ada.click(&format!(".moment-form input[value='{}']", cleo.uid)).await;
    // The choice stays while it is folded.
    ada.click(".moment-form summary").await;
    unfold(&ada, 2, 3).await;
    ada.write("#moment-text", "A surprise for Cleo").await;
    press(&ada, "Post").await;
    shows(&ada, "A surprise for Cleo").await;

    // The next one is for all again.
    unfold(&ada, 3, 3).await;
    ada.write("#moment-text", "The tide is out").await;
    press(&ada, "Post").await;
    open(&bens, "moments").await;
    shows(&bens, "The tide is out").await;
    assert_eq!(
        bens.run(FEED).await,
        serde_json::json!(["The tide is out", "A surprise for Cleo", "Low tide is at ten"])
    );
    unfold_talk(&bens).await;
    bens.write(".moment:nth-child(2) input", &format!("She will be glad{ENTER}")).await;
    unfold_talk(&ada).await;
    shows(&ada, "She will be glad").await;
    ada.until("!document.querySelector('.feed .state')").await;
    open(&cleos, "moments").await;
    shows(&cleos, "The tide is out").await;
    assert_eq!(cleos.run(FEED).await, serde_json::json!(["The tide is out", "Low tide is at ten"]));
    assert_eq!(stored(&dan, "A surprise for Cleo").await, 1);
    for hidden in ["A surprise for Cleo", "She will be glad"] {
        assert_eq!(stored(&cleo, hidden).await, 0, "{hidden}");
    }
}

#[tokio::test]
async fn the_mark_of_new_moments_goes_on_every_device_and_stands_right_in_a_new_browser() {
    let world = World::start().await;
    let (ben, ada) = (world.person("Ben").await, world.person("Ada").await);
    let (desk, phone) = (world.visitor("Ada").await, world.visitor("Ada").await);
    befriend(&desk, ada.uid, &[&ben]).await;
    let post = async |number: u128, text: &str| {
        ben.http.post_moment(Uuid::from_u128(number), text, &[]).await.expect("posted").message_id
    };
    for window in [&desk, &phone] {
        badge(window, "moments", "1").await;
    }
    let unmarked = "document.querySelector('#to-moments .badge').hidden";
    open(&phone, "moments").await;
    shows(&phone, "Low tide is at ten").await;
    for window in [&phone, &desk] {
        window.until(unmarked).await;
    }

    // The user's own actions are nothing new, nor is a comment; a deleted moment stops being new.
    press(&phone, "Like").await;
    phone.write("#moment-text", "Boots are needed").await;
    press(&phone, "Post").await;
    shows(&phone, "Boots are needed").await;
    phone.goto(&world.at("/")).await;
    connected(&phone).await;
    let first = post(1, "Nine at the pier").await;
    let second = post(2, "Or was it ten?").await;
    ben.http.comment(Uuid::from_u128(3), first, "Bring coffee").await.expect("said");
    let tablet = world.visitor("Ada").await;
    for window in [&desk, &phone, &tablet] {
        badge(window, "moments", "2").await;
    }
    ben.http.delete_moment(Uuid::from_u128(4), second).await.expect("deleted");
    for window in [&desk, &phone, &tablet] {
        badge(window, "moments", "1").await;
    }
    desk.reload().await;
    badge(&desk, "moments", "1").await;

    open(&tablet, "moments").await;
    shows(&tablet, "Nine at the pier").await;
    for window in [&tablet, &desk, &phone] {
        window.until(unmarked).await;
    }
    // Nobody looks at them now.
    tablet.goto(&world.at("/")).await;
    connected(&tablet).await;
    let laptop = world.visitor("Ada").await;
    post(5, "Ten it is").await;
    for window in [&desk, &phone, &tablet, &laptop] {
        badge(window, "moments", "1").await;
    }
    // While somebody looks at them, none is new on any device.
    open(&tablet, "moments").await;
    shows(&tablet, "Ten it is").await;
    post(6, "Bring a lamp").await;
    shows(&tablet, "Bring a lamp").await;
    for window in [&tablet, &desk, &phone, &laptop] {
        window.until(unmarked).await;
    }
}
