//! Faults of whole replicas: they die, are replaced, come back, become more and fewer.

use super::{Faults, Next};
use crate::cluster::SimulatedCluster;
use crate::quorum::member_at;
use crate::replacer::Task;
use crate::{MILLI, Place, SECOND};

impl Faults {
    /// Packets from some AllocSvr to these replicas are late or lost for a while.
    fn strain(&mut self, cluster: &mut SimulatedCluster, slow: &[Place], lost: &[Place], longer: u64) {
        let caller = *cluster.world.chance.pick(&cluster.allocs);
        slow.iter().for_each(|&replica| cluster.world.network.slow(caller, replica, longer));
        lost.iter().for_each(|&replica| cluster.world.network.cut(caller, replica));
        let ways = slow.iter().chain(lost).map(|&replica| (caller, replica)).collect();
        self.later(cluster, 5 * SECOND, Next::Mend(ways));
    }

    /// Members that are dead for good, as far as anybody knows.
    fn missing(&self, members: &[Place]) -> usize {
        members.iter().filter(|place| self.gone.contains(place)).count()
    }

    /// How many members may be dead for good: the others can still change the configuration.
    fn most(members: &[Place]) -> usize {
        members.len() - (members.len() / 2 + 1)
    }

    /// Whether a member may die for good now. A change is completed by W members of the next configuration, so while one is under way and
    /// W is more than a majority, or becomes so, all of them are needed.
    fn may_lose_one(cluster: &mut SimulatedCluster, members: &[Place]) -> bool {
        let is_majority = cluster.write_quorum() == members.len() / 2 + 1;
        let mut under_way =
            cluster.replacers.clone().into_iter().filter_map(|one| cluster.task(one)?.clone());
        under_way.all(|task| is_majority && !matches!(task, Task::Write(_)))
    }

    /// In half of the cases the old one is dead, for good or until somebody starts it again; else it lives on, and may not hear of it.
    /// Often while an AllocSvr reaches the old one more easily than those that stay. The replacer may end in the middle, and go on
    /// later.
    pub(super) fn replace(&mut self, cluster: &mut SimulatedCluster) {
        let idle = Self::idle(cluster);
        let mut members = cluster.members();
        let (missing, most) = (self.missing(&members), Self::most(&members));
        if missing > most {
            return;
        }
        let (Some(replacer), Some(new)) = (idle, cluster.spares.pop()) else { return };
        cluster.world.chance.shuffle(&mut members);
        let (old, stay) = (members[0], &members[1..]);
        cluster.replicas.push(new);
        cluster.world.start(new);
        let may_die = missing < most && Self::may_lose_one(cluster, &members);
        if may_die && cluster.world.chance.permille(500) {
            cluster.world.crash(old);
            cluster.world.note("gone", old);
            self.gone.insert(old);
            self.nexts.retain(|(_, next)| !matches!(next, Next::Start(place) if *place == old));
            if cluster.world.chance.permille(500) {
                self.later(cluster, 8 * SECOND, Next::Return(old));
            }
        } else if cluster.world.chance.permille(500) {
            self.cut(cluster, vec![(replacer, old), (old, replacer)]);
        }
        if cluster.world.chance.permille(500) {
            let (slow, lost) = stay.split_at(stay.len() / 2);
            self.strain(cluster, slow, lost, 400 * MILLI);
        }
        self.begin(cluster, replacer, Task::Replace { old: member_at(old).id, new: member_at(new) });
        if cluster.world.chance.permille(400) {
            self.later(cluster, 25 * MILLI, Next::Fail(replacer));
        }
    }

    /// One more, one fewer, or another W. The replacer may end in the middle, and go on later.
    pub(super) fn resize(&mut self, cluster: &mut SimulatedCluster) {
        let Some(replacer) = Self::idle(cluster).filter(|_| cluster.shape.spares > 0) else { return };
        let mut members = cluster.members();
        if self.missing(&members) > 0 {
            return;
        }
        cluster.world.chance.shuffle(&mut members);
        let task = match cluster.world.chance.index(3) {
            0 if members.len() < 7 => {
                let Some(new) = cluster.spares.pop() else { return };
                cluster.replicas.push(new);
                cluster.world.start(new);
                Task::Grow(member_at(new))
            }
            1 if members.len() > 3 => Task::Shrink { old: member_at(members[0]).id },
            _ => Task::Write(members.len() / 2 + 1 + cluster.world.chance.index(2)),
        };
        if cluster.world.chance.permille(500) {
            let (slow, lost) = members.split_at(members.len() / 2);
            self.strain(cluster, slow, lost, 400 * MILLI);
        }
        self.begin(cluster, replacer, task);
        if cluster.world.chance.permille(400) {
            self.later(cluster, 25 * MILLI, Next::Fail(replacer));
        }
    }

    /// Somebody who has nothing to do.
    fn idle(cluster: &mut SimulatedCluster) -> Option<Place> {
        let mut replacers = cluster.replacers.clone().into_iter();
        replacers.find(|&one| cluster.task(one).is_some_and(|task| task.is_none()))
    }

    fn begin(&self, cluster: &mut SimulatedCluster, replacer: Place, task: Task) {
        if let Some(open) = cluster.task(replacer) {
            *open = Some(task);
        }
        cluster.world.crash(replacer);
        cluster.world.start(replacer);
    }
}
