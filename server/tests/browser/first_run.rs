//! The first minutes: creating an account, logging in, choosing a language.

use serde_json::json;

use super::axe::{LANGUAGES, choose, look};
use super::window::{ENTER, ESCAPE, Window};
use super::world::{PASSWORD, World, connected, open_settings};

#[tokio::test]
async fn what_is_wrong_stands_beside_the_field() {
    let world = World::start().await;
    world.person("Ada").await;
    let window = world.window().await;
    let cases = [
        ("", "", "/login", "name", ["Enter a name.", "请输入用户名。"]),
        ("Ada", "", "/sign-up", "password", ["Enter a password.", "请输入密码。"]),
        (
            "Ada",
            "not this one",
            "/login",
            "password",
            ["The name or the password is wrong.", "用户名或密码不正确。"],
        ),
        (
            "Ben",
            "short",
            "/sign-up",
            "password",
            ["A password has 8 to 200 characters.", "密码长度为 8 到 200 个字符。"],
        ),
        (
            "Ada",
            PASSWORD,
            "/sign-up",
            "name",
            ["Somebody already has this name. Choose another one.", "该用户名已被使用，请换一个。"],
        ),
        (
            "A\u{200B}da",
            PASSWORD,
            "/sign-up",
            "name",
            [
                "A name has 1 to 40 characters that can be seen, with single spaces between words.",
                "用户名为 1 到 40 个可见字符，词与词之间只能有一个空格。",
            ],
        ),
    ];
    for (at, (language, tag)) in LANGUAGES.into_iter().enumerate() {
        choose(&window, &world, language, tag).await;
        for (name, password, card, field, problems) in &cases {
            let problem = problems[at];
            window.goto(&world.at(card)).await;
            window.write("#name", name).await;
            window.write("#password", &format!("{password}{ENTER}")).await;
            window
                .until(&format!("document.getElementById('{field}-problem').textContent === '{problem}'"))
                .await;
            window.until(&format!("document.activeElement.id === '{field}'")).await;
            // The ring of the focus leaves the border, which says that something is wrong.
            window.until(&format!("document.getElementById('{field}').ariaInvalid === 'true'")).await;
        }
    }
}

/// The page's words where the operator alone makes accounts, in each of `LANGUAGES`.
const CLOSED: [&str; 2] = [
    "New accounts are made by the person who runs this server. Ask them for one.",
    "本服务器未开放注册，请联系管理员开通账号。",
];

#[tokio::test]
async fn where_sign_up_is_closed_there_is_no_form_for_it_and_the_page_says_whom_to_ask() {
    let world = World::with_sign_up("closed").await;
    world.add("Ada").await;
    let window = world.window().await;
    for ((language, tag), words) in LANGUAGES.into_iter().zip(CLOSED) {
        choose(&window, &world, language, tag).await;
        for path in ["/login", "/sign-up", "/sign-up?invite=anything"] {
            window.goto(&world.at(path)).await;
            let said = format!(
                "[...document.querySelectorAll('.card > p')].some((it) => it.textContent === '{words}')"
            );
            window.until(&said).await;
            let offered = "return [Boolean(document.querySelector('form[data-call=\"/accounts\"]')),
                Boolean(document.querySelector('a[href^=\"/sign-up\"]'))]";
            assert_eq!(window.run(offered).await, json!([false, false]), "{path} in {language}");
            look(&window, &format!("{path} of a server without sign-up, in {language}")).await;
        }
    }
    let refused = world.server.http().expect("an address").sign_up("Ben", PASSWORD).await;
    assert_eq!(refused.expect_err("closed").code(), Some("sign_up_closed"));
    // A person with an account logs in as ever, and has no invitations to give.
    world.log_in(&window, "Ada").await;
    window.goto(&world.at("/contacts")).await;
    window.until("document.getElementById('contacts-link')").await;
    assert_eq!(window.run("return Boolean(document.getElementById('invite-somebody'))").await, false);
}

#[tokio::test]
async fn enter_does_what_the_card_says() {
    let world = World::start().await;
    let window = world.window().await;
    window.goto(&world.at("/")).await;
    window.until("document.querySelector('h1').textContent === 'Log in'").await;
    window.until("document.getElementById('password').autocomplete === 'current-password'").await;
    window.click("a[href^='/sign-up']").await;
    window.until("document.querySelector('h1').textContent === 'Create an account'").await;
    window.until("document.getElementById('password').autocomplete === 'new-password'").await;
    window.write("#name", "Ada").await;
    window.write("#password", "a word").await;
    window.click(".reveal").await;
    window.until("document.getElementById('password').type === 'text'").await;
    window.until("document.querySelector('.reveal').textContent === 'Hide'").await;
    window.press(&format!(" that is longer{ENTER}")).await;
    connected(&window).await;

    let other = world.window().await;
    other.goto(&world.at("/c/u:10001")).await;
    other.until("document.querySelector('h1').textContent === 'Log in'").await;
    other.write("#name", "Ada").await;
    other.write("#password", &format!("a word that is longer{ENTER}")).await;
    connected(&other).await;
    other.until("location.pathname === '/c/u:10001'").await;
}

#[tokio::test]
async fn an_ended_session_says_so_once() {
    let world = World::start().await;
    let ada = world.newcomer("Ada").await;
    let phone = world.visitor("Ada").await;
    ada.run("fetch('/api/v1/sessions', { method: 'DELETE' })").await;
    phone
        .until("document.querySelector('.notice:not([hidden])')?.textContent === 'You were logged out. Log in to go on.'")
        .await;
    phone.goto(&world.at("/")).await;
    phone
        .until("document.getElementById('sign-in') && !document.querySelector('.notice:not([hidden])')")
        .await;
}

#[tokio::test]
async fn a_language_is_chosen_before_one_has_an_account() {
    let world = World::start().await;
    let window = world.window().await;
    window.goto(&world.at("/login?next=/c/u:10001")).await;
    window.until("document.documentElement.lang === 'en'").await;
    window.click(".languages [value=zh]").await;
    window.until("document.documentElement.lang === 'zh-Hans'").await;
    window.until("document.querySelector('h1').textContent === '登录'").await;
    window.until("document.body.dataset.next === '/c/u:10001'").await;
    window.write("#name", "Ada").await;
    window.write("#password", &format!("not this one{ENTER}")).await;
    window.until("document.getElementById('password-problem').textContent === '用户名或密码不正确。'").await;
    // Scripts bring the texts of this language alone.
    window.until("[...document.scripts].filter((it) => it.src.includes('/texts-')).map((it) => it.src.split('/').pop()).join() === 'texts-zh.js'").await;
    // Texts that only templates use are not among them.
    let brought =
        "return ['cancel', 'error.busy', 'settings.colours', 'keys.send'].map((key) => key in tidemarkTexts)";
    assert_eq!(window.run(brought).await, json!([true, true, false, false]));
    window.goto(&world.at("/nothing")).await;
    window.until("document.querySelector('h1').textContent === '页面不存在'").await;
}

#[tokio::test]
async fn the_empty_home_says_how_to_start() {
    let world = World::start().await;
    world.person("Ben").await;
    let window = world.newcomer("Ada").await;
    let shown = |css: &str| format!("document.querySelector('{css}').checkVisibility()");
    for width in [1280, 390] {
        window.size(width, 800).await;
        window.until(&format!("{} && {}", shown("#start-find"), shown("#open-settings"))).await;
    }
    window.until("document.getElementById('start-title').textContent === 'Welcome, Ada'").await;
    window.click("#start-group").await;
    window.until("document.getElementById('new-group').open").await;
    window.press(ESCAPE).await;
    window.click("#start-find").await;
    window.write("#find-text", "Ben").await;
    window.until("document.querySelector('#find-list li')").await;
    window.write("#find-text", ENTER).await;
    window.until("document.getElementById('pane-title').textContent === 'Ben'").await;
    window.until("document.getElementById('start').hidden && !document.getElementById('skip').hidden").await;
}

/// The hands of somebody who is new to keyboards, and the seconds that they take by the keystroke-level model of Card, Moran and Newell
/// (1980), with its slowest typist. The time of the server, and of inventing a password, is not in it.
struct Hands<'a> {
    window: &'a Window,
    seconds: f64,
}

impl Hands<'_> {
    const THINK: f64 = 1.35;
    const REACH: f64 = 0.4;
    const POINT: f64 = 1.1;
    const KEY: f64 = 1.2;

    async fn click(&mut self, css: &str) {
        self.window.click(css).await;
        self.seconds += Hands::THINK + Hands::REACH + Hands::POINT + Hands::KEY;
    }

    /// Types to whatever has the focus.
    async fn write(&mut self, text: &str) {
        self.window.press(text).await;
        self.seconds += Hands::REACH + Hands::KEY * f64::from(u32::try_from(text.len()).expect("short"));
    }
}

#[tokio::test]
async fn somebody_new_signs_up_finds_a_person_and_writes_within_a_minute() {
    let world = World::start().await;
    world.person("Ben").await;
    for (name, width) in [("Ada", 1280), ("Eve", 390)] {
        let window = world.window().await;
        window.size(width, 844).await;
        window.goto(&world.at("/")).await;
        let mut hands = Hands { window: &window, seconds: 0.0 };
        hands.click("a[href^='/sign-up']").await;
        window.until("document.querySelector('h1').textContent === 'Create an account'").await;
        // The field of the name has the focus.
        hands.write(name).await;
        hands.click("#password").await;
        hands.write("sail day").await;
        hands.click("form[data-call=\"/accounts\"] .button.primary").await;
        connected(&window).await;
        hands.click("#start-find").await;
        hands.write("Ben").await;
        window.until("document.querySelector('#find-list li')").await;
        hands.click("#find-list li").await;
        window.until("document.getElementById('pane-title').textContent === 'Ben'").await;
        hands.click("#text").await;
        hands.write("Hello").await;
        hands.click("#send").await;
        window.sees("Hello").await;
        assert!(hands.seconds <= 60.0, "{} seconds at {width} pixels", hands.seconds);
    }
}

#[tokio::test]
async fn the_settings_change_the_password_and_log_other_devices_out() {
    let world = World::start().await;
    let desk = world.newcomer("Ada").await;
    let phone = world.visitor("Ada").await;
    open_settings(&desk, "devices").await;
    desk.until("document.querySelectorAll('#devices-list li').length === 2").await;
    desk.until("document.querySelector('#devices-list li').textContent.includes('This device')").await;
    desk.click("#devices-list li:last-child button:last-of-type").await;
    desk.until("document.querySelectorAll('#devices-list li').length === 1").await;
    phone.until("document.querySelector('.notice:not([hidden])')").await;

    open_settings(&desk, "account").await;
    desk.click("#change-password summary").await;
    let says =
        |place: &str, text: &str| format!("document.getElementById('{place}').textContent === '{text}'");
    for (current, new, place, problem) in [
        ("", "", "current-problem", "Enter a password."),
        ("not this one", "another long one", "current-problem", "This is not your current password."),
        (PASSWORD, "short", "new-problem", "A password has 8 to 200 characters."),
    ] {
        desk.run("document.getElementById('password-form').reset()").await;
        desk.write("#current", current).await;
        desk.write("#new", &format!("{new}{ENTER}")).await;
        desk.until(&says(place, problem)).await;
    }
    desk.run("document.getElementById('password-form').reset()").await;
    desk.write("#current", PASSWORD).await;
    desk.write("#new", &format!("another long one{ENTER}")).await;
    desk.until(&says("password-done", "Your password is changed. All other devices are logged out. Earlier recovery codes no longer work: make new ones.")).await;

    phone.write("#name", "Ada").await;
    phone.write("#password", &format!("{PASSWORD}{ENTER}")).await;
    phone.until(&says("password-problem", "The name or the password is wrong.")).await;
    phone.run("document.getElementById('password').value = ''").await;
    phone.write("#password", &format!("another long one{ENTER}")).await;
    phone.until("!document.getElementById('sign-in')").await;
}

#[tokio::test]
async fn the_settings_choose_a_language_for_the_conversation_that_is_open() {
    let world = World::start().await;
    let ben = world.person("Ben").await;
    let ada = world.person("Ada").await;
    ben.tells(&ada, "hello").await;
    let window = world.visitor("Ada").await;
    window.pick("Ben").await;
    open_settings(&window, "look").await;
    window.until("document.querySelector('#language [aria-current]').textContent === 'As the browser'").await;
    window.click("#language [value=zh]").await;
    window.until("document.documentElement.lang === 'zh-Hans'").await;
    window.sees("hello").await;
    window.until(&format!("location.pathname === '/c/u:{}'", ben.uid)).await;
    open_settings(&window, "look").await;
    window.until("document.querySelector('#language [aria-current]').textContent === '简体中文'").await;
    window.click("#language [value='']").await;
    window.until("document.documentElement.lang === 'en'").await;
}

#[tokio::test]
async fn links_and_codes_are_copied_and_an_invitation_ends_only_when_that_is_confirmed() {
    let world = World::by_invitation().await;
    world.add("Ada").await;
    let ada = world.visitor("Ada").await;
    ada.allow_clipboard().await;
    ada.goto(&world.at("/contacts")).await;
    connected(&ada).await;
    ada.until("document.getElementById('invite-somebody')").await;
    let lines = "document.querySelectorAll('[aria-labelledby=invite-title] li').length";
    ada.click("#invite-somebody").await;
    ada.until(&format!("{lines} === 1")).await;
    for (answer, rest) in [("#ask-no", 1), ("#ask-yes", 0)] {
        ada.click("[aria-labelledby=invite-title] li button").await;
        ada.until("document.getElementById('ask').open").await;
        ada.until("document.getElementById('ask-title').textContent === 'End this invitation?'").await;
        ada.click(answer).await;
        ada.until(&format!("!document.getElementById('ask').open && {lines} === {rest}")).await;
    }
    ada.click("#invite-somebody").await;
    ada.until(&format!("{lines} === 1")).await;
    ada.click("#invite-link + button").await;
    ada.until(
        "document.querySelector('[aria-labelledby=invite-title] [role=status]').textContent === 'Copied.'",
    )
    .await;
    let link = ada.run("return document.getElementById('invite-link').value").await;
    let link = link.as_str().expect("a link");
    assert_eq!(ada.clipboard().await, link);

    let guest = world.window().await;
    guest.allow_clipboard().await;
    guest.goto(link).await;
    guest.write("#name", "Ben").await;
    guest.write("#password", &format!("{PASSWORD}{ENTER}")).await;
    connected(&guest).await;
    open_settings(&guest, "recovery").await;
    guest.until("document.querySelectorAll('#codes-list li').length === 8").await;
    guest.click("#codes-copy").await;
    guest.until("document.getElementById('codes-copied').textContent === 'The codes are copied.'").await;
    let codes = guest
        .run(
            "return [...document.querySelectorAll('#codes-list li')].map((it) => it.textContent).join('\\n')",
        )
        .await;
    assert!(guest.clipboard().await.contains(codes.as_str().expect("codes")));
}
