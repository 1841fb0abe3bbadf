//! Assigns machine ids. `choose` decides, pure, over the rows of a registry; `claim` carries it out, again if another process was faster.
//! Called by the holder, for the first claim and for each renewal alike.

use std::ops::Range;
use std::time::Duration;

use thiserror::Error;

use super::Instance;
use super::registry::{Entry, MAX_VALUE, Registry, RegistryError, Row};
use crate::clock::Clock;

/// How often a claim is tried anew when other processes were faster.
const ATTEMPTS: u32 = 100;

/// A process's request for a machine id.
#[derive(Clone, Debug)]
pub(super) struct Claim {
    /// Its name.
    pub instance: Instance,
    /// Its own mark, the same as before the restart if its local file survived.
    pub holder: u64,
    /// The ids that may be given out.
    pub machines: Range<u32>,
    /// How long an id is held without a renewal.
    pub lease: Duration,
    /// The id that was last asked for and the time that was used up on it: should the answer be lost, the row is this
    /// process's own when it is read again, and no longer says so.
    pub asked: Option<(u32, u64)>,
}

/// The machine id that a process got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Granted {
    /// The machine id.
    pub machine: u32,
    /// When the lease ends, by the claimer's boot clock: counted from before the request.
    pub ends_boot: u64,
    /// The same by its calendar; no id may be later than this.
    pub used_until: u64,
    /// Ids may only be later than this: an earlier holder's `used_until`, or 0.
    pub not_before: u64,
}

/// Why nothing was granted; each may pass.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ClaimError {
    /// All ids are held.
    #[error(
        "all {0} machine ids are held; wait until the lease of a stopped instance ends, or configure more bits"
    )]
    Exhausted(usize),
    /// Other processes were faster each time.
    #[error("other processes were faster in {ATTEMPTS} attempts to get a machine id; try again")]
    Contended,
    /// The registry cannot be used.
    #[error(transparent)]
    Registry(#[from] RegistryError),
}

/// The row to write, and over which version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Choice {
    machine: u32,
    over: u64,
    /// The time that is used up by others, or by an earlier run without its local files.
    not_before: u64,
}

/// Prefers, in this order: the id that this process holds, one that this instance held, one that nobody ever held, and the one that has
/// been free for longest. An id that was registered by a calendar far ahead of `wall` cannot be used until then, so it is taken only when
/// there is no other.
fn choose(rows: &[Row], claim: &Claim, wall: u64) -> Option<Choice> {
    let soon = wall.saturating_add(claim.lease.as_millis() as u64);
    let is_ahead = |row: &Row| !row.live && row.entry.used_until > soon;
    let near: Vec<Row> = rows.iter().filter(|row| !is_ahead(row)).cloned().collect();
    let far: Vec<u32> = rows.iter().filter(|row| is_ahead(row)).map(|row| row.entry.machine).collect();
    best(&near, &far, claim).or_else(|| best(rows, &[], claim))
}

/// As [`choose`], without the ids in `but`.
fn best(rows: &[Row], but: &[u32], claim: &Claim) -> Option<Choice> {
    let usable = || rows.iter().filter(|row| claim.machines.contains(&row.entry.machine));
    let take = |row: &Row, not_before| Choice { machine: row.entry.machine, over: row.version, not_before };
    let is_namesake = |row: &Row| row.entry.instance == claim.instance;
    let mine = |row: &&Row| is_namesake(row) && row.entry.holder == claim.holder;
    if let Some(row) = usable().filter(mine).max_by_key(|row| (row.live, row.entry.used_until)) {
        // While its lease runs, the restart's local files say what is used up, more closely than the row does.
        return Some(take(row, if row.live { 0 } else { row.entry.used_until }));
    }
    let free = || usable().filter(|row| !row.live);
    let longest = |row: &&Row| (row.entry.used_until, row.entry.machine);
    if let Some(row) = free().filter(|row| is_namesake(row)).min_by_key(longest) {
        return Some(take(row, row.entry.used_until));
    }
    let but = but.iter().copied().filter(|machine| claim.machines.contains(machine));
    let mut taken: Vec<u32> = usable().map(|row| row.entry.machine).chain(but).collect();
    taken.sort_unstable();
    taken.dedup();
    let untouched = claim.machines.len() - taken.len();
    if untouched > 0 {
        // Not the lowest: processes that start at the same moment would all go for it.
        let skip = (claim.holder % untouched as u64) as usize;
        let machine =
            claim.machines.clone().filter(|machine| taken.binary_search(machine).is_err()).nth(skip)?;
        return Some(Choice { machine, over: 0, not_before: 0 });
    }
    free().min_by_key(longest).map(|row| take(row, row.entry.used_until))
}

/// Gets a machine id or renews the one that is held.
pub(super) async fn claim(
    registry: &dyn Registry,
    clock: &Clock,
    claim: &mut Claim,
) -> Result<Granted, ClaimError> {
    let lease_ms = claim.lease.as_millis() as u64;
    for _ in 0..ATTEMPTS {
        let rows = registry.rows().await?;
        let choice = choose(&rows, claim, clock.wall()).ok_or(ClaimError::Exhausted(claim.machines.len()))?;
        // Before the request, so that the lease ends here before it ends there.
        let (boot, wall) = (clock.boot(), clock.wall());
        let earlier = rows.iter().find(|row| row.entry.machine == choice.machine);
        // Never smaller than what is registered: a calendar that went back does not give used time away.
        let used_until = wall.saturating_add(lease_ms).min(MAX_VALUE);
        let registered = earlier.map_or(used_until, |row| row.entry.used_until.max(used_until));
        let entry = Entry {
            machine: choice.machine,
            instance: claim.instance.clone(),
            holder: claim.holder,
            used_until: registered,
        };
        let Choice { machine, not_before, over } = choice;
        let unanswered = claim.asked.filter(|asked| asked.0 == machine).map_or(0, |asked| asked.1);
        let not_before = not_before.max(unanswered);
        claim.asked = Some((machine, not_before));
        if registry.write(&entry, over, claim.lease).await? {
            let ends_boot = boot.saturating_add(lease_ms);
            return Ok(Granted { machine, ends_boot, used_until: registered, not_before });
        }
    }
    Err(ClaimError::Contended)
}

/// Gives a machine id back, as used until `used_until`; nothing happens if it is another's by now.
pub(super) async fn release(
    registry: &dyn Registry,
    claim: &Claim,
    machine: u32,
    used_until: u64,
) -> Result<(), RegistryError> {
    let rows = registry.rows().await?;
    let mine = |row: &&Row| row.entry.machine == machine && row.entry.holder == claim.holder;
    if let Some(row) = rows.iter().find(mine) {
        let entry = Entry { used_until: used_until.min(row.entry.used_until), ..row.entry.clone() };
        registry.write(&entry, row.version, Duration::ZERO).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOW: u64 = 1_000;

    fn choose(rows: &[Row], claim: &Claim) -> Option<Choice> {
        super::choose(rows, claim, NOW)
    }

    fn asking(name: &str, holder: u64) -> Claim {
        let instance = Instance::named(name).unwrap();
        Claim { instance, holder, machines: 0..4, lease: Duration::from_secs(60), asked: None }
    }

    fn row(machine: u32, name: &str, holder: u64, live: bool, used_until: u64) -> Row {
        let instance = Instance::named(name).unwrap();
        Row { entry: Entry { machine, instance, holder, used_until }, live, version: u64::from(machine) + 10 }
    }

    #[test]
    fn a_holder_keeps_what_it_has_even_after_the_lease() {
        for (live, not_before) in [(true, 0), (false, 50)] {
            let rows = [row(1, "a", 7, live, 50), row(2, "b", 8, true, 60)];
            assert_eq!(choose(&rows, &asking("a", 7)), Some(Choice { machine: 1, over: 11, not_before }));
        }
    }

    #[test]
    fn a_restarted_instance_gets_its_id_again_once_it_is_free() {
        let rows = [row(3, "a", 7, false, 50)];
        assert_eq!(choose(&rows, &asking("a", 9)), Some(Choice { machine: 3, over: 13, not_before: 50 }));
        let live = [row(3, "a", 7, true, 50)];
        let other = choose(&live, &asking("a", 9)).unwrap();
        assert_ne!(other.machine, 3, "two processes of one name get two ids");
    }

    #[test]
    fn untouched_ids_go_first_and_then_the_one_that_is_free_for_longest() {
        let mut rows = vec![row(0, "a", 1, false, 70), row(1, "b", 2, false, 60), row(2, "c", 3, true, 10)];
        assert_eq!(choose(&rows, &asking("d", 4)), Some(Choice { machine: 3, over: 0, not_before: 0 }));
        rows.push(row(3, "e", 5, true, 90));
        assert_eq!(choose(&rows, &asking("d", 4)), Some(Choice { machine: 1, over: 11, not_before: 60 }));
    }

    #[test]
    fn an_id_that_a_clock_far_ahead_used_up_blocks_nobody_while_there_are_others() {
        let far = NOW + 60_001;
        let mut rows = vec![row(0, "a", 7, false, far), row(1, "b", 8, false, NOW)];
        for holder in [7, 9] {
            let choice = choose(&rows, &asking("a", holder)).unwrap();
            assert!(choice.machine >= 2 && choice.over == 0, "{choice:?}");
        }
        rows.extend([row(2, "c", 1, true, NOW), row(3, "d", 2, true, NOW)]);
        assert_eq!(choose(&rows, &asking("a", 7)), Some(Choice { machine: 1, over: 11, not_before: NOW }));
        rows[1].live = true;
        // Late is better than never, and never at a time that was used.
        assert_eq!(choose(&rows, &asking("a", 9)), Some(Choice { machine: 0, over: 10, not_before: far }));
    }

    #[test]
    fn nothing_is_taken_from_the_living_and_foreign_ids_do_not_count() {
        let mut rows: Vec<Row> = (0..4).map(|id| row(id, "a", u64::from(id), true, 5)).collect();
        rows.push(row(4, "d", 9, false, 5));
        assert_eq!(choose(&rows, &asking("d", 9)), None);
    }

    proptest! {
        #[test]
        fn an_id_is_only_taken_when_it_is_free_or_ones_own(
            held in prop::collection::btree_map(0_u32..6, (0_u64..4, any::<bool>(), 0_u64..100_000), 0..6), holder in 0_u64..4,
        ) {
            let name = |holder: u64| format!("i{}", holder / 2);
            let rows: Vec<Row> = held
                .iter()
                .map(|(&machine, &(holder, live, used))| row(machine, &name(holder), holder, live, used))
                .collect();
            let claim = asking(&name(holder), holder);
            let Some(choice) = choose(&rows, &claim) else {
                prop_assert!((0..4).all(|machine| rows.iter().any(|row| row.entry.machine == machine && row.live)));
                return Ok(());
            };
            prop_assert!(claim.machines.contains(&choice.machine));
            let Some(taken) = rows.iter().find(|row| row.entry.machine == choice.machine) else {
                prop_assert_eq!(choice.over, 0);
                return Ok(());
            };
            prop_assert_eq!(choice.over, taken.version);
            prop_assert!(!taken.live || taken.entry.holder == holder);
            prop_assert!(choice.not_before == taken.entry.used_until || taken.live);
        }
    }
}
