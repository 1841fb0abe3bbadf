//! The arithmetic of sections and uids, checked over its whole range.

use proptest::prelude::*;

use super::section::{Advancing, Rules, TakePlan};
use super::split::Split;
use super::sync::BLOCK;
use crate::store::MAX_CEILING;

fn rules() -> impl Strategy<Value = Rules> {
    let limit = prop_oneof![1..=MAX_CEILING, Just(MAX_CEILING), Just((1 << 53) - 1)];
    (2..=u64::from(u32::MAX), limit).prop_map(|(step, limit)| Rules { step, limit })
}

/// A number that is likely to lie near another one.
fn near(anchor: u64) -> impl Strategy<Value = u64> {
    prop_oneof![
        (0..40_000_u64).prop_map(move |below| anchor.saturating_sub(below)),
        (0..40_000_u64).prop_map(move |above| anchor.saturating_add(above)),
        any::<u64>(),
    ]
}

fn situation() -> impl Strategy<Value = (Rules, u64, u64)> {
    rules().prop_flat_map(|rules| {
        near(rules.limit).prop_flat_map(move |ceiling| {
            let ceiling = ceiling.min(rules.limit);
            (Just(rules), near(ceiling), Just(ceiling))
        })
    })
}

proptest! {
    #[test]
    fn a_grant_is_exact_and_never_passes_the_ceiling((rules, current, ceiling) in situation(), count in 1_u32..) {
        if let TakePlan::Grant { last } = rules.plan(current, count, ceiling) {
            prop_assert_eq!(last, current + u64::from(count));
            prop_assert!(last <= ceiling);
        } else {
            prop_assert!(u128::from(current) + u128::from(count) > u128::from(ceiling));
        }
    }

    #[test]
    fn a_uid_goes_on_above_a_number_only_below_a_ceiling_that_was_raised_since_the_claim(
        (rules, current, ceiling) in situation(), at_least in any::<u64>(), claimed in any::<bool>(),
    ) {
        let (current, at_least) = (current.min(ceiling), at_least.min(rules.limit));
        let base = if claimed { ceiling } else { current };
        match rules.advance(at_least, current, base, ceiling) {
            Advancing::Done => prop_assert!(at_least == 0 || base < ceiling && at_least <= current),
            Advancing::Move => prop_assert!(base < ceiling && current < at_least && at_least <= ceiling),
            Advancing::Raise { to } => {
                prop_assert!(ceiling < to && to <= rules.limit && at_least <= to);
                let again = rules.advance(at_least, current, base, to);
                prop_assert!(matches!(again, Advancing::Done | Advancing::Move), "{:?}", again);
            }
            Advancing::Exhausted => prop_assert_eq!((base, ceiling), (ceiling, rules.limit)),
        }
    }

    #[test]
    fn a_confirmed_raise_lets_the_same_take_through((rules, current, ceiling) in situation(), count in 1_u32..) {
        if let TakePlan::Raise { to } = rules.plan(current, count, ceiling) {
            prop_assert!(ceiling < to && to <= rules.limit);
            let again = rules.plan(current, count, to);
            prop_assert!(matches!(again, TakePlan::Grant { .. }), "{:?}", again);
        }
    }

    #[test]
    fn a_raise_is_a_whole_step_unless_the_limit_is_near((rules, current, ceiling) in situation(), count in 1_u32..) {
        let targets = match rules.plan(current, count, ceiling) {
            TakePlan::Raise { to } => Some(to),
            TakePlan::Grant { last } => rules.ahead(last, ceiling),
            TakePlan::Exhausted => None,
        };
        if let Some(to) = targets {
            prop_assert!(to >= ceiling + rules.step || to == rules.limit);
        }
    }

    #[test]
    fn exhausted_means_that_the_limit_would_be_passed((rules, current, ceiling) in situation(), count in 1_u32..) {
        let passes = u128::from(current) + u128::from(count) > u128::from(rules.limit);
        prop_assert_eq!(rules.plan(current, count, ceiling) == TakePlan::Exhausted, passes);
    }

    #[test]
    fn the_window_is_raised_ahead_when_less_than_half_a_step_is_left((rules, last, ceiling) in situation()) {
        let last = last.min(ceiling);
        let due = ceiling < rules.limit && ceiling - last < rules.step / 2;
        prop_assert_eq!(rules.ahead(last, ceiling).is_some(), due);
    }

    #[test]
    fn an_open_block_ends_below_the_ceiling_and_before_a_raise_is_due((rules, last, ceiling) in situation()) {
        let end = last | (BLOCK - 1);
        let free = end <= ceiling && rules.ahead(end, ceiling).is_none();
        prop_assert_eq!(rules.opens(last, ceiling), free);
    }

    #[test]
    fn the_reciprocal_divides_like_the_division(size in 10_000_u32..=1 << 31, uid: u32, section: u32) {
        let split = Split::new(size);
        let edge = (section % split.sections() as u32).wrapping_mul(size);
        for uid in [uid, edge, edge.wrapping_sub(1), edge.wrapping_add(1), 0, u32::MAX] {
            let section = split.section(uid);
            prop_assert_eq!(section, (uid / size) as usize);
            prop_assert!(section < split.sections());
            prop_assert!(split.first(section) <= uid && uid <= split.last(section));
        }
    }
}

#[test]
fn a_hundred_thousand_uids_a_section_make_42950_sections() {
    assert_eq!(Split::new(100_000).sections(), 42_950);
}
