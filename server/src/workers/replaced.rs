//! Another writer takes the place of one that panicked (S18).

use std::time::Duration;

use tokio::time::{Instant, sleep};
use tracing::error;

use super::watched;

/// The pause after the first panic; each further one is followed by twice as long a pause, up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Runs a writer, and another one after each panic, until one returns. `life` makes a writer from the number of those before it; its polls
/// are timed under `name`.
pub(crate) async fn replaced_after_panics<L>(name: &'static str, mut life: impl FnMut(u64) -> L)
where
    L: Future<Output = ()> + Send + 'static,
{
    let mut pause = FIRST_PAUSE;
    for replaced in 0_u64.. {
        let began = Instant::now();
        match tokio::spawn(watched(name, life(replaced))).await {
            Err(end) if end.is_panic() => {
                error!(writer = name, replaced, "a writer panicked; another one replaces it");
                // The cause of the panic may lie in the store: do not spin on it. After a long life the pauses begin anew.
                if began.elapsed() > LONGEST_PAUSE {
                    pause = FIRST_PAUSE;
                }
                sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
            _ => return,
        }
    }
}
