//! Slows down an address whose requests are refused one after the other, such as one that guesses tokens or asks again
//! and again above its rate: beyond a rate of refusals (`Rates`) their answers wait, and so do look-ups of unknown tokens
//! in the database. A client that waits for its answers so asks no faster than the rate.
//!
//! Called by `layers::request_context` for each answer and by `extract::session` for each token. The state is the
//! rate's alone.

use std::net::IpAddr;
use std::time::Duration;

use axum::http::StatusCode;
use tokio::time::sleep;

use super::state::HttpState;

/// Waits, if the requests of `address` were refused too often, before something is done for somebody unknown.
pub(super) async fn wait_turn(state: &HttpState, address: IpAddr) {
    delay(state, state.rates.refusals_owed(address)).await;
}

/// Counts an answer with this status to `address` where it is a refusal, and waits if there were too many.
pub(super) async fn slow_down(state: &HttpState, address: IpAddr, status: StatusCode) {
    if status.is_client_error() || status == StatusCode::SERVICE_UNAVAILABLE {
        delay(state, state.rates.refused(address)).await;
    }
}

async fn delay(state: &HttpState, wait: Duration) {
    if wait.is_zero() {
        return;
    }
    state.metrics.refusals_delayed.inc();
    tokio::select! {
        () = sleep(wait) => {}
        () = state.sockets.stopping.cancelled() => {}
    }
}
