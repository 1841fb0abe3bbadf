//! The numbers of one tag in memory: the segment in use and those behind it. Any number of threads take
//! numbers with one atomic addition; a lock is only taken past the mark, for batches, and at a switch. Owns
//! the segments; the shell brings new ones and the time.
//!
//! Why an addition is enough: every number comes from one `cursor` that never goes back, so no number is taken
//! twice and a later one is larger. A taker reads `room` *before* it adds. A room is published only after the cursor
//! was moved to its segment, so a number that is then drawn lies above the segment's start, and up to the room it belongs to the segment. A
//! number beyond the room is looked at under the lock, and if need be left as a gap.

use std::collections::VecDeque;
use std::time::Duration;

use super::range::Range;
use super::sync::{AtomicU64, Mutex, MutexGuard, Ordering};

/// Apart from its neighbours, so that a write to one does not take the other from a reader's cache.
#[repr(align(128))]
struct Apart<T>(T);

/// The result of a careful take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BufferTake {
    /// These are the caller's, in increasing order.
    Taken(Vec<Range>),
    /// There are not enough numbers: segments that hold this many must be put first. Nobody got any; where others took
    /// some meanwhile, a few may be left as a gap.
    Need(u64),
}

/// See the module.
pub(crate) struct SegmentBuffer {
    /// The last number taken, or passed over.
    cursor: Apart<AtomicU64>,
    /// Numbers up to this one may be taken by addition alone; 0: none.
    room: Apart<AtomicU64>,
    segments: Mutex<Segments>,
}

struct Segments {
    /// The segment in use; before the first one, an empty one.
    current: Range,
    behind: VecDeque<Range>,
    /// Numbers above this one of the current segment let the next one be asked for.
    mark: u64,
    /// Percent of a segment at which the next is asked for.
    prepare_at: u8,
    /// How long the numbers at hand are to last.
    reserve: Duration,
    /// When the current segment was begun, and how long the one before it lasted.
    begun: Duration,
    lasted: Option<Duration>,
    /// Numbers of ended segments, and those among them that nobody got.
    ended: u64,
    switches: u64,
}

/// How a buffer stands, for the shell and for metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BufferStanding {
    /// Numbers left in the segment in use.
    pub(crate) left: u64,
    /// Numbers in the segments behind it.
    pub(crate) behind: u64,
    /// Numbers taken from the segment in use, and since when it has been in use.
    pub(crate) used: u64,
    /// See `used`.
    pub(crate) begun: Duration,
    /// Whether the next segment should be there by now and is not.
    pub(crate) wants: bool,
    /// How long the segment before lasted.
    pub(crate) lasted: Option<Duration>,
    /// Switches from one segment to the next.
    pub(crate) switches: u64,
    /// Numbers taken or passed over since the buffer was made.
    pub(crate) taken: u64,
}

impl SegmentBuffer {
    /// A buffer without a segment. `prepare_at`: percent of a segment, 0 to 100. `reserve`: two segments are wanted behind the
    /// current one while one alone would not last as long.
    pub(crate) fn new(prepare_at: u8, reserve: Duration) -> Self {
        let segments = Segments {
            // Empty: no number is above `last` and at most `last`.
            current: Range { first: 1, last: 0 },
            behind: VecDeque::new(),
            mark: 0,
            prepare_at,
            reserve,
            begun: Duration::ZERO,
            lasted: None,
            ended: 0,
            switches: 0,
        };
        Self {
            cursor: Apart(AtomicU64::new(0)),
            room: Apart(AtomicU64::new(0)),
            segments: Mutex::new(segments),
        }
    }

    /// The hot path: takes one number. `Err`: a number was drawn that lies beyond the room (0: none was drawn);
    /// it goes to [`resolve`](Self::resolve), which may find it good.
    #[inline]
    pub(crate) fn take_one(&self) -> Result<u64, u64> {
        let room = self.room.0.load(Ordering::Acquire);
        // Keeps the cursor from running away from the numbers while there are none.
        if room == 0 {
            return Err(0);
        }
        // Relaxed: a single atomic has one order of changes, and all that takers share is this one value.
        let number = self.cursor.0.fetch_add(1, Ordering::Relaxed) + 1;
        if number <= room { Ok(number) } else { Err(number) }
    }

    /// Settles a number that `take_one` drew: returns it if it is good, or another in its place if there is one.
    pub(crate) fn resolve(&self, drawn: u64, now: Duration) -> Option<u64> {
        let mut segments = self.lock();
        let current = segments.current;
        if current.first <= drawn && drawn <= current.last {
            self.open(&segments, drawn);
            return Some(drawn);
        }
        match self.take_locked(&mut segments, 1, now) {
            BufferTake::Taken(ranges) => ranges.first().map(|range| range.first),
            BufferTake::Need(_) => None,
        }
    }

    /// Takes `count` numbers, 1 or more, going on to the next segments where the current one ends.
    pub(crate) fn take(&self, count: u64, now: Duration) -> BufferTake {
        self.take_locked(&mut self.lock(), count, now)
    }

    /// Adds a segment behind all others. False: it is not above them, was therefore taken out of order, and is left as a gap.
    pub(crate) fn put(&self, segment: Range, now: Duration) -> bool {
        let mut segments = self.lock();
        let last = segments.behind.back().map_or(segments.current.last, |range| range.last);
        if segment.first <= last {
            return false;
        }
        segments.behind.push_back(segment);
        if self.left(&segments) == 0 {
            self.switch(&mut segments, now);
        }
        true
    }

    /// How the buffer stands.
    pub(crate) fn standing(&self) -> BufferStanding {
        let segments = self.lock();
        let left = self.left(&segments);
        let length = length(segments.current);
        let cursor = segments.current.last - left;
        BufferStanding {
            left,
            behind: segments.behind.iter().map(|range| length_of(*range)).sum(),
            used: length - left,
            begun: segments.begun,
            wants: !segments.has_enough() && (left == 0 || cursor > segments.mark),
            lasted: segments.lasted,
            switches: segments.switches,
            taken: segments.ended + (length - left),
        }
    }

    fn take_locked(&self, segments: &mut Segments, count: u64, now: Duration) -> BufferTake {
        let mut ranges: Vec<Range> = Vec::with_capacity(1);
        let mut missing = count;
        loop {
            let seen = self.cursor.0.load(Ordering::Relaxed);
            let left = segments.current.last.saturating_sub(seen);
            if left < missing {
                // Others must not take what has just been counted; those that read the room before may.
                self.room.0.store(0, Ordering::Release);
                let behind: u64 = segments.behind.iter().map(|range| length_of(*range)).sum();
                if left + behind < missing {
                    if left > 0 {
                        self.open(segments, seen);
                    }
                    return BufferTake::Need(missing - left - behind);
                }
            }
            let part = left.min(missing);
            if part > 0 {
                let moved =
                    self.cursor.0.compare_exchange(seen, seen + part, Ordering::Relaxed, Ordering::Relaxed);
                if moved.is_err() {
                    continue;
                }
                push(&mut ranges, Range { first: seen + 1, last: seen + part });
                missing -= part;
            }
            if missing == 0 {
                self.open(segments, seen + part);
                return BufferTake::Taken(ranges);
            }
            self.switch(segments, now);
        }
    }

    /// Begins the next segment, which is there, although takers may still be adding beyond the end of the current.
    fn switch(&self, segments: &mut Segments, now: Duration) {
        let Some(next) = segments.behind.pop_front() else { return };
        segments.ended += length(segments.current);
        if segments.ended > 0 {
            segments.lasted = Some(now.saturating_sub(segments.begun));
            segments.switches += 1;
        }
        segments.begun = now;
        segments.current = next;
        let part = u128::from(length(next)) * u128::from(segments.prepare_at) / 100;
        // Not above the length, which is 64 bits.
        segments.mark = next.first - 1 + part as u64;
        // Before the room is published, which orders it for all who read that room. Never back: what was added
        // beyond the end before stays passed over.
        let seen = self.cursor.0.fetch_max(next.first - 1, Ordering::Relaxed);
        self.open(segments, seen.max(next.first - 1));
    }

    /// Publishes how far numbers may be taken by addition, with the cursor at or beyond `at`.
    fn open(&self, segments: &Segments, at: u64) {
        let room =
            if at > segments.mark || segments.has_enough() { segments.current.last } else { segments.mark };
        self.room.0.store(room, Ordering::Release);
    }

    fn left(&self, segments: &Segments) -> u64 {
        let seen = self.cursor.0.load(Ordering::Relaxed);
        length(segments.current).min(segments.current.last.saturating_sub(seen))
    }

    fn lock(&self) -> MutexGuard<'_, Segments> {
        self.segments.lock().expect("nothing panics while it is locked")
    }
}

impl Segments {
    /// Whether as many segments wait behind the current one as should. Just before the mark, the rest of the current one
    /// and those behind are all that is there.
    fn has_enough(&self) -> bool {
        let before_mark = |lasted: Duration| lasted * u32::from(100 - self.prepare_at) / 100;
        let short = self.lasted.is_some_and(|lasted| before_mark(lasted) < self.reserve);
        self.behind.len() > usize::from(short)
    }
}

/// How many numbers a segment has; the one before the first is empty.
fn length(segment: Range) -> u64 {
    if segment.last == 0 { 0 } else { length_of(segment) }
}

fn length_of(segment: Range) -> u64 {
    segment.last - segment.first + 1
}

fn push(ranges: &mut Vec<Range>, more: Range) {
    match ranges.last_mut() {
        Some(range) if range.last + 1 == more.first => range.last = more.last,
        _ => ranges.push(more),
    }
}
