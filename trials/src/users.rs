//! Users for a benchmark or a fault run, signed up through the public interface.

use std::path::Path;

use futures_util::stream::{self, StreamExt, TryStreamExt};
use tidemark_client::{Account, Http};

use crate::Result;
use crate::server::Server;

/// At a time: the server hashes passwords on its own threads, a few at once.
const AT_ONCE: usize = 8;

/// Signs up `count` users, called `PREFIX-0` and so on, in this order.
pub(crate) async fn sign_up(server: &Http, prefix: &str, count: usize) -> Result<Vec<Account>> {
    let each = (0..count).map(|n| async move {
        let name = format!("{prefix}-{n}");
        Ok(server.sign_up(&name, "a password for a trial").await?)
    });
    stream::iter(each).buffered(AT_ONCE).try_collect().await
}

/// Signs users up with a server of their own: hashing passwords takes memory that the measured one must not show.
pub(crate) async fn installed(
    binary: &Path,
    data: &Path,
    prefix: &str,
    count: usize,
) -> Result<Vec<Account>> {
    let server = Server::start(binary, data).await?;
    let accounts = sign_up(&server.http()?, prefix, count).await?;
    server.stop().await?;
    Ok(accounts)
}
