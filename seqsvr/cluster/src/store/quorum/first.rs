//! The first configuration of a Set. All stores that the arbiter's file lists decide on it together, as on every later
//! one: of two files that list a store in common at most one comes to a Set. Before that no store votes in anything, so
//! nothing is served. Arbiters call it until there is one.

use std::sync::Arc;

use super::Quorum;
use super::rounds::ChangeError;
use seqsvr_core::store::message::Description;
use seqsvr_core::store::{Configuration, Member, Move, SetTerms, StoreError};

impl Quorum {
    /// Makes sure that the Set has a configuration, and stores the first one when all stores of the file are new.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`]: one line that says what is missing; to be called again.
    pub async fn establish(&self, terms: &SetTerms) -> Result<(), StoreError> {
        self.begin(terms, None).await
    }

    /// The same, for a Set that begins with uids of another one where there is a move.
    pub(super) async fn begin(&self, terms: &SetTerms, by: Option<Move>) -> Result<(), StoreError> {
        let all = self.described(usize::MAX).await;
        if let Some(stored) = self.configuration() {
            // The arbiter that stored it may have ended before enough stores had it.
            if stored.number == 1 && all.iter().flatten().any(|one| one.configuration.is_none()) {
                let _ = self.complete(&stored).await;
            }
            return Ok(());
        }
        let first =
            first(&self.listed_addrs(), all, self.listed_write(), terms).map_err(StoreError::Unavailable)?;
        let first = match by {
            Some(by) => first.beginning_with(by),
            None => first,
        };
        match self.change(Arc::new(first.listed()), Arc::new(first)).await {
            Ok(decided) => self.follow(decided),
            Err(ChangeError::Newer(stored)) => self.follow(stored),
            Err(ChangeError::Another(other)) => {
                let others: Vec<_> = other.members.iter().map(|one| one.addr.as_str()).collect();
                return Err(StoreError::Unavailable(format!(
                    "a store of [stores] replicas is listed by another arbiter, with {}; correct the lists. Where the other one is \
                     wrong and nothing was served yet: remove the files of the stores, and start them with --init",
                    others.join(", ")
                )));
            }
            Err(ChangeError::Unavailable(why)) => return Err(StoreError::Unavailable(why)),
            Err(ChangeError::Outbid(_) | ChangeError::Behind(_)) => {
                let why = "another arbiter stores the first configuration at the same time";
                return Err(StoreError::Unavailable(why.to_owned()));
            }
            Err(ChangeError::Layouts(differ)) => return Err(StoreError::Unavailable(differ.to_string())),
        }
        Ok(())
    }
}

/// The first configuration, made of the descriptions of the stores at these addresses.
fn first(
    addrs: &[String],
    all: Vec<Result<Description, String>>,
    write: usize,
    terms: &SetTerms,
) -> Result<Configuration, String> {
    let why = |(addr, what): (&String, &Result<Description, String>)| {
        what.as_ref().err().map(|why| format!("{addr} ({why})"))
    };
    let silent: Vec<String> = addrs.iter().zip(&all).filter_map(why).collect();
    if !silent.is_empty() {
        return Err(format!(
            "a new Set starts once all of its stores answer; {} does not answer yet: start it with `seqsvr store \
             --config FILE --init`, or correct [stores] replicas",
            silent.join(", ")
        ));
    }
    let stores: Vec<Description> = all.into_iter().flatten().collect();
    if let Some(twice) =
        stores.iter().enumerate().find(|(index, one)| stores[..*index].iter().any(|other| other.id == one.id))
    {
        return Err(format!(
            "[stores] replicas lists the replica {} under two addresses; list each once",
            twice.1.name
        ));
    }
    let SetTerms { lease, layout, uids, moves } = terms.clone();
    if let Some((name, other)) =
        stores.iter().find_map(|one| Some((&one.name, one.layout.filter(|one| *one != layout)?)))
    {
        return Err(format!(
            "{name} was made with section_size = {} and step = {}, but [set] of this file has {} and {}; set the same in the files of \
             all stores and arbiters. If the file of a store changes, remove the files of its directory, and start it again with --init",
            other.section_size, other.step, layout.section_size, layout.step
        ));
    }
    let member =
        |(what, addr): (Description, &String)| Member { id: what.id, name: what.name, addr: addr.clone() };
    let members = stores.into_iter().zip(addrs).map(member).collect();
    let first = Configuration { number: 1, members, write, lease, layout, uids, taking: None, moves };
    match first.problem() {
        Some(problem) => Err(format!(
            "the stores of the Set cannot form a configuration: wrong {problem}; give each store its own name"
        )),
        None => Ok(first),
    }
}
