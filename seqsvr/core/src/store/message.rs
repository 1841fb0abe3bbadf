//! The questions to a replica and its answers, as plain values. The same travel over gRPC, through the simulation and between the tests;
//! wire types are separate and live in `rpc`.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;

use crate::ids::{Epoch, SectionId};
use crate::routing::Table;
use crate::store::{Ceiling, Configuration, Configured, Layout, Owner};

/// A question to a replica.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Question {
    /// Take sections for an owner: all of them or none. The owner of a standing claim may repeat it.
    Claim {
        /// Disjoint ranges.
        sections: Vec<RangeInclusive<SectionId>>,
        /// The claiming owner.
        owner: Owner,
        /// The meaning of section numbers; the first claim fixes it.
        layout: Layout,
    },
    /// Raise ceilings, each by itself.
    Raise {
        /// The asking owner: holder of the newest claim, else refused.
        owner: Owner,
        /// Absolute targets.
        ceilings: Vec<Ceiling>,
    },
    /// The owner hands out nothing more in these sections. Noted where the section's newest or highest earlier owner is exactly this one,
    /// also after later claims; elsewhere without effect.
    Release {
        /// The owner that leaves.
        owner: Owner,
        /// Which sections.
        sections: Vec<RangeInclusive<SectionId>>,
    },
    /// Follow no arbiter of a term below this one from now on. Refused when this term, or a higher one, was promised before.
    Promise {
        /// Unique to one bid of one arbiter.
        term: u64,
    },
    /// Keep this table: refused when its term is below the promised one or the stored table is newer.
    Write(Arc<Table>),
    /// What is your table? Answered at once when the revision differs, else at the next change or after the wait.
    Read {
        /// The revision of the last answer; 0 is answered at once.
        revision: u64,
        /// How long the answer may be held back.
        wait: Duration,
        /// Whether a release ends the wait; else only another table does.
        releases: bool,
    },
    /// The arbiter of this term is alive. Not durable.
    Acting {
        /// Its term.
        term: u64,
    },
    /// Everything that you vote by.
    Copy,
    /// Take part in the change of your configuration, and answer no other call of it from now on.
    Seal {
        /// The configuration that is changed.
        number: u64,
        /// The ballot of the change: the highest is followed.
        ballot: u64,
    },
    /// Keep this as the next configuration.
    Accept {
        /// The configuration that is changed.
        number: u64,
        /// The ballot of the change.
        ballot: u64,
        /// The next one.
        next: Arc<Configuration>,
    },
    /// Vote in this configuration from now on, and take over what the others hold. A store that is no member of it votes in nothing from
    /// then on.
    Install {
        /// The one that was decided on; number 1 by all listed stores.
        next: Arc<Configuration>,
        /// The data of the replicas that sealed the one before; nothing when it is in force already.
        copy: Arc<Copy>,
    },
    /// What are you? Answered by a replica that does not vote, too.
    Describe,
}

/// A replica's answer. Any answer may be lost or late, so questions can be repeated.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    /// The claim stands here, durably: nothing below it is confirmed from now on.
    Claimed {
        /// The ceilings above 0 of the claimed sections, by section.
        ceilings: Vec<Ceiling>,
        /// The earlier owners of the sections, sorted runs; sections without one are left out.
        earlier: Vec<Earlier>,
    },
    /// The claim is refused: one of the sections is held under this epoch.
    Outclaimed(Epoch),
    /// The claim is refused: the sections were written under this layout.
    OtherLayout(Layout),
    /// One outcome for each ceiling, in order.
    Raised(Vec<Raised>),
    /// Done, or without effect.
    Released,
    /// The term is promised; here is the newest table.
    Promised(Option<Arc<Table>>),
    /// The promise or table is refused; this term was promised.
    Outranked(u64),
    /// The table is durable here.
    Written,
    /// The table is refused: a newer one is here.
    Newer(Epoch),
    /// The table, and what tells changes apart.
    Table {
        /// Grows with each change of the table and each release.
        revision: u64,
        /// The newest table.
        table: Option<Arc<Table>>,
        /// The term that was promised.
        promised: u64,
        /// How long ago the arbiter of that term was last heard of, by its `Acting` or a write or its promise; `None`: not since the
        /// replica started.
        acting: Option<Duration>,
    },
    /// The largest term that was promised.
    Acting(u64),
    /// Everything that this replica votes by.
    Copy(Copy),
    /// The replica's description.
    Described(Description),
    /// It takes part, and has answered no other call since.
    Sealed {
        /// The next configuration that it accepted before, and under which ballot.
        accepted: Option<(u64, Arc<Configuration>)>,
        /// Everything that it votes by.
        copy: Copy,
    },
    /// It keeps the next configuration.
    Accepted,
    /// A change under this, higher ballot is under way.
    Outbid(u64),
    /// It votes in that configuration, or knows that it is no member of it.
    Installed,
    /// The call is not meant for this replica, or does not count for its configuration.
    Misaddressed {
        /// In which way.
        why: Misaddressed,
        /// The configuration that the replica knows.
        configuration: Option<Arc<Configuration>>,
    },
}

/// Why a replica does not answer a call that was addressed to it.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq, Hash)]
pub enum Misaddressed {
    /// Another member is at this address.
    #[error("another replica answers at this address; correct the addresses of the stores")]
    Member,
    /// It is new, and votes in nothing yet.
    #[error(
        "it is new and not a member yet: an arbiter stores the first configuration of a Set once all stores of its \
         file answer; `seqsvr store add` or `seqsvr store replace` adds it to a Set that serves"
    )]
    Unconfigured,
    /// It was replaced or removed.
    #[error("it is no longer a member of the Set: it was replaced or removed; stop it and remove its files")]
    Removed,
    /// A table that gives away uids which the Set does not have yet.
    #[error("uids of another Set are being added; complete that with: seqsvr restore FILE")]
    Taking,
    /// The configuration is being changed.
    #[error(
        "the stores of the Set are being changed; an arbiter completes that within some seconds, or the same command run again"
    )]
    Sealed,
    /// It was down during a change.
    #[error("it does not know the newest configuration yet")]
    Behind,
    /// The caller goes by an earlier configuration.
    #[error(
        "the caller uses an earlier configuration of the stores, which is no longer in force; update the caller, or its file"
    )]
    Newer,
}

/// The description of a replica, whether it votes or not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Description {
    /// Its name, as its configuration file says.
    pub name: String,
    /// Its id; 0: it has none.
    pub id: u64,
    /// The meaning of its section numbers.
    pub layout: Option<Layout>,
    /// The configuration that it knows; `None`: it is new, and no member.
    pub configuration: Option<Arc<Configuration>>,
    /// That is being changed, or the first one is being decided on.
    pub sealed: bool,
}

/// The outcome of a raise at one replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Raised {
    /// The ceiling is durable here.
    Confirmed(u64),
    /// Refused: the stored ceiling is this, larger one.
    Smaller(u64),
    /// Refused: the section is held under this epoch (0.0: by nobody).
    NotOwner(Epoch),
}

/// Sections and their owner before the newest claim: the highest earlier epoch that this replica has seen.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Earlier {
    /// Which sections.
    pub sections: RangeInclusive<SectionId>,
    /// The earlier owner.
    pub owner: Owner,
    /// Whether that owner has released them.
    pub released: bool,
}

/// Everything that a replica votes by.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Copy {
    /// The largest term that was promised.
    pub promised: u64,
    /// The newest table.
    pub table: Option<Arc<Table>>,
    /// Fixed by the first claim.
    pub layout: Option<Layout>,
    /// Sorted runs of sections in the same state; untouched ones are left out.
    pub sections: Vec<(RangeInclusive<SectionId>, SectionState)>,
    /// Which votes count.
    pub configured: Configured,
}

/// The state of a section at a replica.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SectionState {
    /// Never becomes smaller.
    pub ceiling: u64,
    /// The newest claim.
    pub owner: Option<Held>,
    /// The highest one before it.
    pub earlier: Option<Held>,
}

/// An owner, and whether it has released.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Held {
    /// The owner.
    pub owner: Owner,
    /// It hands out nothing more.
    pub released: bool,
}
