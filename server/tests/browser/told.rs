//! Being told in the page: one count in the title and on the icons, and notifications of the browser.

use serde_json::json;
use tidemark_client::{Draft, Mentions, Recipient};
use tidemark_test_support::until::until;

use super::people::is_kept;
use super::window::Window;
use super::world::{Person, World, connected, open_settings};

const ICON: &str = "document.querySelector('link[rel=icon]').href";

/// Keeps what the page tells the browser, and goes on.
const LISTEN: &str = "window.badges = []; window.told = [];
    Navigator.prototype.setAppBadge = async (count) => { badges.push(count); sessionStorage.setItem('badge', count); };
    const tell = window.ServiceWorkerRegistration?.prototype;
    if (tell) {
      const { showNotification } = tell;
      tell.showNotification = function (title, options) {
        told.push({ title, ...options });
        return showNotification.call(this, title, options);
      };
    }";

/// Waits until the service worker runs, which shows the notifications.
async fn worker_runs(window: &Window) {
    window.until("navigator.serviceWorker.controller").await;
}

/// Nobody looks at the tab.
const AWAY: &str = "document.hasFocus = () => false; dispatchEvent(new Event('blur'))";

#[tokio::test]
async fn the_title_and_the_icons_say_the_same() {
    let world = World::start().await;
    let (ben, cleo, ada) = (world.person("Ben").await, world.person("Cleo").await, world.person("Ada").await);
    let window = world.visitor("Ada").await;
    window.before_every_page(LISTEN).await;
    window.reload().await;
    connected(&window).await;
    let plain = window.run(&format!("return {ICON}")).await;
    ben.tells(&ada, "one").await;
    window.until(&format!("document.title === '(1) Tidemark' && {ICON}.startsWith('data:image/png')")).await;
    let one = window.run(&format!("return {ICON}")).await;
    cleo.tells(&ada, "two").await;
    window.until(&format!("document.title === '(2) Tidemark' && {ICON}.startsWith('data:image/png')")).await;
    window.until(&format!("{ICON} !== {one}")).await;
    let coloured = "const image = Object.assign(new Image(), { src: document.querySelector('link[rel=icon]').href });
        image.decode().then(() => {
          const canvas = Object.assign(document.createElement('canvas'), { width: image.width, height: image.height });
          const pen = canvas.getContext('2d');
          pen.drawImage(image, 0, 0);
          arguments[0]([[2, 32], [24, 43]].map(([x, y]) => [...pen.getImageData(x, y, 1, 1).data].slice(0, 3).join()));
        })";
    let colours = window
        .run_async(
            &coloured
                .replace("arguments[0](", "window.done(")
                .replace("const image", "window.done = arguments[0]; const image"),
        )
        .await;
    assert_eq!(
        colours,
        json!(["13,106,116", "179,38,30"]),
        "the icon, and the disc with the count in its corner"
    );
    window.pick("Ben").await;
    window.pick("Cleo").await;
    window.until(&format!("document.title === 'Cleo · Tidemark' && {ICON} === {plain}")).await;
    window.until("badges.join() === '1,2,1,0'").await;
    // An installed app stays when the session is over; its icon then shows no count.
    ben.tells(&ada, "three").await;
    window.until("document.title === '(1) Cleo · Tidemark' && badges.at(-1) === 1").await;
    window.run("document.getElementById('log-out').click()").await;
    window.until("location.pathname === '/login' && sessionStorage.getItem('badge') === '0'").await;
}

#[tokio::test]
async fn notifications_are_asked_for_and_come_from_one_tab_while_nobody_looks() {
    let world = World::start().await;
    let (ben, ada) = (world.person("Ben").await, world.person("Ada").await);
    let window = world.visitor("Ada").await;
    window.before_every_page(LISTEN).await;
    worker_runs(&window).await;
    window.reload().await;
    connected(&window).await;
    window.run(AWAY).await;
    ben.tells(&ada, "not asked for").await;
    window.until("document.title === '(1) Tidemark'").await;
    window.allow_notifications().await;
    open_settings(&window, "notifications").await;
    window.until("document.getElementById('notify').textContent === 'Turn on notifications'").await;
    window.click("#notify").await;
    window.until("document.getElementById('notify').textContent === 'Turn off notifications'").await;
    window.run("document.getElementById('settings').close()").await;
    assert_eq!(window.run("return told.length").await, 0);

    ben.tells(&ada, "Is the **tide** in?").await;
    window.until("told.length === 1 && told[0].title === 'Ben' && told[0].body === 'Is the tide in?'").await;
    let shown = "navigator.serviceWorker.ready.then((it) => it.getNotifications()).then((all) => { window.shown = all.length; })";
    window.until(&format!("({shown}, window.shown === 1)")).await;
    // A click opens the message, as the service worker tells; read messages leave the count, and the notification goes.
    let click = "navigator.serviceWorker.dispatchEvent(new MessageEvent('message', { data: { open: told[0].data.path } }))";
    window.run(click).await;
    window.until("location.pathname.startsWith('/c/u:')").await;
    window.run("delete document.hasFocus; dispatchEvent(new Event('focus'))").await;
    window.until("document.title === 'Ben · Tidemark'").await;
    window.until(&format!("({shown}, window.shown === 0)")).await;
    // Nothing while somebody looks, at this tab or at another one.
    ben.tells(&ada, "seen at once").await;
    window.until("document.getElementById('announce').textContent.includes('seen at once')").await;
    // It is shown first, told of or not after that, and then read.
    is_read(&ada).await;
    window.run(AWAY).await;
    window.new_tab(&world.at("/")).await;
    connected(&window).await;
    window.run("document.hasFocus = () => true; dispatchEvent(new Event('focus'))").await;
    ben.tells(&ada, "seen in the list").await;
    window.until("document.title === '(1) Tidemark'").await;
    window.tab(0).await;
    window.until("document.title === '(1) Ben · Tidemark'").await;
    assert_eq!(window.run("return told.length").await, 1);
}

#[tokio::test]
async fn the_settings_say_why_a_browser_cannot_be_told_while_no_tab_is_open() {
    let world = World::start().await;
    world.person("Ada").await;
    let window = world.visitor("Ada").await;
    worker_runs(&window).await;
    let note = "document.getElementById('push-note').textContent";
    // As a page without HTTPS is.
    let without = "Object.defineProperty(window, 'isSecureContext', { value: false })";
    window.before_every_page(without).await;
    window.reload().await;
    connected(&window).await;
    open_settings(&window, "notifications").await;
    window.until(&format!("{note}.includes('HTTPS') && document.getElementById('push-switch').hidden")).await;
}

#[tokio::test]
async fn a_browser_whose_push_service_is_not_reached_says_so() {
    let world = World::start().await;
    world.person("Ada").await;
    let window = world.visitor("Ada").await;
    worker_runs(&window).await;
    window.allow_notifications().await;
    open_settings(&window, "notifications").await;
    window.until("!document.getElementById('push-switch').hidden").await;
    window.click("#push-switch").await;
    let said = "document.getElementById('push-note').textContent.startsWith('The push service of your browser could not be reached')";
    window.until(said).await;
    assert_eq!(window.run("return document.getElementById('push-what').hidden").await, true);
}

/// What the page keeps of this device, as text.
const DEVICE: &str = "const { uid, name, account, textCharacters } = document.body.dataset;
    const self = { uid: Number(uid), name, account, textCharacters: Number(textCharacters) };
    return JSON.stringify({ self, shows: 'text', texts: tidemarkTexts })";

/// Subscribes `device`. The subscription is the test's own, since no push service is reached from here.
const SUBSCRIBED: &str = "const done = arguments[0];
    const keys = { p256dh: 'BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4', auth: 'BTBZMqHH6r4Tts7J_aSIgg' };
    const body = JSON.stringify({ endpoint: 'https://push.example.org/ada', keys });
    caches.open('push').then((cache) => cache.put('/push', new Response(device)))
      .then(() => fetch('/api/v1/sessions/current/push', { method: 'PUT', headers: { 'content-type': 'application/json' }, body }))
      .then(({ status }) => done(status))";

#[tokio::test]
async fn a_push_wakes_the_service_worker_which_takes_the_rows_and_shows_the_message() {
    let world = World::start().await;
    let (ben, ada) = (world.person("Ben").await, world.person("Ada").await);
    let window = world.visitor("Ada").await;
    worker_runs(&window).await;
    connected(&window).await;
    window.allow_notifications().await;
    let device = window.run(DEVICE).await;
    // No page of the chat is open, which would find that the browser has no subscription.
    window.goto(&world.at("/docs")).await;
    assert_eq!(window.run_async(&format!("const device = {device}; {SUBSCRIBED}")).await, 204);
    window.devtools("ServiceWorker.enable", json!({})).await;
    // The page that was left may still take a message for a moment, and pushes may come while the worker starts.
    let shown = "const done = arguments[0]; navigator.serviceWorker.getRegistration('/').then((it) => it.getNotifications())
        .then((all) => setTimeout(() => done(all.map(({ title, body, data }) => [title, body, data.path.split('/')[1]].join()).join()), 200))";
    until("a message is shown", async || {
        ben.tells(&ada, "Is the **tide** in?").await;
        for registration in 0..10 {
            let push = json!({"origin": world.at("").trim_end_matches('/'), "registrationId": registration.to_string(), "data": ""});
            window.devtools("ServiceWorker.deliverPushMessage", push).await;
        }
        let shown = window.run_async(shown).await;
        shown.as_str().is_some_and(|shown| shown.contains("Ben,Is the tide in?"))
    })
    .await;
    // The page has it without the server's help.
    window.goto(&world.at("/")).await;
    window.until(r"/^\(\d+\) Tidemark$/.test(document.title)").await;
}

/// Waits until the person has read all of the conversation that was written in last, by the server's own account.
async fn is_read(person: &Person) {
    until("the newest message is read", async || {
        let list = person.http.conversations().await.expect("the list");
        list[0].last.as_ref().is_some_and(|last| last.message_id == list[0].read_to)
    })
    .await;
}

/// Chooses an item of the menu behind the bell.
async fn mute(window: &Window, item: &str) {
    window.click("#open-mute").await;
    window.until("document.getElementById('actions').matches(':popover-open')").await;
    let choose = format!(
        "[...document.querySelectorAll('#actions button')].find((it) => it.textContent === '{item}').click()"
    );
    window.run(&choose).await;
}

#[tokio::test]
async fn a_muted_conversation_is_not_counted_on_any_device_until_the_mute_ends() {
    let world = World::start().await;
    let (ben, ada) = (world.person("Ben").await, world.person("Ada").await);
    ben.tells(&ada, "before").await;
    let (desk, phone) = (world.visitor("Ada").await, world.visitor("Ada").await);
    desk.pick("Ben").await;
    desk.until("document.title === 'Ben · Tidemark'").await;
    mute(&desk, "Mute for an hour").await;
    // One day and one time.
    desk.until("/^Muted until [^:]*\\d:\\d\\d[^:]*$/.test(document.getElementById('open-mute').title)").await;
    desk.goto(&world.at("/")).await;
    phone.until("document.querySelector('.row.muted [aria-label=Muted]')").await;
    ben.tells(&ada, "while muted").await;
    for window in [&desk, &phone] {
        window.until("document.querySelector('.row.muted .badge')?.textContent === '1'").await;
        assert_eq!(window.title().await, "Tidemark");
    }
    // Ended on the other device; a mute with an end ends by itself.
    phone.run(AWAY).await;
    phone.pick("Ben").await;
    mute(&phone, "Unmute").await;
    desk.until("document.title === '(1) Tidemark'").await;
    let short = "const done = arguments[0], body = { client_id: '6f1f2a0e-3a63-4a53-9d6b-0c1e3a8f3f10', value: { until: Date.now() + 3000 } };
        fetch('/api/v1/conversations/u:BEN/settings/mute', { method: 'PUT', headers: { 'content-type': 'application/json' },
          body: JSON.stringify(body) }).then(({ status }) => done(status));";
    assert_eq!(desk.run_async(&short.replace("BEN", &ben.uid.to_string())).await, 201);
    desk.until("document.querySelector('.row.muted') && document.title === 'Tidemark'").await;
    desk.until("!document.querySelector('.row.muted') && document.title === '(1) Tidemark'").await;
}

#[tokio::test]
async fn a_mute_lasts_for_a_day_or_for_good_and_only_a_mention_is_told_meanwhile() {
    let world = World::start().await;
    let (ben, ada) = (world.person("Ben").await, world.person("Ada").await);
    let gid = ben.group("Harbour walk", &[ada.uid]).await;
    let (window, phone) = (world.visitor("Ada").await, world.visitor("Ada").await);
    window.before_every_page(LISTEN).await;
    worker_runs(&window).await;
    window.allow_notifications().await;
    open_settings(&window, "notifications").await;
    window.click("#notify").await;
    window.until("document.getElementById('notify').textContent === 'Turn off notifications'").await;
    window.run("document.getElementById('settings').close()").await;
    phone.pick("Harbour walk").await;

    let title = "document.getElementById('open-mute').title";
    // In the language's own words of the day and the time, which are those of tomorrow.
    let tomorrow = format!(
        "[-60000, 0].map((late) => new Intl.DateTimeFormat(navigator.language, {{ dateStyle: 'medium', timeStyle: 'short' }})
            .format(Date.now() + 86400000 + late)).some((time) => {title} === `Muted until ${{time}}`)"
    );
    let in_a_day = "({ mute }) => Math.abs(mute?.until - Date.now() - 86400000) < 60000";
    let for_good = "({ mute }) => mute && Object.keys(mute).length === 0";
    let mutes =
        [("Mute for a day", tomorrow, in_a_day), ("Mute always", format!("{title} === 'Muted'"), for_good)];
    for (item, says, value) in mutes {
        window.pick("Harbour walk").await;
        mute(&window, item).await;
        for each in [&window, &phone] {
            each.until(&says).await;
        }
        is_kept(&phone, value).await;
        window.goto(&world.at("/")).await;
        connected(&window).await;
        window.until("document.querySelector('.row.muted') && !document.querySelector('.row .badge')").await;
        window.run(AWAY).await;
        phone.goto(&world.at("/")).await;
        ben.send(Recipient::Group(gid), "Nobody is told of this").await;
        window.until("document.querySelector('.row.muted .badge')?.textContent === '1'").await;
        assert_eq!(window.title().await, "Tidemark");
        // Notifications come in the order of the messages.
        let mentions = Mentions { users: vec![ada.uid], all: false };
        let draft = Draft::text(Recipient::Group(gid), "@Ada: is nine too early?").mentioning(&mentions);
        ben.http.send(&draft).await.expect("sent");
        window.until("told.length === 1 && told[0].title === 'Harbour walk'").await;
        window.until("told[0].body === 'Ben: @Ada: is nine too early?'").await;
        window.until("document.title === '(1) Tidemark'").await;
        phone.pick("Harbour walk").await;
        window.until("!document.querySelector('.row .badge')").await;
    }
    // It ends when the person wants it to.
    mute(&phone, "Unmute").await;
    window.until("!document.querySelector('.row.muted')").await;
    phone.goto(&world.at("/")).await;
    ben.send(Recipient::Group(gid), "Everybody is told of this").await;
    window.until("told.length === 2 && told[1].body === 'Ben: Everybody is told of this'").await;
}
