//! A section store that fails as told: it stands between the allocator and a store that works.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use seqsvr_core::Epoch;
use seqsvr_core::store::{
    Ceiling, Claimed, Layout, Memory, Owner, RaiseError, Ranges, SectionStore, StoreError,
};
use tokio::sync::Semaphore;

/// A fault of one call of `raise`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RaiseFault {
    /// Nothing is written, and the caller is told so.
    Fails,
    /// Everything is written, but the caller is told that nobody knows.
    CommitsUnseen,
    /// Nothing is written, and the caller is told that nobody knows.
    LostUnseen,
    /// Everything is written, and the answer never comes.
    Hangs,
}

/// A [`Memory`] store with faults in front, one for each of the next raises, and a gate.
pub(crate) struct Faulty {
    inner: Memory,
    faults: Mutex<VecDeque<RaiseFault>>,
    always: Mutex<Option<RaiseFault>>,
    /// One permit is used up by each raise before it reaches the store.
    gate: Semaphore,
    calls: AtomicU64,
    others: AtomicU64,
    raised: Mutex<Vec<Ceiling>>,
}

impl Faulty {
    /// Without faults, and with the gate open.
    pub(crate) fn new() -> Self {
        Self {
            inner: Memory::new(),
            faults: Mutex::default(),
            always: Mutex::default(),
            gate: Semaphore::new(Semaphore::MAX_PERMITS),
            calls: AtomicU64::new(0),
            others: AtomicU64::new(0),
            raised: Mutex::default(),
        }
    }

    /// The next raises fail like this, in order.
    pub(crate) fn then(&self, faults: impl IntoIterator<Item = RaiseFault>) {
        self.faults.lock().unwrap().extend(faults);
    }

    /// Every raise without a fault of its own fails like this; `None` mends the store.
    pub(crate) fn always(&self, fault: impl Into<Option<RaiseFault>>) {
        *self.always.lock().unwrap() = fault.into();
    }

    /// Raises wait from now on until they are let through.
    pub(crate) fn shut(&self) {
        self.gate.forget_permits(Semaphore::MAX_PERMITS);
    }

    /// Lets one raise through.
    pub(crate) fn let_one_through(&self) {
        self.gate.add_permits(1);
    }

    /// How many calls of `raise` have begun.
    pub(crate) fn calls(&self) -> u64 {
        self.calls.load(Ordering::SeqCst)
    }

    /// How many calls of any kind have begun.
    pub(crate) fn asked(&self) -> u64 {
        self.calls() + self.others.load(Ordering::SeqCst)
    }

    /// The requested ceilings, in order.
    pub(crate) fn raises(&self) -> Vec<Ceiling> {
        self.raised.lock().unwrap().clone()
    }
}

#[async_trait]
impl SectionStore for Faulty {
    fn is_exclusive(&self) -> bool {
        true
    }

    async fn newest_epoch(&self) -> Result<Epoch, StoreError> {
        self.others.fetch_add(1, Ordering::SeqCst);
        self.inner.newest_epoch().await
    }

    async fn claim(&self, sections: &Ranges, owner: Owner, layout: Layout) -> Result<Claimed, StoreError> {
        self.others.fetch_add(1, Ordering::SeqCst);
        self.inner.claim(sections, owner, layout).await
    }

    async fn release(&self, sections: &Ranges, owner: Owner) -> Result<(), StoreError> {
        self.others.fetch_add(1, Ordering::SeqCst);
        self.inner.release(sections, owner).await
    }

    async fn raise(&self, owner: Owner, raises: &[Ceiling]) -> Vec<Result<u64, RaiseError>> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        self.raised.lock().unwrap().extend_from_slice(raises);
        self.gate.acquire().await.expect("the gate is never closed").forget();
        let next = self.faults.lock().unwrap().pop_front();
        let fault = next.or(*self.always.lock().unwrap());
        if !matches!(fault, Some(RaiseFault::Fails | RaiseFault::LostUnseen)) {
            let answers = self.inner.raise(owner, raises).await;
            if fault.is_none() {
                return answers;
            }
        }
        if fault == Some(RaiseFault::Hangs) {
            std::future::pending::<()>().await;
        }
        let error = match fault {
            Some(RaiseFault::Fails) => RaiseError::Unavailable("no disk".to_owned()),
            _ => RaiseError::Unknown("the answer was lost".to_owned()),
        };
        raises.iter().map(|_| Err(error.clone())).collect()
    }
}
