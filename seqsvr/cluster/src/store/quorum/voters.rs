//! Whom a quorum asks: the replicas that its role's file lists until a configuration is known, then that one's members;
//! and how it hears of a newer one. A round asks the members of one configuration, each as the member it is, so that
//! votes of two configurations never add up, and a replica under two addresses has one vote.

use std::collections::HashMap;
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
use seqsvr_core::store::message::{Copy, Description, Misaddressed, Phase};
use seqsvr_core::store::{Address, Configuration, StoreError, Terms};

/// Between two attempts to learn of a configuration while none is known.
const LEARN: Duration = Duration::from_secs(1);
/// Between two attempts to store the first one.
const ESTABLISH: Duration = Duration::from_secs(2);

/// A way to the replica at an address.
type Dial = Box<dyn Fn(&str) -> Result<Arc<dyn Link>, String> + Send + Sync>;

/// The ways to the replicas.
pub struct Ways {
    /// Those that the role's file lists, in its order: address and way.
    listed: Vec<(String, Arc<dyn Link>)>,
    /// W, if the file says so.
    write: Option<usize>,
    dial: Dial,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// By the id of the member.
    links: HashMap<u64, Arc<dyn Link>>,
    asked: Option<Moment>,
    tried: Option<Moment>,
}

impl Ways {
    /// `listed` by the file; `dial` makes ways to others.
    pub(crate) fn new(listed: Vec<(String, Arc<dyn Link>)>, write: Option<usize>, dial: Dial) -> Self {
        Self { listed, write, dial, known: Mutex::default() }
    }

    /// To these and no others.
    pub(super) fn fixed(links: Vec<Arc<dyn Link>>) -> Self {
        let listed = links.into_iter().map(|link| (String::new(), link)).collect();
        Self::new(listed, None, Box::new(|addr| Err(format!("{addr} is not known"))))
    }

    fn known<T>(&self, with: impl FnOnce(&mut Known) -> T) -> T {
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

    /// The ways to these members: as this role's own file knows them, else by their stored addresses.
    pub(super) fn to(&self, members: impl IntoIterator<Item = (u64, String)>) -> Vec<Arc<dyn Link>> {
        let way = |(id, addr): (u64, String)| {
            if let Some(link) = self.known(|known| known.links.get(&id).cloned()) {
                return link;
            }
            let link = self.dial(&addr).unwrap_or_else(|why| Arc::new(Lost(why)));
            self.keep(id, &link);
            link
        };
        members.into_iter().map(way).collect()
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

/// Whom a round asks.
pub(super) struct Voters {
    pub(super) configuration: Option<Arc<Configuration>>,
    pub(super) links: Vec<Arc<dyn Link>>,
    pub(super) sizes: Sizes,
}

impl Voters {
    /// Those of the file.
    pub(super) fn listed(ways: &Ways, sizes: Sizes) -> Self {
        let links = ways.listed.iter().map(|(_, link)| Arc::clone(link)).collect();
        Self { configuration: None, links, sizes }
    }

    /// How a call says to whom it is meant.
    pub(super) fn address(&self, index: usize) -> Address {
        let member = |one: &Arc<Configuration>| Address { number: one.number, member: one.members[index].id };
        self.configuration.as_ref().map(member).unwrap_or_default()
    }

    fn number(&self) -> u64 {
        self.configuration.as_ref().map_or(0, |one| one.number)
    }
}

/// What a round learned beside its answers.
#[derive(Default)]
pub struct Tally {
    /// Who answered as a member of the round's configuration.
    pub answered: std::collections::BTreeSet<usize>,
    /// Who has slept through the change to it.
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
    /// The configuration that is gone by.
    pub(crate) fn configuration(&self) -> Option<Arc<Configuration>> {
        self.voters.load().configuration.clone()
    }

    /// Where these replicas are: as the configuration says, else as the file does.
    pub(super) fn addrs(&self, voters: &Voters) -> Vec<String> {
        match &voters.configuration {
            Some(one) => one.members.iter().map(|member| member.addr.clone()).collect(),
            None => self.ways.listed.iter().map(|(addr, _)| addr.clone()).collect(),
        }
    }

    /// Goes by a newer configuration from now on.
    pub(super) fn follow(&self, newer: Arc<Configuration>) {
        let Ok(sizes) = newer.sizes() else { return };
        if newer.number <= self.voters.load().number() {
            return;
        }
        let links = self.ways.to(newer.members.iter().map(|one| (one.id, one.addr.clone())));
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
        let voters = Arc::new(Voters { configuration: Some(newer), links, sizes });
        self.voters
            .rcu(|now| if now.number() < voters.number() { Arc::clone(&voters) } else { Arc::clone(now) });
    }

    /// Replicas that slept through the change are told: as many vote in it as it needs, so nothing hangs on what they missed.
    pub(super) fn bring_up(&self, voters: &Voters, behind: &[usize]) {
        let Some(next) = &voters.configuration else { return };
        for &index in behind {
            let (link, to) = (Arc::clone(&voters.links[index]), voters.address(index));
            let install = Question::Install { next: Arc::clone(next), copy: Arc::<Copy>::default() };
            let allowed = self.patience;
            tokio::spawn(async move { timeout(allowed, link.call(to, install)).await });
        }
    }

    /// While none is known: asks those of the file for a configuration.
    pub(super) async fn learn(&self) {
        if self.voters.load().configuration.is_some() || !self.due(LEARN, |known| &mut known.asked) {
            return;
        }
        self.described(self.voters.load().sizes.w()).await;
    }

    fn due(&self, pause: Duration, which: impl FnOnce(&mut Known) -> &mut Option<Moment>) -> bool {
        let now = clock::now();
        self.ways.known(|known| {
            let last = which(known);
            let due = last.is_none_or(|last| now >= last + pause);
            if due {
                *last = Some(now);
            }
            due
        })
    }

    /// What the replicas of the file say of themselves, in its order, once `enough` of them or all have answered; the newest
    /// configuration among that is followed.
    pub(super) async fn described(&self, enough: usize) -> Vec<Option<Description>> {
        let ask = async |index: usize| {
            let question = self.ways.listed[index].1.ask(Question::Describe);
            match timeout(self.patience, question).await {
                Ok(Ok(Answer::Described(what))) => (index, Some(what)),
                _ => (index, None),
            }
        };
        let mut all = vec![None; self.ways.listed.len()];
        let mut out: FuturesUnordered<_> = (0..all.len()).map(ask).collect();
        while let Some((index, what)) = out.next().await {
            if let Some(Description { id: id @ 1.., .. }) = what {
                self.ways.keep(id, &self.ways.listed[index].1);
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

    /// Makes sure that the Set's configuration says what this role's file says, and stores the first one when there is none. While
    /// that cannot be done, because a replica does not answer, the file alone is gone by. Compared
    /// once: what is changed in the stores while the role runs is followed.
    ///
    /// Answers the stored lease; before one is stored, the role's own.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`]: one line that says what differs.
    pub(crate) async fn agree(&self, terms: &Terms) -> Result<Duration, StoreError> {
        if self.configuration().is_none() && self.due(ESTABLISH, |known| &mut known.tried) {
            self.establish(terms).await?;
        }
        let Some(stored) = self.configuration() else { return Ok(terms.lease) };
        if let Some(line) = stored.differs(terms).filter(|_| !self.agreed.load(Ordering::Acquire)) {
            return Err(StoreError::Unavailable(line));
        }
        self.agreed.store(true, Ordering::Release);
        Ok(stored.lease)
    }

    async fn establish(&self, terms: &Terms) -> Result<(), StoreError> {
        let all = self.described(usize::MAX).await;
        if self.configuration().is_some() {
            return Ok(());
        }
        let fits = |what: &Description| what.id != 0 && what.phase == Phase::Serving;
        let replicas: Vec<_> = all.into_iter().flatten().filter(fits).collect();
        for (index, one) in replicas.iter().enumerate() {
            if replicas[..index].iter().any(|other| other.id == one.id) {
                let why = format!(
                    "[stores] replicas lists the replica {} under two addresses; list each once",
                    one.name
                );
                return Err(StoreError::Unavailable(why));
            }
        }
        if replicas.len() != self.ways.listed.len() {
            return Ok(());
        }
        if replicas.iter().any(|one| one.in_use) && !replicas.iter().all(|one| one.in_use) {
            let empty = replicas.iter().filter(|one| !one.in_use).map(|one| one.name.as_str());
            let empty: Vec<_> = empty.collect();
            tracing::warn!(
                "no configuration is stored while {} is empty beside stores in use; check [stores] replicas of this role",
                empty.join(", ")
            );
            return Ok(());
        }
        let addrs = self.ways.listed.iter().map(|(addr, _)| addr.clone());
        let mut members: Vec<_> = replicas
            .into_iter()
            .zip(addrs)
            .map(|(what, addr)| seqsvr_core::store::Member { id: what.id, name: what.name, addr })
            .collect();
        // Whoever does the same at this moment begins with the same replica, which decides.
        members.sort_by_key(|one| one.id);
        let Terms { lease, layout, uids, lease_is_set: _ } = terms.clone();
        let write = self.voters.load().sizes.w();
        let first = Configuration { number: 1, members, write, lease, layout, uids, transition: None };
        let first = Arc::new(first);
        if let Some(problem) = first.problem() {
            let why = format!(
                "the stores of the Set make no configuration: wrong {problem}; give each another name"
            );
            return Err(StoreError::Unavailable(why));
        }
        let links = self.ways.to(first.members.iter().map(|one| (one.id, one.addr.clone())));
        for (link, member) in links.iter().zip(&first.members) {
            let install = Question::Install { next: Arc::clone(&first), copy: Arc::<Copy>::default() };
            let to = Address { number: 1, member: member.id };
            match timeout(self.patience, link.call(to, install)).await {
                Ok(Ok(Answer::Installed)) => {}
                Ok(Ok(Answer::Misaddressed { configuration: Some(other), .. })) => {
                    self.follow(other);
                    return Ok(());
                }
                // The next attempt goes on.
                _ => return Ok(()),
            }
        }
        self.follow(first);
        Ok(())
    }
}
