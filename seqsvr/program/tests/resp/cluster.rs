//! A cluster of real processes over the Redis protocol: any AllocSvr answers for every section, and clients live through
//! the death of one (docs/adr/0019).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use redis::Connection;
use tidemark_test_support::ports::free_port;

use crate::process::Process;

/// A process that speaks no Redis. Dropping it kills it.
struct Beside(Child);

impl Drop for Beside {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn beside(role: &str, words: &[&str], folder: &Path, text: &str) -> Beside {
    let config = folder.join(format!("{role}.toml"));
    fs::write(&config, text).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_seqsvr"));
    command.args([role, "--config"]).arg(&config).args(words);
    Beside(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
}

/// A store, an arbiter, and two AllocSvrs whose configurations are `alloc1.toml` and `alloc2.toml`. Ten sections.
fn cluster(folder: &Path) -> (Vec<Beside>, [Process; 2]) {
    let [store, arbiter] = [free_port(), free_port()];
    let ports = [free_port(), free_port()];
    let path = |name: &str| folder.join(name).display().to_string();
    let stores = format!("replicas = [\"http://127.0.0.1:{store}\"]\n");
    let directory = path("store1");
    let text = format!(
        "cluster = \"it\"\nname = \"store1\"\nlisten = \"127.0.0.1:{store}\"\ndirectory = {directory:?}\n"
    );
    let mut others = vec![beside("store", &["--init"], folder, &text)];
    let mut text = format!(
        "cluster = \"it\"\nnumber = 0\nlisten = \"127.0.0.1:{arbiter}\"\n[set]\nlast_uid = 999999\n[stores]\n{stores}"
    );
    for (index, port) in ports.iter().enumerate() {
        let name = format!("alloc{}", index + 1);
        text += &format!("[[allocators]]\nname = {name:?}\naddr = \"http://127.0.0.1:{port}\"\n");
        let directory = path(&name);
        let alloc = format!(
            "cluster = \"it\"\nname = {name:?}\nlisten = \"127.0.0.1:{port}\"\ndirectory = {directory:?}\n\
             [[sets]]\n[sets.stores]\n{stores}[resp]\nlisten = \"127.0.0.1:0\"\n"
        );
        fs::write(folder.join(format!("{name}.toml")), alloc).unwrap();
    }
    others.push(beside("arbiter", &[], folder, &text));
    let start = |name: &str| Process::role("alloc", &folder.join(format!("{name}.toml")));
    (others, [start("alloc1"), start("alloc2")])
}

fn key(uid: u32) -> String {
    format!("{{0.{}}}:{uid}", uid / 100_000)
}

fn connect(addr: &str) -> Option<Connection> {
    redis::Client::open(format!("redis://{addr}")).unwrap().get_connection().ok()
}

/// The answer, when there is one at last.
fn insist<T: redis::FromRedisValue>(connection: &mut Connection, words: &[&str]) -> T {
    loop {
        let mut command = redis::cmd(words[0]);
        match command.arg(&words[1..]).query(connection) {
            Ok(answer) => return answer,
            Err(error) => assert!(error.to_string().contains("TryAgain"), "{words:?}: {error}"),
        }
    }
}

#[test]
fn every_node_answers_for_every_section() {
    let folder = tempfile::tempdir().unwrap();
    let (_others, nodes) = cluster(folder.path());
    let mut connections: Vec<_> = nodes.iter().map(|node| connect(&node.addr).unwrap()).collect();
    for uid in (0..10).map(|section| section * 100_000 + 7) {
        let key = key(uid);
        let mut last = 0;
        for connection in &mut connections {
            let number: u64 = insist(connection, &["INCR", &key]);
            assert!(number > last, "{key}: {number} after {last}");
            last = insist(connection, &["INCRBY", &key, "10"]);
            assert_eq!(last, number + 10);
            assert_eq!(insist::<u64>(connection, &["GET", &key]), last);
        }
        insist::<()>(&mut connections[0], &["SET", &key, "500000"]);
        assert!(insist::<u64>(&mut connections[1], &["INCR", &key]) > 500_000);
    }
    for (line, why) in [
        ("INCR 42", "the key of a sequence is {SET.SECTION}:UID"),
        ("INCR {0.3}:42", "uid 42 lies in section 0: write {0.0}:42"),
        ("INCR {1.0}:42", "Set 1 has no part in this AllocSvr"),
        ("INCR {0.10}:1000000", "uid 1000000 is outside Set 0"),
        ("INCRBY {0.0}:42 100001", "ask for 1 to 100000"),
        ("SET {0.0}:7 1", "never goes back"),
    ] {
        let answer = nodes[0].raw(format!("{line}\r\nQUIT\r\n").as_bytes());
        assert!(answer.starts_with("-ERR ") && answer.contains(why), "{line}: {answer}");
    }
}

#[test]
fn no_number_comes_twice_or_goes_back_when_an_owner_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let (_others, [mut dies, stays]) = cluster(folder.path());
    let mut first = connect(&stays.addr).unwrap();
    for section in 0..10 {
        insist::<u64>(&mut first, &["INCR", &key(section * 100_000)]);
    }
    let addrs = Mutex::new([dies.addr.clone(), stays.addr.clone()]);
    // Of each uid the numbers that were answered.
    let answered = Mutex::new(BTreeMap::<u32, BTreeSet<u64>>::new());
    let (stop, count) = (AtomicBool::new(false), AtomicUsize::new(0));
    let take = |client: usize| {
        let (mut turn, mut connection) = (client, None);
        for uid in (0..10_u32).map(|section| section * 100_000).cycle() {
            if stop.load(Ordering::Relaxed) {
                return;
            }
            let addr = addrs.lock().unwrap()[turn % 2].clone();
            let Some(open) = connection.as_mut() else {
                connection = connect(&addr);
                turn += usize::from(connection.is_none());
                continue;
            };
            let floor = answered.lock().unwrap().get(&uid).and_then(|numbers| numbers.last().copied());
            match redis::cmd("INCR").arg(key(uid)).query::<u64>(open) {
                Ok(number) => {
                    assert!(Some(number) > floor, "uid {uid}: {number} after {floor:?}");
                    assert!(
                        answered.lock().unwrap().entry(uid).or_default().insert(number),
                        "{uid}: {number} twice"
                    );
                    count.fetch_add(1, Ordering::Relaxed);
                }
                Err(error) if error.to_string().contains("TryAgain") => {}
                // The node is gone: to the other one.
                Err(error) => {
                    assert!(error.is_io_error() || error.is_connection_dropped(), "{error}");
                    (turn, connection) = (turn + 1, None);
                }
            }
        }
    };
    thread::scope(|scope| {
        let clients: Vec<_> = (0..4).map(|client| scope.spawn(move || take(client))).collect();
        let more = |wanted: usize| {
            let until = count.load(Ordering::Relaxed) + wanted;
            while count.load(Ordering::Relaxed) < until {
                assert!(
                    !clients.iter().any(|client| client.is_finished()),
                    "a client has seen something wrong"
                );
                thread::yield_now();
            }
        };
        for _ in 0..2 {
            more(500);
            dies.kill();
            // All sections are served again: each client takes of one after the other.
            more(500);
            dies = Process::role("alloc", &folder.path().join("alloc1.toml"));
            addrs.lock().unwrap()[0].clone_from(&dies.addr);
        }
        more(500);
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(answered.lock().unwrap().len(), 10, "every section was asked");
}
