//! Where a uid lives. The section size is only known at run time, so the division is a multiplication by its
//! reciprocal: exact for every `u32`, and several times faster.

/// Cuts the uid space into sections of one size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Split {
    size: u32,
    /// 2^64 / size, rounded up. With 64 bits of fraction for 32-bit operands the error never reaches the
    /// next integer (Lemire, Kaser, Kurz 2019).
    reciprocal: u64,
}

impl Split {
    /// Sections of `size` uids, 2 or more.
    pub(crate) fn new(size: u32) -> Self {
        Self { size, reciprocal: u64::MAX / u64::from(size) + 1 }
    }

    /// Sections in the whole uid space; the last may be shorter.
    pub(crate) fn sections(&self) -> usize {
        (1_u64 << 32).div_ceil(u64::from(self.size)) as usize
    }

    /// The section of `uid`.
    pub(crate) fn section(&self, uid: u32) -> usize {
        ((u128::from(self.reciprocal) * u128::from(uid)) >> 64) as usize
    }

    /// The first uid of `section`.
    pub(crate) fn first(&self, section: usize) -> u32 {
        section as u32 * self.size
    }

    /// The last uid of `section`.
    pub(crate) fn last(&self, section: usize) -> u32 {
        self.first(section).saturating_add(self.size - 1)
    }
}
