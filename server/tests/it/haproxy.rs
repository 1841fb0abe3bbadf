//! The configuration of HAProxy in `docs/operating/`, run before two real servers. Each has data of its own, which no
//! installation would do: so a token tells which of them has answered.

use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

use tempfile::TempDir;
use tidemark::config::Config;
use tidemark_client::{Client, Error, Event, Events, Http, MemoryStore, Options, Recipient};
use tidemark_test_support::servers::haproxy::Proxy;
use tidemark_test_support::until::{PATIENCE, until};
use tidemark_trials::server::Server;
use tokio::process::Command;
use tokio::time::timeout;

const CONFIGURATION: &str = include_str!("../../../docs/operating/haproxy.cfg");
const PASSWORD: &str = "a long enough password";

/// One server, with one account.
struct Site {
    server: Server,
    /// Calls through the proxy as the account of this server, each over a connection of its own.
    through: Http,
    uid: u32,
    _data: TempDir,
}

struct World {
    proxy: Proxy,
    sites: Vec<Site>,
}

impl World {
    async fn start(settings: &[(&str, String)]) -> World {
        let (first, second) = (start(settings).await, start(settings).await);
        let addresses = [&first, &second].map(|(server, _)| server.address().replace("http://", ""));
        let proxy = Proxy::before(CONFIGURATION, &addresses);
        let url = proxy.url();
        let sites = vec![site(first, &url).await, site(second, &url).await];
        World { proxy, sites }
    }

    /// Whether the account of this server is known where its call arrives, asked so many times.
    async fn known(&self, site: usize, times: usize) -> Vec<bool> {
        let mut known = Vec::new();
        for _ in 0..times {
            known.push(match self.sites[site].through.me().await {
                Ok(_) => true,
                Err(error) if error.status() == Some(401) => false,
                Err(error) => panic!("neither server answered: {error}"),
            });
        }
        known
    }

    async fn until_status(&self, server: &str, status: &str) {
        until(&format!("{server} is {status}"), async || self.proxy.status(server) == status).await;
    }
}

async fn start(settings: &[(&str, String)]) -> (Server, TempDir) {
    let data = tempfile::tempdir().expect("a folder");
    let binary = Path::new(env!("CARGO_BIN_EXE_tidemark"));
    (Server::start_with(settings, 0, binary, data.path()).await.expect("starts"), data)
}

async fn site((server, data): (Server, TempDir), proxy: &str) -> Site {
    let account = server.http().expect("an address").sign_up("ann", PASSWORD).await.expect("signed up");
    let through = Http::new(proxy).expect("an address").with_token(&account.token);
    Site { server, through, uid: account.uid, _data: data }
}

async fn signal(server: &Server, name: &str) {
    let pid = server.pid().expect("it runs").to_string();
    let told = Command::new("kill").args([name, &pid]).status().await.expect("runs");
    assert!(told.success());
}

async fn next(events: &mut Events) -> Event {
    timeout(PATIENCE, events.next()).await.expect("in time").expect("the client goes on")
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_and_websockets_go_to_servers_that_are_ready_and_to_no_others() {
    let mut world = World::start(&[]).await;
    let both = world.known(0, 20).await;
    assert!(both.contains(&true) && both.contains(&false), "both are asked: {both:?}");

    // It still listens and answers nothing: only the check can tell.
    signal(&world.sites[0].server, "-STOP").await;
    world.until_status("chat-1", "DOWN").await;
    assert_eq!(world.known(1, 20).await, [true; 20]);

    let site = &world.sites[1];
    let (client, mut events) = Client::start(site.through.clone(), MemoryStore::new(), Options::default());
    let sent = client.send_text(Recipient::User(site.uid), "through the proxy");
    timeout(PATIENCE, sent).await.expect("in time").expect("sent");
    while !matches!(next(&mut events).await, Event::Rows(rows) if rows[0].text().as_deref() == Some("through the proxy"))
    {
    }

    signal(&world.sites[0].server, "-CONT").await;
    world.until_status("chat-1", "UP").await;
    world.proxy.tell("set server tidemark/chat-2 state drain");
    assert_eq!(world.known(0, 20).await, [true; 20], "a drained server gets nothing new");
    client.send_text(Recipient::User(site.uid), "and what is open stays").await.expect("sent");
    world.proxy.tell("set server tidemark/chat-2 state ready");

    // One that stops says so to its clients, and nobody else notices: not even before the check has.
    let stopped = world.sites.pop().expect("the second");
    assert!(stopped.server.stop().await.expect("stops").success());
    assert_eq!(world.known(0, 20).await, [true; 20]);
    loop {
        match next(&mut events).await {
            Event::Offline { error: Error::Closed { code, .. }, .. } => return assert_eq!(code, Some(1012)),
            Event::Offline { error, .. } => panic!("it ended otherwise: {error}"),
            _ => {}
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_count_the_addresses_of_clients_and_not_that_of_the_proxy() {
    let settings = [
        ("TIDEMARK_SERVER__TRUSTED_PROXIES", "127.0.0.1/32".to_owned()),
        ("TIDEMARK_LIMITS__SIGN_UPS_PER_ADDRESS_PER_MINUTE", "1".to_owned()),
    ];
    let world = World::start(&settings).await;
    // So that one server counts.
    world.proxy.tell("set server tidemark/chat-2 state maint");
    let sign_up = async |last: u8, n: u8| {
        let from = IpAddr::V4(Ipv4Addr::new(127, 0, 0, last));
        let http = reqwest::Client::builder().local_address(from).build().expect("a client");
        let body = serde_json::json!({"name": format!("user {last} {n}"), "password": PASSWORD}).to_string();
        let call = http.post(format!("{}/api/v1/accounts", world.proxy.url())).body(body);
        // A forged header gains the client nothing.
        let call = call.header("x-forwarded-for", format!("198.51.100.{n}"));
        let call = call.header("content-type", "application/json");
        call.send().await.expect("answered").status().as_u16()
    };
    // The limit of one lets a burst of ten through.
    let mut statuses = Vec::new();
    for n in 0..12 {
        statuses.push(sign_up(2, n).await);
    }
    assert_eq!((statuses[0], statuses[11]), (201, 429), "one client: {statuses:?}");
    assert_eq!(sign_up(3, 0).await, 201, "another client");
}

/// The proxy must not close a connection that only beats.
#[test]
fn silent_websockets_stay_longer_than_three_heartbeats() {
    let tunnel = CONFIGURATION.lines().find_map(|line| line.trim().strip_prefix("timeout tunnel "));
    let seconds: u64 = tunnel.and_then(|time| time.strip_suffix('s')?.parse().ok()).expect("in seconds");
    let config = Config::default();
    assert!(seconds > 3 * u64::from(config.server.heartbeat_seconds));
}
