//! The shipped rules fire in a real Prometheus when PostgreSQL stops, one server cannot reach it, or its standby is away, and are silent
//! again when that is over.

use tidemark::config::Config;
use tidemark::store::postgres::Replication;
use tidemark_test_support::gate::Gate;
use tidemark_test_support::servers::postgres::Server;
use tidemark_test_support::servers::prometheus::Prometheus;
use tidemark_test_support::until::until;

use super::failover::World;
use crate::support::{Database, TestApp};

const RULES: &str = include_str!("../../../../docs/operating/alerts.yml");

/// A Prometheus that watches these servers.
fn watching(servers: &[&TestApp]) -> Prometheus {
    let addresses: Vec<&str> = servers.iter().map(|server| server.address.as_str()).collect();
    Prometheus::watching("tidemark", &addresses, RULES)
}

fn is_told(prometheus: &Prometheus, server: &TestApp) -> bool {
    prometheus.tells("TidemarkStorageNotReady", &server.address)
}

async fn until_told(prometheus: &Prometheus, server: &TestApp, told: bool) {
    let what = if told { "the alert fires" } else { "the alert is over" };
    until(what, async || is_told(prometheus, server) == told).await;
}

#[tokio::test]
async fn a_database_that_stops_is_told_of_each_server_and_one_that_is_cut_off_of_that_one() {
    let (database, _) = Server::start_with_tls("");
    let mut gate = Gate::before(&format!("127.0.0.1:{}", database.port())).await;
    let near = database.new_database().await;
    let name = near.rsplit_once('?').and_then(|(url, _)| url.rsplit_once('/')).expect("named").1.to_owned();
    let far = format!("postgres://postgres@{}/{name}?sslmode=disable", gate.address());
    let one = Database::Postgres.start_with(|config| config.storage.database_url = near.into()).await;
    let other = Database::Postgres.start_with(|config| config.storage.database_url = far.into()).await;
    let prometheus = watching(&[&one, &other]);

    gate.shut().await;
    until_told(&prometheus, &other, true).await;
    assert!(!is_told(&prometheus, &one), "it reaches the database");
    gate.open().await;
    until_told(&prometheus, &other, false).await;

    database.kill();
    for server in [&one, &other] {
        until_told(&prometheus, server, true).await;
    }
    database.run();
    for server in [&one, &other] {
        until_told(&prometheus, server, false).await;
    }
}

#[tokio::test]
async fn a_standby_that_is_away_is_told_of() {
    let world = World::start().await;
    let standby = world.synchronous_standby().await;
    let synchronous = |config: &mut Config| config.storage.replication = Replication::Synchronous;
    let app = world.server(synchronous).await;
    let prometheus = watching(&[&app]);
    standby.kill();
    until_told(&prometheus, &app, true).await;
    standby.run();
    until_told(&prometheus, &app, false).await;
}
