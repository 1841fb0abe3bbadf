//! Rows on the pages: pages of them in both directions, every type of value, and values that strangers wrote.

use tidemark_table::wire::plain_buffer::KeyPart;
use tidemark_table::wire::proto::KeyColumnType::{Binary, Integer, String as Text};
use tidemark_table::{KeyValue, Value};

use super::visitor::{Page, Visitor, make, put, text, unescaped};
use crate::table::world::World;

const ASSIGNED: KeyPart = KeyPart::AutoIncrement;

fn integer(value: i64) -> KeyPart {
    KeyPart::Value(KeyValue::Integer(value))
}

/// The last values of the keys of all rows on a page.
fn ids(page: &Page) -> Vec<u32> {
    let id = |link: &String| link.rsplit_once("k2=").expect("a key").1.parse().expect("a number");
    page.row_links().iter().map(id).collect()
}

#[tokio::test]
async fn pages_follow_one_another_in_both_directions() {
    walk(World::start().await).await;
}

#[tokio::test]
async fn pages_follow_one_another_on_postgres() {
    walk(World::start_on_postgres().await).await;
}

async fn walk(world: World) {
    make(&world, "orders", &[("customer", Text), ("+id", Integer)], 1).await;
    for _ in 0..120 {
        put(&world, "orders", &[("customer", text("ann")), ("id", ASSIGNED)], &[]).await;
    }
    let visitor = Visitor::with(&world, &world.key).await;
    let mut page = visitor.sees("/tables/orders").await;
    assert!(page.link("prev").is_none() && page.has("50 rows: the first rows, by key"), "{}", page.html);
    assert!(page.has("This read consumed 1 capacity unit."));
    let (mut forward, mut sizes) = (Vec::new(), Vec::new());
    loop {
        sizes.push(ids(&page).len());
        forward.extend(ids(&page));
        let Some(later) = page.link("next") else { break };
        page = visitor.sees(&later).await;
    }
    let all: Vec<u32> = (1..=120).collect();
    assert_eq!((forward, sizes), (all, vec![50, 50, 20]));
    let mut back = ids(&page);
    while let Some(earlier) = page.link("prev") {
        page = visitor.sees(&earlier).await;
        back.splice(0..0, ids(&page));
    }
    assert_eq!(back, (1..=120).collect::<Vec<_>>());

    let last = visitor.sees("/tables/orders?go=to").await;
    assert_eq!(ids(&last), (71..=120).collect::<Vec<_>>());
    assert!(last.link("next").is_none());
    let before = visitor.sees(&last.link("prev").expect("earlier rows")).await;
    assert_eq!(ids(&before), (21..=70).collect::<Vec<_>>());
    assert_eq!(
        ids(&visitor.sees(&before.link("next").expect("later rows")).await),
        (71..=120).collect::<Vec<_>>()
    );

    assert_eq!(
        ids(&visitor.sees("/tables/orders?k1=ann&k2=100&go=from").await),
        (100..=120).collect::<Vec<_>>()
    );
    assert_eq!(ids(&visitor.sees("/tables/orders?k1=ann&k2=3&go=to").await), [1, 2, 3]);
    assert_eq!(ids(&visitor.sees("/tables/orders?k1=ann&k2=&go=to").await).last(), Some(&120));
    let beyond = visitor.sees("/tables/orders?k1=bob&k2=").await;
    assert!(
        beyond.has("Rows from there on: there are none.") && beyond.row_links().is_empty(),
        "{}",
        beyond.html
    );
}

#[tokio::test]
async fn the_longest_key_has_an_address_that_can_be_asked_for_after_signing_in() {
    let world = World::start().await;
    let names = ["a", "b", "c", "d"];
    make(&world, "longest", &names.map(|name| (name, Text)), 1).await;
    let key = names.map(|name| (name, text(&"é".repeat(512))));
    put(&world, "longest", &key, &[("x", Value::Integer(1))]).await;
    let page = Visitor::with(&world, &world.key).await.sees("/tables/longest").await;
    let [link] = &page.row_links()[..] else { panic!("one row") };
    let mut visitor = Visitor::of(&world);
    let turned_away = visitor.get(link).await;
    let card = visitor.sees(turned_away.header("location")).await;
    assert_eq!(card.after("name=\"next\" value=\"", "\"").as_ref(), Some(link));
    let next = link.replace('%', "%25").replace('&', "%26");
    let answer = visitor.sign_in(&world.key.id, &world.key.secret, &next).await;
    assert_eq!((answer.status, answer.header("location")), (303, link.as_str()));
    visitor.cookie = Some(answer.cookie().to_owned());
    assert!(visitor.sees(link).await.has(&"é".repeat(512)));
}

#[tokio::test]
async fn a_table_without_rows_says_how_one_is_put() {
    let world = World::start().await;
    make(&world, "parts", &[("name", Text), ("+id", Integer), ("hash", Binary)], 1).await;
    let visitor = Visitor::with(&world, &world.key).await;
    for path in ["/tables/parts", "/tables/parts?go=to"] {
        let page = visitor.sees(path).await;
        assert!(
            page.has("The table has no rows yet.") && page.has("tidemark table put parts ann + 00ff total=7")
        );
        assert!(
            page.has("auto-increment: the server assigns its values") && page.has("for 2 days"),
            "{}",
            page.html
        );
    }
}

#[tokio::test]
async fn every_value_is_shown_with_its_type_and_all_digits() {
    let world = World::start().await;
    make(&world, "values", &[("bytes", Binary), ("number", Integer), ("text", Text)], 3).await;
    let key = [
        ("bytes", KeyPart::Value(KeyValue::Binary(vec![0, 0xff, 0x3c]))),
        ("number", integer(i64::MIN)),
        ("text", text("")),
    ];
    let cells = [
        ("binary", Value::Blob(vec![0xde, 0xad])),
        ("boolean", Value::Boolean(false)),
        ("double", Value::Double(0.1 + 0.2)),
        ("integer", Value::Integer(i64::MAX)),
        ("long", Value::String("x".repeat(200))),
        ("words", Value::String("مرحبا & 1 < 2".to_owned())),
    ];
    put(&world, "values", &key, &cells).await;
    let visitor = Visitor::with(&world, &world.key).await;
    let page = visitor.sees("/tables/values").await;
    for shown in [
        "class=\"value binary\">00ff3c</span>",
        "class=\"value integer\">-9223372036854775808</span>",
        "<small>empty string</small>",
        "class=\"value binary\">dead</span>",
        "class=\"value boolean\">false</span>",
        "class=\"value double\">0.30000000000000004</span>",
        "class=\"value integer\">9223372036854775807</span>",
        "… of 200 characters",
        "<span dir=\"auto\" class=\"value string\">مرحبا &#38; 1 &#60; 2</span>",
    ] {
        assert!(page.has(shown), "{shown} in {}", page.html);
    }
    let [link] = &page.row_links()[..] else { panic!("one row") };
    assert_eq!(link, "/tables/values/row?k1=00ff3c&k2=-9223372036854775808&k3=");
    let row = visitor.sees(link).await;
    assert!(row.has(&"x".repeat(200)) && !row.has("… of") && row.has("<td>double</td>"), "{}", row.html);
    assert!(row.has("This read consumed 1 capacity unit."));
    let around = row.after("<a class=\"button\" href=\"", "\"").expect("a link");
    assert_eq!(visitor.sees(&around).await.row_links(), [link.as_str()]);
    let missing = visitor.get("/tables/values/row?k1=00&k2=1&k3=x").await;
    assert_eq!(missing.status, 404);
    assert!(missing.has("There is no row with this key."));
}

#[tokio::test]
async fn a_row_is_shown_with_its_versions_and_their_times() {
    let world = World::start().await;
    make(&world, "versions", &[("name", Text)], 3).await;
    let key = [("name", text("ann"))];
    put(&world, "versions", &key, &[("x", Value::Integer(1))]).await;
    super::visitor::update(&world, "versions", &key, &[("x", Value::Integer(2))]).await;
    let visitor = Visitor::with(&world, &world.key).await;
    let list = visitor.sees("/tables/versions").await;
    assert!(list.has(">2</span>") && !list.has(">1</span></td>"), "the newest alone: {}", list.html);
    let row = visitor.sees("/tables/versions/row?k1=ann").await;
    let (newer, older) = (row.html.find(">2</span></td>"), row.html.find(">1</span></td>"));
    assert!(newer.is_some() && newer < older, "{}", row.html);
    assert_eq!(row.html.matches(" UTC</time> <small>").count(), 2);
}

#[tokio::test]
async fn what_strangers_wrote_is_text() {
    let world = World::start().await;
    make(&world, "hostile", &[("\"><script>alert(0)</script>", Text), ("+id", Integer)], 1).await;
    let hostile = "\"'><script>alert(1)</script>&amp;\u{202e}\0";
    let key = [("\"><script>alert(0)</script>", text(hostile)), ("id", ASSIGNED)];
    put(&world, "hostile", &key, &[("<img src=x onerror=alert(2)>", Value::String(hostile.to_owned()))])
        .await;
    let visitor = Visitor::with(&world, &world.key).await;
    let list = visitor.sees("/tables/hostile").await;
    let [link] = &list.row_links()[..] else { panic!("one row") };
    let row = visitor.sees(link).await;
    let typed = format!(
        "/tables/hostile?{}&k2=x",
        link.split_once('?').expect("a query").1.split('&').next().expect("k1")
    );
    let wrong = visitor.get(&typed).await;
    assert_eq!(wrong.status, 400);
    for page in [&list, &row, &wrong, &visitor.sees("/tables").await] {
        assert!(
            !page.has("<script>") && !page.has("<img") && !page.has('\0'.to_string().as_str()),
            "{}",
            page.html
        );
    }
    assert!(unescaped(&list.html).contains("\"'><script>alert(1)</script>&amp;\u{202e}\u{2400}</span>"));
}

#[tokio::test]
async fn a_key_that_is_typed_wrongly_is_explained_at_its_field() {
    let world = World::start().await;
    make(&world, "parts", &[("name", Text), ("id", Integer), ("hash", Binary)], 1).await;
    let visitor = Visitor::with(&world, &world.key).await;
    let long = format!("k1={}", "x".repeat(1_025));
    for (query, field, said) in [
        ("k1=a&k2=abc", "k2", "Write an integer, such as 42."),
        (
            "k1=a&k2=9223372036854775808",
            "k2",
            "Integers go from -9223372036854775808 to 9223372036854775807.",
        ),
        ("k1=a&k2=1&k3=0", "k3", "Write bytes as pairs of hexadecimal digits, such as 00ff."),
        ("k1=&k2=1", "k1", "Fill in name as well: the rows are ordered by it first."),
        (&long, "k1", "A value of a key has up to 1024 bytes; this one has 1025."),
    ] {
        let page = visitor.get(&format!("/tables/parts?{query}")).await;
        assert_eq!(page.status, 400, "{query}");
        assert_eq!(page.after(&format!("id=\"{field}-problem\">"), "</p>").as_deref(), Some(said));
        assert_eq!(page.html.matches("aria-invalid").count(), 1);
        assert!(page.has("No rows are shown: correct the key above.") && page.row_links().is_empty());
    }
    for path in [
        "/tables/parts?go=sideways",
        "/tables/parts?k1=%ff&k1=b",
        "/tables/parts/row",
        "/tables/parts/row?k1=a&k2=b",
    ] {
        let page = visitor.get(path).await;
        assert_eq!(page.status, 400, "{path}");
        assert!(page.has("<h1>"), "{}", page.html);
    }
}

#[tokio::test]
async fn pages_stay_small_whatever_rows_hold() {
    let world = World::start().await;
    make(&world, "large", &[("name", Text)], 1).await;
    let names: Vec<String> = (0..600).map(|n| format!("column{n:03}")).collect();
    let cells: Vec<(&str, Value)> =
        names.iter().map(|name| (name.as_str(), Value::String("<".repeat(3_000)))).collect();
    for n in 0..3 {
        put(&world, "large", &[("name", text(&n.to_string()))], &cells).await;
    }
    put(&world, "large", &[("name", text("0"))], &[("x", Value::Blob(vec![7; 2 << 20]))]).await;
    let visitor = Visitor::with(&world, &world.key).await;
    let mut seen = Vec::new();
    let mut page = visitor.sees("/tables/large").await;
    loop {
        assert!(page.html.len() < 200_000, "{} bytes", page.html.len());
        seen.extend(page.row_links());
        let Some(later) = page.link("next") else { break };
        page = visitor.sees(&later).await;
    }
    assert_eq!(seen, ["0", "1", "2"].map(|name| format!("/tables/large/row?k1={name}")));
    let row = visitor.sees(&seen[0]).await;
    assert!(
        row.has("… of 2097152 bytes") && row.has("This read consumed 513 capacity units."),
        "{}",
        row.html.len()
    );
    let mut row = visitor.sees(&seen[1]).await;
    let mut columns = 0;
    loop {
        assert!(row.html.len() < 4 << 20, "{} bytes", row.html.len());
        columns += row.html.matches("<th scope=\"row\" dir=\"auto\">column").count();
        let Some(rest) = row.after("are not shown. <a href=\"", "\"") else { break };
        row = visitor.sees(&rest).await;
    }
    assert_eq!(columns, 600);
}

#[tokio::test]
async fn a_key_with_inboxes_shows_them() {
    let world = World::start().await;
    let (bot, _) = world.sign_up("Bot").await;
    let (ann, _) = world.sign_up("Ann").await;
    let key = world.make_key(&["--instance", "bots", "--inbox", &bot.to_string()]).await;
    let visitor = Visitor::with(&world, &key).await;
    let list = visitor.sees("/tables").await;
    assert!(list.has("href=\"/tables/inbox\"") && list.has("of the chat"), "{}", list.html);
    let empty = visitor.sees("/tables/inbox").await;
    assert!(empty.has("tidemark table put inbox $partition 10002 +"), "{}", empty.html);
    let uid = tidemark::domain::Uid(ann.try_into().expect("a uid"));
    let partition = uid.partition_key().as_str().to_owned();
    let row =
        [("partition_key", text(&partition)), ("receiver", integer(uid.0.into())), ("message_id", ASSIGNED)];
    let body = ("body", Value::String("{\"text\":\"<b>your order</b>\"}".to_owned()));
    super::visitor::put_as(&world, &key, "inbox", &row, &[body]).await;
    let page = visitor.sees(&format!("/tables/inbox?k1=&k2={ann}&k3=&go=to")).await;
    assert_eq!(page.row_links(), [format!("/tables/inbox/row?k1={partition}&k2={ann}&k3=1")]);
    assert!(page.has("&#60;b&#62;your order") && !page.has("<b>"), "{}", page.html);
    let row = visitor.sees(&page.row_links()[0]).await;
    assert!(row.has(&format!("u:{bot}")) && row.has("sent_at"), "{}", row.html);
}
