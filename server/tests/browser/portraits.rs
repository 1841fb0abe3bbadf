//! Pictures of people and groups: chosen, cut and removed by keyboard, and seen by others wherever a disc is.

use super::axe::look;
use super::window::{END, ENTER, TAB, Window};
use super::world::{World, befriend, find, open_about, open_settings, say, uid_of};

/// Chooses a file with the button in `place`: a wide picture, the left half of it red and the right one blue, or no picture.
async fn pick(window: &Window, place: &str, is_picture: bool) {
    window
        .run_async(&format!(
            "const done = arguments[0], canvas = document.createElement('canvas');
             [canvas.width, canvas.height] = [800, 400];
             const pen = canvas.getContext('2d');
             for (const [colour, left] of [['#c22', 0], ['#22c', 400]]) {{
               pen.fillStyle = colour;
               pen.fillRect(left, 0, 400, 400);
             }}
             canvas.toBlob((blob) => {{
               const field = document.querySelector('{place} input'), data = new DataTransfer();
               data.items.add({is_picture} ? new File([blob], 'me.png', {{ type: 'image/png' }}) : new File(['<svg/>'], 'me.svg', {{ type: 'image/svg+xml' }}));
               field.files = data.files;
               field.dispatchEvent(new Event('change'));
               done(true);
             }}, 'image/png');"
        ))
        .await;
}

/// Waits until the disc has a picture whose middle is red or blue.
async fn has(window: &Window, disc: &str, colour: &str) {
    window
        .until(&format!(
            "(() => {{
               const image = document.querySelector('{disc} img');
               if (!image?.naturalWidth) return false;
               const canvas = document.createElement('canvas');
               [canvas.width, canvas.height] = [1, 1];
               const pen = canvas.getContext('2d');
               pen.drawImage(image, 0, 0, image.naturalWidth, image.naturalHeight, 0, 0, 1, 1);
               const [red, , blue] = pen.getImageData(0, 0, 1, 1).data;
               return '{colour}' === (red > blue ? 'red' : 'blue');
             }})()"
        ))
        .await;
}

#[tokio::test]
async fn a_picture_is_chosen_by_keyboard_and_the_other_one_sees_it_at_once() {
    let world = World::start().await;
    let ben = world.newcomer("Ben").await;
    let ada = world.newcomer("Ada").await;
    let phone = world.visitor("Ada").await;
    find(&ada, "Ben").await;
    say(&ada, "Low tide is at nine").await;
    ben.pick("Ada").await;
    let box_of = "return JSON.stringify(document.querySelector('#list .disc').getBoundingClientRect())";
    ben.until("document.querySelector('#list .disc')").await;
    let before = ben.run(box_of).await;
    open_settings(&ada, "profile").await;
    ada.until("document.querySelector('#profile-picture button + input + input + button').hidden").await;
    pick(&ada, "#profile-picture", false).await;
    ada.until("document.getElementById('profile-picture-problem').textContent.startsWith('This file is no picture')")
        .await;
    pick(&ada, "#profile-picture", true).await;
    ada.until("document.querySelector('dialog.crop[open]')").await;
    look(&ada, "the square of a picture").await;
    // The size, then the place from left to right: all to the right.
    ada.run("document.querySelector('.crop input').focus()").await;
    ada.press(TAB).await;
    ada.press(END).await;
    ada.press(ENTER).await;
    ada.until("!document.querySelector('.crop')").await;
    for (window, discs) in [
        (&ada, &["#profile-disc", ".side .bar .disc"][..]),
        (&phone, &[".side .bar .disc"]),
        (&ben, &["#list .disc", "#pane-disc", ".msg .disc"]),
    ] {
        for disc in discs {
            has(window, disc, "blue").await;
        }
    }
    assert_eq!(ben.run(box_of).await, before, "nothing moves");
    assert_eq!(ben.run("return document.querySelector('#list .disc').ariaHidden").await, "true");
    assert_eq!(ada.run("return document.activeElement.textContent").await, "Choose a picture…");
    look(&ada, "the settings with a picture").await;
    // A browser that comes later has it, too, and shows the letter where it cannot be had.
    ben.reload().await;
    has(&ben, "#list .disc", "blue").await;
    ada.run("document.querySelector('#profile-picture button:last-of-type').click()").await;
    for (window, disc) in [(&ada, "#profile-disc"), (&phone, ".side .bar .disc"), (&ben, "#list .disc")] {
        window.until(&format!("document.querySelector('{disc}').textContent === 'A'")).await;
        window.until(&format!("!document.querySelector('{disc} img')")).await;
    }
}

#[tokio::test]
async fn who_looks_after_a_group_gives_it_a_picture() {
    let world = World::start().await;
    let ben = world.person("Ben").await;
    let cleo = world.newcomer("Cleo").await;
    let ada = world.newcomer("Ada").await;
    befriend(&ada, uid_of(&ada).await, &[&ben]).await;
    let gid = ben.group("Walkers", &[uid_of(&ada).await, uid_of(&cleo).await]).await;
    ada.pick("Walkers").await;
    cleo.pick("Walkers").await;
    open_about(&cleo).await;
    cleo.until("document.querySelector('#members-list li')").await;
    assert_eq!(cleo.run("return document.getElementById('describe').checkVisibility()").await, false);

    ben.http.set_role(gid, uid_of(&ada).await, tidemark_client::Role::Administrator).await.expect("set");
    open_about(&ada).await;
    ada.until("document.getElementById('describe').checkVisibility()").await;
    ada.run("document.querySelector('#describe summary').click()").await;
    pick(&ada, "#describe-picture", true).await;
    ada.until("document.querySelector('dialog.crop[open]')").await;
    // The mouse moves it: to the left end of the picture.
    ada.run(
        "const canvas = document.querySelector('.crop canvas'), at = { bubbles: true, pointerId: 1, buttons: 1 };
         canvas.dispatchEvent(new PointerEvent('pointermove', { ...at, movementX: 2000, movementY: 0 }));
         document.querySelector('.crop .primary').click()",
    )
    .await;
    for window in [&ada, &cleo] {
        for disc in ["#list .disc", "#pane-disc", "#about-disc"] {
            has(window, disc, "red").await;
        }
    }
    let reads = async |window: &Window, text: &str| {
        window.until(&format!("document.getElementById('log').textContent.includes('{text}')")).await;
    };
    reads(&cleo, "Ada changed the picture of the group").await;
    reads(&ada, "You changed the picture of the group").await;
    look(&cleo, "a group with a picture").await;
    ada.run("document.querySelector('#describe-picture button:last-of-type').click()").await;
    reads(&cleo, "Ada removed the picture of the group").await;
    cleo.until("document.querySelector('#list .disc').textContent === 'W' && !document.querySelector('#list .disc img')").await;
}
