//! Light Markdown in messages.

use tidemark_client::Recipient;

use super::pictures::take;
use super::world::{World, find, say};

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
        "What to bring:<ul><li>coffee</li><li>a <em>warm</em> coat<ol start=\"1\"><li>wool</li><li>no cotton</li></ol></li>\
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
