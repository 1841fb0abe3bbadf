//! Whether PostgreSQL warned of something while it was asked.
//!
//! A session whose wait for a synchronous standby is cancelled answers as if all were well. That the standby may lack the
//! transaction is said in a warning alone, and sqlx passes warnings to `tracing` and to nobody else. So this listens there, for the
//! time of one call and whatever is logged otherwise.

use std::cell::Cell;
use std::sync::LazyLock;

use tracing::dispatcher::get_default;
use tracing::instrument::WithSubscriber as _;
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::{Interest, NoSubscriber};
use tracing::{Dispatch, Event, Level, Metadata, Subscriber};

/// Under which target sqlx tells what the database says beside its answers.
const NOTICES: &str = "sqlx::postgres::notice";

/// Passes everything on to what was the log when it was used first. Beside it a subscriber that wants nothing: of a single one `tracing`
/// believes that it is everybody's, asks that of the thread which comes first, and remembers for all that nobody wants warnings.
static EAR: LazyLock<(Dispatch, Dispatch)> = LazyLock::new(|| {
    let hint = LevelFilter::current().max(LevelFilter::WARN);
    let beside = Dispatch::new(NoSubscriber::default());
    (Dispatch::new(Ear { log: get_default(Dispatch::clone), hint }), beside)
});

tokio::task_local! {
    static WARNED: Cell<bool>;
}

/// A commit that was answered, and that a synchronous standby may lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the wait for a synchronous standby was cancelled: the commit is lost if the standby takes over before it has received it"
)]
pub struct Unconfirmed;

/// The result of a commit, or of several.
///
/// # Errors
///
/// [`Unconfirmed`] if the database warned meanwhile, whatever came of it.
pub async fn confirmed<T>(commits: impl Future<Output = T>) -> Result<T, Unconfirmed> {
    let heeded = async {
        let done = commits.with_subscriber(EAR.0.clone()).await;
        if WARNED.get().get() { Err(Unconfirmed) } else { Ok(done) }
    };
    WARNED.scope(Cell::new(false), heeded).await
}

/// The result of `work`, a part of what is [`confirmed`]. Its warnings do not count: a new connection is warned of other things.
pub async fn apart<T>(work: impl Future<Output = T>) -> T {
    WARNED.scope(Cell::new(false), work).await
}

/// Hears warnings of PostgreSQL.
struct Ear {
    log: Dispatch,
    hint: LevelFilter,
}

fn is_warning(metadata: &Metadata<'_>) -> bool {
    metadata.target() == NOTICES && *metadata.level() == Level::WARN
}

impl Subscriber for Ear {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if is_warning(metadata) { Interest::always() } else { self.log.register_callsite(metadata) }
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        is_warning(metadata) || self.log.enabled(metadata)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.hint)
    }

    fn event(&self, event: &Event<'_>) {
        if is_warning(event.metadata()) {
            // Outside of a call nobody asks.
            _ = WARNED.try_with(|warned| warned.set(true));
        }
        if self.log.enabled(event.metadata()) {
            self.log.event(event);
        }
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        self.log.new_span(span)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        self.log.record(span, values);
    }

    fn record_follows_from(&self, span: &Id, follows: &Id) {
        self.log.record_follows_from(span, follows);
    }

    fn enter(&self, span: &Id) {
        self.log.enter(span);
    }

    fn exit(&self, span: &Id) {
        self.log.exit(span);
    }

    fn clone_span(&self, id: &Id) -> Id {
        self.log.clone_span(id)
    }

    fn try_close(&self, id: Id) -> bool {
        self.log.try_close(id)
    }
}

#[cfg(test)]
mod tests {
    use sqlx::{Connection as _, Executor as _, PgConnection};
    use tidemark_test_support::servers::postgres::url;

    use super::*;

    #[tokio::test]
    async fn a_warning_counts_where_it_is_heard_and_nothing_else_does() {
        let mut connection = PgConnection::connect(url()).await.unwrap();
        let mut say = async |level| {
            let sql = match level {
                "WARNING" => "DO $$ BEGIN RAISE WARNING 'canceling wait'; END $$",
                _ => "DO $$ BEGIN RAISE NOTICE 'canceling wait'; END $$",
            };
            connection.execute(sql).await.unwrap();
        };
        say("WARNING").await;
        assert_eq!(confirmed(say("NOTICE")).await, Ok(()));
        assert_eq!(confirmed(say("WARNING")).await, Err(Unconfirmed));
        assert_eq!(confirmed(say("NOTICE")).await, Ok(()), "each call for itself");
        assert_eq!(confirmed(apart(say("WARNING"))).await, Ok(()));
    }
}
