//! Web Push: a device that has no connection is told by one push that its inbox has something for its owner, and then by none until it
//! has fetched it.
//!
//! Owns the people whose inboxes have grown since they were looked at (`pending`) and the devices that are connected (`devices`), both
//! bounded and in memory; how far each device was told is the directory's. Commits only name the receivers; `rounds` looks, once a second,
//! whose devices are to be told, so no commit waits for a push service. Names that were not looked at are lost with the process, and found
//! again by what each device has and what its inbox has.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::app::sessions::LiveSession;
use crate::domain::{Clock, MessageId};
use crate::log_limit::LogLimit;
use crate::notify::Notifier;
use crate::push::{DeviceKeys, Endpoint, PushServices};
use crate::store::{Directory, MessageStore, NewPushSubscription, StoreError};

mod delivery;
mod devices;
mod pending;
mod rounds;

pub use devices::ConnectedDevice;
use devices::Devices;
use pending::{Overheard, PendingPeople};

/// Pushes. Cheap to clone. Where the operator has switched them off, nothing is kept and nobody is told.
#[derive(Clone)]
pub struct Push(Option<Arc<PushParts>>);

/// The parts that it lies on.
pub struct PushDependencies {
    /// Keeps the subscriptions.
    pub directory: Arc<Directory>,
    /// Has the rows.
    pub store: Arc<dyn MessageStore>,
    /// The way out.
    pub services: PushServices,
    /// That of all servers of the database.
    pub clock: Clock,
    /// Whether other servers may have connections of the same devices.
    pub is_shared: bool,
}

struct PushParts {
    directory: Arc<Directory>,
    store: Arc<dyn MessageStore>,
    services: PushServices,
    clock: Clock,
    is_shared: bool,
    pending: PendingPeople,
    devices: Devices,
    counts: Counters,
    log: LogLimit,
}

#[derive(Default)]
struct Counters {
    sent: AtomicU64,
    failed: AtomicU64,
    forgotten: AtomicU64,
    under_way: AtomicUsize,
}

/// How many pushes there were, for metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PushCounts {
    /// Pushes that push services have taken.
    pub sent: u64,
    /// Attempts that failed and are repeated, or given up.
    pub failed: u64,
    /// Subscriptions that were forgotten since nothing can be sent there.
    pub forgotten: u64,
    /// People whose devices are still to be looked at, and pushes under way.
    pub waiting: usize,
}

/// A device did not subscribe.
#[derive(Debug, thiserror::Error)]
pub enum SubscribeError {
    /// The operator has switched pushes off.
    #[error("the operator of this server has switched push off ([push] enabled)")]
    Off,
    /// The endpoint lies inside a network.
    #[error("the endpoint is an address inside a network; a push service is on the internet")]
    Inside,
    /// The session has ended.
    #[error("the session has ended; log in again")]
    Ended,
    /// Storage does not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Push {
    /// Pushes are sent.
    pub fn new(dependencies: PushDependencies) -> Push {
        let PushDependencies { directory, store, services, clock, is_shared } = dependencies;
        Push(Some(Arc::new(PushParts {
            directory,
            store,
            services,
            clock,
            is_shared,
            pending: PendingPeople::default(),
            devices: Devices::default(),
            counts: Counters::default(),
            log: LogLimit::default(),
        })))
    }

    /// Nobody is told anything.
    pub fn off() -> Push {
        Push(None)
    }

    /// The key with which browsers subscribe (base64url); `None`: pushes are switched off.
    pub fn public_key(&self) -> Option<String> {
        self.0.as_ref().map(|parts| parts.services.public_key())
    }

    /// The endpoint of the device of `session`, if it is subscribed.
    pub async fn endpoint(&self, session: &LiveSession) -> Result<Option<String>, StoreError> {
        let Some(parts) = &self.0 else { return Ok(None) };
        parts.directory.push_endpoint(&session.token_hash).await
    }

    /// Subscribes the device of `session`, which has the rows up to `seq`; if it does not say, all that are there. The same again says how
    /// far it has come.
    ///
    /// # Errors
    /// [`SubscribeError`].
    pub async fn subscribe(
        &self,
        session: &LiveSession,
        endpoint: &Endpoint,
        keys: &DeviceKeys,
        seq: Option<MessageId>,
    ) -> Result<(), SubscribeError> {
        let parts = self.0.as_ref().ok_or(SubscribeError::Off)?;
        if parts.services.refuses(endpoint) {
            return Err(SubscribeError::Inside);
        }
        // Beyond its inbox it would never be told of anything.
        let latest = parts.store.watermark(session.uid).await?;
        let synced = seq.map_or(latest, |seq| seq.min(latest));
        let device = NewPushSubscription {
            endpoint: endpoint.as_str().to_owned(),
            p256dh: keys.public().to_vec(),
            auth: keys.auth().to_vec(),
        };
        if !parts.directory.subscribe_to_push(&session.token_hash, &device, synced).await? {
            return Err(SubscribeError::Ended);
        }
        parts.pending.subscribed(session.uid);
        Ok(())
    }

    /// Ends the subscription of the device of `session`, if it has one.
    pub async fn unsubscribe(&self, session: &LiveSession) -> Result<(), StoreError> {
        let Some(parts) = &self.0 else { return Ok(()) };
        parts.directory.unsubscribe_from_push(&session.token_hash).await.map(drop)
    }

    /// The device of `session` has a connection, until the answer is dropped: it needs no push.
    pub fn connected(&self, session: &LiveSession) -> Option<ConnectedDevice> {
        let parts = self.0.as_ref()?;
        Some(parts.devices.connected(session.token_hash, session.uid))
    }

    /// The notifier of commits, which also names the receivers here.
    pub fn overhear(&self, notifier: Arc<dyn Notifier>) -> Arc<dyn Notifier> {
        match &self.0 {
            Some(parts) => Arc::new(Overheard { notifier, pending: parts.pending.clone() }),
            None => notifier,
        }
    }

    /// How many there were.
    pub fn counts(&self) -> PushCounts {
        let Some(parts) = &self.0 else { return PushCounts::default() };
        let Counters { sent, failed, forgotten, under_way } = &parts.counts;
        PushCounts {
            sent: sent.load(Ordering::Relaxed),
            failed: failed.load(Ordering::Relaxed),
            forgotten: forgotten.load(Ordering::Relaxed),
            waiting: parts.pending.len() + under_way.load(Ordering::Relaxed),
        }
    }
}
