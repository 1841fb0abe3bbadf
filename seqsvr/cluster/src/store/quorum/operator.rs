//! Operators' changes of the stores while the Set serves: which stores there are, how many must answer. Each
//! is the change of `change`, and may be run again until it is done. `seqsvr store` calls it.

use std::sync::Arc;

use super::change::{ChangedConfiguration, Unchanged};
use super::{Link, Quorum};
use seqsvr_core::store::message::{Answer, Description, Question};
use seqsvr_core::store::{Configuration, Member};

impl Quorum {
    /// Puts the new store at `new` in the place of the member called `old`, which may be dead, or the same store before it lost its
    /// disk.
    ///
    /// # Errors
    ///
    /// `Unchanged`. After `Unchanged::Unavailable` the Set may stand still until it is called again or an arbiter completes
    /// the change.
    pub async fn replace(&self, old: &str, new: &str) -> Result<ChangedConfiguration, Unchanged> {
        let newcomer = self.newcomer(new).await?;
        self.reconfigure(|current| {
            let there = current.named(old);
            if current.has(newcomer.member.id) && there.is_none_or(|one| one.id == newcomer.member.id) {
                return Ok(None);
            }
            there.ok_or_else(|| unknown(current, old))?;
            newcomer.fits(current, Some(old))?;
            Ok(Some(current.replacing(old, newcomer.member.clone())))
        })
        .await
    }

    /// Makes the new store at `new` one more member.
    ///
    /// # Errors
    ///
    /// As [`replace`](Self::replace).
    pub async fn add(&self, new: &str) -> Result<ChangedConfiguration, Unchanged> {
        let newcomer = self.newcomer(new).await?;
        self.reconfigure(|current| {
            if current.has(newcomer.member.id) {
                return Ok(None);
            }
            newcomer.fits(current, None)?;
            let next = current.adding(newcomer.member.clone());
            next.sizes()?;
            Ok(Some(next))
        })
        .await
    }

    /// The member called `old`, dead or alive, votes no more.
    ///
    /// # Errors
    ///
    /// As [`replace`](Self::replace).
    pub async fn remove(&self, old: &str) -> Result<ChangedConfiguration, Unchanged> {
        let mut seen = false;
        self.described(usize::MAX).await;
        if let Some(current) = self.configuration() {
            seen = current.named(old).is_some();
        }
        self.reconfigure(|current| match current.named(old) {
            None if seen => Ok(None),
            None => Err(unknown(current, old)),
            Some(_) if current.members.len() == 1 => Err(Unchanged::Last { old: old.to_owned() }),
            Some(_) => Ok(Some(current.removing(old))),
        })
        .await
    }

    /// Sets how many members must answer each call from now on.
    ///
    /// # Errors
    ///
    /// As [`replace`](Self::replace).
    pub async fn set_write(&self, write: usize) -> Result<ChangedConfiguration, Unchanged> {
        self.reconfigure(|current| {
            let next = current.writing(write);
            next.sizes()?;
            Ok((current.write != write).then_some(next))
        })
        .await
    }

    /// The store at `addr`, by its own description.
    async fn newcomer(&self, addr: &str) -> Result<Newcomer, Unchanged> {
        let silent = |why| Unchanged::Silent { addr: addr.to_owned(), why };
        let link: Arc<dyn Link> = self.ways.dial(addr).map_err(silent)?;
        let what = match link.ask(Question::Describe).await.map_err(silent)? {
            Answer::Described(what) if what.id != 0 => what,
            _ => return Err(silent("it answers another question".to_owned())),
        };
        self.ways.keep(what.id, &link);
        if let Some(taken_in) = &what.configuration {
            self.follow(Arc::clone(taken_in));
        }
        let member = Member { id: what.id, name: what.name.clone(), addr: addr.to_owned() };
        Ok(Newcomer { what, member })
    }
}

/// A store that will become a member.
struct Newcomer {
    what: Description,
    member: Member,
}

impl Newcomer {
    /// Whether it may become a member of the next configuration, in which `leaves` is none.
    fn fits(&self, current: &Configuration, leaves: Option<&str>) -> Result<(), Unchanged> {
        let Member { name, addr, .. } = &self.member;
        if self.what.configuration.is_some() || self.what.sealed {
            return Err(Unchanged::NotNew { addr: addr.clone(), name: name.clone() });
        }
        if leaves != Some(name.as_str()) && current.named(name).is_some() {
            return Err(Unchanged::Name { addr: addr.clone(), name: name.clone() });
        }
        if self.what.layout.is_some_and(|layout| layout != current.layout) {
            let (section_size, step) = (current.layout.section_size, current.layout.step);
            return Err(Unchanged::Layout { section_size, step });
        }
        Ok(())
    }
}

fn unknown(current: &Configuration, old: &str) -> Unchanged {
    let members = current.members.iter().map(|one| one.name.clone()).collect::<Vec<_>>().join(", ");
    Unchanged::Unknown { old: old.to_owned(), number: current.number, members }
}
