//! Wall-clock time as an argument (I10): shown to people in `sent_at`, never used to order anything.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use ::time::OffsetDateTime;
use ::time::format_description::well_known::Rfc3339;

/// Milliseconds since 1970-01-01 UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// RFC 3339 in UTC with milliseconds as they are, as `sent_at` goes out.
    pub fn to_rfc3339(self) -> String {
        let nanos = i128::from(self.0) * 1_000_000;
        OffsetDateTime::from_unix_timestamp_nanos(nanos)
            .ok()
            .and_then(|t| t.format(&Rfc3339).ok())
            .unwrap_or_else(|| "1970-01-01T00:00:00Z".to_owned())
    }

    /// Reads RFC 3339; `None` when the text is not that.
    pub fn from_rfc3339(text: &str) -> Option<Timestamp> {
        let parsed = OffsetDateTime::parse(text, &Rfc3339).ok()?;
        i64::try_from(parsed.unix_timestamp_nanos() / 1_000_000).ok().map(Timestamp)
    }
}

/// Where the wall-clock time comes from: the system in the program, a value in tests.
#[derive(Clone)]
pub struct Clock {
    wall: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    steady: Arc<dyn Fn() -> i64 + Send + Sync>,
}

impl Clock {
    /// A clock that answers with what `read` returns, which nobody sets back.
    pub fn new(read: impl Fn() -> Timestamp + Send + Sync + 'static) -> Clock {
        let wall = Arc::new(read);
        let same = Arc::clone(&wall);
        Clock { wall, steady: Arc::new(move || same().0) }
    }

    /// The machine's clock.
    #[expect(clippy::disallowed_methods, reason = "the one place where wall-clock time comes in")]
    pub fn system() -> Clock {
        let wall = || {
            let nanos = OffsetDateTime::now_utc().unix_timestamp_nanos();
            Timestamp((nanos / 1_000_000) as i64)
        };
        let start = Instant::now();
        Clock { wall: Arc::new(wall), steady: Arc::new(move || start.elapsed().as_millis() as i64) }
    }

    /// Milliseconds that pass whether somebody sets the wall clock or not. Only the difference of two readings means something.
    pub fn steady_ms(&self) -> i64 {
        (self.steady)()
    }

    /// The time now.
    pub fn now(&self) -> Timestamp {
        (self.wall)()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timestamp_survives_the_way_out_and_in() {
        let then = Timestamp(1_795_261_438_042);
        assert_eq!(then.to_rfc3339(), "2026-11-21T11:43:58.042Z");
        assert_eq!(Timestamp::from_rfc3339(&then.to_rfc3339()), Some(then));
    }
}
