//! The kinds of processes, each behind the same three calls.

use super::alloc::Alloc;
use super::arbiter::Arbiter;
use super::chance::Chance;
use super::client::SimulatedClient;
use super::cx::Cx;
use super::message::Input;
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
