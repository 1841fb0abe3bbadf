//! The third step of a start, where tables are wanted: their service, at an address of its own.

use std::net::SocketAddr;
use std::sync::Arc;

use tracing::info;

use super::core::Core;
use super::error::BootError;
use super::listen::listen;
use super::options::table_options;
use super::storage::Bottom;
use crate::app::RememberedKeys;
use crate::config::Config;
use crate::http::Tables;
use crate::table::{MayPost, Posts, TableService, WithInboxes};

/// Tables at work.
pub(super) struct TablesAtWork {
    pub(super) service: TableService,
    pub(super) address: SocketAddr,
}

/// Starts it, to be served by `web`: rows of tables beside the inboxes of the chat. `None`: nothing of it is wanted.
pub(super) async fn start(
    config: &Config,
    bottom: &Bottom,
    core: &Core,
) -> Result<Option<(Tables, TablesAtWork)>, BootError> {
    let Some(wanted) = config.table.address()? else { return Ok(None) };
    let (listener, address) = listen(&wanted, "choose another in [table] listen").await?;
    let store = WithInboxes::new(Arc::clone(&bottom.tables), Arc::clone(&bottom.messages));
    let rates = Arc::clone(&core.rates);
    let may_post: MayPost = Arc::new(move |uid| rates.may_post(uid));
    let posts = Posts::new(core.use_cases.messages.clone(), config.limits.text_characters, may_post);
    let service = TableService::start(Arc::new(store), bottom.clock.clone(), table_options(config));
    let service = service.with_posts(posts);
    let keys = RememberedKeys::new(Arc::clone(&bottom.storage.directory));
    info!(%address, "tables are served");
    let at_work = TablesAtWork { service: service.clone(), address };
    Ok(Some((Tables { listener, service, keys: Arc::new(keys) }, at_work)))
}
