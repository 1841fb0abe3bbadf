//! Numbers in as few bytes as they need: seven bits in each, the smallest first.

use crate::store::StoreError;

/// Appends a number.
pub fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push((number as u8 & 0x7f) | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Reads numbers one after the other.
pub struct PackedNumbers<'a>(pub &'a [u8]);

impl PackedNumbers<'_> {
    /// The next one.
    ///
    /// # Errors
    /// When there is none.
    pub fn take(&mut self) -> Result<u64, StoreError> {
        let (mut number, mut shift) = (0, 0);
        loop {
            let (&byte, rest) = self.0.split_first().ok_or_else(cut_off)?;
            self.0 = rest;
            if shift > 63 {
                return Err(StoreError::corrupt("a number of a search index is too long"));
            }
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
            shift += 7;
        }
    }
}

impl<'a> PackedNumbers<'a> {
    /// The next `length` bytes.
    ///
    /// # Errors
    /// When there are fewer.
    pub fn bytes(&mut self, length: usize) -> Result<&'a [u8], StoreError> {
        let (bytes, rest) = self.0.split_at_checked(length).ok_or_else(cut_off)?;
        self.0 = rest;
        Ok(bytes)
    }
}

fn cut_off() -> StoreError {
    StoreError::corrupt("a part of a search index is cut off")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_and_what_is_cut_off_is_noticed() {
        let all = [0, 1, 127, 128, 16_383, 16_384, u64::MAX];
        let mut bytes = Vec::new();
        all.into_iter().for_each(|number| put(&mut bytes, number));
        assert_eq!(bytes[..5], [0, 1, 0x7f, 0x80, 1]);
        let mut numbers = PackedNumbers(&bytes);
        assert!(all.into_iter().all(|number| numbers.take() == Ok(number)));
        assert!(numbers.take().is_err());
        assert!(PackedNumbers(&[0xff; 11]).take().is_err());
    }
}
