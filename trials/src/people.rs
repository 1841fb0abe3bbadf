//! Accounts for a trial, made the way everybody makes them.

use futures_util::stream::{self, StreamExt, TryStreamExt};
use tidemark_client::{Account, Http};

use crate::Result;

/// At a time: the server hashes passwords on its own threads, a few at once.
const AT_ONCE: usize = 8;

/// Signs up `count` people, called `PREFIX-0` and so on, in this order.
pub(crate) async fn sign_up(server: &Http, prefix: &str, count: usize) -> Result<Vec<Account>> {
    let each = (0..count).map(|n| async move {
        let name = format!("{prefix}-{n}");
        Ok(server.sign_up(&name, "a password for a trial").await?)
    });
    stream::iter(each).buffered(AT_ONCE).try_collect().await
}
