//! The state of one client: whether it has shown its token, its name, the version of the protocol, the commands that it
//! collects. Pure: takes a request, answers by itself what needs no counter, and says what is left to do. Owned by its
//! `connection`.

use seqsvr_rpc::security::Guard;

use crate::commands::{Command, Words, Work, understand};
use crate::counters::Refused;
use crate::parse::{KNOWN, Limits, STRANGER};
use crate::reply::{Protocol, Replies};
use crate::told;

/// The most bytes of a name that a client gives itself.
const LONGEST_NAME: usize = 128;

/// What is left to do after a request was looked at.
#[derive(Debug)]
pub(crate) enum Step<'a> {
    /// Nothing: the answer is written.
    Answered,
    /// To ask the counters, and to write their answer.
    Work(Work<'a>),
    /// To carry out the requests in these bytes, so many, one after the other.
    Run(Vec<u8>, usize),
    /// To answer `INFO`.
    Info,
    /// To end the connection; the answer is written.
    Close,
}

/// Commands between `MULTI` and `EXEC`, as they came.
#[derive(Debug, Default)]
struct Collected {
    bytes: Vec<u8>,
    count: usize,
    /// One of them was refused, so none is carried out.
    refused: bool,
}

/// See the module.
pub(crate) struct Session {
    id: u64,
    guard: Guard,
    known: bool,
    name: Vec<u8>,
    collected: Option<Collected>,
}

impl Session {
    /// A new client, the `id`th of this process.
    pub(crate) fn new(id: u64, guard: Guard) -> Self {
        let known = guard.is_open();
        Self { id, guard, known, name: Vec::new(), collected: None }
    }

    /// How much a request may hold.
    pub(crate) fn limits(&self) -> &'static Limits {
        if self.known { &KNOWN } else { &STRANGER }
    }

    /// Whether it has shown the token, where one is needed.
    pub(crate) fn is_known(&self) -> bool {
        self.known
    }

    /// Takes a request of one word or more.
    pub(crate) fn take<'a>(&mut self, words: Words<'a>, to: &mut Replies) -> Step<'a> {
        match self.decide(words, to) {
            Ok(step) => step,
            Err(refused) => {
                if let Some(collected) = &mut self.collected {
                    collected.refused = true;
                }
                to.error(refused.code(), refused.text());
                Step::Answered
            }
        }
    }

    fn decide<'a>(&mut self, words: Words<'a>, to: &mut Replies) -> Result<Step<'a>, Refused> {
        let command = understand(words);
        let admitted = |command: &Command<'_>| {
            use Command::{Auth, Hello, Quit, Reset};
            matches!(command, Auth { .. } | Hello(_) | Quit | Reset)
        };
        // A stranger learns nothing about the commands.
        if !self.known && !command.as_ref().is_ok_and(admitted) {
            to.error("NOAUTH", "Authentication required: send AUTH with the token of this server");
            return Ok(Step::Answered);
        }
        let command = command?;
        if self.collected.is_some() {
            return self.collect(&command, words, to);
        }
        match command {
            Command::Work(work) => return Ok(Step::Work(work)),
            Command::Info => return Ok(Step::Info),
            Command::Quit => {
                to.simple("OK");
                return Ok(Step::Close);
            }
            Command::Exec => return Err(Refused::ever("EXEC without MULTI")),
            Command::Discard => return Err(Refused::ever("DISCARD without MULTI")),
            Command::Multi => {
                self.collected = Some(Collected::default());
                to.simple("OK");
            }
            Command::Ping(None) => to.simple("PONG"),
            Command::Ping(Some(word)) | Command::Echo(word) => to.bulk(word),
            Command::Select => to.simple("OK"),
            Command::Hello(words) => self.hello(words, to)?,
            Command::Auth { user, token } => {
                if self.guard.is_open() {
                    return Err(Refused::ever("AUTH: no token is configured here, so none is needed"));
                }
                if self.admit(user, token, to) {
                    to.simple("OK");
                }
            }
            Command::Client(words) => self.client(words, to)?,
            Command::About(words) => told::commands(words, to)?,
            Command::ConfigGet(names) => told::settings(names, to),
            Command::Reset => self.reset(to),
        }
        Ok(Step::Answered)
    }

    /// A command after `MULTI`.
    fn collect<'a>(
        &mut self,
        command: &Command<'_>,
        words: Words<'a>,
        to: &mut Replies,
    ) -> Result<Step<'a>, Refused> {
        match command {
            Command::Multi => return Err(Refused::ever("MULTI calls can not be nested")),
            Command::Auth { .. } | Command::Hello(_) => {
                return Err(Refused::ever("AUTH and HELLO stand before MULTI"));
            }
            Command::Reset => {
                self.reset(to);
                return Ok(Step::Answered);
            }
            Command::Quit => {
                to.simple("OK");
                return Ok(Step::Close);
            }
            Command::Discard => {
                self.collected = None;
                to.simple("OK");
                return Ok(Step::Answered);
            }
            Command::Exec => {
                let Collected { bytes, count, refused } = self.collected.take().unwrap_or_default();
                if refused {
                    let why = "Transaction discarded because of previous errors: nothing was carried out";
                    to.error("EXECABORT", why);
                    return Ok(Step::Answered);
                }
                return Ok(Step::Run(bytes, count));
            }
            _ => {}
        }
        let collected = self.collected.get_or_insert_default();
        let before = collected.bytes.len();
        let mut one = Replies { bytes: std::mem::take(&mut collected.bytes), ..Replies::default() };
        one.array(words.len());
        words.iter().for_each(|word| one.bulk(word));
        collected.bytes = one.bytes;
        if collected.bytes.len() > KNOWN.request {
            collected.bytes.truncate(before);
            let most = KNOWN.request;
            return Err(Refused::ever(format!("too much between MULTI and EXEC: at most {most} bytes")));
        }
        collected.count += 1;
        to.simple("QUEUED");
        Ok(Step::Answered)
    }

    /// Lets the client in, or says why not.
    fn admit(&mut self, user: Option<&[u8]>, token: &[u8], to: &mut Replies) -> bool {
        let named = user.is_none_or(|user| user == b"default");
        let right = std::str::from_utf8(token).is_ok_and(|token| self.guard.admits(token));
        if named && right {
            self.known = true;
            return true;
        }
        to.error(
            "WRONGPASS",
            "the token is wrong, or the user is not `default`; see token_file of this server",
        );
        false
    }

    fn hello(&mut self, words: Words<'_>, to: &mut Replies) -> Result<(), Refused> {
        let protocol = match words.get(0) {
            None => to.protocol,
            Some(b"2") => Protocol::Resp2,
            Some(b"3") => Protocol::Resp3,
            Some(_) => {
                to.error("NOPROTO", "unsupported protocol version: this server speaks 2 and 3");
                return Ok(());
            }
        };
        let (mut at, mut name) = (1, None);
        while at < words.len() {
            let option = (words.get(at + 1), words.get(at + 2));
            if let (true, (Some(user), Some(token))) = (words.is(at, "auth"), option) {
                if !self.guard.is_open() && !self.admit(Some(user), token, to) {
                    return Ok(());
                }
                at += 3;
            } else if let (true, (Some(given), _)) = (words.is(at, "setname"), option) {
                name = Some(sound_name(given)?);
                at += 2;
            } else {
                return Err(Refused::ever(
                    "syntax error in HELLO: send HELLO 3 AUTH default TOKEN SETNAME NAME",
                ));
            }
        }
        if !self.known {
            to.error("NOAUTH", "HELLO must be called with the token: send HELLO 3 AUTH default TOKEN");
            return Ok(());
        }
        to.protocol = protocol;
        self.name = name.unwrap_or_else(|| std::mem::take(&mut self.name));
        to.map(7);
        for (key, value) in [("server", "seqsvr"), ("version", told::LIKE)] {
            to.bulk(key.as_bytes());
            to.bulk(value.as_bytes());
        }
        let version = if protocol == Protocol::Resp2 { 2 } else { 3 };
        for (key, value) in [("proto", version), ("id", self.id)] {
            to.bulk(key.as_bytes());
            to.integer(value);
        }
        for (key, value) in [("mode", "standalone"), ("role", "master")] {
            to.bulk(key.as_bytes());
            to.bulk(value.as_bytes());
        }
        to.bulk(b"modules");
        to.array(0);
        Ok(())
    }

    fn client(&mut self, words: Words<'_>, to: &mut Replies) -> Result<(), Refused> {
        let is = |word| words.is(0, word);
        match words.len() {
            1 if is("id") => to.integer(self.id),
            1 if is("getname") && self.name.is_empty() => to.null(),
            1 if is("getname") => to.bulk(&self.name),
            1 if is("info") => {
                let name = String::from_utf8_lossy(&self.name).into_owned();
                to.text(&format!("id={} name={name} db=0", self.id));
            }
            2 if is("setname") => {
                self.name = sound_name(words.get(1).unwrap_or_default())?;
                to.simple("OK");
            }
            // Accepted from libraries that introduce themselves; nothing depends on it.
            3 if is("setinfo") => to.simple("OK"),
            2 if is("no-evict") || is("no-touch") => to.simple("OK"),
            2 if is("reply") && words.is(1, "on") => to.simple("OK"),
            _ => {
                let why = "CLIENT has ID, INFO, GETNAME, SETNAME and SETINFO here, each with its words";
                return Err(Refused::ever(why));
            }
        }
        Ok(())
    }

    fn reset(&mut self, to: &mut Replies) {
        self.known = self.guard.is_open();
        self.name.clear();
        self.collected = None;
        to.protocol = Protocol::Resp2;
        to.simple("RESET");
    }
}

fn sound_name(name: &[u8]) -> Result<Vec<u8>, Refused> {
    if name.len() <= LONGEST_NAME && name.iter().all(u8::is_ascii_graphic) {
        return Ok(name.to_vec());
    }
    let most = LONGEST_NAME;
    Err(Refused::ever(format!(
        "Client names have at most {most} characters, without spaces, newlines or special ones"
    )))
}

#[cfg(test)]
mod tests;
