//! The second step of a start: notices, queues, and the use cases over them. No address is listened on yet.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::info;

use super::chance::random_uuid;
use super::error::BootError;
use super::file_place;
use super::options::{ephemeral_options, file_options, queue_options};
use super::others::Hinting;
use super::push::push;
use super::storage::Bottom;
use super::tasks::Tasks;
use crate::app::{
    Attachments, Audit, Consent, Conversations, Due, DueNotices, ENTRIES_BYTES, Ephemerals, Files, Groups,
    InboxSync, IndexerOptions, Invites, Messages, Moments, Operators, Others, People, Pictures, Presence,
    Push, Reports, Search, SearchOptions,
};
use crate::config::Config;
use crate::domain::PageLimit;
use crate::files::FilePlace;
use crate::http::{Rates, UseCases};
use crate::notify::{Local, Notifier, SharedNotifier};
use crate::queue::{DailyLimit, QueueParts, Queues, Watermarks};

/// Users whose latest committed id is kept in memory beside those who are connected.
const KNOWN_WATERMARKS: usize = 1_000_000;

/// Everything between the database and the addresses.
pub(super) struct Core {
    pub(super) use_cases: UseCases,
    /// Of all who send in an account's name.
    pub(super) rates: Arc<Rates>,
    pub(super) queues: Queues,
    /// What the index of words has to do.
    pub(super) due: Arc<Due>,
    /// Ends the tasks, and all that is served.
    pub(super) stopping: CancellationToken,
    tasks: TaskTracker,
    hints: Hinting,
}

/// Starts it. First other servers are heard, before anything is read that they may change.
pub(super) async fn start(config: &Config, bottom: &Bottom) -> Result<Core, BootError> {
    let hints = Hinting::default();
    let others = bottom.storage.others(config, &hints).await?;
    let local = Local::new();
    let messages = Arc::clone(&bottom.messages);
    let (notifier, watermarks): (Arc<dyn Notifier>, _) = match &others {
        Some(others) => (
            Arc::new(SharedNotifier::new(local.clone(), Arc::clone(&others.hints))),
            Watermarks::of_shared(messages, KNOWN_WATERMARKS),
        ),
        None => (Arc::new(local.clone()), Watermarks::new(messages, KNOWN_WATERMARKS)),
    };
    let push = push(config, bottom, others.is_some()).await?;
    let notifier = push.overhear(notifier);
    let due = Arc::new(Due::new(IndexerOptions::default().rows));
    let notifier: Arc<dyn Notifier> = match config.search.index {
        true => Arc::new(DueNotices { due: Arc::clone(&due), inner: notifier }),
        false => notifier,
    };
    let parts = QueueParts {
        numbers: bottom.numbers.clone(),
        store: Arc::clone(&bottom.messages),
        directory: Arc::clone(&bottom.storage.directory_for_queues),
        notifier: Arc::clone(&notifier),
        watermarks: watermarks.clone(),
        clock: bottom.clock.clone(),
        new_uuid: Arc::new(random_uuid),
        rates: others.as_ref().map(|others| Arc::clone(&others.rates)),
    };
    let queues = Queues::start(parts, queue_options(config));
    info!(queues = config.queues.count, "the queues take requests");

    let search = Search::new(
        Arc::clone(&bottom.messages),
        Arc::clone(&bottom.search_index),
        Arc::clone(&due),
        SearchOptions::default(),
    );
    let place = file_place::of_server(config, &bottom.storage).await?;
    let use_cases = use_cases(
        config,
        bottom,
        &queues,
        notifier,
        watermarks.clone(),
        others.clone(),
        (search, place, push),
    );
    let (stopping, tasks) = (CancellationToken::new(), TaskTracker::new());
    let running = Tasks { use_cases: &use_cases, stopping: &stopping, tasks: &tasks };
    running.of_every_server();
    running.of_deletions(bottom, &queues, others.is_some());
    running.of_retention(config, bottom);
    running.of_search(config, bottom, &due);
    running.of_files();
    running.of_others(config, watermarks, local, others);
    let rates = Arc::new(Rates::new(&config.limits));
    Ok(Core { use_cases, rates, queues, due, stopping, tasks, hints })
}

fn use_cases(
    config: &Config,
    bottom: &Bottom,
    queues: &Queues,
    notifier: Arc<dyn Notifier>,
    watermarks: Watermarks,
    others: Option<Others>,
    (search, place, push): (Search, FilePlace, Push),
) -> UseCases {
    let (storage, limits) = (&bottom.storage, &config.limits);
    let store = || Arc::clone(&bottom.messages);
    let directory = || Arc::clone(&storage.directory);
    let strangers = DailyLimit::new(
        "strangers",
        limits.strangers_per_account_per_day,
        bottom.clock.clone(),
        others.as_ref().map(|others| Arc::clone(&others.rates)),
    );
    let consent = Consent::new(store(), strangers);
    let presence = Presence::new(others.as_ref().map(|others| Arc::clone(&others.hints)));
    let pull = PageLimit { rows: limits.entries_rows, bytes: ENTRIES_BYTES };
    let (ids, clock) = (bottom.ids.clone(), bottom.clock.clone());
    let people = People::new(store(), directory(), queues.clone(), limits.friends);
    let groups =
        Groups::new(store(), directory(), queues.clone(), ids.clone(), consent, Arc::new(random_uuid));
    let accounts = storage.accounts_beside(config, clock.clone(), others);
    let audit = Audit::new(directory(), clock.clone());
    let attachments = Attachments::new(directory(), store(), clock.clone());
    let (new_uuid, of_files) = (Arc::new(random_uuid), file_options(config));
    let files = Files::new(directory(), store(), place, clock.clone(), of_files, new_uuid);
    let ephemerals =
        Ephemerals::new(store(), directory(), presence, ephemeral_options(config), bottom.clock.clone());
    let pictures =
        Pictures::new(files.clone(), people.clone(), groups.clone(), accounts.clone(), ephemerals.clone());
    UseCases {
        operators: Operators::new(accounts.clone(), directory(), audit, clock.clone()),
        accounts,
        messages: Messages::new(queues.clone()),
        sync: InboxSync::new(store(), watermarks, notifier, bottom.history, pull),
        conversations: Conversations::new(store(), directory(), limits.conversations),
        search,
        moments: Moments::new(
            store(),
            people.clone(),
            queues.clone(),
            attachments.clone(),
            limits.text_characters,
        ),
        files,
        attachments,
        people,
        invites: Invites::new(directory(), groups.clone(), ids.clone(), clock.clone()),
        reports: Reports::new(directory(), store(), groups.clone(), clock),
        groups,
        push,
        ephemerals,
        pictures,
        ids,
    }
}

impl Core {
    /// Takes nothing new.
    pub(super) fn begin_stop(&self) {
        self.stopping.cancel();
        self.tasks.close();
    }

    /// Waits for the tasks, which may write.
    pub(super) async fn end_tasks(&self) {
        self.tasks.wait().await;
    }

    /// Finishes what was accepted.
    pub(super) async fn finish(&self) {
        self.use_cases.push.finish().await;
        self.queues.stop().await;
        self.hints.stop().await;
    }
}
