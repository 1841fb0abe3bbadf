//! The number lines: opened, and compared with the rows.

use std::path::Path;
use std::sync::Arc;

use seqsvr::Embedded;
use seqsvr::client::{Client, ClientConfig, ClusterSequencer};
use seqsvr::store::sqlite::SqliteSections;
use tracing::warn;

use super::{BootError, Storage};
use crate::config::{Config, SequenceSource};
use crate::domain::MessageId;
use crate::seq::{Lines, Numbers};
use crate::store::MessageStore;
use crate::transfer::{Look, overtake_rows};

/// The number lines of the installation.
pub async fn sequencer(config: &Config) -> Result<Lines, BootError> {
    match config.sequence.source {
        SequenceSource::Embedded => Ok(Lines::Embedded(embedded(config).await?)),
        SequenceSource::Cluster => {
            let client = Client::new(&ClientConfig::read(Path::new(&config.sequence.client_config))?)?;
            Ok(Lines::Cluster(Arc::new(ClusterSequencer::new(client))))
        }
    }
}

/// The number lines in this process, with their ceilings in a file beside the database.
async fn embedded(config: &Config) -> Result<Arc<Embedded>, BootError> {
    let file = config.storage.file()?.with_file_name("sequence.db");
    let sections = SqliteSections::open(&file).await?;
    let options = seqsvr::Options {
        section_size: config.sequence.section_size,
        step: config.sequence.step,
        limit: MessageId::MAX.get(),
        ..seqsvr::Options::default()
    };
    Ok(Arc::new(Embedded::open(Arc::new(sections), options).await?))
}

/// The number lines, which go on above the rows: a sequence that is behind them (its file was lost or is older, or another one is
/// the source now) is advanced. With a cluster that does not answer, each line is compared when it is used.
pub(super) async fn compared_sequencer(
    config: &Config,
    storage: &Storage,
    messages: &dyn MessageStore,
) -> Result<(Lines, Numbers), BootError> {
    let adjacent = config.sequence.section_size;
    let mut lines = sequencer(config).await?;
    let behind = overtake_rows(&*lines, messages, &*storage.directory, adjacent, Look::Sample).await;
    let behind = behind.unwrap_or_else(|error| {
        warn!(%error, "the sequence cannot be compared with the rows now; that is done as they are written");
        0
    });
    if behind > 0 && matches!(lines, Lines::Embedded(_)) {
        // Opened again, every line of those sections begins at the raised ceiling.
        lines.shutdown().await;
        drop(lines);
        lines = sequencer(config).await?;
    }
    let numbers = Numbers::new(lines.sequencer(), adjacent);
    numbers.note_overtaken(behind);
    Ok((lines, numbers))
}
