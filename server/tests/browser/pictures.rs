//! The scene of the README's pictures. With `PICTURES=docs/images` (a folder, seen from the repository's root) they are written there:
//! `PICTURES=docs/images cargo test -p tidemark-server --test browser pictures`.

use std::path::{Path, PathBuf};

use tidemark_client::Recipient;

use super::window::Window;
use super::world::{Person, World};

/// Where somebody wants pictures.
pub(crate) fn folder() -> Option<PathBuf> {
    let wanted = std::env::var_os("PICTURES")?;
    Some(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(wanted))
}

/// Takes a picture, which must be one of the whole page.
pub(crate) async fn take(window: &Window, name: &str, width: u32, height: u32) {
    let picture = window.picture().await;
    assert_eq!(picture[..8], *b"\x89PNG\r\n\x1a\n");
    assert_eq!(picture[16..24], [width.to_be_bytes(), height.to_be_bytes()].concat());
    if let Some(folder) = folder() {
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(folder.join(name), picture).expect("written");
    }
}

async fn talk(people: &[&Person], to: &[Recipient], lines: &[(usize, &str)]) {
    for &(who, text) in lines {
        people[who].send(to[who], text).await;
    }
}

#[tokio::test]
async fn pictures_can_be_taken() {
    let world = World::start().await;
    let (ada, ben, cleo) =
        (&world.person("Ada").await, &world.person("Ben").await, &world.person("Cleo").await);
    let (dov, edith) = (&world.person("Dov").await, &world.person("Edith").await);
    let between = |a: &Person, b: &Person| [Recipient::User(b.uid), Recipient::User(a.uid)];
    let lines = [(0, "Did the parcel come?"), (1, "This morning. Thank you!")];
    talk(&[edith, ada], &between(edith, ada), &lines).await;
    let lines = [(1, "The boat is out of the water until May"), (0, "Then we walk")];
    talk(&[ada, ben], &between(ada, ben), &lines).await;
    let gid = ben.group("Harbour walk", &[ada.uid, cleo.uid]).await;
    let group = [Recipient::Group(gid); 3];
    let lines = [
        (1, "Low tide is at ten past nine on Saturday"),
        (1, "We could cross to the island and be back for lunch"),
        (2, "Fine with me. I bring coffee"),
        (0, "How long do we have over there?"),
        (1, "Two hours, then the path is under water again.\nThe times are on the board at the pier."),
        (2, "And the dog?"),
        (0, "The dog has been looking forward to this since March"),
        (0, "Nine at the pier, then"),
    ];
    talk(&[ada, ben, cleo], &group, &lines).await;
    for line in ada.http.conversations().await.expect("the list") {
        let last = line.last.expect("a row");
        ada.http.mark_read(line.id, last.message_id).await.expect("marked");
    }
    for text in ["Do you have a minute?", "It is about Sunday"] {
        dov.tells(ada, text).await;
    }

    let window = world.visitor("Ada").await;
    window.pick("Harbour walk").await;
    window.sees("Nine at the pier, then").await;
    cleo.send(group[2], "See you there").await;
    window.sees("See you there").await;
    window.press("\u{E00C}").await;
    window.until("!document.querySelector('.fresh-line')").await;
    take(&window, "desktop-light.png", 1280, 800).await;
    window.run("localStorage.setItem('theme', 'dark'); dispatchEvent(new Event('theme'))").await;
    take(&window, "desktop-dark.png", 1280, 800).await;
    window.run("localStorage.setItem('theme', 'light'); dispatchEvent(new Event('theme'))").await;
    window.size(390, 844).await;
    window.run("document.activeElement.blur()").await;
    take(&window, "phone.png", 390, 844).await;
}
