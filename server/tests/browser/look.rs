//! Sizes, colours, and long conversations.

use super::window::{Colours, ENTER};
use super::world::{World, database_of, find, open_settings, say};

#[tokio::test]
async fn a_phone_shows_the_list_or_the_conversation() {
    let world = World::start().await;
    let ben = world.person("Ben").await;
    let ada = world.person("Ada").await;
    ben.tells(&ada, "hello").await;
    ben.tells(&ada, &"x".repeat(500)).await;
    let window = world.visitor("Ada").await;
    window.size(390, 844).await;
    let shown = |css: &str| format!("document.querySelector('{css}').checkVisibility()");
    window.until(&format!("{} && !{}", shown(".side"), shown(".pane"))).await;
    window.pick("Ben").await;
    window.until(&format!("!{} && {}", shown(".side"), shown(".pane"))).await;
    window.until("location.pathname.startsWith('/c/u:')").await;
    window.sees(&"x".repeat(500)).await;
    window.until("document.documentElement.scrollWidth === 390").await;
    window.until("document.getElementById('log').scrollWidth <= 390").await;
    window.back().await;
    window.until(&format!("location.pathname === '/' && {}", shown(".side"))).await;
    window.pick("Ben").await;
    window.click("#back").await;
    window.until(&format!("location.pathname === '/' && {}", shown(".side"))).await;
}

#[tokio::test]
async fn a_long_conversation_is_a_window_that_stays_where_it_is_read() {
    let world = World::start().await;
    let ben = world.person("Ben").await;
    let ada = world.person("Ada").await;
    for n in 0..600 {
        ben.tells(&ada, &format!("number {n}")).await;
    }
    let window = world.visitor("Ada").await;
    window.pick("Ben").await;
    window.until("document.querySelectorAll('.msg').length > 30").await;
    window.run("document.getElementById('jump').click()").await;
    window.sees("number 599").await;
    // Up, a screen at a time; between two frames nothing that is on screen may move by more than the scrolling.
    let climb = "const done = arguments[0], log = document.getElementById('log');
        const frame = () => new Promise((go) => requestAnimationFrame(() => setTimeout(go)));
        let most = 0, moved = 0;
        (async () => {
          for (let steps = 0; steps < 3000 && !(log.querySelector('.start') && log.scrollTop === 0); steps++) {
            log.scrollTop -= 300;
            const top = log.getBoundingClientRect().top;
            const read = [...log.querySelectorAll('.words')].find((it) => it.getBoundingClientRect().top > top + 60);
            const before = read.getBoundingClientRect().top;
            await frame();
            if (read.isConnected) moved = Math.max(moved, Math.abs(read.getBoundingClientRect().top - before));
            most = Math.max(most, log.children.length);
          }
          done([most, moved, log.querySelector('.start') !== null]);
        })();";
    let climbed = window.run_async(climb).await;
    assert!(climbed[0].as_u64().is_some_and(|most| most < 300), "rows in the document: {climbed}");
    assert!(climbed[1].as_f64().is_some_and(|moved| moved < 2.0), "moved under the eye: {climbed}");
    assert_eq!(climbed[2], true, "the start was not reached");
    window.sees("number 0").await;

    ben.tells(&ada, "number 600").await;
    window.until("document.getElementById('jump-text').textContent === 'Jump to newest (1 new)'").await;
    window.click("#jump").await;
    window.sees("number 600").await;
    window.until("document.getElementById('jump').hidden && !document.querySelector('.row .badge')").await;
}

#[tokio::test]
async fn both_sets_of_colours_can_be_read() {
    let world = World::start().await;
    let window = world.newcomer("Ada").await;
    let contrast = "
        const light = (name) => {
          const probe = document.createElement('p');
          probe.style.color = getComputedStyle(document.documentElement).getPropertyValue('--' + name);
          document.body.append(probe);
          const parts = getComputedStyle(probe).color.match(/[\\d.]+/g).slice(0, 3).map((part) => part / 255);
          probe.remove();
          const [r, g, b] = parts.map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
          return 0.2126 * r + 0.7152 * g + 0.0722 * b;
        };
        const pairs = { 'ground': ['text', 'text-2', 'accent', 'bad'], 'ground-2': ['text', 'text-2', 'bad'],
          'ground-3': ['text', 'text-2', 'accent'], 'accent-soft': ['text', 'text-2', 'bad', 'accent'], 'bad-soft': ['text'],
          'accent': ['on-accent'], 'warn-soft': ['warn-text'] };
        const poor = [];
        for (const [ground, texts] of Object.entries(pairs)) for (const text of texts) {
          const [a, b] = [light(ground), light(text)].sort((a, b) => b - a);
          const ratio = (a + 0.05) / (b + 0.05);
          if (!(ratio >= 4.5)) poor.push([text, ground, ratio]);
        }
        return JSON.stringify(poor);";
    for theme in ["light", "dark"] {
        open_settings(&window, "look").await;
        window.click(&format!("#theme [value={theme}]")).await;
        window.until(&format!("document.documentElement.dataset.theme === '{theme}'")).await;
        assert_eq!(window.run(contrast).await, "[]", "{theme}");
        window.reload().await;
        window.until(&format!("document.documentElement.dataset.theme === '{theme}'")).await;
    }
    // The chosen colours count, whatever the system has; then the system's colours count again, whenever they change.
    window.colours(Colours::Light).await;
    window.until("document.documentElement.dataset.theme === 'dark'").await;
    open_settings(&window, "look").await;
    window.until("document.querySelector('#theme [value=dark]').checked").await;
    window.click("#theme [value=system]").await;
    for (colours, theme) in [(Colours::Light, "light"), (Colours::Dark, "dark"), (Colours::Light, "light")] {
        window.colours(colours).await;
        window.until(&format!("document.documentElement.dataset.theme === '{theme}'")).await;
        assert_eq!(window.run(contrast).await, "[]", "the system's, {theme}");
    }
    window.colours(Colours::Dark).await;
    window.reload().await;
    window.until("document.documentElement.dataset.theme === 'dark'").await;
}

#[tokio::test]
async fn motion_is_short_and_there_is_none_for_people_who_want_none() {
    let world = World::start().await;
    let window = world.newcomer("Ada").await;
    let times = "[...new Set(['dialog', '[popover]', '.button', '.banner'].flatMap((css) =>
        getComputedStyle(document.querySelector(css)).transitionDuration.split(', ')))].join()";
    for (wanted, time) in [("no-preference", "0.15s"), ("reduce", "0s")] {
        let motion = serde_json::json!({"features": [{"name": "prefers-reduced-motion", "value": wanted}]});
        window.devtools("Emulation.setEmulatedMedia", motion).await;
        window.until(&format!("{times} === '{time}'")).await;
    }
}

#[tokio::test]
async fn the_own_name_and_the_state_of_the_newest_message_are_seen_in_the_list_at_any_width() {
    const NAME: &str = "Ada Harbourmaster of the Northern Isles";
    let world = World::start().await;
    let ben = world.newcomer("Ben").await;
    let window = world.newcomer(NAME).await;
    find(&window, "Ben").await;
    say(&window, "Low tide is at nine").await;
    let state = "document.querySelector('#list .when .icon')?.ariaLabel";
    window.until(&format!("{state} === 'Delivered'")).await;
    ben.pick(NAME).await;
    window.until(&format!("{state} === 'Read'")).await;
    window.run("history.pushState({}, '', '/'); dispatchEvent(new PopStateEvent('popstate'))").await;
    for width in [1280, 720, 390, 320] {
        window.size(width, 800).await;
        window.until("document.getElementById('self').checkVisibility()").await;
        let is_whole = "(() => { const it = document.querySelector('#self .name');
            return it.textContent === document.body.dataset.name && it.scrollWidth <= it.clientWidth && it.scrollHeight <= it.clientHeight
              && it.getBoundingClientRect().bottom <= document.querySelector('.seek').getBoundingClientRect().top; })()";
        window.until(is_whole).await;
    }
}

/// The days and messages of the log, and which of those begin with a name.
const DAYS: &str =
    "[...document.querySelectorAll('#log .day, #log .msg')].map((it) => it.matches('.day') ? it.textContent
    : `${it.matches('.first') ? 'first: ' : ''}${it.querySelector('.words').textContent}`).join(' | ')";

#[tokio::test]
async fn a_line_stands_before_each_day_and_whoever_speaks_first_on_it_is_named() {
    let world = World::start().await;
    let (ben, ada) = (world.person("Ben").await, world.person("Ada").await);
    ben.tells(&ada, "Low tide is at nine").await;
    ben.tells(&ada, "Nine at the pier").await;
    let window = world.visitor("Ada").await;
    window.pick("Ben").await;
    window.until(&format!("{DAYS} === 'Today | first: Low tide is at nine | Nine at the pier'")).await;
    // Nobody waits for a day: the first one becomes one of yesterday where the browser keeps it.
    let backdate = "const done = arguments[0], open = indexedDB.open('NAME'); open.onsuccess = () => {
        const change = open.result.transaction('rows', 'readwrite'), rows = change.objectStore('rows'), all = rows.getAll();
        all.onsuccess = () => {
          const row = all.result.find(({ body }) => body.text === 'Low tide is at nine');
          rows.put({ ...row, sent_at: new Date(new Date(row.sent_at) - 864e5).toISOString() });
        };
        change.oncomplete = () => { open.result.close(); done(true); };
      };";
    assert_eq!(window.run_async(&backdate.replace("NAME", &database_of(&window).await)).await, true);
    window.reload().await;
    window
        .until(&format!(
            "{DAYS} === 'Yesterday | first: Low tide is at nine | Today | first: Nine at the pier'"
        ))
        .await;
}

#[tokio::test]
async fn what_nobody_answers_to_says_so() {
    let world = World::start().await;
    let ada = world.newcomer("Ada").await;
    for (path, title, start) in [
        ("/c/u:4000000000", "Unknown person", "Nobody has this address."),
        ("/c/g:4000000000", "Unknown group", "This group does not exist, or you are not in it."),
    ] {
        ada.goto(&world.at(path)).await;
        ada.until(&format!("document.getElementById('pane-title')?.textContent === '{title}'")).await;
        ada.until(&format!("document.querySelector('.start')?.textContent.startsWith('{start}')")).await;
        ada.until(
            "document.getElementById('composer').hidden && document.getElementById('open-about').hidden",
        )
        .await;
        ada.until("!document.getElementById('list-blank').hidden && !document.querySelector('#list li')")
            .await;
    }
}

#[tokio::test]
async fn the_composer_is_as_wide_as_the_text_and_keeps_the_first_lines_indentation() {
    let world = World::start().await;
    world.person("Ben").await;
    let ada = world.newcomer("Ada").await;
    find(&ada, "Ben").await;
    ada.run("document.getElementById('text').value = '\\n    four spaces\\n  two \\n'").await;
    ada.write("#text", ENTER).await;
    ada.sees("    four spaces\n  two").await;
    ada.size(1900, 800).await;
    let width = "return document.getElementById('composer').firstElementChild.parentElement.clientWidth
        - ['Left', 'Right'].map((side) => parseFloat(getComputedStyle(document.getElementById('composer'))['padding' + side]))
          .reduce((a, b) => a + b)";
    assert_eq!(ada.run(width).await, 820);
    // A field that is wrong shows it, with the focus too.
    ada.run("document.getElementById('text').setAttribute('aria-invalid', 'true'); document.getElementById('text').focus()").await;
    let ring = "const it = getComputedStyle(document.getElementById('text'));
        return parseFloat(it.outlineOffset) > 0 && it.borderTopColor !== it.outlineColor";
    assert_eq!(ada.run(ring).await, true);
    ada.click("#open-settings").await;
    let accent = "const probe = document.createElement('a'); probe.href = '/'; document.body.append(probe);
        const it = getComputedStyle(probe).color; probe.style.color = 'var(--accent)';
        return it === getComputedStyle(probe).color";
    assert_eq!(ada.run(accent).await, true);
}

#[tokio::test]
async fn the_description_of_the_interface_fits_a_phone_and_its_links_lead_somewhere() {
    let world = World::start().await;
    let window = world.window().await;
    window.size(390, 844).await;
    for path in ["/docs", "/docs/websocket"] {
        window.goto(&world.at(path)).await;
        window.until("document.querySelectorAll('h2').length > 5").await;
        window.until("document.documentElement.scrollWidth === 390").await;
        let lost =
            "return JSON.stringify([...document.querySelectorAll('a[href^=\"#\"]')].map((link) => link.hash)
            .filter((hash) => document.querySelectorAll('#' + CSS.escape(hash.slice(1))).length !== 1));";
        assert_eq!(window.run(lost).await, "[]", "{path}");
        // The chat's own page does not scroll; these do.
        window.run("scrollTo(0, 1000)").await;
        window.until("scrollY === 1000").await;
    }
    for theme in ["light", "dark"] {
        window
            .run(&format!("localStorage.setItem('theme', '{theme}'); dispatchEvent(new Event('theme'))"))
            .await;
        let ground = if theme == "light" { "rgb(255, 255, 255)" } else { "rgb(20, 24, 26)" };
        window.until(&format!("getComputedStyle(document.body).backgroundColor === '{ground}'")).await;
    }
}
