//! The role StoreSvr: opens the files as it is told to, serves until it is asked to stop, and ends when its storage
//! fails.

use std::fs;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;
use tokio::net::TcpListener;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tonic::server::NamedService;
use tonic::service::interceptor::InterceptedService;

use super::config::{StoreConfig, StoreConfigError};
use super::directory::{Directory, Files};
use super::identity::FilesError;
use super::metrics::Metrics;
use super::service::Service;
use super::state::State;
use super::writer::{ReplicaWriter, WriterLimits};
use seqsvr_rpc::connections::ConnectionsError;
use seqsvr_rpc::grpc_server::{GrpcServer, bind, serve_metrics};
use seqsvr_rpc::security::{Listen, SecurityError};
use seqsvr_rpc::store::{LARGEST_ANSWER, LARGEST_QUESTION};
use seqsvr_rpc::v1::store_server::StoreServer;

/// How long calls in flight may take to end when the replica stops.
const GRACE: Duration = Duration::from_secs(5);

/// How a replica begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// With the files that are there.
    Open,
    /// As an empty one with an id of its own. It votes in nothing before it is a member: by the first configuration of a new Set,
    /// or taken in by one that serves.
    Init,
}

/// Why a replica did not start, or stopped by itself.
#[derive(Debug, Error)]
pub enum ServeError {
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] StoreConfigError),
    /// So are its bounds of connections.
    #[error(transparent)]
    Connections(#[from] ConnectionsError),
    /// Certificates or tokens are wrong.
    #[error(transparent)]
    Security(#[from] SecurityError),
    /// The files cannot be served from, or failed.
    #[error(transparent)]
    Files(#[from] FilesError),
    /// An address cannot be listened on, or the server ended.
    #[error("{0}")]
    Server(String),
}

/// A replica with its files open and its addresses bound, not yet serving.
pub struct Replica {
    config: StoreConfig,
    listen: Listen,
    server: GrpcServer,
    /// Where metrics are served.
    page: Option<TcpListener>,
    /// Writes the metrics that its program adds to its own.
    more_metrics: Arc<dyn Fn() -> String + Send + Sync>,
    state: State,
    files: Files,
}

impl Replica {
    /// Checks the configuration and opens the files.
    ///
    /// # Errors
    ///
    /// Every [`ServeError`]: nothing is served then.
    pub async fn open(config: StoreConfig, start: Start) -> Result<Self, ServeError> {
        config.check()?;
        config.connections.check()?;
        let listen = Listen::load(&config.security, config.listen, false)?;
        if start != Start::Open {
            fs::create_dir_all(&config.directory).map_err(FilesError::io(&config.directory))?;
        }
        let directory =
            Directory::lock(&config.directory, config.identity(), config.layout(), config.file_bytes)?;
        let (state, files) = match start {
            Start::Open => directory.open()?,
            Start::Init => directory.init()?,
        };
        let server =
            GrpcServer::open(config.listen, &listen, config.connections).await.map_err(ServeError::Server)?;
        let page = match config.metrics_listen {
            Some(listen) => Some(bind(listen).await.map_err(ServeError::Server)?),
            None => None,
        };
        Ok(Self { config, listen, server, page, more_metrics: Arc::new(String::new), state, files })
    }

    /// Shows the text of `more` among its metrics.
    pub fn with_metrics(self, more: impl Fn() -> String + Send + Sync + 'static) -> Self {
        Self { more_metrics: Arc::new(more), ..self }
    }

    /// Where callers reach it: `http://host:port` or `https://host:port`.
    ///
    /// # Errors
    ///
    /// [`ServeError::Server`].
    pub fn address(&self) -> Result<String, ServeError> {
        let addr = self.server.address().map_err(ServeError::Server)?;
        Ok(format!("{}://{addr}", self.listen.scheme()))
    }

    /// Serves until `shutdown`, then lets the calls in flight end and closes the files.
    ///
    /// # Errors
    ///
    /// [`ServeError::Files`] when the storage failed: nothing was answered since. [`ServeError::Server`].
    pub async fn serve(self, shutdown: impl Future<Output = ()> + Send) -> Result<(), ServeError> {
        let Self { config, listen, server, page, more_metrics, state, files } = self;
        let identity = Arc::new(config.identity());
        let stop = CancellationToken::new();
        let metrics = Metrics::new();
        let (mut writer, asker) =
            ReplicaWriter::start(state, files, WriterLimits::default(), stop.clone(), metrics.clone());
        let store = StoreServer::new(Service {
            identity: Arc::clone(&identity),
            section_size: config.section_size,
            asker,
        })
        .max_decoding_message_size(LARGEST_QUESTION)
        .max_encoding_message_size(LARGEST_ANSWER);
        let (health, limiter) =
            (server.health(<StoreServer<Service> as NamedService>::NAME).await, server.limiter());
        health.set_serving::<StoreServer<Service>>().await;
        let server = server.with(InterceptedService::new(store, listen.guard()));
        tracing::info!("{identity} serves");
        let halt = async {
            tokio::select! {
                () = shutdown => {}
                () = writer.ended() => {}
                () = stop.cancelled() => {}
            }
            health.set_not_serving::<StoreServer<Service>>().await;
            stop.cancel();
        };
        let served = async {
            let served = tokio::select! {
                served = server.serve(stop.clone()) => served,
                () = late(&stop) => Ok(()),
            };
            stop.cancel();
            served
        };
        let shown = async {
            let Some(page) = page else { return Ok(()) };
            serve_metrics(page, limiter, move || more_metrics() + &metrics.text(), stop.clone()).await
        };
        let (served, shown, ()) = tokio::join!(served, shown, halt);
        writer.stop().await?;
        served.and(shown).map_err(ServeError::Server)?;
        tracing::info!("{identity} has stopped");
        Ok(())
    }
}

/// Calls that do not end after a stop are cut off.
async fn late(stop: &CancellationToken) {
    stop.cancelled().await;
    sleep(GRACE).await;
}
