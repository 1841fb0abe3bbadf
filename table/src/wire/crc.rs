//! The checksum of PlainBuffer: CRC-8 with the polynomial 0x07, begun at 0, not reflected, not inverted at the end.
//!
//! A page of rows has a checksum over nearly all of its bytes, so eight bytes are taken at a time.

/// `TABLES[k][b]`: the checksum of the byte `b` and `k` zero bytes after it.
const TABLES: [[u8; 256]; 8] = {
    let mut tables = [[0u8; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u8;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 0x80 == 0 { crc << 1 } else { crc << 1 ^ 0x07 };
            bit += 1;
        }
        tables[0][byte] = crc;
        byte += 1;
    }
    let mut zeros = 1;
    while zeros < 8 {
        let mut byte = 0;
        while byte < 256 {
            tables[zeros][byte] = tables[0][tables[zeros - 1][byte] as usize];
            byte += 1;
        }
        zeros += 1;
    }
    tables
};

/// A checksum under way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Crc8(u8);

impl Crc8 {
    /// With these bytes after those before.
    #[must_use]
    pub(super) fn bytes(self, bytes: &[u8]) -> Crc8 {
        let mut crc = self.0;
        let (eights, rest) = bytes.as_chunks::<8>();
        for [a, b, c, d, e, f, g, h] in eights {
            crc = TABLES[7][usize::from(crc ^ a)]
                ^ TABLES[6][usize::from(*b)]
                ^ TABLES[5][usize::from(*c)]
                ^ TABLES[4][usize::from(*d)]
                ^ TABLES[3][usize::from(*e)]
                ^ TABLES[2][usize::from(*f)]
                ^ TABLES[1][usize::from(*g)]
                ^ TABLES[0][usize::from(*h)];
        }
        for byte in rest {
            crc = TABLES[0][usize::from(crc ^ byte)];
        }
        Crc8(crc)
    }

    /// With this byte after those before.
    #[must_use]
    pub(super) fn byte(self, byte: u8) -> Crc8 {
        Crc8(TABLES[0][usize::from(self.0 ^ byte)])
    }

    /// The checksum.
    pub(super) fn value(self) -> u8 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Crc8;

    #[test]
    fn the_checksum_of_the_nine_digits_is_known() {
        assert_eq!(Crc8::default().bytes(b"123456789").value(), 0xF4);
    }

    proptest! {
        #[test]
        fn eight_at_a_time_and_one_at_a_time_agree(bytes: Vec<u8>, cut: prop::sample::Index) {
            let single = bytes.iter().fold(Crc8::default(), |crc, byte| crc.byte(*byte));
            prop_assert_eq!(Crc8::default().bytes(&bytes), single);
            let (head, tail) = bytes.split_at(cut.index(bytes.len() + 1));
            prop_assert_eq!(Crc8::default().bytes(head).bytes(tail), single);
        }
    }
}
