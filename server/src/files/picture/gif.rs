//! GIF without its metadata: pictures and their movement stay, comments and what programs have put there go.

use super::{Parts, Stripped};

const EXTENSION: u8 = 0x21;
const PICTURE: u8 = 0x2c;
const END: u8 = 0x3b;
/// The extension that says for how long a picture is shown.
const CONTROL: u8 = 0xf9;
const APPLICATION: u8 = 0xff;

/// The picture without all else; `None`: it does not hold together.
pub(super) fn strip(bytes: &[u8]) -> Option<Stripped> {
    let mut parts = Parts { left: bytes };
    let mut stripped = Vec::with_capacity(bytes.len());
    let head = parts.take(13)?;
    (head.starts_with(b"GIF87a") || head.starts_with(b"GIF89a")).then_some(())?;
    stripped.extend(head);
    stripped.extend(parts.take(colours(head[10]))?);
    loop {
        let before = parts.left;
        let is_needed = match parts.byte()? {
            END => break,
            PICTURE => {
                let said = parts.take(9)?;
                parts.take(colours(said[8]) + 1)?;
                blocks(&mut parts)?;
                true
            }
            EXTENSION => {
                let label = parts.byte()?;
                let first = parts.left.get(1..12).unwrap_or_default();
                let repeats = first == b"NETSCAPE2.0" || first == b"ANIMEXTS1.0";
                blocks(&mut parts)?;
                label == CONTROL || (label == APPLICATION && repeats)
            }
            _ => return None,
        };
        if is_needed {
            stripped.extend(&before[..before.len() - parts.left.len()]);
        }
    }
    stripped.push(END);
    Some(Stripped { bytes: stripped, turn: 1 })
}

/// The bytes of a table of colours, by the marks before it.
fn colours(marks: u8) -> usize {
    if marks & 0x80 == 0 { 0 } else { 3 << ((marks & 7) + 1) }
}

/// Passes over blocks, up to the empty one.
fn blocks(parts: &mut Parts<'_>) -> Option<()> {
    loop {
        match parts.byte()? {
            0 => return Some(()),
            length => parts.take(usize::from(length))?,
        };
    }
}
