//! What goes wrong with whole replicas: their disks are lost, or they are replaced.

use super::{Faults, Next};
use crate::cluster::Cluster;
use crate::quorum::member_at;
use crate::replacer::Task;
use crate::world::Run;
use crate::{MILLI, Place, SECOND};

impl Faults {
    /// Often while an AllocSvr's questions to the other replicas are late or lost, and this one's answers count.
    pub(super) fn lose(&mut self, cluster: &mut Cluster) {
        let mut replicas = cluster.members();
        cluster.world.chance.shuffle(&mut replicas);
        let (place, others) = (replicas[0], &replicas[1..]);
        if cluster.world.chance.permille(500) {
            return self.lose_now(cluster, place, None);
        }
        let sleeps = cluster.world.chance.permille(300);
        let longer = if sleeps { 4 * SECOND } else { 400 * MILLI };
        let (slow, lost) = others.split_at(cluster.shape.sizes.w() - 1);
        let caller = self.strain(cluster, slow, lost, longer);
        self.later(cluster, 300 * MILLI, Next::Lose(place, Some(caller)));
        if sleeps {
            self.later(cluster, 300 * MILLI, Next::Sleep(caller));
        }
    }

    /// What some AllocSvr sends to these replicas is late or lost for a while.
    fn strain(&mut self, cluster: &mut Cluster, slow: &[Place], lost: &[Place], longer: u64) -> Place {
        let caller = *cluster.world.chance.pick(&cluster.allocs);
        slow.iter().for_each(|&replica| cluster.world.network.slow(caller, replica, longer));
        lost.iter().for_each(|&replica| cluster.world.network.cut(caller, replica));
        let ways = slow.iter().chain(lost).map(|&replica| (caller, replica)).collect();
        self.later(cluster, 5 * SECOND, Next::Mend(ways));
        caller
    }

    /// Never more at once than leave N - W + 1 to copy from, and W - 1 others to promise. The caller, if there is one, does not find it again for a while.
    pub(super) fn lose_now(&mut self, cluster: &mut Cluster, place: Place, caller: Option<Place>) {
        let members = cluster.members();
        let missing = self.missing(cluster, &members);
        let most = Self::most(cluster);
        if !members.contains(&place) || missing.contains(&place) || missing.len() >= most {
            return;
        }
        if let Some(caller) = caller {
            cluster.world.network.cut(caller, place);
            self.later(cluster, 5 * SECOND, Next::Mend(vec![(caller, place)]));
        }
        let down = cluster.world.run_of(place) == Run::Down;
        cluster.world.lose_disk(place);
        if !down {
            let longest = if cluster.world.chance.permille(700) { 5 * MILLI } else { 2 * SECOND };
            self.later(cluster, longest, Next::Start(place));
        }
    }

    /// Members whose disks are lost, now or for good.
    fn missing(&self, cluster: &Cluster, members: &[Place]) -> Vec<Place> {
        let lost = |place: &&Place| cluster.world.is_lost(**place) || self.gone.contains(place);
        members.iter().filter(lost).copied().collect()
    }

    /// How many members may be missing. Lost ones come back only when no change is under way that cannot be completed without them.
    fn most(cluster: &mut Cluster) -> usize {
        let (n, w) = (cluster.shape.sizes.n(), cluster.shape.sizes.w());
        let replacers = cluster.replacers.clone();
        let changing = replacers.into_iter().any(|one| cluster.task(one).is_some_and(|task| task.is_some()));
        let most = (w - 1).min(n - w + 1);
        if changing { most.min(n - w) } else { most }
    }

    /// In half of the cases the old one is dead; else it lives on, and may not hear of it. Often while an AllocSvr reaches the old one
    /// more easily than those that stay. Who replaces it may end in the middle, and go on later.
    pub(super) fn replace(&mut self, cluster: &mut Cluster) {
        let idle = Self::idle(cluster);
        let mut members = cluster.members();
        let (sizes, missing) = (cluster.shape.sizes, self.missing(cluster, &members).len());
        let most = (sizes.n() - sizes.w()).min(sizes.w() - 1);
        if missing > most {
            return;
        }
        let (Some(replacer), Some(new)) = (idle, cluster.spares.pop()) else { return };
        cluster.world.chance.shuffle(&mut members);
        let (old, stay) = (members[0], &members[1..]);
        cluster.replicas.push(new);
        cluster.world.start(new);
        if missing < most && cluster.world.chance.permille(500) {
            cluster.world.crash(old);
            cluster.world.note("gone", old);
            self.gone.insert(old);
            self.nexts.retain(|(_, next)| !matches!(next, Next::Start(place) if *place == old));
        } else if cluster.world.chance.permille(500) {
            self.cut(cluster, vec![(replacer, old), (old, replacer)]);
        }
        if cluster.world.chance.permille(500) {
            let (slow, lost) = stay.split_at(sizes.w() - 1);
            self.strain(cluster, slow, lost, 400 * MILLI);
        }
        self.begin(cluster, replacer, Task::Replace { old: member_at(old).id, new: member_at(new) });
        if cluster.world.chance.permille(400) {
            self.later(cluster, 25 * MILLI, Next::Fail(replacer));
        }
    }

    /// To half or twice as long as it was at first, or back. Often while an AllocSvr that callers reach does not hear of it.
    /// Who does that may end while the earlier lease is still held.
    pub(super) fn lease(&mut self, cluster: &mut Cluster) {
        let (members, sizes) = (cluster.members(), cluster.shape.sizes);
        let Some(replacer) = Self::idle(cluster).filter(|_| cluster.shape.spares > 0) else { return };
        // The command asks first whether enough of them are there.
        if self.missing(cluster, &members).len() > sizes.n() - sizes.w() {
            return;
        }
        let first = cluster.shape.lease;
        let lease = *cluster.world.chance.pick(&[first / 2, first / 2, first, first * 2, first * 2]);
        if cluster.world.chance.permille(500) {
            let deaf = *cluster.world.chance.pick(&cluster.allocs.clone());
            self.divide(cluster, deaf, false);
        }
        self.begin(cluster, replacer, Task::Lease(lease));
        if cluster.world.chance.permille(400) {
            self.later(cluster, 2 * SECOND, Next::Fail(replacer));
        }
    }

    /// Somebody who has nothing to do.
    fn idle(cluster: &mut Cluster) -> Option<Place> {
        let mut replacers = cluster.replacers.clone().into_iter();
        replacers.find(|&one| cluster.task(one).is_some_and(|task| task.is_none()))
    }

    fn begin(&self, cluster: &mut Cluster, replacer: Place, task: Task) {
        if let Some(open) = cluster.task(replacer) {
            *open = Some(task);
        }
        cluster.world.crash(replacer);
        cluster.world.start(replacer);
    }
}
