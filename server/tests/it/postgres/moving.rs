//! An installation moves from SQLite to PostgreSQL and back: the program itself, a device that goes on, and imports that
//! are killed.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use sqlx::{Connection as _, PgConnection};
use tempfile::TempDir;
use tidemark_client::{
    Account, BatchOutcome, Client, Draft, Event, Events, Http, MemoryStore, Options, RangeQuery, Recipient,
};
use tidemark_test_support::servers::postgres::durable_database;
use tidemark_test_support::until::{PATIENCE, until};
use tidemark_trials::server::Server;
use tokio::process::Command;
use tokio::time::timeout;

const PASSWORD: &str = "a long enough password";
/// Records of one transaction of an import.
const CHUNK: u64 = 5_000;

fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_tidemark"))
}

/// A command over the directory, or over the database where there is a URL.
fn tidemark(args: &[&str], data: &Path, url: Option<&str>) -> Command {
    let mut command = Command::new(binary());
    command.args(args).arg("--data-dir").arg(data).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.kill_on_drop(true);
    if let Some(url) = url {
        command.env("TIDEMARK_DATABASE_URL", url);
    }
    command
}

async fn done(mut command: Command) -> String {
    let output = timeout(PATIENCE, command.output()).await.expect("in time").expect("runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Two people and a third one; a group of all, many messages, a read marker, a message to oneself.
struct People {
    ann: Account,
    bob: Account,
    cem: Account,
    gid: u64,
}

impl People {
    async fn live(http: &Http) -> People {
        let mut accounts = Vec::new();
        for name in ["ann", "bob", "cem"] {
            accounts.push(http.sign_up(name, PASSWORD).await.expect("signed up"));
        }
        let [ann, bob, cem] = accounts.try_into().expect("three");
        let anns = http.with_token(&ann.token);
        let gid = anns.create_group("walkers", &[bob.uid, cem.uid]).await.expect("made");
        for part in 0..20 {
            let drafts: Vec<Draft> =
                (0..200).map(|n| Draft::text(Recipient::User(bob.uid), &format!("{part}/{n}"))).collect();
            let outcomes = anns.send_batch(&drafts).await.expect("a batch");
            assert!(outcomes.iter().all(|outcome| matches!(outcome, BatchOutcome::Sent(_))), "{outcomes:?}");
        }
        for text in ["to all", "once more"] {
            anns.send(&Draft::text(Recipient::Group(gid), text)).await.expect("sent");
        }
        let bobs = http.with_token(&bob.token);
        let read = bobs.range(&RangeQuery::after(0)).await.expect("rows").rows[7].clone();
        bobs.mark_read(read.conversation, read.message_id).await.expect("marked");
        People { ann, bob, cem, gid }
    }

    fn all(&self) -> [&Account; 3] {
        [&self.ann, &self.bob, &self.cem]
    }
}

/// Everything of an inbox, in order, as one can compare it.
async fn inbox(http: &Http, after: u64) -> Vec<String> {
    let (mut rows, mut cursor) = (Vec::new(), after);
    loop {
        let page = http.range(&RangeQuery::after(cursor)).await.expect("rows");
        rows.extend(page.rows.iter().map(|row| format!("{row:?}")));
        match page.rows.last() {
            Some(last) if page.next_start.is_some() => cursor = last.message_id,
            _ => return rows,
        }
    }
}

async fn logged_in(http: &Http, name: &str) -> Http {
    let account = http.log_in(name, PASSWORD).await.expect("the password is as before");
    http.with_token(&account.token)
}

/// Everybody's inboxes and conversations, and their latest ids.
struct Seen {
    inboxes: Vec<Vec<String>>,
    conversations: Vec<String>,
    latest: Vec<u64>,
}

impl Seen {
    async fn by(people: &People, http: &Http) -> Seen {
        let mut seen = Seen { inboxes: Vec::new(), conversations: Vec::new(), latest: Vec::new() };
        for person in people.all() {
            let own = logged_in(http, &person.name).await;
            seen.inboxes.push(inbox(&own, 0).await);
            seen.conversations.push(format!("{:?}", own.conversations().await.expect("a list")));
            seen.latest.push(own.seq().await.expect("told").seq);
        }
        seen
    }
}

/// One more message to each of the three; each inbox goes on above `latest`.
async fn say_more(people: &People, http: &Http, latest: &[u64], text: &str) {
    let anns = logged_in(http, "ann").await;
    anns.send(&Draft::text(Recipient::Group(people.gid), text)).await.expect("sent");
    for (person, latest) in people.all().into_iter().zip(latest) {
        let rows = logged_in(http, &person.name).await;
        let rows = rows.range(&RangeQuery::after(*latest)).await.expect("rows").rows;
        let texts: Vec<_> = rows.iter().filter_map(|row| row.text()).collect();
        assert_eq!(texts, [text], "{} beyond {latest}", person.name);
    }
}

async fn in_step(events: &mut Events) {
    loop {
        let event = timeout(PATIENCE, events.next()).await.expect("in time").expect("the client goes on");
        if matches!(event, Event::InStep { .. }) {
            return;
        }
    }
}

/// A device of Bob's that keeps its rows between two runs.
async fn sync(bobs: &Http, store: &MemoryStore) {
    let (client, mut events) = Client::start(bobs.clone(), store.clone(), Options::default());
    in_step(&mut events).await;
    drop(client);
    while timeout(PATIENCE, events.next()).await.expect("ends").is_some() {}
}

/// Imports `file`, and is killed twice: as soon as the import is begun, and when a part of the rows is stored.
async fn import_with_kills(file: &Path, data: &Path, url: &str) -> String {
    let import = || tidemark(&["import", file.to_str().expect("UTF-8")], data, Some(url));
    done(tidemark(&["migrate"], data, Some(url))).await;
    let mut beside = PgConnection::connect(url).await.expect("connected");
    // Inserts into `sent` wait, so that the import stands between two chunks.
    let slow = "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(8); RETURN NULL; END'; \
                CREATE TRIGGER slow BEFORE INSERT ON sent FOR EACH STATEMENT EXECUTE FUNCTION slow()";
    sqlx::raw_sql(slow).execute(&mut beside).await.expect("made");
    for least in [0, CHUNK] {
        let mut killed = import().spawn().expect("runs");
        let stored = "SELECT value::bigint FROM meta WHERE key = 'imported'";
        until("a part is stored", async || {
            let stored: Option<i64> =
                sqlx::query_scalar(stored).fetch_optional(&mut beside).await.expect("read");
            stored.is_some_and(|stored| stored.cast_unsigned() >= least)
        })
        .await;
        killed.kill().await.expect("killed");
    }
    // Statements of the killed import may still run; nothing of them stays.
    let end = "DROP TRIGGER slow ON sent; SELECT pg_terminate_backend(pid) FROM pg_stat_activity
               WHERE datname = current_database() AND pid <> pg_backend_pid()";
    sqlx::raw_sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
        .execute(&mut beside)
        .await
        .expect("ended");
    sqlx::raw_sql(end).execute(&mut beside).await.expect("dropped");

    let refused = tidemark(&["serve", "--listen", "127.0.0.1:0"], data, Some(url)).output();
    let refused = timeout(PATIENCE, refused).await.expect("in time").expect("runs");
    let why = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && why.contains("an import into it was not finished"), "{why}");
    done(import()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_installation_moves_to_postgresql_and_back_and_a_device_goes_on() {
    let place: TempDir = tempfile::tempdir().expect("a directory");
    let path = |name: &str| -> PathBuf { place.path().join(name) };
    let (data, none) = (path("data"), path("none"));
    for directory in [&data, &none] {
        std::fs::create_dir(directory).expect("made");
    }

    let server = Server::start(binary(), &data).await.expect("starts");
    let (http, port) = (server.http().expect("an address"), server.port().expect("a port"));
    let people = People::live(&http).await;
    let store = MemoryStore::new();
    sync(&http.with_token(&people.bob.token), &store).await;
    let had = store.rows().len();
    assert!(had > 4_000, "{had}");
    say_more(&people, &http, &Seen::by(&people, &http).await.latest, "after the device had gone").await;
    server.stop().await.expect("stopped");
    // The newest rows of an inbox are deleted, as retention does.
    let tables = rusqlite::Connection::open(data.join("tidemark.db")).expect("opened");
    let deleted = ["entries", "young_entries"].map(|table| {
        let newest = format!(
            "DELETE FROM {table} WHERE receiver = ?1 AND message_id IN
                 (SELECT message_id FROM {table} WHERE receiver = ?1 ORDER BY message_id DESC LIMIT 2)"
        );
        tables.execute(&newest, [people.cem.uid]).expect("deleted")
    });
    assert_eq!(deleted.iter().sum::<usize>(), 2);
    drop(tables);
    let server = Server::start_at(port, binary(), &data).await.expect("starts");
    let before = Seen::by(&people, &http).await;
    server.stop().await.expect("stopped");

    let file = path("move.jsonl");
    done(tidemark(&["export", file.to_str().expect("UTF-8")], &data, None)).await;
    let url = durable_database().await;
    let said = import_with_kills(&file, &none, &url).await;
    assert!(said.contains("of them by an earlier run"), "{said}");

    // On PostgreSQL.
    let on_postgres = [("TIDEMARK_DATABASE_URL", url.clone())];
    let server = Server::start_with(&on_postgres, port, binary(), &none).await.expect("starts");
    let after = Seen::by(&people, &http).await;
    assert_eq!(after.inboxes, before.inboxes, "every row has its id");
    // Of Cem's the newest rows are gone, and a list that is made of the rows that are left names other ones.
    assert_eq!(after.conversations[..2], before.conversations[..2]);
    assert_eq!(after.latest, before.latest, "also where rows were deleted");
    let bobs = logged_in(&http, "bob").await;
    sync(&bobs, &store).await;
    let rows = store.rows();
    assert_eq!(rows.iter().map(|row| format!("{row:?}")).collect::<Vec<_>>(), inbox(&bobs, 0).await);
    assert!(rows.len() > had && rows.is_sorted_by(|one, next| one.message_id < next.message_id));
    say_more(&people, &http, &after.latest, "on PostgreSQL").await;
    sync(&bobs, &store).await;
    assert_eq!(store.rows().len(), rows.len() + 1, "one more, and none again");
    assert_eq!(store.rows()[..rows.len()], rows[..]);

    // And back, while that one still serves.
    let last = Seen::by(&people, &http).await;
    let file = path("back.jsonl");
    done(tidemark(&["export", file.to_str().expect("UTF-8")], &none, Some(&url))).await;
    server.stop().await.expect("stopped");
    let back = path("back");
    let mut import = tidemark(&["import", file.to_str().expect("UTF-8")], &back, None);
    import.env("TIDEMARK_MESSAGES__IDS", "store");
    done(import).await;
    let ids = [("TIDEMARK_MESSAGES__IDS", "store".to_owned())];
    let _server = Server::start_with(&ids, port, binary(), &back).await.expect("starts");
    let again = Seen::by(&people, &http).await;
    assert_eq!((again.inboxes, again.latest), (last.inboxes, last.latest.clone()));
    say_more(&people, &http, &last.latest, "back on SQLite").await;
    sync(&logged_in(&http, "bob").await, &store).await;
    assert_eq!(store.rows().len(), rows.len() + 2);
}
