//! Bytes as people read and write them.

/// Bytes as hexadecimal digits, in small letters.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let pairs = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    pairs.map(|digit| char::from(DIGITS[usize::from(digit)])).collect()
}

/// The bytes that pairs of hexadecimal digits stand for.
pub fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    if !digits.len().is_multiple_of(2) || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    let byte = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok();
    digits.chunks(2).map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back_and_anything_else_is_none() {
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(unhex(&hex(&all)), Some(all));
        assert_eq!((hex(&[0, 255]).as_str(), unhex("00fF")), ("00ff", Some(vec![0, 255])));
        for wrong in ["0", "0g", "é1", "+f", " 0"] {
            assert_eq!(unhex(wrong), None, "{wrong}");
        }
    }
}
