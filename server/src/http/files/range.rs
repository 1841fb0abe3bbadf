//! The header `Range`, as far as players and resumed downloads need it: one range of bytes.

use std::ops::Range;

/// Which bytes are asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RangeAsked {
    /// All of them; also where the header says something that may be ignored.
    All,
    /// These.
    Part(Range<u64>),
    /// None that there are.
    Nothing,
}

/// What the header asks of a file of so many bytes.
pub(super) fn asked(header: Option<&str>, size: u64) -> RangeAsked {
    let Some((first, last)) = header.and_then(|text| text.trim().strip_prefix("bytes=")?.split_once('-'))
    else {
        return RangeAsked::All;
    };
    let (first, last) = (first.trim(), last.trim());
    let number = |text: &str| {
        text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse::<u64>().unwrap_or(u64::MAX))
    };
    let range = match (first, last) {
        ("", "") => return RangeAsked::All,
        ("", last) => number(last).map(|count| size.saturating_sub(count)..size),
        (first, "") => number(first).map(|first| first..size),
        (first, last) => match (number(first), number(last)) {
            (Some(first), Some(last)) if first <= last => Some(first..size.min(last.saturating_add(1))),
            _ => None,
        },
    };
    match range {
        None => RangeAsked::All,
        Some(range) if range.start < range.end => RangeAsked::Part(range),
        Some(_) => RangeAsked::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_range_is_taken_and_others_are_ignored() {
        for (header, expected) in [
            (None, RangeAsked::All),
            (Some("bytes=0-"), RangeAsked::Part(0..10)),
            (Some("bytes=2-4"), RangeAsked::Part(2..5)),
            (Some("bytes=2-99"), RangeAsked::Part(2..10)),
            (Some("bytes=-3"), RangeAsked::Part(7..10)),
            (Some("bytes=-99"), RangeAsked::Part(0..10)),
            (Some("bytes=9-9"), RangeAsked::Part(9..10)),
            (Some("bytes=10-"), RangeAsked::Nothing),
            (Some("bytes=-0"), RangeAsked::Nothing),
            (Some("bytes=99999999999999999999-"), RangeAsked::Nothing),
            (Some("bytes=4-2"), RangeAsked::All),
            (Some("bytes=0-1,3-4"), RangeAsked::All),
            (Some("bytes=a-b"), RangeAsked::All),
            (Some("rows=0-1"), RangeAsked::All),
            (Some("bytes=-"), RangeAsked::All),
        ] {
            assert_eq!(asked(header, 10), expected, "{header:?}");
        }
    }
}
