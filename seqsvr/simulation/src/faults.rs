//! Faults, drawn from the seed: the target, the beginning and the end of each. Owns the list of the steps that follow.

use std::collections::BTreeSet;

use super::alloc::Ailment;
use super::arbiter::address;
use super::clock::Shows;
use super::cluster::SimulatedCluster;
use super::message::Packet;
use super::mix::Mix;
use super::network::Network;
use super::world::ProcessState;
use super::{At, MILLI, Place, SECOND};
pub(crate) use seqsvr_cluster::arbiter::core::Change;

mod stores;

type SimulatedFault = fn(&mut Faults, &mut SimulatedCluster);

/// A step that follows from a fault, in time.
enum Next {
    Start(Place),
    /// A replica that was replaced because it was dead is there again, with the disk that it had.
    Return(Place),
    Restart(Place),
    Resume(Place),
    /// Its ailment is mended, and it begins a new life.
    Mended(Place),
    /// People ask an arbiter for that.
    Change(Place, Change),
    /// It ends, and begins a new life later.
    Fail(Place),
    Mend(Vec<(Place, Place)>),
    Calm,
}

/// See the module.
pub(crate) struct Faults {
    mix: Mix,
    nexts: Vec<(At, Next)>,
    /// Replicas that are not started again: others take their place.
    gone: BTreeSet<Place>,
}

impl Faults {
    pub(crate) fn new(mix: Mix) -> Self {
        Self { mix, nexts: Vec::new(), gone: BTreeSet::new() }
    }

    /// Lets things go wrong until `until`, and then heals everything.
    pub(crate) fn run(&mut self, cluster: &mut SimulatedCluster, until: At) {
        self.calm(cluster);
        if let Some(store) = cluster.absent() {
            self.later(cluster, 10 * SECOND, Next::Start(store));
        }
        while cluster.world.checker.broken().is_none() {
            let gap = cluster.world.chance.between(1..2 * self.mix.gap);
            let next = cluster.world.now() + gap;
            self.wait(cluster, next.min(until));
            if next >= until {
                break;
            }
            self.one(cluster);
        }
        while let Some((_, next)) = self.nexts.pop() {
            self.follow(cluster, next);
        }
        cluster.world.network = Network::calm();
        cluster.list_members();
        if cluster.shape.twin {
            cluster.world.replace(cluster.allocs[cluster.shape.allocs], cluster.allocs[0]);
        }
        // People take back the nodes that they have drained, so that there is somebody to serve.
        for &arbiter in &cluster.arbiters {
            for name in cluster.names.clone() {
                let change = Change::Add { addr: address(&name), name };
                cluster.world.post(arbiter, Packet::Change { id: 0, change });
            }
        }
    }

    /// Carries on until `until`, healing what is due.
    fn wait(&mut self, cluster: &mut SimulatedCluster, until: At) {
        while let Some(first) = (0..self.nexts.len()).min_by_key(|&index| self.nexts[index].0) {
            if self.nexts[first].0 > until {
                break;
            }
            let (at, next) = self.nexts.swap_remove(first);
            cluster.world.run_until(at);
            self.follow(cluster, next);
        }
        cluster.world.run_until(until);
    }

    fn follow(&mut self, cluster: &mut SimulatedCluster, next: Next) {
        match next {
            Next::Start(place) => cluster.world.start(place),
            Next::Return(place) => {
                self.gone.remove(&place);
                cluster.world.start(place);
            }
            Next::Restart(place) => {
                cluster.world.crash(place);
                cluster.world.start(place);
            }
            Next::Resume(place) => cluster.world.resume(place),
            Next::Mended(place) => {
                cluster.ail(place, None);
                self.follow(cluster, Next::Restart(place));
            }
            Next::Change(arbiter, change) => cluster.world.post(arbiter, Packet::Change { id: 0, change }),
            Next::Fail(place) => {
                cluster.world.crash(place);
                self.later(cluster, 3 * SECOND, Next::Start(place));
            }
            Next::Mend(ways) => {
                for (from, to) in ways {
                    cluster.world.network.mend(from, to);
                }
            }
            Next::Calm => self.calm(cluster),
        }
    }

    fn calm(&self, cluster: &mut SimulatedCluster) {
        let network = &mut cluster.world.network;
        (network.lost, network.doubled, network.delayed) = self.mix.packets;
        network.late = self.mix.late;
    }

    fn one(&mut self, cluster: &mut SimulatedCluster) {
        let mix = &self.mix;
        let kinds: [(u64, SimulatedFault); 14] = [
            (mix.crash, Self::crash),
            (mix.leave, Self::leave),
            (mix.ail, Self::ail),
            (mix.replace, Self::replace),
            (mix.resize, Self::resize),
            (mix.halve, Self::halve),
            (mix.pause, Self::pause),
            (mix.part, Self::part),
            (mix.one_way, Self::one_way),
            (mix.callers, Self::callers),
            (mix.drift, Self::drift),
            (mix.jump, Self::jump),
            (mix.storm, Self::storm),
            (mix.whim, Self::whim),
        ];
        let total: u64 = kinds.iter().map(|(weight, _)| weight).sum();
        if total == 0 {
            return;
        }
        let mut drawn = cluster.world.chance.between(0..total);
        for (weight, fault) in kinds {
            if drawn < weight {
                return fault(self, cluster);
            }
            drawn -= weight;
        }
    }

    fn later(&mut self, cluster: &mut SimulatedCluster, longest: At, next: Next) {
        let at = cluster.world.now() + cluster.world.chance.between(MILLI..longest);
        self.nexts.push((at, next));
    }

    /// Any process but a caller; AllocSvrs more often than the rest.
    fn server(cluster: &mut SimulatedCluster) -> Place {
        let some: Vec<Place> = if cluster.world.chance.permille(600) {
            cluster.allocs.clone()
        } else {
            [&cluster.replicas[..], &cluster.arbiters].concat()
        };
        *cluster.world.chance.pick(&some)
    }

    fn crash(&mut self, cluster: &mut SimulatedCluster) {
        let place = Self::server(cluster);
        if cluster.world.run_of(place) == ProcessState::Down {
            return;
        }
        cluster.world.crash(place);
        if cluster.world.chance.permille(300) && cluster.shape.clocks == Shows::Boot {
            *cluster.world.clock(place) = cluster.fresh_clock(0);
        }
        let longest = if cluster.world.chance.permille(500) { 200 * MILLI } else { 4 * SECOND };
        self.later(cluster, longest, Next::Start(place));
    }

    /// In half of the cases it is killed before it has left; in half of them what the replicas answer it is late.
    fn leave(&mut self, cluster: &mut SimulatedCluster) {
        let place = *cluster.world.chance.pick(&cluster.allocs.clone());
        if cluster.world.run_of(place) == ProcessState::Down {
            return;
        }
        cluster.world.note("leave", place);
        cluster.world.post(place, Packet::Leave);
        if cluster.world.chance.permille(500) {
            let ways: Vec<_> = cluster.replicas.iter().map(|&replica| (replica, place)).collect();
            ways.iter().for_each(|&(from, to)| cluster.world.network.slow(from, to, 400 * MILLI));
            self.later(cluster, 5 * SECOND, Next::Mend(ways));
        }
        let longest = if cluster.world.chance.permille(500) { SECOND } else { 6 * SECOND };
        self.later(cluster, longest, Next::Restart(place));
    }

    /// For long enough to be set aside for it, or not. People then mend it, and restart it.
    fn ail(&mut self, cluster: &mut SimulatedCluster) {
        let place = *cluster.world.chance.pick(&cluster.allocs);
        let ails = *cluster.world.chance.pick(&[Ailment::FullDisk, Ailment::Refused]);
        cluster.world.note("ails", place);
        cluster.ail(place, Some(ails));
        if cluster.world.chance.permille(500) {
            self.follow(cluster, Next::Restart(place));
        }
        self.later(cluster, 15 * SECOND, Next::Mended(place));
    }

    /// The arbiter's next write reaches one replica; the arbiter ends before it reaches another. No other arbiter can write meanwhile.
    fn halve(&mut self, cluster: &mut SimulatedCluster) {
        let writer = *cluster.world.chance.pick(&cluster.arbiters);
        let reached = *cluster.world.chance.pick(&cluster.replicas);
        let deaf = *cluster.world.chance.pick(&cluster.allocs);
        let missed = |arbiter, replica| arbiter != writer || replica != reached;
        let pairs = |arbiter: Place| cluster.replicas.iter().map(move |&replica| (arbiter, replica));
        let mut cuts: Vec<(Place, Place)> = cluster
            .arbiters
            .iter()
            .flat_map(|&arbiter| pairs(arbiter))
            .filter(|&(arbiter, replica)| missed(arbiter, replica))
            .collect();
        cuts.push((deaf, reached));
        self.cut(cluster, cuts.into_iter().flat_map(|(one, other)| [(one, other), (other, one)]).collect());
        self.later(cluster, 2 * SECOND, Next::Restart(writer));
    }

    fn pause(&mut self, cluster: &mut SimulatedCluster) {
        let place = Self::server(cluster);
        let longest = if cluster.world.chance.permille(300) { 300 * MILLI } else { 5 * SECOND };
        self.sleep(cluster, place, longest);
    }

    fn sleep(&mut self, cluster: &mut SimulatedCluster, place: Place, longest: At) {
        if cluster.world.run_of(place) == ProcessState::Up {
            cluster.world.pause(place);
            self.later(cluster, longest, Next::Resume(place));
        }
    }

    fn cut(&mut self, cluster: &mut SimulatedCluster, ways: Vec<(Place, Place)>) {
        for &(from, to) in &ways {
            cluster.world.network.cut(from, to);
        }
        self.later(cluster, 4 * SECOND, Next::Mend(ways));
    }

    fn part(&mut self, cluster: &mut SimulatedCluster) {
        let place = Self::server(cluster);
        let share = *cluster.world.chance.pick(&[300, 600, 1000]);
        let others: Vec<Place> =
            (0..cluster.world.count()).filter(|_| cluster.world.chance.permille(share)).collect();
        self.cut(cluster, others.iter().flat_map(|&other| [(place, other), (other, place)]).collect());
    }

    fn one_way(&mut self, cluster: &mut SimulatedCluster) {
        let place = Self::server(cluster);
        let out = cluster.world.chance.permille(500);
        let others: Vec<Place> =
            (0..cluster.world.count()).filter(|_| cluster.world.chance.permille(600)).collect();
        let way = |&other: &Place| if out { (place, other) } else { (other, place) };
        self.cut(cluster, others.iter().map(way).collect());
    }

    fn callers(&mut self, cluster: &mut SimulatedCluster) {
        let place = *cluster.world.chance.pick(&cluster.allocs.clone());
        let only_callers = cluster.world.chance.permille(500);
        self.divide(cluster, place, only_callers);
    }

    /// Cuts a process off from callers only, or from all but callers.
    fn divide(&mut self, cluster: &mut SimulatedCluster, place: Place, only_callers: bool) {
        let first_caller = cluster.callers[0];
        let others = (0..cluster.world.count()).filter(|&other| (other >= first_caller) == only_callers);
        self.cut(cluster, others.flat_map(|other| [(place, other), (other, place)]).collect());
    }

    fn drift(&mut self, cluster: &mut SimulatedCluster) {
        let (place, rate, now) = (Self::server(cluster), cluster.rate(), cluster.world.now());
        cluster.world.note("drift", place);
        cluster.world.clock(place).drift(now, rate);
    }

    fn jump(&mut self, cluster: &mut SimulatedCluster) {
        let place = Self::server(cluster);
        let by = cluster.world.chance.between(0..7_200 * SECOND) as i64 - 3_600 * SECOND as i64;
        cluster.world.note("jump", place);
        cluster.world.clock(place).jump(by);
    }

    fn storm(&mut self, cluster: &mut SimulatedCluster) {
        let chance = &mut cluster.world.chance;
        let (lost, doubled) = (chance.between(0..300), chance.between(0..300));
        let (delayed, late) = (chance.between(0..500), chance.between(MILLI..3 * SECOND));
        let network = &mut cluster.world.network;
        (network.lost, network.doubled, network.delayed, network.late) = (lost, doubled, delayed, late);
        self.later(cluster, 3 * SECOND, Next::Calm);
    }

    fn whim(&mut self, cluster: &mut SimulatedCluster) {
        let chance = &mut cluster.world.chance;
        let (name, arbiter) = (chance.pick(&cluster.names).clone(), *chance.pick(&cluster.arbiters));
        let change = match chance.index(3) {
            0 => {
                let change = Change::Remove(name.clone());
                self.later(cluster, 3 * SECOND, Next::Change(arbiter, change));
                Change::Drain(name)
            }
            1 => Change::Add { addr: address(&name), name },
            _ => Change::Rebalance,
        };
        cluster.world.post(arbiter, Packet::Change { id: 0, change });
    }
}
