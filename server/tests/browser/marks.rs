//! Light Markdown in messages.

use std::io::ErrorKind;
use std::net::TcpListener;

use serde_json::{json, value::to_raw_value};
use tidemark_client::Recipient;
use tokio::time::timeout;
use uuid::Uuid;

use super::engine::PATIENCE;
use super::people::is_kept;
use super::pictures::take;
use super::social::{open, shows, unfold};
use super::world::{World, befriend, find, say, stored};

const TALK: [&str; 6] = [
    "The *first* ferry is **full**, ~~Saturday~~ Sunday then",
    "> How long do we have?\nTwo hours, see https://tide.example/table?day=sunday, or write to mailto:pier@tide.example.",
    "What to bring:\n- coffee\n- a *warm* coat\n  1. wool\n  2. no cotton\n- `boots`",
    "```\nfn ebb(hours: u8) -> Tide {\n    Tide::after(hours) // *not* italic\n}\n```",
    "[our plan](https://tide.example/plan) and [bank.example](https://evil.example/)",
    "潮水在**九点**退去",
];

#[tokio::test]
async fn marks_are_shown_as_what_they_mean_and_the_list_has_none() {
    let world = World::start().await;
    let (ben, ada) = (world.person("Ben").await, world.person("Ada").await);
    for text in TALK {
        ben.tells(&ada, text).await;
    }
    let window = world.visitor("Ada").await;
    window.pick("Ben").await;
    window.until("document.querySelectorAll('.msg').length === 6").await;
    let shown = "return [...document.querySelectorAll('.words')].map((it) => it.innerHTML
        .replace(/ (dir|rel|target|title)=\"[^\"]*\"/g, '')).join('\\n')";
    let shown = window.run(shown).await;
    let shown: Vec<&str> = shown.as_str().expect("text").split('\n').collect();
    for part in [
        "The <em>first</em> ferry is <strong>full</strong>, <s>Saturday</s> Sunday then",
        "<blockquote>How long do we have?</blockquote>Two hours, see <a href=\"https://tide.example/table?day=sunday\">\
         https://tide.example/table?day=sunday</a>, or write to \
         <a href=\"mailto:pier@tide.example\">mailto:pier@tide.example</a>.",
        "What to bring:<ul><li>coffee</li><li>a <em>warm</em> coat<ol><li value=\"1\">wool</li><li value=\"2\">no cotton</li></ol></li>\
         <li><code>boots</code></li></ul>",
        "    Tide::after(hours) // *not* italic",
        "<a href=\"https://tide.example/plan\">our plan</a> and bank.example \
         (<a href=\"https://evil.example/\">https://evil.example/</a>)",
        "潮水在<strong>九点</strong>退去",
    ] {
        assert!(shown.contains(&part), "{part}\n{shown:#?}");
    }
    let links = "return [...document.querySelectorAll('.words a')].every((it) =>
        it.target === '_blank' && it.rel === 'noopener noreferrer' && it.title === it.href)";
    assert_eq!(window.run(links).await, true);
    window.until("document.querySelector('.row .last').textContent === '潮水在九点退去'").await;
    ben.tells(&ada, "**Bold** words").await;
    window.until("document.querySelector('.row .last').textContent === 'Bold words'").await;
    window.until("document.getElementById('announce').textContent === 'Ben: Bold words'").await;
    take(&window, "marks.png", 1280, 800).await;
}

#[tokio::test]
async fn hostile_marks_make_no_elements_and_load_nothing() {
    let world = World::start().await;
    let (ben, ada) = (world.person("Ben").await, world.person("Ada").await);
    let hostile = [
        "<img src=x onerror=document.title=1> ![x](https://evil.example/x.png)",
        "[a](javascript:document.title=1) [b](data:text/html,x) [c](JaVaScRiPt:1) [d](//evil.example)",
        "<a href=\"https://evil.example\">x</a> &lt;b&gt; <!-- **x --> <script>document.title=1</script>",
        "https://bank.example@evil.example/ https://\"onmouseover=document.title=1//",
        "`<b>` ```<i>``` [`<u>`](https://a.example/\"><img>)",
    ];
    for text in hostile {
        ben.tells(&ada, text).await;
    }
    for part in ["*a _b ", "> ", "- ", "[", "`", "https://a("] {
        ben.send(Recipient::User(ada.uid), &format!("{}!", part.repeat(7_900 / part.len()))).await;
    }
    let window = world.visitor("Ada").await;
    window.pick("Ben").await;
    window.until("document.querySelectorAll('.msg').length === 11").await;
    let foreign = "const known = 'EM STRONG S CODE PRE UL OL LI BLOCKQUOTE A'.split(' ');
        return JSON.stringify([...document.querySelectorAll('.words *')].filter((it) => !known.includes(it.tagName)
            || (it.href && !/^(https?|mailto):/.test(it.href))).map((it) => it.outerHTML))";
    assert_eq!(window.run(foreign).await, "[]");
    assert!(window.title().await.ends_with("Ben · Tidemark"));
    let loaded = "return performance.getEntriesByType('resource').filter(({ name }) => !name.startsWith(location.origin)).length";
    assert_eq!(window.run(loaded).await, 0, "nothing of another host");
    // One's own message is the same, and copied as it was written.
    find(&window, "Ben").await;
    say(&window, "<b>plain</b>").await;
}

#[tokio::test]
async fn nobody_fetches_what_a_link_names_until_a_person_opens_it() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.set_nonblocking(true).expect("not to wait");
    let link = format!("http://{}", listener.local_addr().expect("an address"));
    let world = World::start().await;
    let (ben, ada) = (world.person("Ben").await, world.person("Ada").await);
    let (desk, author) = (world.visitor("Ada").await, world.visitor("Ben").await);
    befriend(&desk, ada.uid, &[&ben]).await;

    // In every text that others see.
    let key = Uuid::from_u128;
    let profile = to_raw_value(&json!({"about": format!("{link}/line")})).expect("JSON");
    ben.http.set_for_all(key(1), "profile", &profile).await.expect("set");
    let gid = ben.group(&format!("{link}/group"), &[ada.uid]).await;
    let topic = format!("{link}/topic");
    ben.http.describe_group(gid, None, Some(&topic)).await.expect("described");
    let moment = ben.http.post_moment(key(2), &format!("{link}/moment.png"), &[]).await.expect("posted");
    ben.http.comment(key(3), moment.message_id, &format!("{link}/comment")).await.expect("said");
    find(&author, "Ada").await;
    for text in
        [format!("See {link}/tide.html"), format!("![tide]({link}/tide.png) and [this]({link}/plan.pdf)")]
    {
        author.write("#text", &format!("{text}\u{E007}")).await;
    }

    desk.pick("Ben").await;
    for window in [&desk, &author] {
        window.until("document.querySelectorAll('#log .words a').length === 3").await;
    }
    author
        .until("[...document.querySelectorAll('.own .state')].every((it) => it.ariaLabel === 'Read')")
        .await;
    desk.until(&format!("document.getElementById('pane-about').textContent.endsWith('{link}/line')")).await;
    assert_eq!(stored(&ada, "/tide.").await, 2);
    desk.pick(&format!("{link}/group")).await;
    desk.until(&format!("document.getElementById('pane-about').textContent.endsWith('{topic}')")).await;
    open(&desk, "moments").await;
    unfold(&desk).await;
    for text in ["/moment.png", "/comment"] {
        shows(&desk, &format!("{link}{text}")).await;
    }
    is_kept(&author, "({ profile }) => profile?.about").await;
    let came = listener.accept().map(|(_, from)| from).expect_err("nobody has come");
    assert_eq!(came.kind(), ErrorKind::WouldBlock);

    // The person who opens one comes.
    desk.pick("Ben").await;
    desk.until("document.querySelectorAll('#log .words a').length === 3").await;
    let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
    desk.click("#log .words a").await;
    timeout(PATIENCE, listener.accept()).await.expect("in time").expect("a visitor");
}
