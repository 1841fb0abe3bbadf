//! Cuts a call for many uids into parts that are asked at the same time, and puts the answers back into the order of
//! the call. Cuts are made by Set, by process, and, after trouble, by section; what fails in one part leaves the others
//! alone.

use std::collections::BTreeMap;

use futures_util::future::join_all;

use super::error::EachError;

/// Which positions of a call go together, by `key`. Positions of one part keep their order.
pub(super) fn by<K: Ord>(uids: &[u32], key: impl Fn(u32) -> K) -> BTreeMap<K, Vec<usize>> {
    let mut parts: BTreeMap<K, Vec<usize>> = BTreeMap::new();
    for (position, &uid) in uids.iter().enumerate() {
        parts.entry(key(uid)).or_default().push(position);
    }
    parts
}

/// Asks for all parts at the same time.
pub(super) async fn ask<K, F>(
    uids: &[u32],
    parts: BTreeMap<K, Vec<usize>>,
    call: impl Fn(K, Vec<u32>) -> F,
) -> Result<Vec<u64>, EachError>
where
    F: Future<Output = Result<Vec<u64>, EachError>>,
{
    let calls = parts.into_iter().map(|(key, positions)| {
        let answered = call(key, positions.iter().map(|&position| uids[position]).collect());
        async { (answered.await, positions) }
    });
    // Each position belongs to one part.
    let mut all = vec![Ok(0); uids.len()];
    let mut first = None;
    for (answered, positions) in join_all(calls).await {
        let numbers = match answered {
            Ok(numbers) => numbers.into_iter().map(Ok).collect(),
            Err(error) => {
                first = Some(first.unwrap_or(error.first));
                error.numbers
            }
        };
        for (position, number) in positions.into_iter().zip(numbers) {
            all[position] = number;
        }
    }
    match first {
        None => Ok(all.into_iter().flatten().collect()),
        Some(first) => Err(EachError { numbers: all, first }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CallError;

    #[tokio::test]
    async fn answers_come_back_in_the_order_of_the_call() {
        let uids = [5, 2, 7, 4, 5];
        let parts = by(&uids, |uid| uid % 2);
        let answered =
            ask(&uids, parts, async |_, part| Ok(part.into_iter().map(|uid| u64::from(uid) * 10).collect()));
        assert_eq!(answered.await, Ok(vec![50, 20, 70, 40, 50]));
    }

    #[tokio::test]
    async fn a_part_that_fails_leaves_the_others_their_numbers() {
        let uids = [5, 2, 7];
        let parts = by(&uids, |uid| uid % 2);
        let answered = ask(&uids, parts, async |odd, part: Vec<u32>| match odd {
            0 => Ok(vec![1; part.len()]),
            _ => Err(EachError::all(part.len(), CallError::Closed)),
        });
        let failed = answered.await.expect_err("the odd ones fail");
        assert_eq!(failed.numbers, [Err(CallError::Closed), Ok(1), Err(CallError::Closed)]);
        assert_eq!(failed.to_string(), "2 of 3 uids got no number: the client was closed");
    }
}
