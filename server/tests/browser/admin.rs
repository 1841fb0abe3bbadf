//! The pages of operators in a browser.

use tidemark_client::Reason;
use uuid::Uuid;

use super::axe::faults;
use super::window::{COLOURS, ENTER};
use super::world::{World, connected};

#[tokio::test]
async fn an_operator_locks_an_account_and_axe_finds_nothing_in_any_colours() {
    let world = World::start().await;
    let ben = world.person("Ben Bosun").await;
    let window = world.newcomer("Ada").await;
    world.make_operator("Ada").await;
    window.goto(&world.at("/admin")).await;
    window.write("#q", &format!("bosun{ENTER}")).await;
    window.until("document.querySelector('tbody a')?.textContent === 'Ben Bosun'").await;
    window.click("tbody a").await;
    window.until("document.querySelector('h1').textContent === 'Ben Bosun'").await;
    window.click("button[value=lock]").await;
    window.until("document.querySelector('button[value=unlock]')").await;
    window.until("document.querySelector('main').textContent.includes('logged in nowhere')").await;
    assert!(ben.http.me().await.is_err(), "the session has ended");
    window.click("button[value=unlock]").await;
    window.until("document.querySelector('button[value=lock]')").await;
    let baker = world.person("Ben Baker").await;
    for (key, text) in [(1, "rude & <loud>"), (2, "again")] {
        let made = baker.http.report_person(Uuid::from_u128(key), ben.uid, Reason::Harassment, text).await;
        made.expect("reported");
    }
    window.goto(&world.at("/admin/reports")).await;
    window.until("document.querySelectorAll('.reports li').length === 2").await;
    window.click(".reports li button").await;
    window.until("document.querySelectorAll('.reports li').length === 1").await;
    let person = window.run("return location.pathname").await;
    let person = person.as_str().expect("a path");
    let own = "/admin/people/10001";
    for colours in COLOURS {
        window.colours(colours).await;
        for (width, height) in [(1280, 800), (360, 740)] {
            window.size(width, height).await;
            for path in
                ["/admin", "/admin?q=ben", "/admin?q=nobody", person, own, "/admin/reports", "/admin/audit"]
            {
                window.goto(&world.at(path)).await;
                window.until("document.querySelector('h1')").await;
                assert_eq!(faults(&window).await, "", "{path} in {colours:?} colours at {width}");
                window.until(&format!("document.documentElement.scrollWidth <= {width}")).await;
            }
        }
    }
    window.click("header a[href='/']").await;
    connected(&window).await;
}
