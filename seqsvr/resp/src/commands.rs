//! The meaning of a request: the commands that there are, how many words each takes, and why others are refused. Pure; called
//! by `session` for each request.

use std::ops::Range;

use crate::counters::{Refused, shown};
use crate::parse::number;

/// The words of one request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Words<'a> {
    input: &'a [u8],
    places: &'a [Range<usize>],
}

impl<'a> Words<'a> {
    /// The words that lie at `places` in `input`.
    pub(crate) fn new(input: &'a [u8], places: &'a [Range<usize>]) -> Self {
        Self { input, places }
    }

    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    pub(crate) fn get(&self, index: usize) -> Option<&'a [u8]> {
        self.places.get(index).map(|place| &self.input[place.clone()])
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let input = self.input;
        self.places.iter().map(move |place| &input[place.clone()])
    }

    /// Without the first `count`.
    pub(crate) fn after(&self, count: usize) -> Self {
        Self { places: &self.places[count.min(self.places.len())..], ..*self }
    }

    /// Whether the word at `index` is `word`, in any case.
    pub(crate) fn is(&self, index: usize, word: &str) -> bool {
        self.get(index).is_some_and(|found| found.eq_ignore_ascii_case(word.as_bytes()))
    }
}

/// One command that is understood.
#[derive(Debug)]
pub(crate) struct Spec {
    /// In small letters, as `COMMAND` says it.
    pub(crate) name: &'static str,
    /// The number of words, or with a minus sign the least.
    pub(crate) arity: i64,
    /// As Redis has them.
    pub(crate) flags: &'static [&'static str],
    /// The places of the first and the last key.
    pub(crate) keys: (i64, i64),
    /// As Redis groups them.
    pub(crate) group: &'static str,
    /// One sentence.
    pub(crate) summary: &'static str,
}

const fn about_keys(
    name: &'static str,
    arity: i64,
    flags: &'static [&'static str],
    last: i64,
    summary: &'static str,
) -> Spec {
    Spec { name, arity, flags, keys: (1, last), group: "string", summary }
}

const fn about(name: &'static str, arity: i64, group: &'static str, summary: &'static str) -> Spec {
    Spec { name, arity, flags: &["fast", "loading", "stale"], keys: (0, 0), group, summary }
}

/// All commands that are understood.
pub(crate) const SPECS: &[Spec] = &[
    about_keys("incr", 2, &["write", "fast"], 1, "Takes the next number of a counter."),
    about_keys("incrby", 3, &["write", "fast"], 1, "Takes adjacent numbers of a counter; answers the last."),
    about_keys("get", 2, &["readonly", "fast"], 1, "Answers the last number that a counter gave."),
    about_keys("mget", -2, &["readonly", "fast"], -1, "Answers the last numbers of several counters."),
    about_keys("set", 3, &["write"], 1, "Moves a counter forwards."),
    about("multi", 1, "transactions", "Starts to collect commands."),
    about("exec", 1, "transactions", "Carries the collected commands out, one after the other."),
    about("discard", 1, "transactions", "Forgets the collected commands."),
    about("auth", -2, "connection", "Shows the token."),
    about("hello", -1, "connection", "Chooses version 2 or 3 of the protocol, and may show the token."),
    about("client", -2, "connection", "Names the connection, and tells about it."),
    about("ping", -1, "connection", "Answers PONG, or what it is given."),
    about("echo", 2, "connection", "Answers what it is given."),
    about("select", 2, "connection", "Chooses database 0, the only one."),
    about("quit", -1, "connection", "Ends the connection."),
    about("reset", 1, "connection", "Makes the connection as it was at first."),
    about("command", -1, "server", "Tells about the commands."),
    about("info", -1, "server", "Tells about this server."),
    about("config", -2, "server", "Tells the settings that clients ask for."),
];

/// A request with its meaning.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Command<'a> {
    /// For the counters.
    Work(Work<'a>),
    /// `PING`, with a word to answer or none.
    Ping(Option<&'a [u8]>),
    Echo(&'a [u8]),
    /// The words after the name.
    Hello(Words<'a>),
    Auth {
        user: Option<&'a [u8]>,
        token: &'a [u8],
    },
    /// The words after the name.
    Client(Words<'a>),
    Select,
    /// The words after the name.
    About(Words<'a>),
    Info,
    /// The patterns.
    ConfigGet(Words<'a>),
    Multi,
    Exec,
    Discard,
    Quit,
    Reset,
}

/// The part of a request that the counters carry out.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Work<'a> {
    /// Takes `count` numbers.
    Take { key: &'a [u8], count: u64 },
    /// Tells the last number.
    Last { key: &'a [u8] },
    /// Tells the last numbers of many keys.
    LastOf(Words<'a>),
    /// Moves forwards.
    Advance { key: &'a [u8], at_least: u64 },
}

/// The meaning of `words`, one or more.
pub(crate) fn understand(words: Words<'_>) -> Result<Command<'_>, Refused> {
    let name = words.get(0).unwrap_or_default();
    let spec = SPECS.iter().find(|spec| name.eq_ignore_ascii_case(spec.name.as_bytes()));
    let Some(spec) = spec else { return Err(unknown(name)) };
    let count = i64::try_from(words.len()).unwrap_or(i64::MAX);
    if spec.name == "set" && count > 3 {
        return Err(Refused::ever(
            "SET takes a key and a number here: counters have no expiry and no conditions",
        ));
    }
    if (spec.arity >= 0 && count != spec.arity) || count < -spec.arity {
        return Err(Refused::ever(format!("wrong number of arguments for '{}' command", spec.name)));
    }
    let word = |index| words.get(index).unwrap_or_default();
    let rest = words.after(1);
    Ok(match spec.name {
        "incr" => Command::Work(Work::Take { key: word(1), count: 1 }),
        "incrby" => Command::Work(Work::Take { key: word(1), count: increment(word(2))? }),
        "get" => Command::Work(Work::Last { key: word(1) }),
        "mget" => Command::Work(Work::LastOf(rest)),
        "set" => Command::Work(Work::Advance { key: word(1), at_least: value(word(2))? }),
        "ping" if count > 2 => return Err(Refused::ever("wrong number of arguments for 'ping' command")),
        "ping" => Command::Ping(words.get(1)),
        "echo" => Command::Echo(word(1)),
        "hello" => Command::Hello(rest),
        "auth" => match count {
            2 => Command::Auth { user: None, token: word(1) },
            3 => Command::Auth { user: Some(word(1)), token: word(2) },
            _ => return Err(Refused::ever("syntax error: send AUTH TOKEN, or AUTH default TOKEN")),
        },
        "client" => Command::Client(rest),
        "select" if number(word(1)) == Some(0) => Command::Select,
        "select" => return Err(Refused::ever("DB index is out of range: the only database is 0")),
        "command" => Command::About(rest),
        "info" => Command::Info,
        "config" if words.is(1, "get") && count > 2 => Command::ConfigGet(rest.after(1)),
        "config" => {
            return Err(Refused::ever("only CONFIG GET is possible: settings stand in the configuration"));
        }
        "multi" => Command::Multi,
        "exec" => Command::Exec,
        "discard" => Command::Discard,
        "reset" => Command::Reset,
        _ => Command::Quit,
    })
}

fn increment(text: &[u8]) -> Result<u64, Refused> {
    match number(text) {
        Some(count @ 1..) => Ok(count.unsigned_abs()),
        Some(0) => Err(Refused::ever("INCRBY by 0 takes no number: GET tells the last one")),
        Some(_) => Err(Refused::ever("counters only grow: INCRBY takes 1 or more")),
        None => Err(Refused::ever("value is not an integer or out of range")),
    }
}

fn value(text: &[u8]) -> Result<u64, Refused> {
    let value = number(text).and_then(|value| u64::try_from(value).ok());
    value.ok_or_else(|| {
        Refused::ever("a counter holds a number from 0 to 9223372036854775807: SET KEY NUMBER")
    })
}

/// Families of commands of Redis that cannot be kept, and what to do instead.
const REFUSED: &[(&[&str], &str)] = &[
    (
        &["decr", "decrby", "incrbyfloat"],
        "counters only grow, by whole numbers: INCR and INCRBY take the next ones",
    ),
    (
        &[
            "setnx", "setex", "psetex", "mset", "msetnx", "getset", "append", "setrange", "setbit",
            "restore", "copy",
        ],
        "counters are numbers that only grow: SET KEY NUMBER moves one forwards, INCR takes the next number",
    ),
    (
        &["expire", "pexpire", "expireat", "pexpireat", "persist", "getex"],
        "counters never expire: a counter that began anew would give its numbers again. Use a new key instead",
    ),
    (
        &["del", "unlink", "getdel", "flushall", "flushdb", "rename", "renamenx", "move", "swapdb"],
        "counters are never removed: one that began anew would give its numbers again. Use a new key instead",
    ),
    (
        &["watch", "unwatch"],
        "there is nothing to watch: each INCR is atomic by itself, and no number is given twice",
    ),
    (
        &[
            "subscribe",
            "psubscribe",
            "ssubscribe",
            "publish",
            "spublish",
            "monitor",
            "sync",
            "psync",
            "replicaof",
        ],
        "there are no messages and no replicas over this protocol: poll with GET",
    ),
    (
        &["eval", "evalsha", "eval_ro", "evalsha_ro", "fcall", "fcall_ro", "script", "function"],
        "there are no scripts: INCR and INCRBY are atomic by themselves",
    ),
    (
        &["cluster", "readonly", "readwrite", "asking"],
        "cluster mode is not spoken here: every node answers for every key, so connect as to one server",
    ),
    (
        &["save", "bgsave", "bgrewriteaof", "shutdown", "debug"],
        "the operator of this server does that: an answered INCR is durable already",
    ),
];

/// A command that there is not.
fn unknown(name: &[u8]) -> Refused {
    let is = |known: &&str| name.eq_ignore_ascii_case(known.as_bytes());
    let family = REFUSED.iter().find(|(names, _)| names.iter().any(is));
    if let Some((_, reason)) = family {
        return Refused::ever(format!("{} is not possible: {reason}", shown(name).to_ascii_uppercase()));
    }
    Refused::ever(format!(
        "unknown command '{}': this server keeps counters, with INCR, INCRBY, GET, MGET and SET",
        shown(name)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::{KNOWN, parse};

    /// The meaning of a line, as text.
    fn meaning(line: &str) -> Result<String, String> {
        let (input, mut places) = (format!("{line}\r\n").into_bytes(), Vec::new());
        parse(&input, &KNOWN, &mut places).expect("well formed");
        let understood = understand(Words::new(&input, &places));
        let work = understood.map(|command| match command {
            Command::Work(Work::Take { key, count }) => format!("take {count} of {}", shown(key)),
            Command::Work(Work::Last { key }) => format!("last of {}", shown(key)),
            Command::Work(Work::LastOf(keys)) => format!("last of {} keys", keys.len()),
            Command::Work(Work::Advance { key, at_least }) => format!("{} above {at_least}", shown(key)),
            other => format!("{other:?}").chars().take_while(|&c| c.is_alphabetic()).collect(),
        });
        work.map_err(|refused| format!("{} {}", refused.code(), refused.text()))
    }

    #[test]
    fn counters_are_asked_for_in_any_case_of_letters() {
        assert_eq!(meaning("incr a").unwrap(), "take 1 of a");
        assert_eq!(meaning("InCrBy a 9223372036854775807").unwrap(), "take 9223372036854775807 of a");
        assert_eq!(meaning("GET a").unwrap(), "last of a");
        assert_eq!(meaning("MGET a b c").unwrap(), "last of 3 keys");
        assert_eq!(meaning("SET a 7").unwrap(), "a above 7");
    }

    #[test]
    fn every_listed_command_is_understood() {
        for (line, name) in [
            ("MULTI", "Multi"),
            ("EXEC", "Exec"),
            ("DISCARD", "Discard"),
            ("AUTH a", "Auth"),
            ("AUTH a b", "Auth"),
            ("HELLO", "Hello"),
            ("CLIENT ID", "Client"),
            ("PING", "Ping"),
            ("ECHO a", "Echo"),
            ("SELECT 0", "Select"),
            ("QUIT", "Quit"),
            ("RESET", "Reset"),
            ("COMMAND", "About"),
            ("INFO", "Info"),
            ("CONFIG GET save", "ConfigGet"),
        ] {
            assert_eq!(meaning(line).as_deref(), Ok(name), "{line}");
        }
    }

    #[test]
    fn a_wrong_number_of_words_is_said() {
        for line in
            ["INCR", "INCR a b", "INCRBY a", "GET", "MGET", "PING a b", "ECHO", "SELECT", "AUTH", "SET a"]
        {
            let refused = meaning(line).expect_err(line);
            assert!(refused.starts_with("ERR wrong number of arguments for '"), "{refused}");
        }
        for line in ["AUTH a b c", "SET a 1 EX 10", "SELECT 1", "CONFIG SET a b", "CONFIG GET"] {
            meaning(line).expect_err(line);
        }
    }

    #[test]
    fn what_cannot_be_kept_is_refused_with_what_to_do() {
        for (line, what) in [
            ("DECR a", "INCR and INCRBY take the next ones"),
            ("INCRBY a -1", "INCRBY takes 1 or more"),
            ("INCRBY a 0", "GET tells the last one"),
            ("INCRBY a 9223372036854775808", "not an integer or out of range"),
            ("SET a -1", "SET KEY NUMBER"),
            ("SET a b", "SET KEY NUMBER"),
            ("EXPIRE a 1", "Use a new key"),
            ("del a", "DEL is not possible: counters are never removed"),
            ("SUBSCRIBE a", "poll with GET"),
            ("WATCH a", "nothing to watch"),
            ("EVAL a 0", "no scripts"),
            ("CLUSTER SLOTS", "every node answers"),
            ("LPUSH a b", "unknown command 'LPUSH': this server keeps counters"),
        ] {
            let refused = meaning(line).expect_err(line);
            assert!(refused.starts_with("ERR ") && refused.contains(what), "{refused}");
        }
    }
}
