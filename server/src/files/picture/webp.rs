//! WebP without its metadata: chunks that say what to draw stay, all others go.

use super::{Parts, Stripped, exif};

/// What is drawn, its colours and its movement.
const NEEDED: [&[u8; 4]; 7] = [b"VP8 ", b"VP8L", b"VP8X", b"ALPH", b"ANIM", b"ANMF", b"ICCP"];

/// The marks in the head that say that there are Exif data, and that there are words.
const HAS_EXIF: u8 = 0x08;
const HAS_XMP: u8 = 0x04;

/// The picture with its pixels, its turn and the profile of its colours; `None`: it does not hold together.
pub(super) fn strip(bytes: &[u8]) -> Option<Stripped> {
    let mut parts = Parts { left: bytes };
    let head = parts.take(12)?;
    (head.starts_with(b"RIFF") && head.ends_with(b"WEBP")).then_some(())?;
    let length = usize::try_from(u32::from_le_bytes(head[4..8].try_into().ok()?)).ok()?;
    // Behind that nothing belongs to it.
    parts.left = parts.left.get(..length.checked_sub(4)?).unwrap_or(parts.left);
    let (mut chunks, mut turn, mut marks) = (Vec::with_capacity(bytes.len()), 1, None);
    while parts.left.len() >= 8 {
        let length = usize::try_from(u32::from_le_bytes(parts.left[4..8].try_into().ok()?)).ok()?;
        let chunk = parts.take(length.checked_add(8)?)?;
        if length % 2 == 1 {
            parts.take(1.min(parts.left.len()))?;
        }
        let (kind, said) = (&chunk[..4], &chunk[8..]);
        if kind == b"EXIF" {
            turn = exif::turn(said.strip_prefix(b"Exif\0\0").unwrap_or(said));
        }
        if !NEEDED.iter().any(|needed| *needed == kind) {
            continue;
        }
        if kind == b"VP8X" {
            marks = Some(chunks.len() + 8);
        }
        put(&mut chunks, kind, said)?;
    }
    (!chunks.is_empty()).then_some(())?;
    if let Some(marks) = marks {
        let marks = chunks.get_mut(marks)?;
        *marks &= !(HAS_EXIF | HAS_XMP);
        if turn > 1 {
            *marks |= HAS_EXIF;
            put(&mut chunks, b"EXIF", &exif::of_turn(turn))?;
        }
    } else {
        // Without that head nobody looks for a turn.
        turn = 1;
    }
    let mut stripped = b"RIFF".to_vec();
    stripped.extend(u32::try_from(chunks.len() + 4).ok()?.to_le_bytes());
    stripped.extend(b"WEBP");
    stripped.extend(chunks);
    Some(Stripped { bytes: stripped, turn })
}

fn put(chunks: &mut Vec<u8>, kind: &[u8], said: &[u8]) -> Option<()> {
    chunks.extend(kind);
    chunks.extend(u32::try_from(said.len()).ok()?.to_le_bytes());
    chunks.extend(said);
    chunks.extend(std::iter::repeat_n(0, said.len() % 2));
    Some(())
}
