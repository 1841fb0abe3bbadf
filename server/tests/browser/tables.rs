//! The pages of tables: by keyboard, on a phone, in every set of colours, without JavaScript, and as axe sees
//! them.

use aliyun_tablestore_rs::OtsClientBuilder;
use aliyun_tablestore_rs::data::PutRowRequest;
use aliyun_tablestore_rs::model::Row;
use aliyun_tablestore_rs::table::CreateTableRequest;
use serde_json::json;

use super::axe::faults;
use super::pictures::take;
use super::window::{COLOURS, ENTER, Window};
use super::world::World;

/// A world in which an instance has tables with rows, and a key that opens them.
pub(crate) async fn shop() -> (World, (String, String)) {
    let (world, endpoint) = World::with_tables().await;
    world.person("Ada").await;
    let key = world.access_key(&["--instance", "shop", "--inbox", "10001"]).await;
    let client = OtsClientBuilder::new(&key.0, &key.1).instance_name("shop").endpoint(endpoint).build();
    for (name, first) in [("orders", "customer"), ("returns", "customer")] {
        let table = CreateTableRequest::new(name)
            .primary_key_string(first)
            .primary_key_auto_increment("id")
            .reserved_throughput_read(0)
            .reserved_throughput_write(0)
            .ttl_seconds(-1)
            .max_versions(3);
        client.create_table(table).send().await.expect("made");
    }
    let customers = ["ann", "ben", "cleo", "dov", "edith", "نورة"];
    for n in 0_i64..120 {
        let row = Row::new()
            .primary_key_column_string("customer", customers[n as usize / 20])
            .primary_key_column_auto_increment("id")
            .column_double("total", (n * 7 % 90) as f64 + 0.5)
            .column_integer("items", n % 4 + 1)
            .column_bool("paid", n % 3 > 0)
            .column_string("note", if n % 5 == 0 { "Leave it with the neighbour, please" } else { "" })
            .column_blob("receipt", vec![0xca, 0xfe, n as u8]);
        client.put_row(PutRowRequest::new("orders").row(row)).send().await.expect("put");
    }
    (world, key)
}

pub(crate) async fn signed_in(world: &World, (id, secret): &(String, String)) -> Window {
    let window = world.window().await;
    window.goto(&world.at("/tables/orders")).await;
    window.until("document.activeElement.id === 'access_key_id'").await;
    window.write("#access_key_id", id).await;
    window.write("#access_key_secret", &format!("{secret}{ENTER}")).await;
    window.until("document.querySelectorAll('.rows tbody tr').length === 50").await;
    window
}

/// The pages, each with what is on it.
const PAGES: [(&str, &str); 8] = [
    ("/tables", "main table"),
    ("/tables/orders", ".rows"),
    ("/tables/orders?go=to", ".rows"),
    ("/tables/orders?k1=ann&k2=x", "[aria-invalid]"),
    ("/tables/returns", ".command"),
    ("/tables/orders/row?k1=ann&k2=1", ".cells"),
    ("/tables/nothing", ".card"),
    ("/tables/sign-in?ended=yes", "[role=alert]"),
];

#[tokio::test]
async fn axe_finds_nothing_in_any_colours_and_on_any_screen() {
    let (world, key) = shop().await;
    let window = signed_in(&world, &key).await;
    for colours in COLOURS {
        window.colours(colours).await;
        for (width, height) in [(1280, 800), (360, 740)] {
            window.size(width, height).await;
            for (path, shown) in PAGES {
                window.goto(&world.at(path)).await;
                window.until(&format!("document.querySelector('{shown}')")).await;
                window.run("for (const it of document.querySelectorAll('details')) it.open = true").await;
                let found = faults(&window).await;
                assert_eq!(found, "", "{path} in {colours:?} colours at {width}");
                // A wide table scrolls by itself; the page does not.
                window.until(&format!("document.documentElement.scrollWidth <= {width}")).await;
                assert_eq!(window.run("return document.querySelectorAll('h1').length").await, 1, "{path}");
            }
        }
    }
    // Axe reports a field without a name.
    window.run("document.querySelector('label').remove()").await;
    let found = faults(&window).await;
    assert!(found.contains("label: <input id=\"access_key_id\""), "{found}");
}

#[tokio::test]
async fn tables_are_browsed_by_keyboard_and_without_scripts() {
    let (world, key) = shop().await;
    let window = signed_in(&world, &key).await;
    window.devtools("Emulation.setScriptExecutionDisabled", json!({"value": true})).await;
    window.reload().await;
    window.press("\u{E004}").await;
    window.until("document.activeElement.className === 'skip'").await;
    window.press(ENTER).await;
    window.until("location.hash === '#main'").await;
    window.write("#k1", "dov").await;
    window.write("#k2", ENTER).await;
    window
        .until("document.querySelector('.rows th').parentNode && location.search === '?k1=dov&k2=&go=from'")
        .await;
    window.until("document.querySelector('.rows tbody th').textContent === 'dov'").await;
    window.click("a[rel=prev]").await;
    window.until("document.querySelector('.rows tbody tr:last-child th').textContent === 'cleo'").await;
    window.click("a[rel=next]").await;
    window.until("document.querySelector('.rows tbody th').textContent === 'dov'").await;
    window.click(".rows tbody a").await;
    window.until("document.querySelector('.cells') && document.title.startsWith('Row of orders')").await;
    window.click("header button").await;
    window.until("location.pathname === '/tables/sign-in'").await;
    window.goto(&world.at("/tables/orders")).await;
    window.until("location.pathname === '/tables/sign-in'").await;
}

#[tokio::test]
async fn pictures_of_a_table_can_be_taken() {
    let (world, key) = shop().await;
    let window = signed_in(&world, &key).await;
    window.goto(&world.at("/tables/orders?k1=ben&k2=&go=from")).await;
    window.until("document.querySelector('.rows')").await;
    window.size(1100, 760).await;
    take(&window, "tables.png", 1100, 760).await;
}
