//! The rules that the cluster's safety hangs on, each with a switch that breaks it. The simulation turns one on to
//! prove that its checker would notice; in every other build [`Flaws`] is empty and [`Flaws::has`] is the constant
//! `false`, so that the compiler removes the broken branch. Each core takes a `Flaws` in its constructor and asks it
//! where the rule stands.

/// A rule, broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Flaw {
    /// A taker starts at the ceilings of a separate read, not at those in the answers that accepted its claim.
    FenceFromRead,
    /// A table counts once one replica has shown it, not W.
    TableOnOne,
    /// A read writes a newer table back before the replica has answered about an older one, and takes that answer for the newer.
    WriteBackUnanswered,
    /// Owners are compared by epoch alone, so that two incarnations under one epoch pass for one.
    EpochOfNode,
    /// A taker serves as soon as its claim stands, without waiting for the end of the old lease.
    NoTakeoverWait,
    /// The lease is counted from the arrival of the answer, not from before the request.
    LeaseFromAnswer,
    /// No comparison with the deadline at the answer: only a timer ends the lease.
    NoDeadlineCheck,
    /// A wish to go on above a number is granted below the ceiling that a claim found, before one was confirmed.
    AdvanceUnconfirmed,
    /// Memory moves when a raise is asked for, not when it is confirmed.
    AnswerBeforeConfirm,
    /// A raise whose outcome is not known counts as confirmed.
    UnknownCounts,
    /// A release is noted from any sender, without comparing epoch and incarnation.
    LooseRelease,
    /// A node hands out numbers of what it has lost until its release is noted.
    ReleaseWhileServing,
    /// W is half of N, so that two quorums need not meet.
    SmallQuorum,
    /// A replica that takes part in a change of the configuration goes on answering calls of the old one.
    VoteWhileSealed,
    /// The members of the next configuration vote without what the old ones hold.
    InstallWithoutState,
    /// A replica answers calls of any configuration, without comparing its number.
    AnyNumber,
    /// A replica answers calls before it is a member of a configuration.
    ServeUnconfigured,
    /// W of the listed stores decide on the first configuration, not all of them.
    FirstByFew,
    /// A file of a move of uids is taken although it was taken before.
    TakeTwice,
    /// A file of a move of uids is taken by another Set than the one that it names.
    TakeElsewhere,
    /// A client pairs an answer with a question by the place among those under way, without comparing serial and stream.
    AnswerByPlace,
}

/// The rules that are broken: none, unless the simulation says otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flaws {
    #[cfg(any(test, feature = "simulation"))]
    broken: Option<Flaw>,
}

#[cfg(not(any(test, feature = "simulation")))]
impl Flaws {
    /// Whether the rule is broken: never.
    pub const fn has(self, _: Flaw) -> bool {
        false
    }
}

#[cfg(any(test, feature = "simulation"))]
impl Flaws {
    /// With one rule broken.
    pub const fn only(flaw: Flaw) -> Self {
        Self { broken: Some(flaw) }
    }

    /// Whether the rule is broken.
    pub fn has(self, flaw: Flaw) -> bool {
        self.broken == Some(flaw)
    }
}

#[cfg(any(test, feature = "simulation"))]
impl Flaw {
    /// All of them.
    pub const ALL: [Self; 21] = [
        Self::FenceFromRead,
        Self::TableOnOne,
        Self::WriteBackUnanswered,
        Self::EpochOfNode,
        Self::NoTakeoverWait,
        Self::LeaseFromAnswer,
        Self::NoDeadlineCheck,
        Self::AdvanceUnconfirmed,
        Self::AnswerBeforeConfirm,
        Self::UnknownCounts,
        Self::LooseRelease,
        Self::ReleaseWhileServing,
        Self::SmallQuorum,
        Self::VoteWhileSealed,
        Self::InstallWithoutState,
        Self::AnyNumber,
        Self::ServeUnconfigured,
        Self::FirstByFew,
        Self::TakeTwice,
        Self::TakeElsewhere,
        Self::AnswerByPlace,
    ];
}
