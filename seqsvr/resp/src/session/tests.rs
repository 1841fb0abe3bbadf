//! The order in which a client may say things.

use super::*;
use crate::parse::{Parsed, parse};

/// A client at a server that needs a token, or none.
struct Client {
    session: Session,
    replies: Replies,
    _token: Option<tempfile::NamedTempFile>,
}

const TOKEN: &str = "correct-horse-battery";

fn client(with_token: bool) -> Client {
    let token = with_token.then(|| {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), TOKEN).unwrap();
        file
    });
    let config = seqsvr_rpc::security::ListenConfig {
        token_file: token.as_ref().map(|file| file.path().to_owned()),
        ..Default::default()
    };
    let listen = "127.0.0.1:0".parse().unwrap();
    let listen = seqsvr_rpc::security::Listen::load(&config, listen, false).unwrap();
    Client { session: Session::new(7, listen.guard()), replies: Replies::default(), _token: token }
}

impl Client {
    /// Says these lines, and tells the answers; `…` where a counter would be asked.
    fn says(&mut self, lines: &str) -> String {
        let (input, mut at, mut places) = (format!("{lines}\r\n").into_bytes(), 0, Vec::new());
        self.replies.bytes.clear();
        while at < input.len() {
            let Ok(Parsed::Whole(end)) = parse(&input[at..], self.session.limits(), &mut places) else {
                panic!()
            };
            let step = self.session.take(Words::new(&input[at..], &places), &mut self.replies);
            match step {
                Step::Answered => {}
                Step::Work(_) | Step::Info => self.replies.simple("…"),
                Step::Run(bytes, count) => {
                    self.replies.simple(&format!("{count} commands of {} bytes", bytes.len()));
                }
                Step::Close => self.replies.simple("closed"),
            }
            at += end;
        }
        String::from_utf8(self.replies.bytes.clone()).unwrap().replace("\r\n", " ").trim_end().to_owned()
    }
}

#[test]
fn a_stranger_can_only_show_the_token() {
    for line in ["INCR a", "PING", "MULTI", "INFO", "COMMAND", "nonsense", "DEL a", "HELLO 3", "CLIENT ID"] {
        let answer = client(true).says(line);
        assert!(answer.starts_with("-NOAUTH "), "{line}: {answer}");
    }
    for line in ["AUTH wrong", "AUTH other correct-horse-battery", "HELLO 3 AUTH default wrong"] {
        let mut client = client(true);
        assert!(client.says(line).starts_with("-WRONGPASS "), "{line}");
        assert!(client.says("INCR a").starts_with("-NOAUTH "), "{line}");
    }
    for line in ["AUTH correct-horse-battery", "AUTH default correct-horse-battery"] {
        let mut client = client(true);
        assert_eq!(client.says(line), "+OK");
        assert_eq!(client.says("INCR a"), "+…");
        assert_eq!(client.says("RESET"), "+RESET");
        assert!(client.says("INCR a").starts_with("-NOAUTH "), "after RESET");
    }
    let mut client = client(true);
    assert!(client.says("HELLO 3 AUTH default correct-horse-battery SETNAME it").starts_with("%7 "));
    assert_eq!(client.says("CLIENT GETNAME"), "$2 it");
    assert!(client.limits().words > STRANGER.words);
}

impl Client {
    fn limits(&self) -> &'static Limits {
        self.session.limits()
    }
}

#[test]
fn without_a_token_nobody_is_a_stranger() {
    let mut client = client(false);
    assert_eq!(client.says("INCR a"), "+…");
    assert!(client.says("AUTH anything").starts_with("-ERR AUTH: no token is configured"));
    assert!(client.says("HELLO 2 AUTH default anything").starts_with("*14 "));
}

#[test]
fn hello_chooses_the_protocol() {
    let mut client = client(false);
    assert_eq!(client.says("CLIENT GETNAME"), "$-1");
    assert!(client.says("HELLO").starts_with("*14 $6 server $6 seqsvr "));
    let three = client.says("HELLO 3");
    assert!(three.starts_with("%7 ") && three.contains("$5 proto :3 $2 id :7 "), "{three}");
    assert_eq!(client.says("CLIENT GETNAME"), "_");
    assert!(client.says("HELLO 4").starts_with("-NOPROTO "));
    assert!(client.says("HELLO 3 NONSENSE").starts_with("-ERR syntax error in HELLO"));
    assert_eq!(client.says("CLIENT ID"), ":7");
}

#[test]
fn a_transaction_is_collected_and_one_wrong_command_ends_it() {
    let mut client = client(false);
    assert_eq!(client.says("MULTI\r\nINCR a\r\nGET a\r\nPING"), "+OK +QUEUED +QUEUED +QUEUED");
    assert_eq!(client.says("EXEC"), "+3 commands of 55 bytes");
    assert_eq!(client.says("MULTI\r\nINCR a\r\nDISCARD\r\nINCR a"), "+OK +QUEUED +OK +…");
    for wrong in ["DEL a", "INCR", "nonsense", "MULTI", "AUTH a", "WATCH a"] {
        let answer = client.says(&format!("MULTI\r\nINCR a\r\n{wrong}"));
        assert!(answer.starts_with("+OK +QUEUED -ERR "), "{answer}");
        assert!(client.says("EXEC").starts_with("-EXECABORT "), "{wrong}");
        assert!(client.says("EXEC").starts_with("-ERR EXEC without MULTI"));
    }
    assert!(client.says("DISCARD").starts_with("-ERR DISCARD without MULTI"));
}

#[test]
fn a_transaction_has_a_bound() {
    let mut client = client(false);
    client.says("MULTI");
    let line = format!("ECHO {}", "x".repeat(60_000));
    let answers: Vec<String> = (0..5).map(|_| client.says(&line)).collect();
    assert_eq!(answers[..4], ["+QUEUED"; 4]);
    assert!(answers[4].starts_with("-ERR too much between MULTI and EXEC"), "{}", answers[4]);
    assert!(client.says("EXEC").starts_with("-EXECABORT "));
}

#[test]
fn clients_learn_what_they_ask_at_first() {
    let mut client = client(false);
    assert_eq!(client.says("CONFIG GET save"), "*2 $4 save $0");
    assert!(client.says("CONFIG GET appendonly").ends_with("$3 yes"));
    assert_eq!(client.says("CONFIG GET nonsense"), "*0");
    assert_eq!(client.says("COMMAND COUNT"), format!(":{}", crate::commands::SPECS.len()));
    assert!(
        client.says("COMMAND INFO incr nonsense").starts_with("*2 *10 $4 incr :2 *2 +write +fast :1 :1 :1 ")
    );
    assert!(client.says("COMMAND DOCS incr").starts_with("*2 $4 incr *6 $7 summary "));
    assert_eq!(client.says("COMMAND DOCS nonsense"), "*0");
    assert_eq!(client.says("CLIENT SETINFO LIB-NAME it"), "+OK");
    assert_eq!(client.says("CLIENT SETNAME it\r\nCLIENT GETNAME"), "+OK $2 it");
    assert!(client.says("CLIENT KILL a").starts_with("-ERR CLIENT has "));
    assert_eq!(
        client.says("SELECT 0\r\nPING\r\nPING a\r\nECHO b\r\nQUIT"),
        "+OK +PONG $1 a $1 b +OK +closed"
    );
}
