//! `tidemark import --user … --into …`.

use serde_json::{Value, json};

use super::{World, done, over, refused, text};
use crate::support::{Person, TestApp, is_on_postgres};

/// The parts of a row that remain when ids and times are left out.
fn gist(row: &Value) -> (Value, Value, Value, Value) {
    (row["kind"].clone(), row["sender"].clone(), row["conversation"].clone(), row["client_id"].clone())
}

async fn summary(app: &TestApp, who: &Person, other: u64) -> Value {
    let list = app.get(who, "/api/v1/conversations").await.ok(200);
    let id = format!("u:{other}");
    let found = list.as_array().expect("a list").iter().find(|line| line["id"] == id).cloned();
    found.unwrap_or_else(|| panic!("{id} is not in {list}"))
}

#[tokio::test]
async fn a_users_rows_come_back_behind_what_is_there_and_their_marks_follow() {
    let world = World::new().await;
    let file = world.export("all.jsonl").await;
    let [ann, bob, cat] = &world.people[..] else { unreachable!("three") };
    let (ann, bob) = (ann.uid, bob.uid);
    let old_bob = world.app.rows(&world.people[1]).await;
    let old_line = summary(&world.app, &world.people[1], ann).await;

    // The same people elsewhere, under the same uids, with a life of their own; the group does not exist there.
    let data = world.other("other").await;
    let mut app = over(&data).await;
    let (new_ann, new_bob) = (app.sign_up("ann").await, app.sign_up("bob").await);
    assert_eq!((new_ann.uid, new_bob.uid), (ann, bob));
    app.sign_up("cat").await;
    let there = app.say(&new_ann, &new_bob, 5_000, "was here before").await;
    app.stop().await;

    let import = ["import", text(&file), "--user", "BOB", "--into", &bob.to_string()];
    let reported = done(&data, &import).await;
    let in_group = old_bob.iter().filter(|row| row["conversation"] == format!("g:{}", world.gid)).count();
    let expected = old_bob.len() - in_group;
    assert!(
        reported.contains(&format!("{expected} rows of user {bob} appended to {bob}; 0 were there")),
        "{reported}"
    );
    assert!(reported.contains(&format!("{in_group} left out")), "{reported}");
    let reported = done(&data, &import).await;
    assert!(
        reported.contains("0 rows of user") && reported.contains(&format!("; {expected} were there")),
        "{reported}"
    );

    let app = over(&data).await;
    let bobs = app.log_in("bob").await;
    let rows = app.rows(&bobs).await;
    assert_eq!(rows.len(), expected + 1);
    assert!(rows.is_sorted_by_key(|row| row["message_id"].as_u64()));
    let kept: Vec<_> =
        old_bob.iter().filter(|row| !row["conversation"].to_string().contains("g:")).map(gist).collect();
    assert_eq!(rows[1..].iter().map(gist).collect::<Vec<_>>(), kept);
    assert_eq!(
        rows[1]["sent_at"],
        old_bob.iter().find(|row| row["kind"] == "message").expect("one")["sent_at"]
    );

    // The mark names the same message as before, under its new id.
    let line = summary(&app, &bobs, ann).await;
    let marked = |rows: &[Value], mark: &Value| {
        let row = rows.iter().find(|row| row["message_id"] == *mark).expect("the mark names a row");
        row["client_id"].clone()
    };
    assert_eq!(marked(&rows, &line["read_to"]), marked(&old_bob, &old_line["read_to"]));
    assert_eq!(line["unread"].as_u64(), old_line["unread"].as_u64());

    // Bob's own messages are known again, and new numbers come after all of them.
    let own = old_bob.iter().find(|row| row["sender"] == bob && row["kind"] == "message").expect("one");
    let again = json!({"client_id": own["client_id"], "to": {"user": ann}, "body": own["body"]});
    let answer = app.post(&bobs, "/api/v1/messages", again).await.ok(200);
    let place = rows.iter().find(|row| row["client_id"] == own["client_id"]).expect("imported");
    assert_eq!(answer["message_id"], place["message_id"]);
    let anns = app.log_in("ann").await;
    app.say(&anns, &bobs, 5_001, "still here").await;
    let latest = app.rows(&bobs).await.last().expect("rows")["message_id"].as_u64();
    assert!(latest > rows.last().expect("rows")["message_id"].as_u64() && latest > Some(there));
    assert_eq!(cat.name, "cat");
}

#[tokio::test]
async fn a_user_can_be_brought_into_another_account() {
    let world = World::new().await;
    let file = world.export("all.jsonl").await;
    let old = world.app.rows(&world.people[2]).await;
    let note = old.iter().find(|row| row["kind"] == "message" && row["sender"] == world.people[2].uid);
    let note = note.expect("cat wrote to herself");

    let data = world.other("other").await;
    let mut app = over(&data).await;
    let new = app.sign_up("someone else").await;
    app.stop().await;
    done(&data, &["import", text(&file), "--user", "cat", "--into", &new.uid.to_string()]).await;
    let app = over(&data).await;
    let new = app.log_in("someone else").await;
    let rows = app.rows(&new).await;
    assert_eq!(rows.len(), 1, "{rows:?}");
    assert_eq!((&rows[0]["body"], &rows[0]["sender"]), (&note["body"], &json!(new.uid)));
    assert_eq!(rows[0]["conversation"], format!("u:{}", new.uid));
}

#[tokio::test]
async fn both_users_must_exist() {
    let mut world = World::new().await;
    let file = world.export("all.jsonl").await;
    world.app.stop().await;
    let (file, data) = (text(&file), world.home);
    let reported = refused(&data, &["import", file, "--user", "ann", "--into", "99999"]).await;
    assert!(reported.contains("there is no account 99999"), "{reported}");
    let reported = refused(&data, &["import", file, "--user", "dan", "--into", "10001"]).await;
    assert!(reported.contains("holds no user \"dan\""), "{reported}");
}

/// On PostgreSQL the rows may come while the account's server is at work, and while others write to the inbox.
#[tokio::test]
async fn rows_come_in_beside_a_server_where_several_may_write() {
    if !is_on_postgres() {
        return;
    }
    let world = World::new().await;
    let file = world.export("all.jsonl").await;
    let home = world.other("other").await;
    let app = over(&home).await;
    let (ann, bob) = (app.sign_up("ann").await, app.sign_up("bob").await);
    app.sign_up("cat").await;
    app.say(&ann, &bob, 5_000, "before").await;
    let into = bob.uid.to_string();
    let (import, load) = (["import", text(&file), "--user", "bob", "--into", &into], 5_001..5_101);
    let sending = async {
        for n in load {
            app.say(&ann, &bob, n, "meanwhile").await;
        }
    };
    let (reported, ()) = tokio::join!(done(&home, &import), sending);
    assert!(reported.contains("rows of user"), "{reported}");
    app.say(&ann, &bob, 6_000, "after").await;
    let rows = app.rows(&bob).await;
    let ids: Vec<u64> = rows.iter().filter_map(|row| row["message_id"].as_u64()).collect();
    assert!(ids.is_sorted_by(|one, next| one < next), "{ids:?}");
    let of = |text: &str| rows.iter().filter(|row| row["body"]["text"] == text).count();
    assert_eq!((of("before"), of("meanwhile"), of("after")), (1, 100, 1));
    assert!(of("in the tables \"7\"\n") == 1, "imported");
}
