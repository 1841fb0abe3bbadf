//! The voters of a quorum: the members of the newest configuration that it knows, each as the member it is, so that
//! votes of two configurations never add up, and a replica under two addresses has one vote. The replicas that the
//! role's file lists tell of the configuration; before one is stored they answer no other call.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::time::timeout;

use crate::store::quorum::{Link, Quorum};
use seqsvr_core::clock::{self, Moment};
use seqsvr_core::store::Sizes;
use seqsvr_core::store::message::{Answer, Question};
use seqsvr_core::store::message::{Copy, Description, Misaddressed};
use seqsvr_core::store::{Address, Configuration, Layout, Member, StoreError};

/// Between two attempts to learn of a configuration, or to which replica an address leads.
const LEARN: Duration = Duration::from_secs(1);
/// A way to the replica at an address.
type Dial = Box<dyn Fn(&str) -> Result<Arc<dyn Link>, String> + Send + Sync>;

/// The ways to the replicas.
pub struct Ways {
    /// The replicas that the role's file lists, in its order: address and way.
    listed: Vec<(String, Arc<dyn Link>)>,
    /// W, if the file says so.
    pub(super) write: Option<usize>,
    dial: Dial,
    known: Mutex<ReplicaLinks>,
}

#[derive(Default)]
struct ReplicaLinks {
    /// By the id of the member.
    links: HashMap<u64, Arc<dyn Link>>,
    /// The replicas to which the addresses of the file lead, by their place in it.
    identified: BTreeMap<usize, u64>,
    asked: Option<Moment>,
}

impl Ways {
    /// `listed` by the file; `dial` makes ways to others.
    pub(crate) fn new(listed: Vec<(String, Arc<dyn Link>)>, write: Option<usize>, dial: Dial) -> Self {
        Self { listed, write, dial, known: Mutex::default() }
    }

    /// Whether to ask again; then as if asked now.
    fn is_due(&self) -> bool {
        let now = clock::now();
        self.known(|known| {
            let due = known.asked.is_none_or(|last| now >= last + LEARN);
            if due {
                known.asked = Some(now);
            }
            due
        })
    }

    fn known<T>(&self, with: impl FnOnce(&mut ReplicaLinks) -> T) -> T {
        with(&mut self.known.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The way to a new address.
    pub(super) fn dial(&self, addr: &str) -> Result<Arc<dyn Link>, String> {
        match self.listed.iter().find(|(listed, _)| listed == addr) {
            Some((_, link)) => Ok(Arc::clone(link)),
            None => (self.dial)(addr),
        }
    }

    /// The way to that replica from now on.
    pub(super) fn keep(&self, id: u64, link: &Arc<dyn Link>) {
        self.known(|known| known.links.insert(id, Arc::clone(link)));
    }

    /// The way to a member: by the address in this role's own file if one leads there, else by the stored one.
    pub(super) fn to(&self, id: u64, addr: &str) -> Arc<dyn Link> {
        if let Some(link) = self.known(|known| known.links.get(&id).cloned()) {
            return link;
        }
        let link = self.dial(addr).unwrap_or_else(|why| Arc::new(Lost(why)));
        self.keep(id, &link);
        link
    }

    /// The ways to these members.
    pub(super) fn to_all<'a>(&self, members: impl IntoIterator<Item = &'a Member>) -> Vec<Arc<dyn Link>> {
        members.into_iter().map(|one| self.to(one.id, &one.addr)).collect()
    }

    /// The address of the file at `index` leads to that replica.
    pub(super) fn identify(&self, index: usize, id: u64) {
        let link = &self.listed[index].1;
        self.known(|known| {
            known.identified.insert(index, id);
            known.links.insert(id, Arc::clone(link));
        });
    }

    /// An address that led to a replica that is no member may lead to another one by now.
    fn members_are(&self, configuration: &Configuration) {
        self.known(|known| known.identified.retain(|_, id| configuration.has(*id)));
    }

    /// The addresses of the file whose replicas are not known yet.
    fn unidentified(&self) -> Vec<usize> {
        self.known(|known| {
            (0..self.listed.len()).filter(|index| !known.identified.contains_key(index)).collect()
        })
    }
}

/// No way.
struct Lost(String);

#[async_trait::async_trait]
impl Link for Lost {
    async fn ask(&self, _: Question) -> Result<Answer, String> {
        Err(self.0.clone())
    }
}

/// The replicas that a round asks.
pub(super) struct Voters {
    /// `None`: the replicas of the file, which only describe themselves.
    pub(super) configuration: Option<Arc<Configuration>>,
    pub(super) sizes: Sizes,
}

impl Voters {
    fn number(&self) -> u64 {
        self.configuration.as_ref().map_or(0, |one| one.number)
    }
}

/// The findings of a round beside its answers.
#[derive(Default)]
pub struct Tally {
    /// The replicas that answered as members of the round's configuration.
    pub answered: std::collections::BTreeSet<usize>,
    /// The replicas that were down during the change to it.
    pub behind: Vec<usize>,
    /// The newest one that a replica told of.
    pub newer: Option<Arc<Configuration>>,
}

impl Tally {
    /// The answer, if the replica voted.
    pub fn note(&mut self, from: usize, answer: Answer) -> Result<Answer, String> {
        let Answer::Misaddressed { why, configuration } = answer else {
            self.answered.insert(from);
            return Ok(answer);
        };
        match why {
            Misaddressed::Behind => self.behind.push(from),
            Misaddressed::Newer | Misaddressed::Removed => {
                let number = |one: &Option<Arc<Configuration>>| one.as_ref().map(|one| one.number);
                if number(&configuration) > number(&self.newer) {
                    self.newer = configuration;
                }
            }
            _ => {}
        }
        Err(why.to_string())
    }
}

impl Quorum {
    /// The configuration that this role goes by.
    pub fn configuration(&self) -> Option<Arc<Configuration>> {
        self.voters.load().configuration.clone()
    }

    /// The addresses that the role's file lists.
    pub(super) fn listed_addrs(&self) -> Vec<String> {
        self.ways.listed.iter().map(|(addr, _)| addr.clone()).collect()
    }

    /// W, as the role's file has it; a majority if it says nothing.
    pub(super) fn listed_write(&self) -> usize {
        self.ways.write.unwrap_or(self.ways.listed.len() / 2 + 1)
    }

    /// Where these replicas are: as the configuration says, else as the file does.
    pub(super) fn addrs(&self, voters: &Voters) -> Vec<String> {
        match &voters.configuration {
            Some(one) => one.members.iter().map(|member| member.addr.clone()).collect(),
            None => self.listed_addrs(),
        }
    }

    /// The way to a replica of these, and the address by which a call says which replica is meant.
    pub(super) fn way(&self, voters: &Voters, index: usize) -> (Arc<dyn Link>, Address) {
        match &voters.configuration {
            Some(one) => {
                let Member { id, addr, .. } = &one.members[index];
                (self.ways.to(*id, addr), Address { number: one.number, member: *id })
            }
            None => (Arc::clone(&self.ways.listed[index].1), Address::default()),
        }
    }

    /// Goes by a newer configuration from now on.
    pub(super) fn follow(&self, newer: Arc<Configuration>) {
        let Ok(sizes) = newer.sizes() else { return };
        if newer.number <= self.voters.load().number() {
            return;
        }
        self.ways.members_are(&newer);
        let names: Vec<_> = newer.members.iter().map(|one| format!("{} at {}", one.name, one.addr)).collect();
        tracing::info!(
            number = newer.number,
            write = newer.write,
            "the stores of the Set are {}",
            names.join(", ")
        );
        if self.ways.write.is_some_and(|write| write != newer.write) {
            tracing::warn!(
                "the Set was configured with write = {}; correct [stores] write in this role's file",
                newer.write
            );
        }
        let voters = Arc::new(Voters { configuration: Some(newer), sizes });
        self.voters
            .rcu(|now| if now.number() < voters.number() { Arc::clone(&voters) } else { Arc::clone(now) });
    }

    /// Tells replicas that were down during the change: as many vote in it as it needs, so the state that they missed is not needed.
    pub(super) fn bring_up(&self, voters: &Voters, behind: &[usize]) {
        let Some(next) = &voters.configuration else { return };
        for &index in behind {
            let (link, to) = self.way(voters, index);
            let install = Question::Install { next: Arc::clone(next), copy: Arc::<Copy>::default() };
            let allowed = self.patience;
            tokio::spawn(async move { timeout(allowed, link.call(to, install)).await });
        }
    }

    /// While no configuration is known, asks the replicas of the file for one. Afterwards asks those that did not answer for
    /// their ids, in the background: a member is reached by the address in the file.
    pub(super) async fn learn(&self) {
        let knows = self.voters.load().configuration.is_some();
        let unidentified = self.ways.unidentified();
        if knows && unidentified.is_empty() || !self.ways.is_due() {
            return;
        }
        if !knows {
            self.described(self.voters.load().sizes.w()).await;
            return;
        }
        for index in unidentified {
            let (ways, patience) = (Arc::clone(&self.ways), self.patience);
            tokio::spawn(async move {
                let asked = timeout(patience, ways.listed[index].1.ask(Question::Describe)).await;
                if let Ok(Ok(Answer::Described(Description { id: id @ 1.., .. }))) = asked {
                    ways.identify(index, id);
                }
            });
        }
    }

    /// The descriptions of the replicas of the file, in its order, once `enough` of them or all have answered; the newest
    /// configuration among them is followed.
    pub(super) async fn described(&self, enough: usize) -> Vec<Result<Description, String>> {
        let ask = async |index: usize| {
            let question = self.ways.listed[index].1.ask(Question::Describe);
            match timeout(self.patience, question).await {
                Ok(Ok(Answer::Described(what))) => (index, Ok(what)),
                Ok(Ok(_)) => (index, Err("it answers another request".to_owned())),
                Ok(Err(why)) => (index, Err(why)),
                Err(_) => (index, Err(format!("no answer within {:?}", self.patience))),
            }
        };
        let mut all = vec![Err("others answered first".to_owned()); self.ways.listed.len()];
        let mut out: FuturesUnordered<_> = (0..all.len()).map(ask).collect();
        while let Some((index, what)) = out.next().await {
            if let Ok(Description { id: id @ 1.., .. }) = what {
                self.ways.identify(index, id);
            }
            all[index] = what;
            if all.iter().flatten().count() >= enough {
                break;
            }
        }
        let known = all.iter().flatten().filter_map(|what| what.configuration.clone());
        if let Some(newest) = known.max_by_key(|one| one.number) {
            self.follow(newest);
        }
        all
    }

    /// Makes sure that this role's file says the same as the Set's configuration. Compared once: changes in the stores while
    /// the role runs are followed.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`]: one line that says what differs, or that none is stored.
    pub(crate) async fn agree(&self, layout: Layout) -> Result<(), StoreError> {
        self.learn().await;
        let Some(stored) = self.configuration() else {
            return Err(StoreError::Unavailable(Misaddressed::Unconfigured.to_string()));
        };
        if let Some(line) = stored.differs(layout).filter(|_| !self.agreed.load(Ordering::Acquire)) {
            return Err(StoreError::Unavailable(line));
        }
        self.agreed.store(true, Ordering::Release);
        Ok(())
    }
}
