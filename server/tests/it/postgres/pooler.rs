//! PgBouncer before the database, set up as `docs/OPERATING.md` says.

use serde_json::json;
use tidemark_test_support::servers::pgbouncer::{Pooler, has_prepared_statements};
use tidemark_test_support::servers::postgres::Server;
use tidemark_test_support::until::until;

use super::refusals::{as_owner, refused, refused_with};
use crate::support::{Database, Socket, TestApp, message, texts};

const PAGE: &str = include_str!("../../../../docs/OPERATING.md");

/// The fenced block of the page in this language that begins with `first`.
fn block(language: &str, first: &str) -> String {
    let blocks = PAGE.split("```").filter_map(|block| block.strip_prefix(language));
    blocks.map(str::trim).find(|block| block.starts_with(first)).expect("the page has it").to_owned()
}

struct World {
    _database: Server,
    pooler: Pooler,
    direct: String,
    through: String,
}

impl World {
    /// A database whose role has the settings of the page, behind a pooler in this mode.
    async fn start(mode: &str) -> World {
        let database = Server::start_with("-c fsync=on");
        let direct = database.new_database().await;
        let settings =
            block("sql", "ALTER ROLE").replace("ROLE tidemark IN DATABASE tidemark", "ROLE postgres");
        as_owner(&direct, &settings).await;
        let ini = block("ini", "; pgbouncer.ini")
            .replace("pool_mode = transaction", &format!("pool_mode = {mode}"));
        assert!(ini.contains(&format!("pool_mode = {mode}")), "{ini}");
        let pooler = Pooler::before(&database, &ini);
        let through = pooler.url(&direct);
        assert_ne!(through, direct);
        World { _database: database, pooler, direct, through }
    }

    async fn app(&self) -> TestApp {
        Database::Postgres
            .start_with(|config| {
                config.storage.database_url = self.through.clone().into();
                config.storage.listen_url = self.direct.clone().into();
            })
            .await
    }

    /// Two servers, a device at each, and a pooler that crashes and comes back under them.
    async fn chat_through_a_crash(&self) {
        let (one, other) = (self.app().await, self.app().await);
        let (ann, bob) = (one.sign_up("ann").await, other.sign_up("bob").await);
        let mut device = other.socket(&bob).await;
        let cursor = device.begin().await;
        for n in 1..=20 {
            one.say(&ann, &bob, n, &n.to_string()).await;
        }
        let cursor = caught_up(&mut device, cursor, 20).await;
        self.pooler.kill();
        let to = json!({"user": bob.uid});
        one.post(&ann, "/api/v1/messages", message(21, to.clone(), "21")).await.refused(503);
        device.heartbeat(cursor).await;
        assert_eq!(device.expect("alive").await["seq"], cursor, "it is answered from memory");
        self.pooler.run();
        for n in 19..=25 {
            until("the message is stored", async || {
                let sent = one.post(&ann, "/api/v1/messages", message(n, to.clone(), &n.to_string())).await;
                sent.status.is_success() || sent.refused(503).is_empty()
            })
            .await;
        }
        caught_up(&mut device, cursor, 25).await;
        let all: Vec<String> = (1..=25).map(|n| n.to_string()).collect();
        for (app, who) in [(&one, &bob), (&other, &ann)] {
            until("reads go on", async || app.get(who, "/api/v1/range").await.status.is_success()).await;
            assert_eq!(texts(&app.rows(who).await), all);
        }
    }
}

/// Takes rows until it has those up to `to`, which is the cursor then. It asks again and again: a row that could not be read when it
/// came is told to whoever asks.
async fn caught_up(device: &mut Socket, mut cursor: u64, to: u64) -> u64 {
    loop {
        device.heartbeat(cursor).await;
        let frame = device.next().await.expect("open");
        if frame["type"] == "entries" {
            cursor = frame["synced"].as_u64().expect("a number");
        } else if cursor == to && frame["type"] == "alive" {
            return cursor;
        }
    }
}

/// With the version that Debian 12 has, which loses prepared statements, the start is refused instead.
#[tokio::test(flavor = "multi_thread")]
async fn in_transaction_mode_everything_works_through_it_or_the_start_says_why_not() {
    let world = World::start("transaction").await;
    if has_prepared_statements() {
        return Box::pin(world.chat_through_a_crash()).await;
    }
    let said = refused_with(&world.through, &[("TIDEMARK_STORAGE__LISTEN_URL", &world.direct)]).await;
    assert!(said.contains("a pooler in front of it mixes up prepared statements"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn in_session_mode_everything_works_through_it() {
    Box::pin(World::start("session").await.chat_through_a_crash()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn notifications_through_transaction_mode_are_found_missing_at_the_start() {
    let world = World::start("transaction").await;
    let said = refused_with(&world.direct, &[("TIDEMARK_STORAGE__LISTEN_URL", &world.through)]).await;
    assert!(said.contains("notifications of the database do not arrive"), "{said}");
    assert!(said.contains("set [storage] listen_url to the address of PostgreSQL itself"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_that_a_pooler_drops_are_asked_of_the_role() {
    let world = World::start("session").await;
    for (setting, told) in [
        ("lock_timeout = 0", "its lock_timeout is 0, because a pooler dropped the setting; run ALTER ROLE"),
        ("synchronous_commit = off", "its synchronous_commit is off, so it would lose acknowledged messages"),
        (
            "synchronous_commit = local",
            "its synchronous_commit is local, so it would lose acknowledged messages",
        ),
    ] {
        as_owner(&world.direct, &format!("ALTER ROLE postgres SET {setting}")).await;
        // Sessions have the settings of their beginning.
        world.pooler.kill();
        world.pooler.run();
        let said = refused(&world.through).await;
        assert!(said.contains(told), "{said}");
        as_owner(&world.direct, "ALTER ROLE postgres SET lock_timeout = '2s'").await;
    }
}
