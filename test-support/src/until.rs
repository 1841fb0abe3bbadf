//! Waiting for what another process does, which gives no event: the one place in these tests that looks again and
//! again.

use std::time::{Duration, Instant};

/// How long anything may take, on a machine that is busy with other things: far longer than it does. A test that needs it has
/// failed.
pub const PATIENCE: Duration = Duration::from_secs(120);

const PAUSE: Duration = Duration::from_millis(5);

/// Returns once `done`.
pub async fn until(what: &str, mut done: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !done().await {
        assert!(Instant::now() < deadline, "not within {PATIENCE:?}: {what}");
        tokio::time::sleep(PAUSE).await;
    }
}
