//! The kinds of processes, each behind the same three calls.

use super::Place;
use super::alloc::Alloc;
use super::arbiter::Arbiter;
use super::chance::Chance;
use super::client::SimulatedClient;
use super::cx::Cx;
use super::message::Input;
use super::quorum::{Access, Quorum};
use super::replacer::Replacer;
use super::replica::Replica;
use super::wild::Wild;

/// See the module.
pub(crate) enum SimulatedRole {
    Replica(Box<Replica>),
    Alloc(Box<Alloc>),
    Arbiter(Box<Arbiter>),
    Wild(Box<Wild>),
    Replacer(Box<Replacer>),
    Client(Box<SimulatedClient>),
}

impl SimulatedRole {
    /// Something happens to it.
    pub(crate) fn on(&mut self, cx: &mut Cx<'_>, input: Input) {
        match self {
            Self::Replica(role) => role.on(cx, input),
            Self::Alloc(role) => role.on(cx, input),
            Self::Arbiter(role) => role.on(cx, input),
            Self::Wild(role) => role.on(cx, input),
            Self::Replacer(role) => role.on(cx, input),
            Self::Client(role) => role.on(cx, input),
        }
    }

    /// Its file, if it calls replicas.
    pub(crate) fn access(&mut self) -> Option<&mut Access> {
        match self {
            Self::Alloc(role) => Some(role.access()),
            Self::Arbiter(role) => Some(role.access()),
            Self::Wild(role) => Some(role.access()),
            Self::Replacer(role) => Some(role.access()),
            Self::Replica(_) | Self::Client(_) => None,
        }
    }

    /// The replicas that it asks: members of the configuration that it uses, else those of its file.
    pub(crate) fn replicas(&mut self) -> Vec<Place> {
        let quorum = match self {
            Self::Alloc(role) => role.quorum(),
            Self::Arbiter(role) => role.quorum(),
            Self::Wild(role) => role.quorum(),
            Self::Replacer(_) | Self::Replica(_) | Self::Client(_) => None,
        };
        let used = quorum.and_then(Quorum::members);
        used.or_else(|| Some(self.access()?.replicas.clone())).unwrap_or_default()
    }

    /// It ends: only what is on its disk stays, and not all of that.
    pub(crate) fn crash(&mut self, chance: &mut Chance) {
        match self {
            Self::Replica(role) => role.crash(chance),
            Self::Alloc(role) => role.crash(chance),
            Self::Arbiter(role) => role.crash(),
            Self::Wild(role) => role.crash(),
            Self::Replacer(role) => role.crash(),
            Self::Client(role) => role.crash(),
        }
    }
}
