//! The sequences of a cluster as counters: the key `{SET.SECTION}:UID`. Owns a client for each Set, by which an AllocSvr
//! asks the owner of a section that it does not serve itself (docs/adr/0019). Opened by the role `alloc`.

use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use seqsvr_client::{CallError, Client, ClientConfig, Policy, SetConfig};
use seqsvr_cluster::alloc::set_server::SetServer;
use seqsvr_cluster::alloc::view::Denied;
use seqsvr_core::ids::Uid;
use seqsvr_resp::{KeyCounters, Refused, TryTake};
use seqsvr_rpc::security::CallConfig;

/// See the module.
pub(crate) struct ClusterCounters {
    sets: Vec<Served>,
    call: CallConfig,
}

/// One Set of this process.
struct Served {
    server: Arc<SetServer>,
    /// Made when a section of another AllocSvr is asked for.
    others: OnceLock<Client>,
}

/// The user that a key names, and where that one is.
struct NamedUser<'a> {
    served: &'a Served,
    uid: Uid,
}

impl ClusterCounters {
    /// The sections of these Sets; `call` says how other AllocSvrs are called.
    pub(crate) fn new(servers: &[Arc<SetServer>], call: CallConfig) -> Self {
        let served = |server: &Arc<SetServer>| Served { server: Arc::clone(server), others: OnceLock::new() };
        Self { sets: servers.iter().map(served).collect(), call }
    }

    fn place(&self, key: &[u8]) -> Result<NamedUser<'_>, Refused> {
        let Some((set, section, uid)) = named(key) else {
            return Err(Refused::ever("the key of a sequence is {SET.SECTION}:UID, such as {0.3}:312345"));
        };
        let Some(served) = self.sets.iter().find(|served| served.server.set() == set) else {
            return Err(Refused::ever(format!(
                "Set {set} has no part in this AllocSvr: connect to one of that Set"
            )));
        };
        let view = served.server.view();
        let Some(table) = view.table() else { return Err(unread()) };
        let right = uid / table.section_size;
        if right != section {
            return Err(Refused::ever(format!(
                "uid {uid} lies in section {right}: write {{{set}.{right}}}:{uid}"
            )));
        }
        Ok(NamedUser { served, uid: Uid::new(uid) })
    }

    /// A client of the AllocSvrs in the newest table.
    fn others<'a>(&self, served: &'a Served) -> Result<&'a Client, Refused> {
        if let Some(client) = served.others.get() {
            return Ok(client);
        }
        let view = served.server.view();
        let table = view.table().ok_or_else(unread)?;
        let set = SetConfig {
            number: table.set,
            first_uid: *table.uids.start(),
            last_uid: *table.uids.end(),
            allocators: table.nodes.iter().map(|node| node.addr.clone()).collect(),
            policy: Policy::Spread,
            arbiters: Vec::new(),
        };
        let config = ClientConfig { security: self.call.clone(), ..ClientConfig::of(vec![set]) };
        let client = Client::new(&config).map_err(|why| Refused::ever(format!("[resp] {why}")))?;
        Ok(served.others.get_or_init(|| client))
    }
}

/// The Set, the section and the uid in a key.
fn named(key: &[u8]) -> Option<(u32, u32, u32)> {
    let text = std::str::from_utf8(key).ok()?;
    let (place, uid) = text.strip_prefix('{')?.split_once("}:")?;
    let (set, section) = place.split_once('.')?;
    let number =
        |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten();
    Some((number(set)?, number(section)?, number(uid)?))
}

fn unread() -> Refused {
    Refused::now("this AllocSvr has not read the routing table yet; try again")
}

fn counted(count: u64) -> Result<u32, Refused> {
    // The AllocSvr has a limit of its own, and says it.
    u32::try_from(count).map_err(|_| Refused::ever(format!("asked for {count} numbers; ask for 1 to 100000")))
}

fn failed(error: &CallError) -> Refused {
    let text = error.to_string();
    if error.is_retryable() { Refused::now(text) } else { Refused::ever(text) }
}

#[async_trait]
impl KeyCounters for ClusterCounters {
    fn try_take(&self, key: &[u8], count: u64) -> Result<u64, TryTake> {
        let place = self.place(key).map_err(TryTake::Refused)?;
        let count = counted(count).map_err(TryTake::Refused)?;
        match place.served.server.try_take(place.uid, count) {
            Ok(granted) => Ok(granted.last),
            Err(Denied::Refused(why)) => Err(TryTake::Refused(Refused::ever(why.to_string()))),
            Err(_) => Err(TryTake::Later),
        }
    }

    async fn take(&self, key: &[u8], count: u64) -> Result<u64, Refused> {
        let NamedUser { served, uid } = self.place(key)?;
        let count = counted(count)?;
        match served.server.take(uid, count).await {
            Ok(granted) => Ok(granted.last),
            Err(Denied::Refused(why)) => Err(Refused::ever(why.to_string())),
            Err(_) => {
                let granted = self.others(served)?.next(uid, count).await;
                granted.map(|granted| granted.last).map_err(|error| failed(&error))
            }
        }
    }

    async fn last(&self, key: &[u8]) -> Result<Option<u64>, Refused> {
        let NamedUser { served, uid } = self.place(key)?;
        let last = match served.server.current(uid) {
            Ok(last) => last,
            Err(Denied::Refused(why)) => return Err(Refused::ever(why.to_string())),
            Err(_) => {
                let bounds = self.others(served)?.current(&[uid]).await;
                bounds.map_err(|error| failed(&error.first))?.first().copied().unwrap_or_default()
            }
        };
        Ok((last > 0).then_some(last))
    }

    async fn advance(&self, key: &[u8], at_least: u64) -> Result<(), Refused> {
        let last = self.last(key).await?.unwrap_or_default();
        if at_least < last {
            return Err(Refused::ever(format!(
                "the sequence stands at {last} and never goes back: INCR takes the next"
            )));
        }
        let NamedUser { served, uid } = self.place(key)?;
        match served.server.advance(uid, at_least).await {
            Ok(()) => Ok(()),
            Err(Denied::Refused(why)) => Err(Refused::ever(why.to_string())),
            Err(_) => self.others(served)?.advance(uid, at_least).await.map_err(|error| failed(&error)),
        }
    }

    fn describe(&self) -> String {
        let sets: Vec<String> = self.sets.iter().map(|served| served.server.set().to_string()).collect();
        format!("sets:{}\r\n", sets.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_names_a_set_a_section_and_a_uid() {
        assert_eq!(named(b"{0.3}:312345"), Some((0, 3, 312_345)));
        assert_eq!(named(b"{7.42949}:4294967295"), Some((7, 42_949, u32::MAX)));
        for wrong in
            ["", "312345", "{0}:1", "{0.0}1", "{0.0}:", "{0.0}:x", "{0.0}:-1", "{0.+1}:1", "{0.0}:4294967296"]
        {
            assert_eq!(named(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
