//! How the driver gets a connection: over TCP, or in tests through memory, where time can stand still.

use std::future::Future;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_tungstenite::MaybeTlsStream;

use super::Options;
use crate::error::Error;
use crate::http::Http;
use crate::socket::{Socket, SocketOptions};

/// Makes connections to one server as one user.
pub(super) trait Dial: Send + 'static {
    /// What a connection runs over.
    type Stream: AsyncRead + AsyncWrite + Unpin + Send;

    /// Makes one.
    fn dial(&mut self) -> impl Future<Output = Result<Socket<Self::Stream>, Error>> + Send;
}

/// Connections over TCP, with TLS where the address says so.
#[derive(Debug)]
pub(super) struct TcpDial {
    http: Http,
    options: SocketOptions,
}

impl TcpDial {
    pub(super) fn new(http: &Http, options: &Options) -> TcpDial {
        TcpDial { http: http.clone(), options: options.socket }
    }
}

impl Dial for TcpDial {
    type Stream = MaybeTlsStream<TcpStream>;

    async fn dial(&mut self) -> Result<Socket<Self::Stream>, Error> {
        let token = self.http.token().ok_or_else(|| Error::Usage("no token: log in first".to_owned()))?;
        Socket::connect(&self.http.socket_url(), token, &self.options).await
    }
}
