//! JPEG without its metadata: of the parts between its beginning and its end those stay that a decoder needs.

use super::{Parts, Stripped, exif};

const BEGIN: u8 = 0xd8;
const END: u8 = 0xd9;
const SCAN: u8 = 0xda;
const EXIF: u8 = 0xe1;
const COMMENT: u8 = 0xfe;

/// Scans of a picture, at most. Each costs a walk over all pixels, and a file that is made for that has thousands.
const MOST_SCANS: usize = 100;

/// The picture with its pixels, its turn and the profile of its colours; `None`: it does not hold together.
pub(super) fn strip(bytes: &[u8]) -> Option<Stripped> {
    let mut parts = Parts { left: bytes };
    (parts.take(2)? == [0xff, BEGIN]).then_some(())?;
    let (mut jfif, mut rest, mut turn, mut scans) = (Vec::new(), Vec::with_capacity(bytes.len()), 1, 0);
    loop {
        (parts.byte()? == 0xff).then_some(())?;
        let mut marker = parts.byte()?;
        while marker == 0xff {
            marker = parts.byte()?;
        }
        if marker == END {
            break;
        }
        let length = parts.left.get(..2).map(|length| u16::from_be_bytes([length[0], length[1]]))?;
        let segment = parts.take(usize::from(length).max(2))?;
        match &segment[2..] {
            said if marker == EXIF && said.starts_with(b"Exif\0\0") => turn = exif::turn(&said[6..]),
            said if marker == 0xe0 && said.starts_with(b"JFIF\0") && jfif.is_empty() => {
                jfif.extend([0xff, marker]);
                jfif.extend(segment);
            }
            said if is_needed(marker, said) => {
                rest.extend([0xff, marker]);
                rest.extend(segment);
            }
            _ => {}
        }
        if marker == SCAN {
            scans += 1;
            (scans <= MOST_SCANS).then_some(())?;
            let pixels = parts.take(pixels(parts.left))?;
            rest.extend(pixels);
            if parts.left.is_empty() {
                // It was cut off: what is there can be shown.
                break;
            }
        }
    }
    (scans > 0).then_some(())?;
    let mut stripped = vec![0xff, BEGIN];
    stripped.extend(jfif);
    if turn > 1 {
        let said = [&b"Exif\0\0"[..], &exif::of_turn(turn)].concat();
        stripped.extend([0xff, EXIF]);
        stripped.extend((u16::try_from(said.len()).ok()? + 2).to_be_bytes());
        stripped.extend(said);
    }
    stripped.extend(rest);
    stripped.extend([0xff, END]);
    Some(Stripped { bytes: stripped, turn })
}

/// Whether a decoder needs the part: no application's, but for the profile of the colours and how they are stored.
fn is_needed(marker: u8, said: &[u8]) -> bool {
    match marker {
        0xe2 => said.starts_with(b"ICC_PROFILE\0"),
        0xee => said.starts_with(b"Adobe"),
        0xe0..=0xef | COMMENT => false,
        _ => true,
    }
}

/// The bytes up to the next marker that is none of the pixels' own.
fn pixels(bytes: &[u8]) -> usize {
    let is_own = |next: u8| next == 0 || (0xd0..=0xd7).contains(&next);
    let mut at = 0;
    while let Some(found) = bytes[at..].iter().position(|byte| *byte == 0xff) {
        at += found;
        match bytes.get(at + 1) {
            Some(&next) if is_own(next) => at += 2,
            Some(0xff) => at += 1,
            _ => return if bytes.len() - at < 2 { bytes.len() } else { at },
        }
    }
    bytes.len()
}
