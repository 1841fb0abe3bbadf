//! Everything can be done without a mouse and without seeing.

use super::ears::Tree;
use super::window::{ALT_DOWN, CONTROL_K, DOWN, END, ENTER, ESCAPE, HOME, RIGHT, TAB, UP};
use super::world::{World, connected};

const TITLE: &str = "document.getElementById('pane-title').textContent";

#[tokio::test]
async fn keys_find_people_and_move_between_conversations() {
    let world = World::start().await;
    let (ben, cleo, ada) = (world.person("Ben").await, world.person("Cleo").await, world.person("Ada").await);
    ben.tells(&ada, "from Ben").await;
    cleo.tells(&ada, "from Cleo").await;
    let window = world.visitor("Ada").await;
    window.until("document.querySelectorAll('#list li').length === 2").await;

    window.press(CONTROL_K).await;
    window.until("document.querySelectorAll('#find-list li').length === 2").await;
    window.press(DOWN).await;
    window
        .until("document.querySelector('#find-list [aria-selected=true]').textContent.endsWith('Ben')")
        .await;
    window.press(ENTER).await;
    window.until(&format!("{TITLE} === 'Ben' && document.activeElement.id === 'text'")).await;
    window.run("document.querySelector('#list a').click()").await;
    window.until(&format!("{TITLE} === 'Cleo'")).await;
    window.press(ALT_DOWN).await;
    window.until(&format!("{TITLE} === 'Ben'")).await;
}

#[tokio::test]
async fn a_search_without_the_server_offers_only_what_fits() {
    let world = World::start().await;
    let (ben, cleo, ada) = (world.person("Ben").await, world.person("Cleo").await, world.person("Ada").await);
    world.person("Bertha").await;
    ben.tells(&ada, "from Ben").await;
    cleo.tells(&ada, "from Cleo").await;
    let window = world.visitor("Ada").await;
    window.until("document.querySelectorAll('#list li').length === 2").await;
    window.press(CONTROL_K).await;
    window.write("#find-text", "Bert").await;
    window.until("document.querySelector('#find-list li')?.textContent.endsWith('Bertha')").await;
    window.offline(true).await;
    // Neither the hits of another text nor those of the server stay.
    window.write("#find-text", "\u{E003}\u{E003}\u{E003}\u{E003}Cl").await;
    window.until("document.getElementById('find-note').textContent.includes('cannot be reached')").await;
    let titles =
        "return [...document.querySelectorAll('#find-list .title')].map((it) => it.textContent).join()";
    assert_eq!(window.run(titles).await, "Cleo");
    window.write("#find-text", "x").await;
    assert_eq!(window.run(titles).await, "");
    window.write("#find-text", ENTER).await;
    window.write("#find-text", "\u{E003}").await;
    window.until("document.querySelectorAll('#find-list li').length === 1").await;
    window.write("#find-text", ENTER).await;
    window.until(&format!("{TITLE} === 'Cleo'")).await;
}

#[tokio::test]
async fn the_open_one_of_many_conversations_stays_in_view() {
    let world = World::start().await;
    let ada = world.person("Ada").await;
    for n in 0..500 {
        ada.group(&format!("Group {n:03}"), &[]).await;
    }
    let window = world.visitor("Ada").await;
    window.until("document.querySelectorAll('#list li').length === 500").await;
    window.run("document.querySelector('#list a').click()").await;
    window.until(&format!("{TITLE} === 'Group 499'")).await;
    // Held down, as fast as a keyboard repeats it, without a pause.
    window.press(&format!("\u{E00A}{}\u{E00A}", "\u{E015}".repeat(120))).await;
    window.until(&format!("{TITLE} === 'Group 379'")).await;
    let in_view = "(() => {
        const row = document.querySelector('#list [aria-current]');
        const [list, it] = [row.closest('ul').getBoundingClientRect(), row.getBoundingClientRect()];
        return row.textContent.includes('Group 379') && it.top >= list.top && it.bottom <= list.bottom;
    })()";
    window.until(in_view).await;
    window.until("document.querySelector('.start')?.textContent === 'This is where Group 379 begins.'").await;
    window.reload().await;
    connected(&window).await;
    window.until(in_view).await;
    // One step back leads to where the keys began.
    window.back().await;
    window.until("location.pathname === '/'").await;
}

#[tokio::test]
async fn a_question_mark_opens_the_keys_and_escape_gives_the_focus_back() {
    let world = World::start().await;
    let ben = world.person("Ben").await;
    let ada = world.person("Ada").await;
    ben.tells(&ada, "hello").await;
    let window = world.visitor("Ada").await;
    window.pick("Ben").await;
    window.write("#text", "a question?").await;
    window.until("document.getElementById('text').value === 'a question?'").await;
    window.run("document.querySelector('#list a').focus()").await;
    window.press("?").await;
    window.until("document.getElementById('keys').open && !document.getElementById('settings').open").await;
    window.press(ESCAPE).await;
    window.until("!document.getElementById('keys').open").await;
    window.until("document.activeElement === document.querySelector('#list a')").await;
}

/// The text of the message that has the focus.
const FOCUSED: &str = "document.activeElement.closest('.msg')?.querySelector('.words').textContent";

#[tokio::test]
async fn the_box_is_a_few_stops_away_and_arrows_lead_through_the_messages() {
    let world = World::start().await;
    let (ben, ada) = (world.person("Ben").await, world.person("Ada").await);
    for n in 0..30 {
        world.person(&format!("Person {n:02}")).await.tells(&ada, "hello").await;
    }
    for n in 0..20 {
        ben.tells(&ada, &format!("number {n} of https://example.com")).await;
    }
    let window = world.visitor("Ada").await;
    window.pick("Ben").await;
    window.until("document.querySelectorAll('.msg a').length === 20").await;
    window.press(ESCAPE).await;
    window.until("!document.querySelector('.fresh-line')").await;
    window.run("document.getElementById('skip').focus()").await;
    let mut stops = 1;
    while window.run("return document.activeElement.id").await != "text" {
        window.press(TAB).await;
        stops += 1;
        assert!(stops <= 11, "ten stops before the box");
        if window.run("return document.activeElement.matches('.msg')").await == true {
            let words = window.run(&format!("return {FOCUSED}")).await;
            assert_eq!(words, "number 19 of https://example.com");
        }
    }
    // Back into the log, where the arrows lead.
    window.press(&format!("\u{E008}{TAB}\u{E008}")).await;
    for (key, number) in [(UP, 18), (UP, 17), (DOWN, 18), (HOME, 0), (END, 19)] {
        window.press(key).await;
        window.until(&format!("{FOCUSED} === 'number {number} of https://example.com'")).await;
    }
    window.press(RIGHT).await;
    window.until("document.activeElement.matches('.words a')").await;
    window.press(UP).await;
    window
        .until(&format!("document.activeElement.matches('.msg') && {FOCUSED}.startsWith('number 18')"))
        .await;
    window.press(ENTER).await;
    window.until("document.activeElement.ariaLabel === 'React with 👍'").await;
    window.press(ESCAPE).await;
    window
        .until(&format!("document.activeElement.matches('.msg') && {FOCUSED}.startsWith('number 18')"))
        .await;
    // The menu key asks for the same.
    window.run("document.activeElement.dispatchEvent(new MouseEvent('contextmenu', { bubbles: true, cancelable: true }))").await;
    window.until("document.activeElement.ariaLabel === 'React with 👍'").await;
    window.press(ESCAPE).await;
    // The list is one stop, too.
    window.run("document.querySelector('#list [aria-current]').focus()").await;
    window.press(DOWN).await;
    window.until("document.activeElement.querySelector('.title').textContent === 'Person 29'").await;
    window.press(ENTER).await;
    window.until(&format!("{TITLE} === 'Person 29'")).await;
}

#[tokio::test]
async fn letters_go_to_the_box_wherever_the_focus_is() {
    let world = World::start().await;
    let (ben, ada) = (world.person("Ben").await, world.person("Ada").await);
    ben.tells(&ada, "hello").await;
    let window = world.visitor("Ada").await;
    window.pick("Ben").await;
    window.sees("hello").await;
    let text = |text: &str| {
        format!("document.activeElement.id === 'text' && document.activeElement.value === '{text}'")
    };
    window.run("document.activeElement.blur()").await;
    window.press("Th").await;
    window.until(&text("Th")).await;
    window.run("document.querySelector('#list a').focus()").await;
    window.press("e").await;
    window.until(&text("The")).await;
    // What is pressed in a menu or a dialog stays there.
    window.run("document.querySelector('.more').click()").await;
    window.until("document.getElementById('actions').matches(':popover-open')").await;
    window.press("x").await;
    window.press(ESCAPE).await;
    window.press(CONTROL_K).await;
    window.until("document.getElementById('find').open").await;
    window.press("y").await;
    window.until("document.getElementById('find-text').value === 'y'").await;
    assert_eq!(window.run("return document.getElementById('text').value").await, "The");
}

#[tokio::test]
async fn escape_marks_as_read() {
    let world = World::start().await;
    let ben = world.person("Ben").await;
    let ada = world.person("Ada").await;
    for n in 0..60 {
        ben.tells(&ada, &format!("number {n}")).await;
    }
    let window = world.visitor("Ada").await;
    window.pick("Ben").await;
    window.until("document.querySelector('.fresh-line') && document.querySelector('.row .badge')").await;
    window.press(ESCAPE).await;
    window.until("!document.querySelector('.fresh-line') && !document.querySelector('.row .badge')").await;
    window.sees("number 59").await;
}

#[tokio::test]
async fn every_control_has_one_name() {
    let world = World::start().await;
    let ben = world.person("Ben").await;
    let ada = world.person("Ada").await;
    ben.tells(&ada, "hello").await;
    let window = world.visitor("Ada").await;
    window.pick("Ben").await;
    window.sees("hello").await;
    let pages = ["", "find", "forward", "new-group", "settings", "keys"];
    let mut controls = 0;
    for dialog in pages {
        if !dialog.is_empty() {
            window.run(&format!("document.getElementById('{dialog}').showModal()")).await;
        }
        let tree = Tree::of(&window).await;
        for (role, name) in tree.nodes() {
            if ["button", "link", "textbox", "searchbox", "combobox", "radio"].contains(&role) {
                controls += 1;
                assert!(!name.is_empty(), "{role} without a name in {dialog:?}");
            }
        }
        let has = |wanted: &str| tree.nodes().any(|(role, _)| role == wanted);
        if dialog.is_empty() {
            for landmark in ["navigation", "main", "log", "form", "heading"] {
                assert!(has(landmark), "no {landmark}");
            }
        } else {
            assert!(has("dialog"), "{dialog} is no dialog");
            window.run(&format!("document.getElementById('{dialog}').close()")).await;
        }
    }
    assert!(controls > 20, "{controls} controls");
}
