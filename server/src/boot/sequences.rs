//! The sequences: opened, and compared with the rows.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use seqsvr_client::{Client, ClientConfig, ClusterSequencer};
use seqsvr_core::Embedded;
use seqsvr_core::store::sqlite::SqliteSections;
use tokio_util::task::AbortOnDropHandle;
use tracing::warn;

use super::{BootError, Storage};
use crate::config::{Config, DatabaseKind, MessageIds, MessageIdsSetting, SequenceSource};
use crate::domain::MessageId;
use crate::seq::{Numbers, Sequences};
use crate::store::sqlite::stamp;
use crate::store::{MessageStore, StoreError};
use crate::transfer::{Look, latest_ids, overtake_rows};

/// The sequences of the installation.
pub async fn sequencer(config: &Config) -> Result<Sequences, BootError> {
    match config.sequence.source {
        SequenceSource::Embedded => Ok(Sequences::Embedded(embedded(config).await?)),
        SequenceSource::Cluster => {
            let client = Client::new(&ClientConfig::read(Path::new(&config.sequence.client_config))?)?;
            Ok(Sequences::Cluster(Arc::new(ClusterSequencer::new(client))))
        }
    }
}

/// The sequences in this process, with their ceilings in a file beside the database.
async fn embedded(config: &Config) -> Result<Arc<Embedded>, BootError> {
    let file = config.storage.file()?.with_file_name("sequence.db");
    let sections = SqliteSections::open(&file).await?;
    let options = seqsvr_core::Options {
        section_size: config.sequence.section_size,
        step: config.sequence.step,
        limit: MessageId::MAX.get(),
        ..seqsvr_core::Options::default()
    };
    Ok(Arc::new(Embedded::open(Arc::new(sections), options).await?))
}

/// Fills in `[messages] ids = "auto"` as the installation was made. Files that cannot be read are told when they are opened, and not here.
///
/// # Errors
/// The configuration names a cluster, and in this installation the database assigns the ids.
pub fn as_installed(config: &Config) -> Result<Cow<'_, Config>, BootError> {
    let is_open = config.messages.ids == MessageIdsSetting::Auto
        && config.storage.database_url.kind() == DatabaseKind::Sqlite;
    let made_with = if is_open { stamp::message_ids(&config.storage.file()?) } else { None };
    let ids = match made_with.as_deref() {
        Some("store") => MessageIdsSetting::Store,
        Some("seqsvr") => MessageIdsSetting::Seqsvr,
        _ => return Ok(Cow::Borrowed(config)),
    };
    let mut config = config.clone();
    config.messages.ids = ids;
    config.check()?;
    Ok(Cow::Owned(config))
}

/// Where the ids of messages come from: the database, or the sequences.
pub(super) async fn numbers_of_messages(
    config: &Config,
    ids_from: MessageIds,
    storage: &Storage,
    messages: &Arc<dyn MessageStore>,
) -> Result<(Option<Sequences>, Numbers), BootError> {
    match ids_from {
        MessageIds::Store => Ok((None, Numbers::of_the_store())),
        MessageIds::Seqsvr => {
            let (sequences, numbers) = compared_sequencer(config, storage, messages).await?;
            Ok((Some(sequences), numbers))
        }
    }
}

/// The sequences, which go on above the rows: a sequence that is behind them (its file was lost or is older, or another one is
/// the source now) is advanced. With a cluster that does not answer, each sequence is compared when it is used.
async fn compared_sequencer(
    config: &Config,
    storage: &Storage,
    messages: &Arc<dyn MessageStore>,
) -> Result<(Sequences, Numbers), BootError> {
    let adjacent = config.sequence.section_size;
    let (rows, accounts) = (Arc::clone(messages), Arc::clone(&storage.directory));
    // Read while the ceilings are loaded, which takes as long.
    let latest = async move { latest_ids(&*rows, &accounts, adjacent, Look::Sample).await };
    let latest = AbortOnDropHandle::new(tokio::spawn(latest));
    let mut sequences = sequencer(config).await?;
    let behind = match latest.await {
        Ok(Ok(latest)) => overtake_rows(&*sequences, &latest).await,
        Ok(Err(unread)) => Err(unread),
        Err(died) => Err(StoreError::unavailable(died).into()),
    };
    let behind = behind.unwrap_or_else(|error| {
        warn!(%error, "the sequence cannot be compared with the rows now; that is done as they are written");
        0
    });
    if behind > 0 && matches!(sequences, Sequences::Embedded(_)) {
        // Opened again, every sequence of those sections begins at the raised ceiling.
        sequences.shutdown().await;
        drop(sequences);
        sequences = sequencer(config).await?;
    }
    let numbers = Numbers::new(sequences.sequencer(), adjacent);
    numbers.note_overtaken(behind);
    Ok((sequences, numbers))
}
