//! The checksum of PlainBuffer: CRC-8 with the polynomial 0x07, begun at 0, not reflected, not inverted at the end.

use crc::{CRC_8_SMBUS, Crc, Table};

/// A page of rows has a checksum over nearly all of its bytes, so sixteen bytes are taken at a time.
static CRC: Crc<u8, Table<16>> = Crc::<u8, Table<16>>::new(&CRC_8_SMBUS);

/// A checksum under way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Crc8(u8);

impl Crc8 {
    /// With these bytes after those before.
    #[must_use]
    pub(super) fn bytes(self, bytes: &[u8]) -> Crc8 {
        let mut digest = CRC.digest_with_initial(self.0);
        digest.update(bytes);
        Crc8(digest.finalize())
    }

    /// With this byte after those before.
    #[must_use]
    pub(super) fn byte(self, byte: u8) -> Crc8 {
        self.bytes(&[byte])
    }

    /// The checksum.
    pub(super) fn value(self) -> u8 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::Crc8;

    #[test]
    fn the_checksum_of_the_nine_digits_is_known_however_they_come() {
        assert_eq!(Crc8::default().bytes(b"123456789").value(), 0xF4);
        assert_eq!(Crc8::default().bytes(b"12345678").byte(b'9').value(), 0xF4);
    }
}
