//! The tags of an issuer as counters. Owns nothing: translates. Opened by the role `issuer`.

use async_trait::async_trait;
use seqsvr_issuer::{Counter, Issuer, NextError};
use seqsvr_resp::{KeyCounters, Refused, TryTake};

/// How often adjacent numbers are asked for: the first attempt may span the end of a segment.
const ATTEMPTS: usize = 3;

/// See the module.
pub(crate) struct TagCounters {
    issuer: Issuer,
}

impl TagCounters {
    /// The tags of `issuer`.
    pub(crate) fn new(issuer: Issuer) -> Self {
        Self { issuer }
    }

    fn counter(&self, key: &[u8]) -> Result<Counter, Refused> {
        let name = std::str::from_utf8(key)
            .map_err(|_| Refused::ever("the key is the name of a tag: a-z 0-9 _ . -"))?;
        self.issuer.counter(name).map_err(|error| refused(&error))
    }
}

fn refused(error: &NextError) -> Refused {
    let text = error.to_string();
    if error.is_retryable() { Refused::now(text) } else { Refused::ever(text) }
}

/// Clients read numbers as signed ones.
fn readable(number: u64) -> Result<u64, Refused> {
    if i64::try_from(number).is_ok() {
        return Ok(number);
    }
    Err(Refused::ever(format!(
        "{number} is beyond the numbers of the Redis protocol: take it over gRPC or HTTP"
    )))
}

#[async_trait]
impl KeyCounters for TagCounters {
    fn try_take(&self, key: &[u8], count: u64) -> Result<u64, TryTake> {
        let counter = self.counter(key).map_err(TryTake::Refused)?;
        let taken = if count == 1 { counter.try_next().ok() } else { None };
        taken.ok_or(TryTake::Later).and_then(|number| readable(number).map_err(TryTake::Refused))
    }

    async fn take(&self, key: &[u8], count: u64) -> Result<u64, Refused> {
        let counter = self.counter(key)?;
        let asked = u32::try_from(count).unwrap_or(u32::MAX);
        for _ in 0..ATTEMPTS {
            let issued = counter.next(asked).await.map_err(|error| refused(&error))?;
            if let [range] = issued.ranges() {
                return readable(range.last);
            }
        }
        let tag = counter.tag();
        Err(Refused::ever(format!(
            "{count} adjacent numbers of {tag} did not come in one range: ask for fewer, or over gRPC or HTTP"
        )))
    }

    async fn last(&self, key: &[u8]) -> Result<Option<u64>, Refused> {
        let tag = self.counter(key)?.tag().clone();
        Err(Refused::ever(format!(
            "no process knows the last number of {tag}, since several may issue: INCR takes the next"
        )))
    }

    async fn advance(&self, key: &[u8], _: u64) -> Result<(), Refused> {
        let tag = self.counter(key)?.tag().clone();
        Err(Refused::ever(format!("the configuration says where {tag} starts: INCR takes the next number")))
    }

    fn describe(&self) -> String {
        format!("tags:{}\r\n", self.issuer.tags().len())
    }
}
