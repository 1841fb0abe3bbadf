//! The moves that are possible in a state, and the states after them: an answer arrives, a caller gives up, an owner begins a call,
//! the configuration changes.

use std::sync::Arc;

use super::{Leg, Move, Protocol, ProtocolState, Wire};
use crate::owner::{Lane, OwnerCall};
pub(super) use seqsvr_cluster::store::quorum::rounds::{Ask, ChangeRound, Round as _};
use seqsvr_core::clock::Moment;
use seqsvr_core::store::Address;
use seqsvr_core::store::message::{Answer, Question};

impl Protocol {
    /// Which replica a call of that configuration means.
    fn meant(&self, lane: Lane, number: u64, index: usize) -> usize {
        let replaced = number == 2 && index == self.sizes.n() - 1 && !matches!(lane, Lane::Change(_));
        index + usize::from(replaced)
    }

    /// The moves that could come next; some may turn out to be impossible.
    pub(super) fn moves(&self, world: &ProtocolState) -> Vec<Move> {
        let lanes = [Lane::Read, Lane::Claim, Lane::Raise, Lane::Release];
        let idle = |lane: &Lane| !world.calls.iter().any(|(one, ..)| one == lane);
        let mut moves: Vec<Move> = (0..world.wires.len()).map(Move::Arrive).collect();
        if world.late > 0 {
            moves.extend((0..world.wires.len()).map(Move::GiveUp));
        }
        moves.extend((world.tick < self.ticks).then_some(Move::Tick));
        for index in 0..world.owners.len() {
            moves.extend(lanes.map(|lane| lane(index)).into_iter().filter(idle).map(Move::Begin));
            moves.push(Move::HandOut(index));
        }
        moves.extend((world.changes > 0).then_some(Move::Change));
        moves.extend(self.sleepers(world).into_iter().map(Move::BringUp));
        moves
    }

    /// The state after a move, if the move is possible.
    pub(super) fn after(&self, world: &ProtocolState, one: Move) -> Option<ProtocolState> {
        let mut after = world.clone();
        match one {
            Move::Arrive(index) => self.arrive(&mut after, index)?,
            Move::GiveUp(index) => self.give_up(&mut after, index)?,
            Move::Tick => after.tick += 1,
            Move::Begin(lane) => {
                let call = after.owners[lane.owner()].begin(lane, after.tick, self.sizes, self.flaws)?;
                self.begin(&mut after, lane, call);
            }
            Move::HandOut(index) => {
                let (first, last) = after.owners[index].hand_out(world.tick, self.flaws)?;
                let (largest, by) = world.last;
                // Numbers asked for now must be larger than all that were handed out.
                after.broken = first <= largest && by != index;
                after.last = world.last.max((last, index));
            }
            Move::Change => {
                let turn = after.changes;
                after.changes -= 1;
                let (current, next) = (self.configuration(1), self.configuration(2));
                let mut round = ChangeRound::new(current, next, turn as u64, self.flaws);
                let asks = round.open();
                self.begin(&mut after, Lane::Change(turn), (OwnerCall::Change(round), asks));
            }
            Move::BringUp(index) => {
                let install = Question::Install { next: self.configuration(2), copy: Arc::default() };
                Arc::make_mut(&mut after.replicas[index]).ask(Moment::default(), &install);
            }
        }
        Some(after)
    }

    fn begin(&self, world: &mut ProtocolState, lane: Lane, (call, asks): (OwnerCall, Vec<Ask>)) {
        let serial = world.owners.iter().map(|owner| owner.serials()).sum::<u8>();
        let number = world.known.get(lane.owner()).copied().unwrap_or(1);
        world.calls.push((lane, serial, Arc::new(call)));
        send(world, lane, (serial, number), asks);
    }

    /// A question reaches its replica, or an answer its caller.
    fn arrive(&self, world: &mut ProtocolState, index: usize) -> Option<()> {
        let Wire { lane, serial, number, replica, leg } = world.wires.remove(index);
        let awaited = matches!(leg, Leg::Out(_)) && position(world, lane, serial).is_some();
        match leg {
            Leg::Out(question) | Leg::Given(question) => {
                let meant = self.meant(lane, number, replica);
                let to = Some(Address { number, member: meant as u64 + 1 });
                let state = Arc::make_mut(&mut world.replicas[meant]);
                let decision = state.call(Moment::default(), to, &question);
                if let (Some(answer), true) = (decision.answer, awaited) {
                    let leg = Leg::Back(Arc::new(answer));
                    world.wires.push(Wire { lane, serial, number, replica, leg });
                }
            }
            Leg::Back(answer) => {
                let call = position(world, lane, serial)?;
                if let Answer::Misaddressed { configuration: Some(heard), .. } = answer.as_ref()
                    && let Some(known) = world.known.get_mut(lane.owner())
                {
                    *known = heard.number.max(*known);
                }
                self.answered(world, call, (replica, number), Ok(Arc::unwrap_or_clone(answer)));
            }
        }
        sort(world);
        Some(())
    }

    /// A caller counts no answer to this question any more; it may still reach the replica.
    fn give_up(&self, world: &mut ProtocolState, index: usize) -> Option<()> {
        let Wire { lane, serial, number, replica, leg } = world.wires.remove(index);
        let call = position(world, lane, serial)?;
        match leg {
            Leg::Out(question) if !idle(&question) => {
                world.wires.push(Wire { lane, serial, number, replica, leg: Leg::Given(question) });
            }
            Leg::Out(_) | Leg::Back(_) => {}
            Leg::Given(_) => return None,
        }
        world.late -= 1;
        self.answered(world, call, (replica, number), Err("no answer in time".to_owned()));
        sort(world);
        Some(())
    }

    fn answered(
        &self,
        world: &mut ProtocolState,
        call: usize,
        (replica, number): (usize, u64),
        answer: Result<Answer, String>,
    ) {
        let (lane, serial, _) = world.calls[call];
        let (asks, done) = Arc::make_mut(&mut world.calls[call].2).on(replica, answer);
        send(world, lane, (serial, number), asks);
        let Some(done) = done else { return };
        world.calls.remove(call);
        // Nobody listens to its answers any more; its questions may still arrive.
        world.wires.retain(|wire| {
            (wire.lane, wire.serial) != (lane, serial)
                || match &wire.leg {
                    Leg::Back(_) => false,
                    Leg::Out(question) | Leg::Given(question) => !idle(question),
                }
        });
        if let Some(owner) = world.owners.get_mut(lane.owner()) {
            owner.done(done, world.tick, self.flaws);
        }
    }
}

/// The call of this lane and number, if it is under way.
fn position(world: &ProtocolState, lane: Lane, serial: u8) -> Option<usize> {
    world.calls.iter().position(|(one, number, _)| (*one, *number) == (lane, serial))
}

/// Whether a question changes nothing where it arrives.
fn idle(question: &Question) -> bool {
    matches!(question, Question::Read { .. } | Question::Copy)
}

fn sort(world: &mut ProtocolState) {
    let leg = |wire: &Wire| match wire.leg {
        Leg::Out(_) => 0,
        Leg::Back(_) => 1,
        Leg::Given(_) => 2,
    };
    world.wires.sort_by_key(|wire| (wire.lane, wire.serial, wire.replica, leg(wire)));
}

/// A step of a history, for people.
pub(super) fn tell(before: &ProtocolState, one: Move, after: &ProtocolState) -> String {
    match one {
        Move::Arrive(index) => {
            let Wire { lane, replica, leg, .. } = &before.wires[index];
            match leg {
                Leg::Out(question) | Leg::Given(question) => {
                    format!("replica {replica} is asked by {lane:?}: {question:?}")
                }
                Leg::Back(answer) => format!("replica {replica} answers {lane:?}: {answer:?}"),
            }
        }
        Move::GiveUp(index) => {
            let Wire { lane, replica, .. } = &before.wires[index];
            format!("{lane:?} waits no longer for replica {replica}")
        }
        Move::Tick => format!("the clock shows {}", after.tick),
        Move::Begin(lane) => format!("{lane:?} begins"),
        Move::HandOut(index) => {
            format!("owner {index} hands out numbers up to {}", after.owners[index].current())
        }
        Move::Change => format!("change {} begins", before.changes),
        Move::BringUp(index) => format!("replica {index} is told of the change"),
    }
}

pub(super) fn send(world: &mut ProtocolState, lane: Lane, (serial, number): (u8, u64), asks: Vec<Ask>) {
    let wires = asks.into_iter().map(|(replica, question)| (replica, Leg::Out(Arc::new(question))));
    let wires = wires.map(|(replica, leg)| Wire { lane, serial, number, replica, leg });
    world.wires.extend(wires);
}
