//! Lets messages name files. What a message is about to name is written down before it is sent, so that no file goes that a row may
//! name; a message that is never stored after that costs a file some time in which nobody needs it.

use std::sync::Arc;

use crate::domain::{Attached, Clock, Conversation, IdempotencyKey, SaidOfFile, Uid};
use crate::queue::{OutgoingMessage, SendError};
use crate::store::{Directory, FileUse, MessageStore, StoreError};

/// See the module.
#[derive(Clone)]
pub struct Attachments {
    directory: Arc<Directory>,
    store: Arc<dyn MessageStore>,
    clock: Clock,
}

impl Attachments {
    /// Over what the directory knows of files.
    pub fn new(directory: Arc<Directory>, store: Arc<dyn MessageStore>, clock: Clock) -> Attachments {
        Attachments { directory, store, clock }
    }

    /// Looks up the files of a message of `who`; of one that forwards a row, that row's. Those that it cannot name stay unknown, and the
    /// queue refuses the message, unless it was sent before (I4).
    ///
    /// # Errors
    /// When storage does not answer.
    pub async fn attach_to(&self, who: Uid, message: &mut OutgoingMessage) -> Result<(), SendError> {
        let (key, to) = ((who, message.client_id), message.to);
        let Some(row) = message.forward else {
            return self.attach(key, to, &[], &mut message.files).await;
        };
        let entry = self.store.entry(who, row).await.map_err(unavailable)?;
        let files = entry.map(|entry| entry.content.files()).unwrap_or_default();
        message.files = files.iter().map(|file| Attached::said(file.id(), SaidOfFile::default())).collect();
        self.look_up(key, to, &[], None, &mut message.files).await
    }

    /// Like `attach_to`, for what also goes to `holders`, who do not follow from the conversation.
    pub(super) async fn attach(
        &self,
        key: IdempotencyKey,
        to: Conversation,
        holders: &[Uid],
        files: &mut [Attached],
    ) -> Result<(), SendError> {
        self.look_up(key, to, holders, Some(key.0), files).await
    }

    async fn look_up(
        &self,
        key: IdempotencyKey,
        to: Conversation,
        holders: &[Uid],
        owner: Option<Uid>,
        files: &mut [Attached],
    ) -> Result<(), SendError> {
        if files.is_empty() {
            return Ok(());
        }
        let of = FileUse { key, target: to, holders: holders.to_vec(), at: self.clock.now() };
        let ids: Vec<_> = files.iter().map(|file| file.id).collect();
        let known = self.directory.use_files(&ids, owner, &of).await.map_err(unavailable)?;
        for known in known {
            let facts = Arc::new(known.facts);
            for file in files.iter_mut().filter(|file| file.id == facts.id) {
                file.facts = Some(Arc::clone(&facts));
            }
        }
        Ok(())
    }
}

fn unavailable(_: StoreError) -> SendError {
    SendError::Unavailable
}
