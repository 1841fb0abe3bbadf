//! The step that follows an answer of the store to a raise, and how long to pause before the next attempt. Pure: the raiser carries it out,
//! and the simulation does the same.

use std::time::Duration;

use crate::flaws::{Flaw, Flaws};
use crate::ids::Epoch;
use crate::store::{Ceiling, RaiseError};

/// The step that follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum After {
    /// The ceiling is durable, perhaps a higher one than was asked for.
    Confirmed(u64),
    /// Another owner has claimed the section: no more of it is handed out.
    Lost {
        /// Under which epoch it is held.
        newest: Epoch,
    },
    /// The raise must be tried again.
    Again {
        /// The target: it becomes this owner's ceiling by being confirmed, not by having been seen.
        to: u64,
        /// Why.
        why: RaiseError,
    },
}

/// The step that follows the answer to a raise to `target`.
pub fn after(target: Ceiling, answer: Result<u64, RaiseError>, flaws: Flaws) -> After {
    match answer {
        Ok(ceiling) if ceiling >= target.max => After::Confirmed(ceiling),
        Ok(ceiling) => {
            let why = RaiseError::Unknown(format!("confirmed {ceiling} only"));
            After::Again { to: target.max, why }
        }
        Err(RaiseError::Unknown(_)) if flaws.has(Flaw::UnknownCounts) => After::Confirmed(target.max),
        Err(RaiseError::NotOwner { newest }) => After::Lost { newest },
        // An earlier raise of unknown outcome, or an operator's, went further.
        Err(why @ RaiseError::Smaller { stored }) => After::Again { to: stored, why },
        Err(why @ (RaiseError::Unavailable(_) | RaiseError::Unknown(_))) => {
            After::Again { to: target.max, why }
        }
    }
}

/// The pauses between failed attempts: each twice as long as the one before, up to the longest.
#[derive(Clone, Debug)]
pub struct Pauses {
    first: Duration,
    longest: Duration,
    next: Duration,
}

impl Pauses {
    /// From `first` to `longest`.
    pub fn new(first: Duration, longest: Duration) -> Self {
        Self { first, longest, next: first }
    }

    /// An attempt failed: how long to pause.
    pub fn failed(&mut self) -> Duration {
        let pause = self.next;
        self.next = (pause * 2).min(self.longest);
        pause
    }

    /// An attempt succeeded.
    pub fn succeeded(&mut self) {
        self.next = self.first;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::SectionId;

    #[test]
    fn only_a_confirmed_ceiling_counts_and_every_other_answer_is_tried_again() {
        let target = Ceiling { section: SectionId::new(1), max: 100 };
        let to = |answer| match after(target, answer, Flaws::default()) {
            After::Again { to, .. } => Some(to),
            _ => None,
        };
        assert_eq!(after(target, Ok(100), Flaws::default()), After::Confirmed(100));
        assert_eq!(to(Ok(99)), Some(100));
        assert_eq!(to(Err(RaiseError::Unknown(String::new()))), Some(100));
        assert_eq!(to(Err(RaiseError::Smaller { stored: 150 })), Some(150), "seen, and not confirmed");
        let newest = Epoch { term: 1, version: 2 };
        assert_eq!(
            after(target, Err(RaiseError::NotOwner { newest }), Flaws::default()),
            After::Lost { newest }
        );
    }

    #[test]
    fn pauses_double_up_to_the_longest_and_begin_anew_after_a_success() {
        let ms = Duration::from_millis;
        let mut pauses = Pauses::new(ms(10), ms(35));
        let drawn: Vec<Duration> = (0..4).map(|_| pauses.failed()).collect();
        assert_eq!(drawn, [ms(10), ms(20), ms(35), ms(35)]);
        pauses.succeeded();
        assert_eq!(pauses.failed(), ms(10));
    }
}
