//! How the driver gets a connection, and from which server: over TCP, or in tests through memory, where time can stand
//! still.

use std::future::Future;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_tungstenite::MaybeTlsStream;

use super::Options;
use crate::error::Error;
use crate::http::Http;
use crate::socket::{Socket, SocketOptions};

/// Makes connections as one user, to one server or to any of several.
pub(super) trait Dial: Send + 'static {
    /// The transport of a connection.
    type Stream: AsyncRead + AsyncWrite + Unpin + Send;

    /// How many servers there are.
    fn servers(&self) -> usize;

    /// Where the last connection went.
    fn address(&self) -> String;

    /// Makes one, to the server in use.
    fn dial(&mut self) -> impl Future<Output = Result<Socket<Self::Stream>, Error>> + Send;

    /// The last connection, or the attempt at it, failed: the next one goes to the next server.
    fn failed(&mut self);
}

/// Connections over TCP, with TLS where the address says so.
#[derive(Debug)]
pub(super) struct TcpDial {
    http: Http,
    options: SocketOptions,
    /// The server of the last connection, by its place in the list.
    place: usize,
}

impl TcpDial {
    pub(super) fn new(http: &Http, options: &Options) -> TcpDial {
        TcpDial { http: http.clone(), options: options.socket, place: http.servers().in_use() }
    }
}

impl Dial for TcpDial {
    type Stream = MaybeTlsStream<TcpStream>;

    fn servers(&self) -> usize {
        self.http.servers().count()
    }

    fn address(&self) -> String {
        self.http.servers().base(self.place).to_string()
    }

    async fn dial(&mut self) -> Result<Socket<Self::Stream>, Error> {
        self.place = self.http.servers().in_use();
        let token = self.http.token().ok_or_else(|| Error::Usage("no token: log in first".to_owned()))?;
        Socket::connect(&self.http.socket_url_at(self.place), token, &self.options).await
    }

    fn failed(&mut self) {
        self.http.servers().failed(self.place);
    }
}
