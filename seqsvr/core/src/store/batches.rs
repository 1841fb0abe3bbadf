//! Cuts raises into what a store can carry out at a time. Owns nothing; used by the stores whose one statement or
//! transaction changes each section at most once.

use std::collections::HashSet;

use super::Ceiling;

/// `raises` in order, cut wherever a section comes again and after every `most` of them, which is above 0.
pub fn batches(raises: &[Ceiling], most: usize) -> Vec<&[Ceiling]> {
    let (mut cut, mut begun, mut sections) = (Vec::new(), 0, HashSet::new());
    for (index, raise) in raises.iter().enumerate() {
        if index - begun == most || sections.contains(&raise.section) {
            cut.push(&raises[begun..index]);
            begun = index;
            sections.clear();
        }
        sections.insert(raise.section);
    }
    cut.push(&raises[begun..]);
    cut.retain(|batch| !batch.is_empty());
    cut
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::store::conformance::to;

    proptest! {
        #[test]
        fn batches_are_short_without_repetition_and_as_few_as_can_be(
            sections in prop::collection::vec(0..6u32, 0..40),
            most in 1..8usize,
        ) {
            let raises: Vec<_> = (1..).zip(&sections).map(|(max, section)| to(*section, max)).collect();
            let cut = batches(&raises, most);
            prop_assert_eq!(&cut.concat(), &raises);
            for batch in &cut {
                let different: HashSet<_> = batch.iter().map(|raise| raise.section).collect();
                prop_assert!(different.len() == batch.len() && (1..=most).contains(&batch.len()));
            }
            for two in cut.windows(2) {
                let full = two[0].len() == most;
                prop_assert!(full || two[0].iter().any(|raise| raise.section == two[1][0].section));
            }
        }
    }
}
