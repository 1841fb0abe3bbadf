//! PNG without its metadata: chunks that say what to draw stay, all others go.

use super::{Parts, Stripped, exif};

const BEGIN: &[u8] = b"\x89PNG\r\n\x1a\n";

/// What is drawn, its colours and its movement.
const NEEDED: [&[u8; 4]; 18] = [
    b"IHDR", b"PLTE", b"IDAT", b"IEND", b"tRNS", b"gAMA", b"cHRM", b"sRGB", b"iCCP", b"cICP", b"mDCV",
    b"cLLI", b"sBIT", b"bKGD", b"pHYs", b"acTL", b"fcTL", b"fdAT",
];

/// The picture with its pixels, its turn and the profile of its colours; `None`: it does not hold together.
pub(super) fn strip(bytes: &[u8]) -> Option<Stripped> {
    let mut parts = Parts { left: bytes };
    (parts.take(BEGIN.len())? == BEGIN).then_some(())?;
    let (mut head, mut rest, mut turn) = (BEGIN.to_vec(), Vec::<u8>::with_capacity(bytes.len()), 1);
    loop {
        let length = u32::from_be_bytes(parts.left.get(..4)?.try_into().ok()?);
        let chunk = parts.take(usize::try_from(length).ok()?.checked_add(12)?)?;
        let (kind, said) = (&chunk[4..8], &chunk[8..chunk.len() - 4]);
        match kind {
            b"IHDR" => head.extend(chunk),
            b"eXIf" => turn = exif::turn(said),
            kind if NEEDED.iter().any(|needed| *needed == kind) => rest.extend(chunk),
            _ => {}
        }
        if kind == b"IEND" {
            break;
        }
    }
    (head.len() > BEGIN.len()).then_some(())?;
    if turn > 1 {
        let said = exif::of_turn(turn);
        head.extend(u32::try_from(said.len()).ok()?.to_be_bytes());
        let chunk = [&b"eXIf"[..], &said].concat();
        let sum = crc32fast::hash(&chunk);
        head.extend(chunk);
        head.extend(sum.to_be_bytes());
    }
    head.extend(rest);
    Some(Stripped { bytes: head, turn })
}
