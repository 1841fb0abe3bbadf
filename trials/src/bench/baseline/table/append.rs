//! The least that makes rows durable: one file, to which one thread appends what waits, with one sync for all of it.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::mpsc;
use std::thread;

use tokio::sync::oneshot;

use crate::{Failure, Result};

type WaitingRow = (Vec<u8>, oneshot::Sender<()>);

/// The way to the thread; it ends with the last of these.
#[derive(Clone)]
pub(super) struct Appender(mpsc::Sender<WaitingRow>);

impl Appender {
    /// Appends to a new file.
    pub(super) fn new(path: &Path) -> Result<Appender> {
        let file = File::create(path)?;
        let (sender, waiting) = mpsc::channel();
        thread::spawn(move || append_all(file, &waiting));
        Ok(Appender(sender))
    }

    /// Waits until `row` is durable.
    pub(super) async fn append(&self, row: Vec<u8>) -> Result<()> {
        let ended = || Failure::new("the file cannot be written");
        let (done, durable) = oneshot::channel();
        self.0.send((row, done)).map_err(|_| ended())?;
        durable.await.map_err(|_| ended())
    }
}

/// Ends when a write fails, or no caller is left. Callers that wait then get no answer.
fn append_all(mut file: File, waiting: &mpsc::Receiver<WaitingRow>) {
    let (mut block, mut asked) = (Vec::new(), Vec::new());
    while let Ok(first) = waiting.recv() {
        for (row, done) in std::iter::once(first).chain(waiting.try_iter()) {
            block.extend_from_slice(&row);
            asked.push(done);
        }
        if file.write_all(&block).and_then(|()| file.sync_data()).is_err() {
            return;
        }
        block.clear();
        for done in asked.drain(..) {
            // The client may have gone.
            let _ = done.send(());
        }
    }
}
