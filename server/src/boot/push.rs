//! Web Push: the key of the installation, and what the configuration says of push services.

use std::sync::Arc;

use super::error::BootError;
use super::storage::Bottom;
use crate::app::{Push, PushDependencies};
use crate::config::Config;
use crate::push::{PushOptions, PushServices, VapidKey};

/// Pushes over these parts, unless they are switched off. The first start makes the key. `is_shared`: there may be other servers.
pub(super) async fn push(config: &Config, bottom: &Bottom, is_shared: bool) -> Result<Push, BootError> {
    if !config.push.enabled {
        return Ok(Push::off());
    }
    let directory = Arc::clone(&bottom.storage.directory);
    let key = VapidKey::from_stored(&directory.push_key(&VapidKey::draw()?).await?)?;
    let options = PushOptions {
        allowed: config.push.allow.iter().map(|range| range.net()).collect(),
        contact: config.server.public_origin().filter(|origin| origin.starts_with("https://")),
    };
    Ok(Push::new(PushDependencies {
        directory,
        store: Arc::clone(&bottom.messages),
        services: PushServices::new(key, options),
        clock: bottom.clock.clone(),
        is_shared,
    }))
}
