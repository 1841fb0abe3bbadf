//! The objects in which the bytes of a file lie. An upload adds one at its end whenever some bytes have come; nobody ever writes to one
//! that is there.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

/// Objects of one file, at most: an upload that stops again and again leaves small ones.
pub const MOST_SEGMENTS: usize = 2_000;

/// One object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Its name among those of the file: made by chance, so that two servers that write the same part write two objects.
    pub name: u64,
    /// Its bytes.
    pub length: u64,
}

/// All objects of a file, in the order of its bytes. As a text: name in hex, colon, length, with spaces between them. Stored; must stay
/// stable.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Segments(pub Vec<Segment>);

impl Segments {
    /// These and one more.
    pub fn with(&self, segment: Segment) -> Segments {
        Segments(self.0.iter().copied().chain([segment]).collect())
    }

    /// The bytes in all of them.
    pub fn length(&self) -> u64 {
        self.0.iter().map(|segment| segment.length).sum()
    }

    /// Where the bytes of `range` lie: names, and the range within each.
    pub fn within(&self, range: Range<u64>) -> Vec<(u64, Range<u64>)> {
        let (mut start, mut parts) = (0, Vec::new());
        for Segment { name, length } in self.0.iter().copied() {
            let (from, to) = (range.start.max(start), range.end.min(start + length));
            if from < to {
                parts.push((name, from - start..to - start));
            }
            start += length;
        }
        parts
    }
}

impl fmt::Display for Segments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, Segment { name, length }) in self.0.iter().enumerate() {
            let space = if at > 0 { " " } else { "" };
            write!(f, "{space}{name:016x}:{length}")?;
        }
        Ok(())
    }
}

impl FromStr for Segments {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Segments, &'static str> {
        let segment = |word: &str| {
            let (name, length) = word.split_once(':')?;
            Some(Segment { name: u64::from_str_radix(name, 16).ok()?, length: length.parse().ok()? })
        };
        let segments: Option<Vec<Segment>> =
            text.split(' ').filter(|word| !word.is_empty()).map(segment).collect();
        segments.map(Segments).ok_or("is no list of segments")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_found_in_its_segments_and_the_text_stays() {
        let segments =
            Segments::default().with(Segment { name: 10, length: 5 }).with(Segment { name: 11, length: 3 });
        assert_eq!(segments.to_string(), "000000000000000a:5 000000000000000b:3");
        assert_eq!(segments.to_string().parse(), Ok(segments.clone()));
        assert_eq!("".parse(), Ok(Segments::default()));
        assert!("a".parse::<Segments>().is_err() && "a:b".parse::<Segments>().is_err());
        assert_eq!(segments.length(), 8);
        assert_eq!(segments.within(0..8), [(10, 0..5), (11, 0..3)]);
        assert_eq!(segments.within(4..6), [(10, 4..5), (11, 0..1)]);
        assert_eq!(segments.within(5..99), [(11, 0..3)]);
        assert_eq!(segments.within(8..9), []);
    }
}
