//! Files in messages: how they come into the box, how they go up, and what the other person sees.

use std::path::Path;

use super::window::{ENTER, Window};
use super::world::{World, connected, say};

/// Waits until so many files stand above the box.
pub(crate) async fn chosen(window: &Window, count: usize) {
    window.until(&format!("document.querySelectorAll('#tray .chosen').length === {count}")).await;
}

/// Pastes a picture of so many pixels each way, which has other colours for each name.
pub(crate) async fn paste(window: &Window, name: &str, width: u32, height: u32) {
    let script = format!(
        "const done = arguments[0], canvas = document.createElement('canvas');
         Object.assign(canvas, {{ width: {width}, height: {height} }});
         const pen = canvas.getContext('2d');
         const hue = [...'{name}'].reduce((sum, letter) => sum + letter.charCodeAt(0) * 37, 0) % 360;
         for (let x = 0; x < {width}; x += 40) {{
           pen.fillStyle = `hsl(${{(hue + x / 4) % 360}} 60% ${{40 + (x / 40 % 3) * 10}}%)`;
           pen.fillRect(x, 0, 40, {height});
         }}
         canvas.toBlob((blob) => {{
           const clipboardData = new DataTransfer();
           clipboardData.items.add(new File([blob], '{name}', {{ type: 'image/png' }}));
           const place = document.querySelector('#moment-text') ?? document.getElementById('text');
           // One that is made by a script has no files in Firefox.
           const event = new Event('paste', {{ bubbles: true, cancelable: true }});
           Object.defineProperty(event, 'clipboardData', {{ value: clipboardData }});
           place.dispatchEvent(event);
           done(true);
         }}, 'image/png');"
    );
    window.run_async(&script).await;
}

/// Chooses a file with the button's own field.
pub(crate) async fn pick_file(window: &Window, path: &Path) {
    window.write("#open-files + input", path.to_str().expect("a path")).await;
}

/// A file of so many bytes, which cannot be made smaller on the way.
fn noise(folder: &Path, name: &str, bytes: usize) -> std::path::PathBuf {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    let path = folder.join(name);
    std::fs::write(&path, std::iter::repeat_with(next).take(bytes).collect::<Vec<u8>>()).expect("written");
    path
}

/// Waits until a picture is shown that has been loaded.
async fn sees_picture(window: &Window, name: &str) {
    window
        .until(&format!(
            "[...document.querySelectorAll('.msg button.picture img')].some((it) => it.alt === 'Picture, {name}' && it.naturalWidth > 0)"
        ))
        .await;
}

/// Waits until a card with this name and size is shown.
async fn sees_card(window: &Window, name: &str, about: &str) {
    window
        .until(&format!(
            "[...document.querySelectorAll('.msg a.card-of-file')].some((it) => it.querySelector('.file-name').textContent === '{name}'
               && it.querySelector('.quiet').textContent === '{about}')"
        ))
        .await;
}

/// Remembers each request of an upload over reloads.
const LISTEN: &str = "const open = XMLHttpRequest.prototype.open;
    XMLHttpRequest.prototype.open = function (method, path, ...more) {
      if (path.startsWith('/files')) sessionStorage.asked = `${sessionStorage.asked ?? ''} ${method}`;
      return open.call(this, method, path, ...more);
    };";

/// How many requests with this method the uploads have made.
async fn asked(window: &Window, method: &str) -> u64 {
    let count =
        format!("return (sessionStorage.asked ?? '').split(' ').filter((it) => it === '{method}').length");
    window.run(&count).await.as_u64().expect("a number")
}

/// Waits until so much of what goes up is there.
async fn is_up(window: &Window, share: f64) {
    window.until(&format!("document.querySelector('.sending progress')?.value >= {share}")).await;
}

#[tokio::test]
async fn pictures_and_files_are_pasted_picked_and_dropped_and_the_other_one_sees_them() {
    let world = World::start().await;
    let folder = tempfile::tempdir().expect("a folder");
    let (ada, ben) = (world.newcomer("Ada").await, world.newcomer("Ben").await);
    super::world::find(&ada, "Ben").await;
    say(&ada, "Hello").await;
    ben.pick("Ada").await;
    ben.sees("Hello").await;

    paste(&ada, "pier.png", 1200, 900).await;
    chosen(&ada, 1).await;
    pick_file(&ada, &noise(folder.path(), "tides.txt", 20_000)).await;
    chosen(&ada, 2).await;
    ada.run(
        "const dataTransfer = new DataTransfer(), at = { bubbles: true, cancelable: true };
         dataTransfer.items.add(new File(['x'], 'empty.txt', { type: 'text/plain' }));
         document.getElementById('log').dispatchEvent(new DragEvent('dragover', { dataTransfer, ...at }));
         window.wasTarget = document.querySelector('.drop').checkVisibility() && document.querySelector('.drop').textContent;
         document.getElementById('log').dispatchEvent(new DragEvent('drop', { dataTransfer, ...at }))",
    )
    .await;
    ada.until("window.wasTarget === 'Drop files here to send them to Ben'").await;
    chosen(&ada, 3).await;
    ada.until("!document.querySelector('.drop').checkVisibility()").await;
    // One is taken out, and one cannot be sent.
    ada.click("#tray .chosen:last-child button").await;
    chosen(&ada, 2).await;
    std::fs::write(folder.path().join("nothing.txt"), "").expect("written");
    pick_file(&ada, &folder.path().join("nothing.txt")).await;
    ada.until("document.querySelector('#tray .problem').textContent === 'nothing.txt is empty, so it cannot be sent.'").await;
    ada.write("#text", &format!("At low tide{ENTER}")).await;
    chosen(&ada, 0).await;
    for window in [&ada, &ben] {
        window.sees("At low tide").await;
        sees_picture(window, "pier.png").await;
        sees_card(window, "tides.txt", "20 kB · TXT").await;
    }
    ben.until("document.querySelector('#list .last').textContent.endsWith('📎 2 files · At low tide')").await;
    // The size was known before it was loaded.
    ben.until("document.querySelector('.msg .picture img').getAttribute('height') === '240'").await;
    let bytes = ben
        .run_async("const done = arguments[0]; fetch(document.querySelector('a.card-of-file').href).then((it) => it.blob()).then((it) => done(it.size))")
        .await;
    assert_eq!(bytes, 20_000);

    // Files alone are a message, and a reply and a forwarded message have them, too.
    paste(&ada, "boat.png", 300, 200).await;
    chosen(&ada, 1).await;
    ada.write("#text", ENTER).await;
    sees_picture(&ben, "boat.png").await;
    ben.until("document.querySelector('#list .last').textContent.endsWith('📷 Picture')").await;
    ada.reload().await;
    connected(&ada).await;
    sees_picture(&ada, "boat.png").await;
    ada.until("!document.querySelector('.sending')").await;
}

#[tokio::test]
async fn an_upload_goes_on_after_a_cut_and_a_reload_and_what_was_written_behind_it_waits() {
    let world = World::start().await;
    let folder = tempfile::tempdir().expect("a folder");
    let ben = world.newcomer("Ben").await;
    let ada = world.newcomer("Ada").await;
    ada.before_every_page(LISTEN).await;
    ada.reload().await;
    connected(&ada).await;
    super::world::find(&ada, "Ben").await;
    say(&ada, "Hello").await;
    ada.until("document.querySelector('.own .state').ariaLabel !== 'Waiting'").await;
    ada.slow(5, 16_000).await;
    pick_file(&ada, &noise(folder.path(), "film.bin", 9_000_000)).await;
    chosen(&ada, 1).await;
    ada.write("#text", &format!("The film{ENTER}")).await;
    say(&ada, "What do you think of it?").await;
    is_up(&ada, 0.25).await;
    ada.offline(true).await;
    ada.until("document.body.dataset.phase !== 'open'").await;
    ada.offline(false).await;
    ada.slow(5, 16_000).await;
    is_up(&ada, 0.5).await;
    ada.reload().await;
    connected(&ada).await;
    // It never begins anew.
    is_up(&ada, 0.5).await;
    ada.until("document.querySelectorAll('.own .state').length === 3").await;
    ada.slow(0, 1_000_000).await;
    ben.pick("Ada").await;
    ben.sees("What do you think of it?").await;
    sees_card(&ben, "film.bin", "9 MB · BIN").await;
    let order =
        ben.run("return [...document.querySelectorAll('.msg .words')].map((it) => it.innerText)").await;
    assert_eq!(order, serde_json::json!(["Hello", "The film", "What do you think of it?"]));
    assert_eq!(asked(&ada, "POST").await, 1, "one upload");
    assert!(asked(&ada, "HEAD").await >= 1, "it was asked how far it is");
    let bytes = ben
        .run_async("const done = arguments[0]; fetch(document.querySelector('a.card-of-file').href).then((it) => it.blob()).then((it) => done(it.size))")
        .await;
    assert_eq!(bytes, 9_000_000);
}

#[tokio::test]
async fn an_upload_goes_on_after_its_server_was_killed() {
    let world = World::start().await;
    let folder = tempfile::tempdir().expect("a folder");
    let ben = world.newcomer("Ben").await;
    let ada = world.newcomer("Ada").await;
    super::world::find(&ada, "Ben").await;
    say(&ada, "Hello").await;
    ada.slow(5, 16_000).await;
    pick_file(&ada, &noise(folder.path(), "film.bin", 9_000_000)).await;
    chosen(&ada, 1).await;
    ada.write("#text", ENTER).await;
    is_up(&ada, 0.3).await;
    let gone = world.kill_server().await;
    ada.until("document.body.dataset.phase !== 'open'").await;
    ada.slow(0, 1_000_000).await;
    let world = gone.restart().await;
    ben.goto(&world.at("/")).await;
    connected(&ben).await;
    ben.pick("Ada").await;
    sees_card(&ben, "film.bin", "9 MB · BIN").await;
    assert_eq!(ben.run("return document.querySelectorAll('.card-of-file').length").await, 1);
}

#[tokio::test]
async fn an_upload_that_is_cancelled_is_a_draft_again_and_a_file_that_is_refused_says_why() {
    let world = World::start().await;
    let folder = tempfile::tempdir().expect("a folder");
    let ben = world.person("Ben").await;
    let ada = world.newcomer("Ada").await;
    super::world::find(&ada, "Ben").await;
    say(&ada, "Hello").await;
    ada.slow(5, 8_000).await;
    paste(&ada, "pier.png", 400, 300).await;
    chosen(&ada, 1).await;
    pick_file(&ada, &noise(folder.path(), "film.bin", 9_000_000)).await;
    chosen(&ada, 2).await;
    ada.write("#text", &format!("The film{ENTER}")).await;
    is_up(&ada, 0.1).await;
    ada.click(".sending button").await;
    chosen(&ada, 2).await;
    ada.until("document.getElementById('text').value === 'The film' && !document.querySelector('.sending')")
        .await;
    ada.until("document.querySelectorAll('.msg').length === 1").await;
    ada.slow(0, 1_000_000).await;

    // What is no picture although it begins like one; the text stays.
    std::fs::write(folder.path().join("torn.png"), b"\x89PNG\r\n\x1a\nand no more").expect("written");
    ada.click("#tray .chosen:last-child button").await;
    chosen(&ada, 1).await;
    pick_file(&ada, &folder.path().join("torn.png")).await;
    chosen(&ada, 2).await;
    ada.write("#text", ENTER).await;
    ada.until("document.querySelector('.failed .trouble')?.textContent.startsWith('Not sent: This picture')")
        .await;
    ada.sees("The film").await;
    // What follows is not held up.
    say(&ada, "Never mind").await;
    ada.click(".failed .trouble .link:nth-of-type(2)").await;
    chosen(&ada, 2).await;
    ada.click("#tray .chosen:last-child button").await;
    chosen(&ada, 1).await;
    ada.until("document.getElementById('text').value === 'The film'").await;
    ada.write("#text", ENTER).await;
    sees_picture(&ada, "pier.png").await;
    assert_eq!(super::world::stored(&ben, "pier.png").await, 1);
    assert_eq!(super::world::stored(&ben, "torn.png").await, 0);
}
