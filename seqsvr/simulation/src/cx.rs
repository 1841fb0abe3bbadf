//! The things that a process may use while it handles one input: the time, chance, the checker; and its effects. The world owns the
//! rest and carries the effects out.

use std::ops::Range;
use std::time::Duration;

use super::chance::Chance;
use super::checker::Checker;
use super::message::{Packet, Tick};
use super::{At, Place};
use seqsvr_core::clock::Moment;

/// See the module.
pub(crate) struct Cx<'a> {
    /// The true time: only for callers, who are the observers.
    pub(crate) at: At,
    /// The time on the clock that leases run on.
    pub(crate) now: Moment,
    pub(crate) chance: &'a mut Chance,
    pub(crate) checker: &'a mut Checker,
    /// Carried out once the input is handled, in this order.
    pub(crate) effects: Vec<Effect>,
}

/// An action that a process wants.
pub(crate) enum Effect {
    Send(Place, Packet),
    /// To be woken when its boot clock shows that.
    Tick(Moment, Tick),
}

impl Cx<'_> {
    /// Sends a packet.
    pub(crate) fn send(&mut self, to: Place, packet: Packet) {
        self.effects.push(Effect::Send(to, packet));
    }

    /// Asks to be woken with `tick` when the boot clock shows `due`.
    pub(crate) fn tick(&mut self, due: Moment, tick: Tick) {
        self.effects.push(Effect::Tick(due, tick));
    }

    /// The same, `within` so many nanoseconds from now.
    pub(crate) fn tick_in(&mut self, within: Range<At>, tick: Tick) {
        let nanos = self.chance.between(within);
        self.tick(self.now + Duration::from_nanos(nanos), tick);
    }
}
