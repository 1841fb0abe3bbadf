//! A server at work, and its way down: the steps of the start the other way round.

use std::net::SocketAddr;
use std::time::Duration;

use futures_util::future::LocalBoxFuture;
use tokio::time::timeout;
use tracing::{error, info, warn};

use super::core::Core;
use super::storage::Bottom;
use super::tables::TablesAtWork;
use super::web::Web;

/// A server at work.
pub struct RunningServer {
    pub(super) bottom: Bottom,
    pub(super) core: Core,
    pub(super) tables: Option<TablesAtWork>,
    pub(super) web: Web,
}

/// The stop did not finish what had been accepted in time.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("what was accepted could not be finished in time; it will be at the next start")]
pub struct Unfinished;

impl RunningServer {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.web.address
    }

    /// Where the metrics are served, if they have an address of their own.
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.web.metrics_address
    }

    /// Where tables are served, if they are.
    pub fn table_address(&self) -> Option<SocketAddr> {
        self.tables.as_ref().map(|tables| tables.address)
    }

    /// Waits until this server must not serve on, and says why: what it has in memory is of an earlier life of the data (I14), or a newer
    /// program has changed the tables too much for it. The next start goes by what is there now.
    pub async fn must_end(&self) -> String {
        self.bottom.must_end().await
    }

    /// Stops in two phases. First nothing new is taken: no connection, no request, no frame; sockets are told to come
    /// back. Then what was accepted is finished and the files are closed. Both together may take `limit`; requests that
    /// are still under way after half of it are cut off, so that a slow client cannot keep the files open.
    pub fn stop(mut self, limit: Duration) -> LocalBoxFuture<'static, Result<(), Unfinished>> {
        Box::pin(async move {
            info!("stopping: nothing new is taken");
            self.core.begin_stop();
            let finished = timeout(limit, async {
                match timeout(limit / 2, &mut self.web.serving).await {
                    Ok(Ok(())) => {}
                    Ok(Err(error)) => error!(%error, "the HTTP side ended badly"),
                    Err(_) => {
                        warn!("requests that take too long are cut off");
                        self.web.serving.abort();
                    }
                }
                self.core.end_tasks().await;
                info!("stopping: finishing what was accepted");
                if let Some(tables) = &self.tables {
                    tables.service.stop().await;
                }
                self.core.finish().await;
                self.bottom.close().await;
            });
            finished.await.map_err(|_| Unfinished)?;
            info!("stopped");
            Ok(())
        })
    }
}
