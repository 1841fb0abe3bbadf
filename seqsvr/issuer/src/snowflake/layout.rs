//! The format of a snowflake, pure: from the most significant bit down, a sign bit that is 0, milliseconds since an
//! epoch, the machine (data centre, then worker) and a sequence within the millisecond (S25). Decides which id
//! comes next; owns nothing. Its split and epoch are stored in every id, and must stay as they are.

use thiserror::Error;

use crate::clock::day;

/// 2025-01-01 UTC, in milliseconds since 1970: with 41 bits, ids last until 2094.
pub const DEFAULT_EPOCH: u64 = 1_735_689_600_000;

/// The most bits of the machine part.
pub const MOST_MACHINE_BITS: u32 = 16;

/// How the 63 bits under the sign are split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bits {
    /// Milliseconds since the epoch. Default 41.
    pub time: u32,
    /// Data centre, the upper part of the machine. Default 0: the machine is not split.
    pub data_centre: u32,
    /// Worker, the lower part of the machine. Default 10.
    pub worker: u32,
    /// Sequence within a millisecond. Default 12.
    pub sequence: u32,
}

impl Default for Bits {
    fn default() -> Self {
        Self { time: 41, data_centre: 0, worker: 10, sequence: 12 }
    }
}

/// Why a format, or a machine in it, cannot be.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum BadLayout {
    /// The parts are not 63 bits together.
    #[error(
        "bits: time {} + data_centre {} + worker {} + sequence {} is {sum}; make it 63", 
        bits.time, bits.data_centre, bits.worker, bits.sequence
    )]
    Sum {
        /// The requested split.
        bits: Bits,
        /// Its sum.
        sum: u64,
    },
    /// More machines than are supported.
    #[error(
        "bits: data_centre and worker are {bits} together; use at most {MOST_MACHINE_BITS} for the machine"
    )]
    TooManyMachines {
        /// Bits of both.
        bits: u32,
    },
    /// The epoch has not come yet.
    #[error("the epoch {} ({epoch}) is later than now, {}; set one in the past", day(*epoch), day(*now))]
    EpochInFuture {
        /// Milliseconds since 1970.
        epoch: u64,
        /// Milliseconds since 1970.
        now: u64,
    },
    /// The time bits are used up.
    #[error("{bits} bits of time since {} lasted until {}; use a later epoch or more bits", day(*epoch), day(*last))]
    RanOut {
        /// Milliseconds since 1970.
        epoch: u64,
        /// Bits of time.
        bits: u32,
        /// The last millisecond that can be written.
        last: u64,
    },
    /// A machine id that does not fit.
    #[error("machine id {id} is out of range: {bits} bits hold 0 to {most}")]
    Machine {
        /// The requested id.
        id: u64,
        /// Bits of the part.
        bits: u32,
        /// The largest that fits.
        most: u64,
    },
}

/// A checked format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    bits: Bits,
    epoch: u64,
}

/// The parts of an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdParts {
    /// When its millisecond began: milliseconds since 1970-01-01 UTC.
    pub unix_ms: u64,
    /// The whole machine part.
    pub machine: u32,
    /// The upper part of the machine; 0 if it is not split.
    pub data_centre: u32,
    /// The lower part of the machine; the whole of it if it is not split.
    pub worker: u32,
    /// The position within the millisecond.
    pub sequence: u64,
}

/// The next step towards new ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IdStep {
    /// The millisecond of the last id goes on: these ids are next.
    Within { first: u64, last: u64 },
    /// A new millisecond begins.
    Begin,
    /// The millisecond has no ids left: wait for the next one.
    Full,
    /// The clock is this many milliseconds before the last id.
    Behind { milliseconds: u64 },
    /// The clock is past the last millisecond that the format can hold.
    RanOut,
}

const fn mask(bits: u32) -> u64 {
    (1 << bits) - 1
}

impl Layout {
    /// Checks a split with its epoch (milliseconds since 1970) at the time `now`.
    ///
    /// # Errors
    ///
    /// [`BadLayout`] says which part is wrong and what would be right.
    pub fn new(bits: Bits, epoch: u64, now: u64) -> Result<Self, BadLayout> {
        let parts = [bits.time, bits.data_centre, bits.worker, bits.sequence];
        let sum = parts.into_iter().map(u64::from).sum();
        if sum != 63 {
            return Err(BadLayout::Sum { bits, sum });
        }
        let machine = bits.data_centre + bits.worker;
        if machine > MOST_MACHINE_BITS {
            return Err(BadLayout::TooManyMachines { bits: machine });
        }
        if epoch > now {
            return Err(BadLayout::EpochInFuture { epoch, now });
        }
        let layout = Self { bits, epoch };
        let last = layout.last_ms();
        if now > last {
            return Err(BadLayout::RanOut { epoch, bits: bits.time, last });
        }
        Ok(layout)
    }

    /// The split.
    pub fn bits(&self) -> Bits {
        self.bits
    }

    /// Milliseconds since 1970 at which the time part is 0.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The last millisecond that can be written, since 1970.
    pub fn last_ms(&self) -> u64 {
        self.epoch.saturating_add(mask(self.bits.time))
    }

    /// The day (UTC) on which the time bits run out, such as `2094-09-07`.
    pub fn last_day(&self) -> String {
        day(self.last_ms())
    }

    /// How many machines the format tells apart.
    pub fn machines(&self) -> u32 {
        1 << self.machine_bits()
    }

    /// How many ids a machine can make in a millisecond.
    pub fn per_millisecond(&self) -> u64 {
        1 << self.bits.sequence
    }

    fn machine_bits(&self) -> u32 {
        self.bits.data_centre + self.bits.worker
    }

    /// Checks an unsplit machine id.
    ///
    /// # Errors
    ///
    /// [`BadLayout::Machine`] when it does not fit.
    pub fn machine(&self, id: u64) -> Result<u32, BadLayout> {
        fits(id, self.machine_bits())
    }

    /// The machine id of a worker in a data centre.
    ///
    /// # Errors
    ///
    /// [`BadLayout::Machine`] when one of them does not fit its part.
    pub fn worker(&self, data_centre: u64, worker: u64) -> Result<u32, BadLayout> {
        let upper = fits(data_centre, self.bits.data_centre)?;
        let lower = fits(worker, self.bits.worker)?;
        Ok((upper << self.bits.worker) | lower)
    }

    /// Takes an id apart; `None` for a number with the sign bit set, which no format of this kind makes.
    pub fn decode(&self, id: u64) -> Option<IdParts> {
        if id >> 63 != 0 {
            return None;
        }
        let machine = ((id >> self.bits.sequence) & mask(self.machine_bits())) as u32;
        Some(IdParts {
            unix_ms: self.epoch.saturating_add(id >> self.time_shift()),
            machine,
            data_centre: machine >> self.bits.worker,
            worker: machine & mask(self.bits.worker) as u32,
            sequence: self.sequence(id),
        })
    }

    pub(super) fn sequence(&self, id: u64) -> u64 {
        id & mask(self.bits.sequence)
    }

    fn time_shift(&self) -> u32 {
        self.machine_bits() + self.bits.sequence
    }

    /// The last id of any machine in the millisecond `unix_ms`: after it, only a later millisecond follows.
    pub(super) fn end_of(&self, unix_ms: u64) -> u64 {
        let time = unix_ms.saturating_sub(self.epoch).min(mask(self.bits.time));
        (time << self.time_shift()) | mask(self.time_shift())
    }

    /// The step after `last` when the clock reads `now` and `count` (1 or more) ids are wanted.
    pub(super) fn step(&self, last: u64, now: u64, count: u64) -> IdStep {
        let last_time = last >> self.time_shift();
        let Some(time) = now.checked_sub(self.epoch) else {
            return IdStep::Behind { milliseconds: (self.epoch - now).saturating_add(last_time) };
        };
        if time > mask(self.bits.time) {
            return IdStep::RanOut;
        }
        if time > last_time {
            return IdStep::Begin;
        }
        if time < last_time {
            return IdStep::Behind { milliseconds: last_time - time };
        }
        let free = mask(self.bits.sequence) - self.sequence(last);
        match free.min(count) {
            0 => IdStep::Full,
            taken => IdStep::Within { first: last + 1, last: last + taken },
        }
    }

    /// The first ids of the millisecond `now`, as many of `count` (1 or more) as it holds.
    pub(super) fn begin(&self, now: u64, machine: u32, count: u64) -> (u64, u64) {
        let first = ((now - self.epoch) << self.time_shift()) | (u64::from(machine) << self.bits.sequence);
        (first, first + count.min(self.per_millisecond()) - 1)
    }
}

fn fits(id: u64, bits: u32) -> Result<u32, BadLayout> {
    let most = mask(bits);
    if id > most {
        return Err(BadLayout::Machine { id, bits, most });
    }
    Ok(id as u32)
}
