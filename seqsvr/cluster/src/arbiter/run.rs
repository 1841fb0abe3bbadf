//! The shell around the arbiter's core. The core decides. The shell calls the stores and probes the AllocSvrs, and gives
//! the core their answers. It does so until it is told to stop.
//!
//! There is one shell for each Set of an arbiter. It owns the core and the calls under way. `cli::arbiter` runs it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::core::{Action, Arbiter, ArbiterEvent, Change, ChangeOutcome};
use super::probe::Prober;
use super::view::ArbiterView;
use crate::store::Stores;
use seqsvr_core::clock;
use seqsvr_core::store::SetTerms;
use seqsvr_core::store::tables::{RoutingTableStore, WriteError};

/// Between two attempts to store the first configuration.
const ESTABLISH: Duration = Duration::from_millis(500);

/// Waits until the Set has a configuration, and stores the first one when all stores are new. Until then nothing is served.
pub async fn establish(stores: &Stores, terms: &SetTerms) {
    let mut told = String::new();
    while let Err(why) = stores.establish(terms).await {
        let why = why.to_string();
        if why != told {
            warn!("the Set has no configuration yet: {why}");
            told = why;
        }
        sleep(ESTABLISH).await;
    }
}

/// Operators' changes that wait to be looked at.
const ORDERS: usize = 16;

/// The way to a running arbiter; cheap to clone.
#[derive(Clone)]
pub struct Handle {
    orders: mpsc::Sender<Order>,
    view: watch::Receiver<ArbiterView>,
}

struct Order {
    change: Change,
    answer: oneshot::Sender<ChangeOutcome>,
}

impl Handle {
    /// Asks for a change, and waits until it is carried out or refused. `None`: the arbiter has stopped.
    pub(crate) async fn change(&self, change: Change) -> Option<ChangeOutcome> {
        let (answer, outcome) = oneshot::channel();
        self.orders.send(Order { change, answer }).await.ok()?;
        outcome.await.ok()
    }

    /// The view of the arbiter, always the newest.
    pub fn view(&self) -> watch::Receiver<ArbiterView> {
        self.view.clone()
    }
}

/// An arbiter that is not running yet.
pub struct Shell {
    arbiter: Arbiter,
    tables: Arc<dyn RoutingTableStore>,
    prober: Prober,
    orders: mpsc::Receiver<Order>,
    view: watch::Sender<ArbiterView>,
    under_way: FuturesUnordered<BoxFuture<'static, ArbiterEvent>>,
    answers: BTreeMap<u64, oneshot::Sender<ChangeOutcome>>,
    asked: u64,
    /// Why the stores did not answer when last asked.
    lost: Option<String>,
}

impl Shell {
    /// The shell of `arbiter`, and the handle by which services reach it.
    pub fn new(arbiter: Arbiter, tables: Arc<dyn RoutingTableStore>, prober: Prober) -> (Self, Handle) {
        let (order_to, orders) = mpsc::channel(ORDERS);
        let (view, seen) = watch::channel(ArbiterView::default());
        let shell = Self {
            arbiter,
            tables,
            prober,
            orders,
            view,
            under_way: FuturesUnordered::new(),
            answers: BTreeMap::new(),
            asked: 0,
            lost: None,
        };
        (shell, Handle { orders: order_to, view: seen })
    }

    /// Arbitrates until `stop`. Work under way is then dropped: the next arbiter that acts completes it.
    ///
    /// # Errors
    ///
    /// One line: the stores hold a Set of another shape.
    pub async fn run(mut self, stop: CancellationToken) -> Result<(), String> {
        let mut event = ArbiterEvent::Start;
        loop {
            self.note(&event);
            for action in self.arbiter.on(clock::now(), event) {
                self.carry_out(action)?;
            }
            ArbiterView::of(&self.arbiter, self.lost.clone()).publish(&self.view);
            let pause = self.arbiter.wake_at().map(|at| at.since(clock::now()));
            event = tokio::select! {
                () = stop.cancelled() => return Ok(()),
                Some(event) = self.under_way.next() => event,
                Some(order) = self.orders.recv() => self.take(order),
                () = sleep(pause.unwrap_or_default()), if pause.is_some() => ArbiterEvent::Wake,
            };
        }
    }

    /// Says once when the stores are lost and once when they are back; and that another arbiter may have the same number.
    fn note(&mut self, event: &ArbiterEvent) {
        if let ArbiterEvent::Promised { term, outcome: Err(WriteError::Outranked(by)) } = event
            && by == term
        {
            let advice = "check that no other arbiter of the Set has the same `number`";
            warn!(term, "the term of this arbiter was promised before; {advice}");
        }
        let failed = match event {
            ArbiterEvent::Read { outcome } => outcome.as_ref().err(),
            ArbiterEvent::Acted { outcome } => outcome.as_ref().err(),
            _ => return,
        };
        match failed {
            Some(why) if self.lost.is_none() => warn!(%why, "the stores cannot be reached; trying again"),
            None if self.lost.is_some() => info!("the stores can be reached again"),
            _ => {}
        }
        self.lost = failed.map(ToString::to_string);
    }

    fn take(&mut self, order: Order) -> ArbiterEvent {
        self.asked += 1;
        self.answers.insert(self.asked, order.answer);
        ArbiterEvent::Change { id: self.asked, change: order.change }
    }

    fn carry_out(&mut self, action: Action) -> Result<(), String> {
        let tables = Arc::clone(&self.tables);
        let work: BoxFuture<'static, ArbiterEvent> = match action {
            Action::Read { revisions, wait } => {
                Box::pin(async move { ArbiterEvent::Read { outcome: tables.read(&revisions, wait).await } })
            }
            Action::Promise { term } => Box::pin(async move {
                let outcome = tables.promise(term).await;
                ArbiterEvent::Promised { term, outcome }
            }),
            Action::Write(table) => Box::pin(async move {
                let outcome = tables.write(&table).await;
                if let Err(why) = &outcome {
                    warn!(version = %table.version, %why, "a routing table was not written");
                }
                ArbiterEvent::Written { version: table.version, outcome }
            }),
            Action::Acting { term } => {
                Box::pin(async move { ArbiterEvent::Acted { outcome: tables.acting(term).await } })
            }
            Action::Probe { node, addr } => self.prober.probe(node, &addr),
            Action::Answer { id, outcome } => {
                // The caller may have gone.
                let _ = self.answers.remove(&id).map(|answer| answer.send(outcome));
                return Ok(());
            }
            Action::Misfit(line) => return Err(line),
        };
        self.under_way.push(work);
        Ok(())
    }
}
