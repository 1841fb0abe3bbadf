//! The rest of the gallery: what stands beside the chat, and what few people see.

use super::axe::{LANGUAGES, choose};
use super::gallery::show;
use super::tables::{shop, signed_in};
use super::window::ENTER;
use super::world::{PASSWORD, World, find, open_about, open_person, open_settings};

#[tokio::test]
async fn the_description_and_the_tables_can_be_pictured() {
    let (world, key) = shop().await;
    let window = world.window().await;
    for (path, page) in
        [("/docs", "docs"), ("/docs/websocket", "docs-websocket"), ("/tables/sign-in", "tables-sign-in")]
    {
        window.goto(&world.at(path)).await;
        window.until("document.querySelector('h1')").await;
        show(&window, "en", page).await;
    }
    let window = signed_in(&world, &key).await;
    for (path, page, shown) in [
        ("/tables", "tables", "main table"),
        ("/tables/orders", "table", ".rows"),
        ("/tables/orders/row?k1=ann&k2=1", "row", ".cells"),
    ] {
        window.goto(&world.at(path)).await;
        window.until(&format!("document.querySelector('{shown}')")).await;
        show(&window, "en", page).await;
    }
}

#[tokio::test]
async fn closed_doors_a_stranger_and_a_farewell_can_be_pictured() {
    let world = World::with_sign_up("closed").await;
    world.add("Ada").await;
    let window = world.window().await;
    for (language, tag) in LANGUAGES {
        choose(&window, &world, language, tag).await;
        for (path, page) in
            [("/nothing", "not-found"), ("/login", "log-in-closed"), ("/sign-up", "sign-up-closed")]
        {
            window.goto(&world.at(path)).await;
            window.until("document.querySelector('h1')").await;
            show(&window, language, page).await;
        }
        let name = format!("Eve {language}");
        world.add(&name).await;
        world.log_in(&window, &name).await;
        find(&window, "Ada").await;
        open_about(&window).await;
        show(&window, language, "person").await;
        open_person(&window).await;
        show(&window, language, "person-menu").await;
        window.run("document.getElementById('actions').hidePopover()").await;

        open_settings(&window, "account").await;
        window.click("#delete-account summary").await;
        window.write("#delete-password", &format!("{PASSWORD}{ENTER}")).await;
        window.until("document.getElementById('ask').open").await;
        window.run("document.getElementById('ask-yes').click()").await;
        window.until("document.getElementById('deleted')?.hidden === false").await;
        show(&window, language, "deleted").await;
    }
}
