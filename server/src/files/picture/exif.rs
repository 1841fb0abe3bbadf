//! The turn of a photo in its Exif data, and Exif data that say nothing else.

/// The tag of the turn.
const TURN: u16 = 0x0112;
/// The type of a number of 16 bits.
const SHORT: u16 = 3;
/// Entries of a directory that are looked at.
const MOST_ENTRIES: u16 = 256;

/// The turn that a TIFF block names: 1 to 8, where 1 is none.
pub(super) fn turn(tiff: &[u8]) -> u16 {
    find(tiff).filter(|turn| (1..=8).contains(turn)).unwrap_or(1)
}

fn find(tiff: &[u8]) -> Option<u16> {
    let is_little = match tiff.get(..4)? {
        b"II*\0" => true,
        b"MM\0*" => false,
        _ => return None,
    };
    let short = |at: usize| {
        let bytes: [u8; 2] = tiff.get(at..at.checked_add(2)?)?.try_into().ok()?;
        Some(if is_little { u16::from_le_bytes(bytes) } else { u16::from_be_bytes(bytes) })
    };
    let long = |at: usize| {
        let bytes: [u8; 4] = tiff.get(at..at.checked_add(4)?)?.try_into().ok()?;
        Some(if is_little { u32::from_le_bytes(bytes) } else { u32::from_be_bytes(bytes) })
    };
    let directory = usize::try_from(long(4)?).ok()?;
    let entries = short(directory)?.min(MOST_ENTRIES);
    (0..usize::from(entries)).find_map(|n| {
        let at = directory.checked_add(2 + 12 * n)?;
        (short(at)? == TURN && short(at + 2)? == SHORT).then(|| short(at + 8))?
    })
}

/// A TIFF block that names this turn and nothing else.
pub(super) fn of_turn(turn: u16) -> Vec<u8> {
    let mut block = b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01".to_vec();
    block.extend(turn.to_be_bytes());
    block.extend([0; 6]);
    block
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_is_found_in_either_order_of_bytes() {
        for n in 1..=8 {
            assert_eq!(turn(&of_turn(n)), n);
        }
        let little = b"II*\0\x08\0\0\0\x02\0\x0f\x01\x02\0\x01\0\0\0\0\0\0\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0";
        assert_eq!(turn(little), 6);
        for wrong in [&b""[..], b"MM\0*", b"MM\0*\xff\xff\xff\xff", &of_turn(9), &little[..30]] {
            assert_eq!(turn(wrong), 1, "{wrong:?}");
        }
    }
}
