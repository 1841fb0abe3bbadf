//! Names, profiles, who may do what, one's own link, and the language that follows.

use tidemark_client::{Kind, RangeQuery};
use uuid::Uuid;

use super::social::{badge, choose_of_page, open, press, shows};
use super::window::{ENTER, Window};
use super::world::{PASSWORD, World, connected, find, say, uid_of};

async fn open_settings(window: &Window) {
    window.run("document.getElementById('open-settings').click()").await;
    window.until("document.getElementById('settings').open").await;
}

/// Chooses one of the radio buttons of the settings.
async fn choose(window: &Window, name: &str, value: &str) {
    window
        .run(&format!("document.querySelector('#settings [name={name}][value=\"{value}\"]').click()"))
        .await;
}

/// Waits until the server's settings of the person of this window pass the test.
pub(crate) async fn is_kept(window: &Window, test: &str) {
    let read = "const done = arguments[0]; const ask = () => fetch('/api/v1/settings').then((answer) => answer.json())
        .then(({ rows }) => (TEST)(Object.fromEntries(rows.map(({ body }) => [body.name, body.value])))
            ? done(true) : setTimeout(ask, 50));
        ask();";
    window.run_async(&read.replace("TEST", test)).await;
}

#[tokio::test]
async fn a_name_that_looks_like_another_one_is_refused_beside_its_field() {
    let world = World::start().await;
    world.person("Ada").await;
    let window = world.window().await;
    for (language, words) in [
        ("en", "This name looks like the name of somebody here. Choose another one."),
        ("zh", "该用户名与已有的用户名过于相似，请换一个。"),
    ] {
        window.goto(&world.at("/sign-up")).await;
        // The page that follows may be in the same language, and takes away what is typed before it is there.
        window.run("window.isBefore = true").await;
        window.click(&format!(".languages [value={language}]")).await;
        let is_there = format!("!window.isBefore && document.documentElement.lang.startsWith('{language}')");
        window.until(&is_there).await;
        window.write("#name", "\u{410}da").await;
        window.write("#password", &format!("{PASSWORD}{ENTER}")).await;
        window.until(&format!("document.getElementById('name-problem').textContent === '{words}'")).await;
        window.until("document.activeElement.id === 'name'").await;
    }
}

#[tokio::test]
async fn a_profile_is_shown_as_it_will_be_and_others_see_it() {
    let world = World::start().await;
    let ben = world.newcomer("Ben").await;
    let ada = world.newcomer("Ada").await;
    find(&ada, "Ben").await;
    say(&ada, "Low tide is at nine").await;
    ben.until("document.querySelector('#list .badge')").await;

    open_settings(&ada).await;
    ada.until("document.querySelector('#profile-form [name=hue][value=\"\"]').checked").await;
    choose(&ada, "hue", "245").await;
    let put = "const about = document.getElementById('profile-about');
        about.value = TEXT;
        about.dispatchEvent(new Event('input', { bubbles: true }))";
    ada.run(&put.replace("TEXT", "'🌊'.repeat(121)")).await;
    ada.until("document.getElementById('profile-line').textContent === '🌊'.repeat(120)").await;
    ada.run(&put.replace("TEXT", "''")).await;
    ada.write("#profile-about", "At sea until Monday").await;
    ada.until("document.getElementById('profile-line').textContent === 'At sea until Monday'").await;
    ada.until("document.getElementById('profile-disc').style.getPropertyValue('--hue') === '245'").await;
    ada.run("document.querySelector('#profile-form button').click()").await;
    ada.until("document.getElementById('profile-done').textContent === 'Saved.'").await;
    is_kept(&ada, "({ profile }) => profile?.hue === 245 && profile.about === 'At sea until Monday'").await;
    ada.until("document.querySelector('.side .disc').style.getPropertyValue('--hue') === '245'").await;

    // Another device of the same person, and the other one, who has not asked yet.
    let other = world.visitor("Ada").await;
    open_settings(&other).await;
    other.until("document.querySelector('#profile-form [name=hue][value=\"245\"]').checked").await;
    let cem = world.newcomer("Cem").await;
    find(&cem, "Ada").await;
    cem.until("document.getElementById('pane-about').textContent.endsWith('At sea until Monday')").await;
    cem.until("document.querySelector('#pane-disc.hued')?.style.getPropertyValue('--hue') === '245'").await;
    cem.until("document.querySelector('#list .disc.hued')?.style.getPropertyValue('--hue') === '245'").await;
    // It is kept for the next time.
    cem.reload().await;
    cem.until("document.getElementById('pane-about').textContent.endsWith('At sea until Monday')").await;

    open_settings(&other).await;
    choose(&other, "hue", "").await;
    other.run("document.getElementById('profile-about').value = ''").await;
    other.run("document.querySelector('#profile-form button').click()").await;
    is_kept(&other, "({ profile }) => !profile").await;
    ada.until("!document.querySelector('.side .disc.hued')").await;

    // Another program may set a colour that is not in the list: it has a place there for as long as it holds.
    let set = "const done = arguments[0], headers = { 'content-type': 'application/json' };
        fetch('/api/v1/settings/profile', { method: 'PUT', headers, body: JSON.stringify({ client_id: crypto.randomUUID(), value: { hue: 222 } }) })
          .then((answer) => done(answer.status));";
    assert_eq!(other.run_async(set).await, 201);
    let another = "document.getElementById('hue-other')";
    other
        .until(&format!("!{another}.hidden && {another}.firstChild.checked && {another}.querySelector('.disc').style.getPropertyValue('--hue') === '222'"))
        .await;
    other.write("#profile-about", "Ashore").await;
    other.run("document.querySelector('#profile-form button').click()").await;
    is_kept(&other, "({ profile }) => profile?.hue === 222 && profile.about === 'Ashore'").await;
    choose(&other, "hue", "25").await;
    other.run("document.querySelector('#profile-form button').click()").await;
    other.until(&format!("{another}.hidden")).await;
}

#[tokio::test]
async fn a_name_is_changed_in_the_settings_and_others_see_it_at_once() {
    let world = World::start().await;
    world.person("Cem").await;
    let ben = world.newcomer("Ben").await;
    let ada = world.newcomer("Ada").await;
    let phone = world.visitor("Ada").await;
    find(&ada, "Ben").await;
    say(&ada, "Low tide is at nine").await;
    ben.pick("Ada").await;
    ben.write("#text", "half an answer").await;

    super::world::open_settings(&ada, "account").await;
    ada.run("document.querySelector('#change-name summary').click()").await;
    ada.until("document.getElementById('new-name').value === 'Ada'").await;
    ada.run("document.getElementById('new-name').value = ''").await;
    ada.write("#new-name", &format!("C\u{435}m{ENTER}")).await;
    ada.until("document.getElementById('name-problem').textContent.startsWith('This name looks like')").await;
    ada.run("document.getElementById('new-name').value = ''").await;
    ada.write("#new-name", &format!("Ada Lovelace{ENTER}")).await;
    ada.until("document.getElementById('name-done').textContent === 'Your name is changed.'").await;
    for window in [&ada, &phone] {
        window.until("document.getElementById('own-name').textContent === 'Ada Lovelace'").await;
    }
    ben.until("document.getElementById('pane-title').textContent === 'Ada Lovelace'").await;
    ben.until("document.querySelector('#list .title').textContent === 'Ada Lovelace'").await;
    ben.until("document.querySelector('.msg .who b').textContent === 'Ada Lovelace'").await;
    assert_eq!(ben.run("return document.getElementById('text').value").await, "half an answer");
    // What this browser keeps is still that of the person.
    ada.run("document.getElementById('settings').close()").await;
    ada.write("#text", "a draft").await;
    ada.reload().await;
    connected(&ada).await;
    ada.until("document.getElementById('text').value === 'a draft' && document.querySelectorAll('.msg').length === 1")
        .await;
    ada.until("document.getElementById('own-name').textContent === 'Ada Lovelace'").await;
    ben.reload().await;
    ben.until("document.getElementById('pane-title').textContent === 'Ada Lovelace'").await;
}

#[tokio::test]
async fn who_may_write_add_and_find_is_chosen_in_the_settings() {
    let world = World::start().await;
    let ben = world.newcomer("Ben Bosun").await;
    let ada = world.newcomer("Ada").await;
    open_settings(&ben).await;
    ben.until("document.querySelector('#privacy-form [name=write][value=everybody]').checked").await;
    ben.until("document.querySelector('#privacy-form [name=found_by][value=part]').checked").await;
    let find_by = async |text: &str, found: bool| {
        ada.run("document.getElementById('find').close()").await;
        ada.run("document.getElementById('open-find').click()").await;
        ada.write("#find-text", text).await;
        match found {
            true => {
                ada.until("document.querySelector('#find-list li')?.textContent.includes('Ben Bosun')").await
            }
            false => ada.until("document.getElementById('find-note').textContent === 'Nobody found.'").await,
        }
    };
    find_by("bosun", true).await;
    choose(&ben, "groups", "friends").await;
    choose(&ben, "found_by", "name").await;
    choose(&ben, "write", "friends").await;
    let all = "({ privacy }) => privacy?.write === 'friends' && privacy.groups === 'friends' && privacy.found_by === 'name'";
    is_kept(&ben, all).await;
    find_by("bosun", false).await;
    find_by("ben bosun", true).await;
    ada.write("#find-text", ENTER).await;
    say(&ada, "Hello?").await;
    ada.until("document.querySelector('.trouble')").await;
    // One character finds nobody by a part, and says what to do.
    ada.run("document.getElementById('open-find').click()").await;
    ada.write("#find-text", "q").await;
    ada.until("document.getElementById('find-note').textContent.startsWith('Type at least two characters')")
        .await;
}

#[tokio::test]
async fn ones_own_link_is_a_qr_code_when_asked_for() {
    let world = World::start().await;
    let ada = world.newcomer("Ada").await;
    ada.allow_clipboard().await;
    ada.goto(&world.at("/contacts")).await;
    connected(&ada).await;
    ada.until("document.getElementById('contacts-qr')").await;
    let link = world.at(&format!("/c/u:{}", uid_of(&ada).await));
    assert_eq!(ada.run("return document.getElementById('contacts-link').value").await, link);
    ada.click("#contacts-link + button").await;
    shows(&ada, "Copied.").await;
    assert_eq!(ada.clipboard().await, link);
    let fetched = "performance.getEntriesByType('resource').some(({ name }) => name.includes('lean-qr'))";
    assert_eq!(ada.run(&format!("return {fetched}")).await, false, "only when it is asked for");
    ada.run("document.querySelector('#contacts-qr summary').click()").await;
    ada.until("document.querySelector('#contacts-qr svg[role=img]')").await;
    let label = "document.querySelector('#contacts-qr svg').getAttribute('aria-label')";
    ada.until(&format!(
        "{label} === `QR code of your link, ${{document.getElementById('contacts-link').value}}`"
    ))
    .await;
    // web/tests/qr.test.js shows that these are the squares of a code.
    let drawn = "const done = arguments[0], link = 'LINK';
        const own = performance.getEntriesByType('resource').find(({ name }) => name.endsWith('/qr.js')).name;
        Promise.all([import(own), import(new URL('lean-qr.js', own))]).then(([{ squares }, { generate }]) =>
          done(document.querySelector('#contacts-qr path').getAttribute('d') === squares(generate(link))), (why) => done(String(why)));";
    assert_eq!(ada.run_async(&drawn.replace("LINK", &link)).await, true);
    // Dark on white in any colours, since readers expect it.
    ada.devtools(
        "Emulation.setEmulatedMedia",
        serde_json::json!({"features": [{"name": "prefers-color-scheme", "value": "dark"}]}),
    )
    .await;
    ada.until("getComputedStyle(document.querySelector('#contacts-qr rect')).fill === 'rgb(255, 255, 255)'")
        .await;
    ada.until("getComputedStyle(document.querySelector('#contacts-qr path')).fill === 'rgb(0, 0, 0)'").await;

    // A guest who opens the link makes an account first.
    let guest = world.window().await;
    guest.goto(&link).await;
    guest.until("location.pathname === '/login'").await;
    guest.click("a[href^='/sign-up']").await;
    guest.until("location.pathname === '/sign-up'").await;
    guest.write("#name", "Ben").await;
    guest.write("#password", &format!("{PASSWORD}{ENTER}")).await;
    connected(&guest).await;
    guest.until("document.title === 'Ada · Tidemark'").await;
    assert_eq!(guest.run("return location.href").await, link);
    say(&guest, "Here I am").await;
    ada.pick("Ben").await;
    ada.sees("Here I am").await;
}

#[tokio::test]
async fn a_language_follows_to_devices_on_which_none_was_chosen() {
    let world = World::start().await;
    let ada = world.newcomer("Ada").await;
    let other = world.visitor("Ada").await;
    open_settings(&ada).await;
    ada.run("document.querySelector('#language [value=zh]').click()").await;
    ada.until("document.documentElement.lang === 'zh-Hans'").await;
    connected(&ada).await;
    is_kept(&ada, "({ language }) => language?.tag === 'zh'").await;
    other.reload().await;
    other.until("document.documentElement.lang === 'zh-Hans'").await;
    // Chosen there, it stays there.
    other.until("document.getElementById('app')").await;
    open_settings(&other).await;
    other.run("document.querySelector('#language [value=en]').click()").await;
    other.until("document.documentElement.lang === 'en'").await;
    connected(&other).await;
    is_kept(&other, "({ language }) => language?.tag === 'en'").await;
    ada.reload().await;
    ada.until("document.documentElement.lang === 'zh-Hans'").await;
}

#[tokio::test]
async fn a_request_that_is_declined_is_gone_on_every_device_and_who_sent_it_is_not_told() {
    let world = World::start().await;
    let (ben, ada, cleo) = (world.person("Ben").await, world.person("Ada").await, world.person("Cleo").await);
    for (key, from, to) in [(1, &ada, &cleo), (2, &cleo, &ada)] {
        from.http.befriend(Uuid::from_u128(key), to.uid, true).await.expect("asked");
    }
    let bens = world.visitor("Ben").await;
    let (desk, phone) = (world.visitor("Ada").await, world.visitor("Ada").await);
    open(&bens, "contacts").await;
    bens.write("#contacts-find", "Ada").await;
    bens.until("document.querySelector('#contacts-found li')").await;
    bens.write("#contacts-find", ENTER).await;
    shows(&bens, "No answer yet").await;
    for window in [&desk, &phone] {
        badge(window, "contacts", "1").await;
        open(window, "contacts").await;
        shows(window, "Friend requests").await;
    }
    choose_of_page(&desk, "Decline").await;
    let shown = "document.getElementById('page').innerText";
    let gone = format!(
        "document.querySelector('#to-contacts .badge').hidden
           && {shown}.includes('Cleo') && !{shown}.includes('Friend requests') && !{shown}.includes('Ben')"
    );
    for window in [&desk, &phone] {
        window.until(&gone).await;
    }
    desk.reload().await;
    desk.until(&gone).await;
    let third = world.visitor("Ada").await;
    open(&third, "contacts").await;
    third.until(&gone).await;

    bens.reload().await;
    shows(&bens, "No answer yet").await;
    let rows = ben.http.range(&RangeQuery::after(0)).await.expect("rows").rows;
    let told = |uid| rows.iter().filter(|row| row.kind == Kind::Friend && row.sender == uid).count();
    assert_eq!((told(ben.uid), told(ada.uid)), (1, 0), "only the request that he sent himself");
    // She may want it later.
    third.write("#contacts-find", "Ben").await;
    third.until("document.querySelector('#contacts-found li')").await;
    third.write("#contacts-find", ENTER).await;
    bens.until(&format!("{shown}.includes('Friends') && !{shown}.includes('No answer yet')")).await;

    // A request of one's own is taken back, on whatever device, and gone from those of both.
    let dov = world.newcomer("Dov").await;
    third.write("#contacts-find", "Dov").await;
    third.until("document.querySelector('#contacts-found li')").await;
    third.write("#contacts-find", ENTER).await;
    for window in [&third, &desk] {
        shows(window, "No answer yet").await;
    }
    badge(&dov, "contacts", "1").await;
    open(&dov, "contacts").await;
    shows(&dov, "Friend requests").await;
    press(&desk, "Take back").await;
    for window in [&third, &desk] {
        window.until(&format!("{shown}.includes('Cleo') && !{shown}.includes('Dov')")).await;
    }
    dov.until(&format!("document.querySelector('#to-contacts .badge').hidden && !{shown}.includes('Ada')"))
        .await;
}
