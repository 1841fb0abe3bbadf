//! The make-up of a cluster: how many processes, over which stores, for which uids, how quick, and for which callers. Plain values,
//! turned into configuration files by `config`.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

/// How many processes of each role, and how they are told to work.
#[derive(Clone, Debug)]
pub struct Shape {
    /// StoreSvrs of each Set; a majority must answer.
    pub stores: usize,
    /// AllocSvrs, which serve all of the Sets.
    pub allocators: usize,
    /// Arbiters of each Set.
    pub arbiters: usize,
    /// The stores of ceilings and tables.
    pub keeper: KeeperKind,
    /// Whether the processes speak over wires that can be cut.
    pub wired: bool,
    /// How quickly the cluster notices.
    pub timing: Timing,
    /// Number and uids of each Set; one alone has a cluster for itself.
    pub sets: Vec<(u32, RangeInclusive<u32>)>,
    /// How sections are given out, and which AllocSvr stands by.
    pub policy: Policy,
    /// Certificates and tokens of all processes and clients; without, everything is open and plain.
    pub certificates: Option<Certificates>,
}

impl Shape {
    /// Three stores and these, for all uids.
    pub fn new(allocators: usize, arbiters: usize) -> Shape {
        Shape {
            stores: 3,
            allocators,
            arbiters,
            keeper: KeeperKind::Quorum,
            wired: false,
            timing: Timing::default(),
            sets: vec![(0, 0..=u32::MAX)],
            policy: Policy::default(),
            certificates: None,
        }
    }
}

/// The stores of ceilings and tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeeperKind {
    /// StoreSvrs.
    Quorum,
    /// An etcd cluster; needs the program `etcd`.
    Etcd,
}

/// The times that detection and takeover depend on; the defaults are the programs' own.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// How long a read of the table lets an AllocSvr serve.
    pub lease: Duration,
    /// Between two probes of an AllocSvr.
    pub probe_every: Duration,
    /// How long an answer to a probe may take. A process that is gone does not answer at once, so a busy one may have long.
    pub probe_patience: Duration,
    /// Probes in a row without an answer that make it dead.
    pub dead_after: u32,
}

impl Default for Timing {
    fn default() -> Timing {
        let probe = Duration::from_millis(200);
        Timing { lease: Duration::from_secs(2), probe_every: probe, probe_patience: probe, dead_after: 3 }
    }
}

impl Timing {
    /// The time without service that a lost AllocSvr may cost: detection and 1.1 times the lease.
    pub fn takeover(self) -> Duration {
        self.probe_every * self.dead_after + self.lease.mul_f64(1.1)
    }
}

/// How the arbiters assign sections, and how clients find them; the default is that of the programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// Everybody serves.
    #[default]
    Spread,
    /// The same, with a look at the load every five seconds and every node busy that hands out this many numbers a second.
    Balanced(u64),
    /// One serves, the next as listed stands by.
    Standby,
    /// The same for each slice of the uids by itself, in an order by consistent hash.
    StandbyByHash,
}

impl Policy {
    /// The section `[balance]` of an arbiter.
    pub(super) fn balance(self) -> String {
        match self {
            Policy::Balanced(least) => format!("\n[balance]\nevery_s = 5\nleast = {least}\n"),
            Policy::Spread | Policy::Standby | Policy::StandbyByHash => String::new(),
        }
    }

    /// The word for it in files.
    pub(super) fn word(self) -> &'static str {
        match self {
            Policy::Spread | Policy::Balanced(_) => "spread",
            Policy::Standby => "standby",
            Policy::StandbyByHash => "standby-by-hash",
        }
    }
}

/// Files with certificates and tokens.
#[derive(Clone, Debug)]
pub struct Certificates {
    /// The authority that signed the certificate: PEM.
    pub authority: PathBuf,
    /// The certificate that every process shows: PEM.
    pub certificate: PathBuf,
    /// Its private key: PEM.
    pub key: PathBuf,
    /// The token that every caller brings.
    pub token: PathBuf,
    /// The token that operators bring in its place.
    pub admin_token: PathBuf,
}

impl Certificates {
    /// The keys of a process that is called.
    pub(super) fn to_listen(&self) -> String {
        let Certificates { certificate, key, token, .. } = self;
        format!("\n[security]\ncertificate = {certificate:?}\nkey = {key:?}\ntoken_file = {token:?}\n")
    }

    /// The keys of a caller.
    pub(super) fn to_call(&self) -> String {
        let Certificates { authority, token, .. } = self;
        format!("authority = {authority:?}\ntoken_file = {token:?}\n")
    }

    /// The further key of operators, and of arbiters, whom they call.
    pub(super) fn of_operators(&self) -> String {
        format!("admin_token_file = {:?}\n", self.admin_token)
    }
}
