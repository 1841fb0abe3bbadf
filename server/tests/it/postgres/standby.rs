//! A primary of PostgreSQL shows what its synchronous standby lacks: it crashed while that was away, or somebody ended the wait for it.
//! No server answers or shows that.

use std::cell::Cell;

use serde_json::json;
use sqlx::{Connection as _, PgConnection};
use tidemark::config::Config;
use tidemark::store::postgres::Replication;
use tidemark_test_support::servers::postgres::Server;
use tidemark_test_support::until::until;

use super::failover::World;
use crate::support::{Person, TestApp, message, texts};

/// A message that the primary has and its standby lacks. Nobody was told of it.
struct Case {
    world: World,
    app: TestApp,
    ann: Person,
    bob: Person,
}

fn synchronous(config: &mut Config) {
    config.storage.replication = Replication::Synchronous;
    // How long a request waits for a connection that is confirmed, and in all.
    config.storage.connect_seconds = 2;
    config.storage.statement_seconds = 2;
    config.server.request_seconds = 20;
}

/// Asks `what` of each session whose commit waits for the standby.
async fn waiting(world: &World, what: &'static str) -> Vec<bool> {
    let mut beside = PgConnection::connect(world.primary.url()).await.expect("connected");
    let waiting = format!(
        "SELECT {what} FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query LIKE '%commit_messages%'"
    );
    sqlx::query_scalar(sqlx::AssertSqlSafe(waiting)).fetch_all(&mut beside).await.expect("the owner may")
}

impl Case {
    /// Bob has one message, and the standby goes before the second one is stored. `how`: what becomes of the wait, as SQL.
    async fn of(how: impl AsyncFnOnce(&World)) -> (Case, Server) {
        let world = World::start().await;
        let standby = world.synchronous_standby().await;
        let app = world.server(synchronous).await;
        let (ann, bob) = (app.sign_up("ann").await, app.sign_up("bob").await);
        let kept = message(1, json!({"user": bob.uid}), "kept");
        // A machine that is busy with other things may need longer than a request waits.
        until("the first message is stored", async || {
            app.post(&ann, "/api/v1/messages", kept.clone()).await.status.is_success()
        })
        .await;
        standby.kill();
        let case = Case { world, app, ann, bob };
        let waits = Cell::new(false);
        // On a machine that is busy with other things a request may be refused before its commit is reached.
        let sent = async {
            loop {
                let status = case.sends().await;
                if waits.get() || !is_no_answer(status) {
                    return status;
                }
            }
        };
        let ends = async {
            until("the commit waits for the standby", async || {
                !waiting(&case.world, "true").await.is_empty()
            })
            .await;
            waits.set(true);
            how(&case.world).await;
        };
        let (status, ()) = tokio::join!(sent, ends);
        assert!(is_no_answer(status), "{status}: nothing is answered that the standby lacks");
        (case, standby)
    }

    async fn sends(&self) -> u16 {
        let body = message(2, json!({"user": self.bob.uid}), "lost");
        self.app.post(&self.ann, "/api/v1/messages", body).await.status.as_u16()
    }

    /// The primary has the message, and none of its servers says so, whoever asks.
    async fn nobody_is_told(&self) {
        let stored = "SELECT count(*) = 2 FROM entries WHERE receiver = $1";
        let url = self.app.config.storage.database_url.with_password();
        let mut beside = PgConnection::connect(url).await.expect("connected");
        let has =
            sqlx::query_scalar::<_, bool>(stored).bind(self.bob.uid.cast_signed()).fetch_one(&mut beside);
        assert!(has.await.expect("read"), "the primary shows it");
        let range = self.app.get(&self.bob, "/api/v1/range");
        let (sent, range) = tokio::join!(Box::pin(self.sends()), Box::pin(range));
        assert!(is_no_answer(sent));
        let is_told = !is_no_answer(range.status.as_u16());
        assert!(!is_told || texts_of(&range.json()) == ["kept"], "{}", range.json());
    }

    /// The standby takes over: the message is gone, and nobody had it.
    async fn standby_takes_over(self, standby: &Server) {
        self.world.primary.kill();
        standby.run();
        self.world.fail_over_to(standby).await;
        self.goes_on().await;
    }

    /// The standby comes back: the message was stored once.
    async fn standby_follows(self, standby: &Server) {
        standby.run();
        self.goes_on().await;
    }

    /// Sent again, it is stored once.
    async fn goes_on(&self) {
        until("it is stored", async || !is_no_answer(self.sends().await)).await;
        let rows = self.app.rows(&self.bob).await;
        assert_eq!(texts(&rows), ["kept", "lost"]);
        assert_eq!(rows[1]["message_id"], 2, "the id was given to nobody else");
    }
}

/// "Try again", or nothing in time.
fn is_no_answer(status: u16) -> bool {
    [503, 408].contains(&status)
}

fn texts_of(range: &serde_json::Value) -> Vec<&str> {
    texts(range["entries"].as_array().expect("rows"))
}

async fn crash(world: &World) {
    world.primary.kill();
    world.primary.run();
}

async fn cancel(world: &World) {
    assert!(!waiting(world, "pg_cancel_backend(pid)").await.contains(&false));
}

async fn terminate(world: &World) {
    assert!(!waiting(world, "pg_terminate_backend(pid)").await.contains(&false));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_crash_leaves_behind_is_told_to_nobody_before_the_standby_has_it() {
    let (case, standby) = Box::pin(Case::of(crash)).await;
    case.nobody_is_told().await;
    Box::pin(case.standby_takes_over(&standby)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_cancelled_wait_leaves_behind_is_told_to_nobody_before_the_standby_has_it() {
    let (case, standby) = Box::pin(Case::of(cancel)).await;
    case.nobody_is_told().await;
    Box::pin(case.standby_takes_over(&standby)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_session_that_was_ended_leaves_behind_is_told_to_nobody_before_the_standby_has_it() {
    let (case, standby) = Box::pin(Case::of(terminate)).await;
    case.nobody_is_told().await;
    Box::pin(case.standby_takes_over(&standby)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_standby_has_after_all_was_stored_once() {
    let (case, standby) = Box::pin(Case::of(cancel)).await;
    Box::pin(case.standby_follows(&standby)).await;
}
