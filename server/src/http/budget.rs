//! A budget of bytes for what waits in memory on its way in or out: request bodies, answers, and frames with rows. In
//! all, and for one client network, so that one network that never reads leaves room for the others.
//!
//! Owned by the HTTP state. A [`Charge`] is taken before the bytes are made, and dropped when they have left.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use futures_util::poll;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::error::Problem;
use super::limits::ClientNetwork;

/// Bytes that one permit stands for.
const UNIT: usize = 1_024;

/// How long a request waits for room before it is refused.
const PATIENCE: Duration = Duration::from_secs(5);

/// The budget. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Budget(Arc<BudgetState>);

#[derive(Debug)]
struct BudgetState {
    all: Arc<Semaphore>,
    /// Permits of one network.
    most: u32,
    /// The networks that hold or await something.
    networks: Mutex<HashMap<ClientNetwork, Arc<Semaphore>>>,
}

/// Bytes that are taken from the budget until this is dropped.
#[derive(Debug)]
pub(super) struct Charge {
    inner: Arc<BudgetState>,
    /// The network that it counts for, if it counts for one, and its permits of that network.
    own: Option<(ClientNetwork, Option<OwnedSemaphorePermit>)>,
    /// Its permits of what all share. These and the network's are `None` until they are taken.
    all: Option<OwnedSemaphorePermit>,
}

impl Budget {
    /// `all` bytes, of which one network holds at most `per_network`.
    pub(super) fn new(all: usize, per_network: usize) -> Budget {
        let all = permits(all);
        let most = permits(per_network).min(all);
        let all = Arc::new(Semaphore::new(all as usize));
        Budget(Arc::new(BudgetState { all, most, networks: Mutex::default() }))
    }

    /// Waits until `bytes` are there for `network`; `None` counts for none of them. More than a network may hold counts as all that it
    /// may hold.
    pub(super) async fn take(&self, network: impl Into<Option<ClientNetwork>>, bytes: usize) -> Charge {
        let inner = Arc::clone(&self.0);
        let wanted = permits(bytes).min(inner.most);
        // Dropped early, when the caller gives up waiting, it forgets the network.
        let mut charge = Charge { inner, own: network.into().map(|network| (network, None)), all: None };
        if let Some((network, permit)) = &mut charge.own {
            let own = charge.inner.semaphore(*network);
            // Its own first: the line for what all share holds no more of one network than it may have.
            *permit = Some(own.acquire_many_owned(wanted).await.expect("never closed"));
        }
        let all = Arc::clone(&charge.inner.all).acquire_many_owned(wanted).await.expect("never closed");
        charge.all = Some(all);
        charge
    }

    /// The same for a request, which is refused when the room is not there soon.
    pub(super) async fn take_soon(
        &self,
        network: impl Into<Option<ClientNetwork>>,
        bytes: usize,
    ) -> Result<Charge, Problem> {
        let mut taking = pin!(self.take(network, bytes));
        // Nearly always there is room: then no clock is asked.
        match poll!(taking.as_mut()) {
            Poll::Ready(charge) => Ok(charge),
            Poll::Pending => timeout(PATIENCE, taking).await.map_err(|_| busy()),
        }
    }
}

impl BudgetState {
    fn networks(&self) -> MutexGuard<'_, HashMap<ClientNetwork, Arc<Semaphore>>> {
        self.networks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn semaphore(&self, network: ClientNetwork) -> Arc<Semaphore> {
        let mut networks = self.networks();
        Arc::clone(networks.entry(network).or_insert_with(|| Arc::new(Semaphore::new(self.most as usize))))
    }
}

impl Charge {
    /// Corrects the charge to `bytes`, now that they are made. Refuses when they are more and there is no room for that.
    pub(super) fn settle(&mut self, bytes: usize) -> Result<(), Problem> {
        let wanted = permits(bytes).min(self.inner.most) as usize;
        let Some(all) = &mut self.all else { return Ok(()) };
        let mut own = self.own.as_mut().and_then(|(_, permit)| permit.as_mut());
        let held = all.num_permits();
        if wanted <= held {
            drop((own.and_then(|own| own.split(held - wanted)), all.split(held - wanted)));
            return Ok(());
        }
        let more = u32::try_from(wanted - held).unwrap_or(u32::MAX);
        let more_of = |permit: &OwnedSemaphorePermit| {
            Arc::clone(permit.semaphore()).try_acquire_many_owned(more).map_err(|_| busy())
        };
        let more_own = own.as_deref().map(more_of).transpose()?;
        all.merge(more_of(all)?);
        if let (Some(own), Some(more)) = (&mut own, more_own) {
            own.merge(more);
        }
        Ok(())
    }

    /// `text` as a body that is charged until the last byte of it has left.
    pub(super) fn body(mut self, text: String) -> Result<Body, Problem> {
        self.settle(text.capacity())?;
        Ok(self.body_as_settled(text.into_bytes()))
    }

    /// `bytes` as a body that keeps what is charged until the last byte of it has left.
    pub(super) fn body_as_settled(self, bytes: Vec<u8>) -> Body {
        Body::from(Bytes::from_owner(Charged { bytes, _charge: self }))
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        let Some((network, permit)) = self.own.take() else { return };
        drop(permit);
        let mut networks = self.inner.networks();
        if networks.get(&network).is_some_and(|own| Arc::strong_count(own) == 1) {
            networks.remove(&network);
        }
    }
}

struct Charged {
    bytes: Vec<u8>,
    _charge: Charge,
}

impl AsRef<[u8]> for Charged {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

fn permits(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX).max(1)
}

fn busy() -> Problem {
    let detail = "too much data is on its way to or from your address; read the answers, then try again";
    Problem::passing(StatusCode::SERVICE_UNAVAILABLE, "busy", detail)
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use futures_util::FutureExt as _;

    use super::*;

    fn network(n: u8) -> ClientNetwork {
        ClientNetwork::of(IpAddr::from([10, 0, 0, n]))
    }

    #[tokio::test]
    async fn a_network_that_holds_its_share_waits_and_the_others_do_not() {
        let budget = Budget::new(100 * UNIT, 10 * UNIT);
        let held = budget.take(network(1), 10 * UNIT).await;
        assert!(budget.take(network(1), 1).now_or_never().is_none());
        let other = budget.take(network(2), 5 * UNIT).now_or_never().expect("room");
        drop(held);
        let again = budget.take(network(1), 1).now_or_never().expect("room again");
        drop((other, again));
        assert!(budget.0.networks().is_empty(), "nobody is remembered");
    }

    #[tokio::test]
    async fn all_together_hold_no_more_than_there_is() {
        let budget = Budget::new(10 * UNIT, 6 * UNIT);
        let first = budget.take(network(1), 6 * UNIT).await;
        assert!(budget.take(network(2), 6 * UNIT).now_or_never().is_none());
        drop(first);
        assert!(budget.take(network(2), 6 * UNIT).now_or_never().is_some());
        assert!(budget.0.networks().is_empty(), "nor who gave up waiting");
    }

    #[tokio::test]
    async fn what_counts_for_no_network_holds_all_that_there_is_and_no_more() {
        let budget = Budget::new(10 * UNIT, 6 * UNIT);
        let first = budget.take(None, 6 * UNIT).await;
        let mut second = budget.take(None, 3 * UNIT).now_or_never().expect("room");
        assert!(second.settle(5 * UNIT).is_err() && budget.take(None, 2 * UNIT).now_or_never().is_none());
        drop(first);
        second.settle(5 * UNIT).expect("room");
        assert!(budget.take(network(1), 6 * UNIT).now_or_never().is_none(), "it is shared with networks");
        second.settle(UNIT).expect("less");
        assert!(budget.take(network(1), 6 * UNIT).now_or_never().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_made_corrects_the_charge_and_a_request_waits_for_its_time_only() {
        let budget = Budget::new(10 * UNIT, 10 * UNIT);
        let mut charge = budget.take(network(1), 8 * UNIT).await;
        charge.settle(UNIT).expect("less");
        let other = budget.take(network(2), 8 * UNIT).now_or_never().expect("given back");
        assert_eq!(charge.settle(5 * UNIT).expect_err("no room").code, "busy");
        let refused = budget.take_soon(network(3), 5 * UNIT).await.expect_err("no room");
        assert!(refused.retryable && refused.code == "busy");
        drop(other);
        charge.settle(5 * UNIT).expect("room");
        let body = charge.body("x".repeat(UNIT)).expect("less");
        assert!(budget.take(network(2), 9 * UNIT).now_or_never().is_some());
        assert!(budget.take(network(2), 10 * UNIT).now_or_never().is_none(), "until it has left");
        drop(body);
        assert!(budget.take(network(2), 10 * UNIT).now_or_never().is_some());
    }
}
