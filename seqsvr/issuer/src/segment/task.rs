//! The task behind a strategy: made with the strategy, started once by its `init`, ended by its `shutdown` or when it
//! is dropped. Owned by the strategies of segments, in memory and in Redis.

use std::mem;

use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::strategy::IssueError;
use crate::tag::Tag;

/// A task that brings the numbers of one tag.
pub(crate) trait Task: Send + 'static {
    /// Checks the settings against what is stored. Storage that is away is no error.
    fn load(&mut self) -> impl Future<Output = Result<(), IssueError>> + Send;

    /// Works until the token that it was made with is cancelled.
    fn run(self) -> impl Future<Output = ()> + Send;
}

/// A [`Task`] that waits to be started, runs, or has ended.
pub(crate) struct TaskHandle<T> {
    tag: Tag,
    stop: CancellationToken,
    state: Mutex<TaskState<T>>,
}

enum TaskState<T> {
    Waits(Box<T>),
    Runs(JoinHandle<()>),
    Ended,
}

impl<T: Task> TaskHandle<T> {
    /// The task that `make` makes, which stops when its token is cancelled.
    pub(crate) fn new(tag: Tag, make: impl FnOnce(CancellationToken) -> T) -> Self {
        let stop = CancellationToken::new();
        let state = Mutex::new(TaskState::Waits(Box::new(make(stop.clone()))));
        Self { tag, stop, state }
    }

    /// Loads and starts it.
    ///
    /// # Errors
    ///
    /// [`IssueError::Final`] when it was started before, and what [`Task::load`] answers; it has ended then.
    pub(crate) async fn start(&self) -> Result<(), IssueError> {
        let mut state = self.state.lock().await;
        let TaskState::Waits(mut task) = mem::replace(&mut *state, TaskState::Ended) else {
            return Err(IssueError::Final(format!("{}: init was called twice", self.tag)));
        };
        task.load().await?;
        *state = TaskState::Runs(tokio::spawn(task.run()));
        Ok(())
    }

    /// Stops it, and waits until it has ended.
    pub(crate) async fn shutdown(&self) {
        self.stop.cancel();
        let state = mem::replace(&mut *self.state.lock().await, TaskState::Ended);
        if let TaskState::Runs(task) = state
            && let Err(error) = task.await
        {
            tracing::error!(tag = %self.tag, %error, "the task that takes the numbers of a tag panicked");
        }
    }
}

impl<T> Drop for TaskHandle<T> {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
