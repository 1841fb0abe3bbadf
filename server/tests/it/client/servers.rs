//! The Rust client with two addresses, before both of which a gate can break: nothing is lost, nothing comes twice.
//! Behind both is the same server, as two servers over one database would be the same installation.

use std::path::Path;
use std::time::Duration;

use futures_util::future::join_all;
use tempfile::TempDir;
use tidemark_client::{
    Account, Client, Draft, Entry, Event, Events, Http, Kind, MemoryStore, Options, RangeQuery, Recipient,
};
use tidemark_test_support::gate::Gate;
use tidemark_test_support::until::PATIENCE;
use tidemark_trials::server::Server;
use tokio::time::timeout;

struct World {
    server: Server,
    _data: TempDir,
}

impl World {
    async fn start() -> World {
        let data = tempfile::tempdir().expect("a folder");
        let binary = Path::new(env!("CARGO_BIN_EXE_tidemark"));
        let server = Server::start(binary, data.path()).await.expect("starts");
        World { server, _data: data }
    }

    /// An account, made without a gate.
    async fn person(&self, name: &str) -> Account {
        let http = self.server.http().expect("an address");
        http.sign_up(name, "a long enough password").await.expect("signed up")
    }

    async fn gates(&self) -> Gates {
        let target = self.server.address().strip_prefix("http://").expect("an HTTP address");
        Gates([Gate::before(target).await, Gate::before(target).await])
    }
}

/// Two ways to the server.
struct Gates([Gate; 2]);

impl Gates {
    fn http(&self, account: &Account) -> Http {
        let bases = self.0.each_ref().map(|gate| format!("http://{}", gate.address()));
        let http = Http::any_of(&[&bases[0], &bases[1]]).expect("addresses");
        http.with_token(&account.token)
    }

    /// Which of them an address is.
    fn place(&self, server: &str) -> usize {
        let found = self.0.iter().position(|gate| server.contains(&gate.address()));
        found.expect("it is one of the two")
    }
}

struct Device {
    client: Client,
    events: Events,
    store: MemoryStore,
}

impl Device {
    fn start(http: &Http) -> Device {
        let options = Options {
            first_retry: Duration::from_millis(20),
            longest_retry: Duration::from_millis(200),
            ..Options::default()
        };
        let store = MemoryStore::new();
        let (client, events) = Client::start(http.clone(), store.clone(), options);
        Device { client, events, store }
    }

    /// Reads events until one answers the question.
    async fn until<T>(&mut self, mut asked: impl FnMut(Event) -> Option<T>) -> T {
        let answered = async {
            loop {
                let event = self.events.next().await.expect("the client goes on");
                if let Some(answer) = asked(event) {
                    return answer;
                }
            }
        };
        timeout(PATIENCE, answered).await.expect("in time")
    }

    /// Waits for a connection; answers where it went.
    async fn online(&mut self) -> String {
        let connected = |event| if let Event::Online { server, .. } = event { Some(server) } else { None };
        self.until(connected).await
    }

    /// Waits until this many messages are there.
    async fn messages(&mut self, count: usize) -> Vec<String> {
        let store = self.store.clone();
        let stored = || Some(texts(&store.rows())).filter(|texts| texts.len() >= count);
        match stored() {
            Some(texts) => texts,
            None => self.until(|_| stored()).await,
        }
    }

    /// So many times: the gate in use breaks, the device is there again through the other one, and the broken one opens.
    async fn breaks(&mut self, gates: &mut Gates, limits: &[(u64, u64)]) {
        let mut place = gates.place(&self.online().await);
        for (to_server, to_client) in limits {
            timeout(PATIENCE, gates.0[place].broken()).await.expect("it breaks by what passes");
            let other = gates.place(&self.online().await);
            assert_ne!(other, place, "the broken gate takes nobody");
            gates.0[place].open().await;
            gates.0[place].break_after(*to_server, *to_client);
            place = other;
        }
    }
}

fn texts(rows: &[Entry]) -> Vec<String> {
    rows.iter().filter(|row| row.kind == Kind::Message).filter_map(Entry::text).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn breaks_in_the_middle_of_sends_lose_nothing_and_double_nothing() {
    const MESSAGES: usize = 400;
    const UNLIMITED: u64 = u64::MAX;
    // The bytes that pass before each break: the question is lost, or the answer.
    const LIMITS: [(u64, u64); 6] = [
        (2_500, UNLIMITED),
        (UNLIMITED, 1_700),
        (3_100, UNLIMITED),
        (UNLIMITED, 2_300),
        (UNLIMITED, UNLIMITED),
        (UNLIMITED, UNLIMITED),
    ];
    let world = World::start().await;
    let (ann, bob) = (world.person("ann").await, world.person("bob").await);
    let (mut anns_gates, mut bobs_gates) = (world.gates().await, world.gates().await);
    for gates in [&anns_gates, &bobs_gates] {
        gates.0[0].break_after(2_900, UNLIMITED);
        gates.0[1].break_after(UNLIMITED, 2_700);
    }
    let (mut anns, mut bobs) = (Device::start(&anns_gates.http(&ann)), Device::start(&bobs_gates.http(&bob)));

    let sending = tokio::spawn({
        let client = anns.client.clone();
        let drafts = (0..MESSAGES).map(|n| Draft::text(Recipient::User(bob.uid), &n.to_string()));
        let drafts: Vec<Draft> = drafts.collect();
        async move { join_all(drafts.into_iter().map(|draft| client.send(draft))).await }
    });
    // Bob hears far more than he says, so only the limits of answers break his gates.
    let bobs_limits = LIMITS.map(|(to_server, to_client)| (UNLIMITED, to_server.min(to_client)));
    let (first, second) = (&mut anns, &mut bobs);
    bobs_gates.0[0].break_after(UNLIMITED, 2_900);
    tokio::join!(first.breaks(&mut anns_gates, &LIMITS), second.breaks(&mut bobs_gates, &bobs_limits));

    let all: Vec<String> = (0..MESSAGES).map(|n| n.to_string()).collect();
    // A device whose events nobody reads gets no answers.
    assert_eq!(anns.messages(MESSAGES).await, all);
    assert_eq!(bobs.messages(MESSAGES).await, all);
    let sent = timeout(PATIENCE, sending).await.expect("in time").expect("no panic");
    let sent: Vec<u64> = sent.into_iter().map(|one| one.expect("sent").message_id).collect();
    assert!(sent.is_sorted_by(|a, b| a < b), "accepted in the order of the calls: {sent:?}");
    let server = world.server.http().expect("an address");
    for (account, device) in [(&ann, &anns), (&bob, &bobs)] {
        let http = server.with_token(&account.token);
        assert_eq!(http.range(&RangeQuery::after(0)).await.expect("rows").rows, device.store.rows());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn while_both_are_down_it_waits_and_goes_on_when_one_returns() {
    let world = World::start().await;
    let (ann, bob) = (world.person("ann").await, world.person("bob").await);
    let mut gates = world.gates().await;
    let mut device = Device::start(&gates.http(&ann));
    let place = gates.place(&device.online().await);
    for gate in &mut gates.0 {
        gate.shut().await;
    }
    let sending = tokio::spawn({
        let client = device.client.clone();
        async move { client.send_text(Recipient::User(bob.uid), "meanwhile").await }
    });
    // The connection that broke, and then two rounds over both.
    for _ in 0..5 {
        device.until(|event| matches!(event, Event::Offline { .. }).then_some(())).await;
    }
    gates.0[1 - place].open().await;
    assert_eq!(gates.place(&device.online().await), 1 - place);
    timeout(PATIENCE, sending).await.expect("in time").expect("no panic").expect("sent");
    assert_eq!(device.messages(1).await, ["meanwhile"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_go_on_through_the_other_address_and_are_carried_out_once() {
    let world = World::start().await;
    let (ann, bob, eve) = (world.person("ann").await, world.person("bob").await, world.person("eve").await);
    let mut gates = world.gates().await;
    let http = gates.http(&ann);
    // The gate that the calls go through loses the answer; the other one stays.
    let place = gates.place(&http.socket_url());
    let lose_the_answer = async |gates: &mut Gates, place: usize| {
        for gate in &mut gates.0 {
            gate.open().await;
        }
        gates.0[place].break_after(u64::MAX, 0);
    };
    lose_the_answer(&mut gates, place).await;
    let draft = Draft::text(Recipient::User(bob.uid), "once");
    let first = http.send(&draft).await.expect("asked again at the other address");
    assert_eq!(http.send(&draft).await.expect("the first answer"), first);
    assert_eq!(gates.place(&http.socket_url()), 1 - place, "later calls begin where the answer came from");
    assert_eq!(http.range(&RangeQuery::after(0)).await.expect("rows").rows.len(), 1);

    let gid = http.create_group("three", &[bob.uid]).await.expect("made");
    lose_the_answer(&mut gates, 1 - place).await;
    http.add_member(gid, eve.uid).await.expect("added by the first try");
    lose_the_answer(&mut gates, place).await;
    http.remove_member(gid, eve.uid).await.expect("removed by the first try");
    assert_eq!(http.group(gid).await.expect("seen").members.len(), 2);

    lose_the_answer(&mut gates, 1 - place).await;
    http.create_group("twice", &[bob.uid]).await.expect("known again by its key, if the first try made it");
    let named = http.conversations().await.expect("listed");
    assert_eq!(named.iter().filter(|one| one.title == "twice").count(), 1);
}
