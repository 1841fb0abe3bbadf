//! A configuration opens what it says, and every mistake has one clear error.

use super::*;
use crate::machine::{RedisRegistry, Registry as _};
use tidemark_test_support::servers::redis::RedisServer;

const GOOD: &str = r#"
    database = "memory"
    [machine]
    id = 7
    [tags.order]
    start = 100
    step = 50
    plugins = ["history", "rate"]
    [tags.trace]
    strategy = "snowflake"
    bits = { time = 41, data_centre = 2, worker = 8, sequence = 12 }
    fall_back_to = "order"
"#;

async fn open(text: &str) -> Result<Running, String> {
    let config: IssuerConfig = toml::from_str(text).map_err(|error| error.message().to_owned())?;
    let place = tempfile::tempdir().unwrap();
    config.open(Clock::system(), place.path()).await.map_err(|error| error.to_string())
}

#[tokio::test]
async fn tags_are_opened_as_configured() {
    let running = open(GOOD).await.unwrap();
    assert_eq!(running.issuer.next("order", 3).await.unwrap().first(), 100);
    assert_eq!(running.history.records().len(), 1);
    let trace = running.issuer.next("trace", 1).await.unwrap().first();
    let parts = running.issuer.decode("trace", &trace.to_string()).unwrap().parts;
    let machine = parts.iter().find(|part| part.name == "machine").map(|part| part.value.as_str());
    assert_eq!(machine, Some("7"));
    let tags: Vec<_> =
        running.issuer.tags().into_iter().map(|info| (info.tag.to_string(), info.strategy)).collect();
    assert_eq!(
        tags,
        [("order".to_owned(), "segment".to_owned()), ("trace".to_owned(), "snowflake".to_owned())]
    );
    running.shutdown().await;
}

#[tokio::test]
async fn codes_are_made_and_read_and_a_changed_key_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let key = |name: &str, secret: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, secret).unwrap();
        path.display().to_string()
    };
    let database = folder.path().join("issuer.db").display().to_string();
    let config = |key: &str, alphabet: &str| {
        format!(
            "database = \"sqlite:{database}\"\n[tags.invite.code]\nlast = 999999\nkey_files = [\"{key}\"]\n{alphabet}"
        )
    };
    let first = key("first", "a secret that is long enough");
    let running = open(&config(&first, "")).await.unwrap();
    let issued = running.issuer.next("invite", 2).await.unwrap();
    assert_eq!(issued.codes().len(), 2);
    for (number, code) in issued.numbers().zip(issued.codes()) {
        assert_eq!(running.issuer.decode("invite", code).unwrap().number, number);
    }
    running.shutdown().await;
    let second = key("second", "another secret, long enough too");
    for changed in [config(&second, ""), config(&first, "alphabet = \"abcdefgh\"")] {
        let error = open(&changed).await.err().expect("it is refused");
        assert!(error.contains("invite") && error.contains("version 1"), "{error}");
    }
}

/// The machine part of a snowflake of each of two instances that are open at once, registered as these keys say.
async fn registered(issuer: &str, machine: &str) -> [u64; 2] {
    let with = |name: &str| {
        let machine = format!("[machine]\ninstance = \"{name}\"\n{machine}\n");
        let bits = "bits = { time = 50, worker = 1, sequence = 12 }";
        format!("{issuer}\n{machine}[tags.trace]\nstrategy = \"snowflake\"\n{bits}\n")
    };
    let mut seen = [0, 0];
    let mut open_ones = vec![];
    for (name, seen) in ["sequence-client:8112:1", "sequence-client:8112:2"].into_iter().zip(&mut seen) {
        let running = open(&with(name)).await.unwrap();
        let number = running.issuer.next("trace", 1).await.unwrap().first();
        let parts = running.issuer.decode("trace", &number.to_string()).unwrap().parts;
        let machine = parts.iter().find(|part| part.name == "machine").unwrap();
        *seen = machine.value.parse().unwrap();
        open_ones.push(running);
    }
    let third = open(&with("sequence-client:8112:3")).await.unwrap();
    assert!(third.issuer.next("trace", 1).await.is_err(), "both ids are held");
    for running in open_ones.iter().chain([&third]) {
        running.shutdown().await;
    }
    seen
}

#[tokio::test]
async fn machine_ids_are_registered_in_the_database() {
    let folder = tempfile::tempdir().unwrap();
    let database = format!("database = \"sqlite:{}\"", folder.path().join("issuer.db").display());
    let [one, two] = registered(&database, "").await;
    assert_ne!(one, two);
}

#[tokio::test]
async fn machine_ids_are_registered_in_redis() {
    let redis = RedisServer::start();
    let [one, two] = registered("", &format!("redis = \"{}\"", redis.url())).await;
    assert_ne!(one, two);
    let rows = RedisRegistry::new(&redis.url(), "issuer").unwrap().rows().await.unwrap();
    assert!(rows.len() == 2 && rows.iter().all(|row| !row.live), "both were given back: {rows:?}");
}

#[tokio::test]
async fn machine_ids_are_registered_in_etcd() {
    let endpoints = tidemark_test_support::servers::etcd::endpoints();
    let [one, two] = registered("", &format!("etcd.endpoints = {endpoints:?}")).await;
    assert_ne!(one, two);
}

#[tokio::test]
async fn of_two_processes_with_one_machine_id_the_second_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let database = format!("database = \"sqlite:{}\"", folder.path().join("issuer.db").display());
    let with = |id: u32, place: &str| {
        let place = folder.path().join(place);
        format!(
            "{database}\n[machine]\nid = {id}\nfolder = {place:?}\n[tags.trace]\nstrategy = \"snowflake\""
        )
    };
    let first = open(&with(3, "first")).await.unwrap();
    let there = first.issuer.next("trace", 1).await.unwrap().first();
    for (place, reported) in [
        (
            "elsewhere",
            "machine id 3 is held by another process that uses the same database; give this one another",
        ),
        ("first", "is in use: stop the other process"),
    ] {
        let error = open(&with(3, place)).await.err().expect("it is refused");
        assert!(error.contains(reported) && !error.contains('\n'), "{error}");
    }
    // A registered one is given what is free.
    let registered =
        format!("{database}\n[machine]\ninstance = \"a\"\n[tags.trace]\nstrategy = \"snowflake\"");
    let other = open(&registered).await.unwrap();
    let number = other.issuer.next("trace", 1).await.unwrap().first();
    let machine = |number: u64| number >> 12 & 1_023;
    assert!(machine(there) == 3 && machine(number) != 3);
    other.shutdown().await;
    first.shutdown().await;
    open(&with(3, "elsewhere")).await.unwrap().shutdown().await;
}

#[tokio::test]
async fn a_clock_set_back_across_a_restart_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let config: IssuerConfig =
        toml::from_str("[machine]\nid = 0\n[tags.trace]\nstrategy = \"snowflake\"").unwrap();
    let hands = crate::clock::manual::Hands::at(1_800_000_000_000);
    let running = config.open(hands.clock(), folder.path()).await.unwrap();
    running.issuer.next("trace", 1).await.unwrap();
    running.shutdown().await;
    drop(running);
    assert!(folder.path().join("issuer-state/machine-0/issuer.clock").exists(), "wherever it was started");
    hands.set(1_800_000_000_000 - 3_600_000);
    let running = config.open(hands.clock(), folder.path()).await.unwrap();
    let error = running.issuer.next("trace", 1).await.unwrap_err();
    assert!(error.is_retryable() && error.to_string().contains("ms behind the last number"), "{error}");
    running.shutdown().await;
}

#[tokio::test]
async fn a_key_may_be_a_text_or_random_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("invite.key");
    let code = async |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        let text =
            format!("database = \"memory\"\n[tags.invite.code]\nlast = 999999\nkey_files = [{path:?}]",);
        let running = open(&text).await?;
        let issued = running.issuer.next("invite", 1).await.unwrap();
        running.shutdown().await;
        Ok::<_, String>(issued.codes()[0].clone())
    };
    let mut random = [0xff; 32];
    let one = code(&random).await.unwrap();
    random[31] = 0xfe;
    assert_ne!(code(&random).await.unwrap(), one);
    assert_eq!(code(b"a secret that is long enough").await, code(b"a secret that is long enough\n").await);
    let short = code(&[0xff; 15]).await.unwrap_err();
    assert!(short.contains("15 bytes"), "{short}");
}

/// Nothing listens on port 1. Paused time, since connecting is tried for seconds.
#[tokio::test(start_paused = true)]
async fn a_start_survives_a_registry_that_is_away() {
    let away = "database = \"postgres://nobody@127.0.0.1:1/none\"\n[machine]\ninstance = \"a:1:2\"\n";
    let running = open(&format!("{away}[tags.trace]\nstrategy = \"snowflake\"")).await.unwrap();
    let error = running.issuer.next("trace", 1).await.unwrap_err();
    assert!(error.is_retryable() && error.to_string().contains("no machine id is held"), "{error}");
    running.shutdown().await;
}

#[tokio::test]
async fn each_mistake_has_one_clear_error() {
    let tag = |keys: &str| format!("database = \"memory\"\n[machine]\nid = 0\n[tags.order]\n{keys}");
    let machine = |machine: &str, database: &str| {
        format!("{database}\n[machine]\n{machine}\n[tags.order]\nstrategy = \"snowflake\"")
    };
    for (text, reported) in [
        (String::new(), "no tags are configured; add a section [issuer.tags.NAME]"),
        ("database = \"memory\"\n[tags.Order]".to_owned(), "bad tag name \"Order\""),
        (
            "database = \"mysql://x\"\n[tags.order]".to_owned(),
            "write sqlite:PATH, postgres://USER@HOST/NAME or memory",
        ),
        (tag("colour = 1"), "unknown field `colour`"),
        (tag("strategy = \"magic\""), "unknown variant `magic`"),
        (tag("step = 0"), "order: step_min = 0, step = 0"),
        (tag("step = 100\nstep_max = 50"), "step_max = 50"),
        (tag("start = 0"), "order: start = 0 is not between"),
        (tag("prepare_at = 100"), "prepare_at = 100"),
        (tag("epoch = 1"), "tag order: epoch does not belong to the tag's strategy"),
        (
            tag("extend_segments = 2"),
            "order: extending while the database is away needs a journal; name a file",
        ),
        (tag("plugins = [\"magic\"]"), "tag order: unknown plugin \"magic\"; there are history and rate"),
        (tag("fall_back_to = \"other\""), "tag order falls back to other: name another, configured tag"),
        (tag("strategy = \"redis\""), "order: name at least one URL of Redis"),
        (format!("redis = [\"nonsense\"]\n{}", tag("strategy = \"redis\"")), "a Redis URL is invalid"),
        (
            format!("redis = [\"redis://:s@h\"]\n{}", tag("strategy = \"redis\"")),
            "order: the password of the Redis at h would cross the network in plain text",
        ),
        (tag("strategy = \"snowflake\"\nstart = 5"), "start does not belong"),
        (tag("strategy = \"snowflake\"\nepoch = 99999999999999"), "later than now"),
        (
            tag("strategy = \"snowflake\"\nbits = { time = 41, worker = 10, sequence = 13 }"),
            "tag order: bits: time 41 + data_centre 0 + worker 10 + sequence 13 is 64; make it 63",
        ),
        (machine("id = 1024", ""), "machine id 1024 is out of range"),
        (machine("id = 99999999999", ""), "machine id 99999999999 is out of range"),
        (machine("", ""), "[issuer.machine]: snowflakes need to know who this process is: write id = 0 if"),
        (machine("id = 1\ninstance = \"a\"", ""), "give one of id and instance"),
        (
            machine("instance = \"a\"", ""),
            "an instance is registered where all processes see it: set [issuer]",
        ),
        (
            machine("instance = \"a\"", "database = \"memory\""),
            "an instance is registered where all processes",
        ),
        (machine("instance = \"a/b\"", ""), "bad instance name \"a/b\""),
        (machine("id = 1\nfolder = \"/proc/no\"", ""), "cannot make the folder /proc/no"),
        (
            machine("id = 1\nredis = \"redis://h\"", ""),
            "redis and etcd say where an instance is registered; name it with instance",
        ),
        (
            machine("instance = \"a\"\nredis = \"h\"\netcd.endpoints = []", ""),
            "register in one of redis and etcd, not in both",
        ),
        (machine("instance = \"a\"\nredis = \"http://h\"", ""), "[issuer.machine]: a Redis URL is invalid"),
        (
            machine("instance = \"a\"\nredis = \"redis://:s@h\"", ""),
            "[issuer.machine]: the password of the Redis at h",
        ),
        (machine("instance = \"a\"\netcd.endpoints = []", ""), "name 1 to 15 endpoints"),
        ("[tags.order]".to_owned(), "[issuer]: name the database that keeps what was issued"),
        (tag("[tags.order.code]\nlast = 9\nkey_files = []"), "tag order: no key is configured"),
        (
            tag("[tags.order.code]\nlast = 9\nkey_files = [\"/no/such/key\"]"),
            "cannot read the key /no/such/key",
        ),
    ] {
        let error = open(&text).await.err().unwrap_or_else(|| panic!("refused: {text}"));
        assert!(error.contains(reported), "{text}: {error}");
    }
}
